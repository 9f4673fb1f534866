# SPDX-License-Identifier: Apache-2.0
"""The slow, obvious beam: sub-ray directions, receiver and waveform straight from the words, one pulse at a time."""

from typing import Literal

import numpy as np

from hedgerow import Beams, Scene
from hedgerow.sensor.config import Beam

DIM = 1e-6  # light that black things count as, so that a mean is defined
MORE = 1 + 1e-6  # of windows closer than this the nearest is the strongest


def light_cone(
    spot: Literal["circular", "rectangular", "elliptical"] = "circular",
    horizontal_mrad=10.0,
    vertical_mrad=None,
    aperture_mm=0.0,
):
    vertical_mrad = horizontal_mrad if vertical_mrad is None else vertical_mrad
    return Beam(
        spot=spot,
        divergence_horizontal_mrad=float(horizontal_mrad),
        divergence_vertical_mrad=float(vertical_mrad),
        aperture_horizontal_mm=float(aperture_mm),
        aperture_vertical_mm=float(aperture_mm),
        wavelength_nm=905.0,
    )


def axis(direction):
    direction = np.asarray(direction, dtype=float)
    return direction / np.linalg.norm(direction, axis=-1, keepdims=True)


def sub_ray_directions(direction, points, beam):
    """Directions (S, 3) of the sub-rays of one pulse, and their offsets (S, 3) at the aperture."""
    direction = axis(direction)
    left = axis([-direction[1], direction[0], 0.0])
    up = np.cross(direction, left)
    tan = np.tan(np.array([beam.divergence_horizontal_mrad, beam.divergence_vertical_mrad]) * 1e-3 / 2)
    half = np.array([beam.aperture_horizontal_mm, beam.aperture_vertical_mm]) * 1e-3 / 2
    frame = np.stack([left, up])
    return axis(direction + (points * tan) @ frame), (points * half) @ frame


def wall(x_m, *, y=(-50.0, 50.0), z=(-40.0, 60.0), scene=None, **finish):
    """A plane across the x axis; its diagonal is not, since a ray along an edge meets two triangles."""
    scene = Scene() if scene is None else scene
    corners = [[x_m, y[0], z[0]], [x_m, y[1], z[0]], [x_m, y[1], z[1]], [x_m, y[0], z[1]]]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], **finish)
    return scene


def ahead(n=1, origin=(0.0, 0.0, 0.0), **more):
    return Beams.from_arrays(origins=origin, directions=np.tile([1.0, 0.0, 0.0], (n, 1)), **more)


def received(range_m, light, mode, cutoff_m, threshold=0.0, max_returns=5):
    """Returns of one pulse: list of (range, intensity, index of the brightest), nearest first.

    Args:
        range_m, light: (S,) of the sub-rays; inf where nothing was met.
    """
    hits = [i for i in np.argsort(range_m, kind="stable") if np.isfinite(range_m[i])]
    share = 1 / len(range_m)

    def bright(window):
        return sum(light[i] for i in window) * MORE >= threshold

    def reach(r):
        return np.float32(np.float32(r) + np.float32(cutoff_m))

    from_here = [[j for j in hits[k:] if range_m[j] <= reach(range_m[i])] for k, i in enumerate(hits)]
    to_here = [[j for j in hits[: k + 1] if range_m[i] <= reach(range_m[j])] for k, i in enumerate(hits)]
    windows = {"first": next((w for w in from_here if bright(w)), None)}
    windows["last"] = next((w for w in reversed(to_here) if bright(w)), None)
    strongest = None
    for window in from_here:
        if strongest is None or sum(light[window]) > MORE * sum(light[strongest]):
            strongest = window
    windows["strongest"] = strongest if strongest and bright(strongest) else None
    windows["second"] = None
    if strongest and windows["strongest"]:
        first, end = hits.index(strongest[0]), hits.index(strongest[-1]) + 1
        best = None
        for side in (hits[:first], hits[end:]):
            for k, i in enumerate(side):
                window = [j for j in side[k:] if range_m[j] <= reach(range_m[i])]
                if best is None or sum(light[window]) > MORE * sum(light[best]):
                    best = window
        windows["second"] = best if best and bright(best) else None
    if mode == "second":
        chosen = [w for w in (windows["second"] or windows["strongest"],) if w]
    elif mode == "strongest+last-or-second":
        same = windows["last"] == windows["strongest"]
        chosen = [w for w in (windows["strongest"], windows["second" if same else "last"]) if w]
    elif mode == "all":
        chosen, start = [], 0
        while start < len(hits) and len(chosen) < max_returns:
            window = from_here[start]
            if bright(window):
                chosen.append(window)
                start = hits.index(window[-1])
            start += 1
    else:
        chosen = [windows[name] for name in mode.split("+")]
        chosen = [w for i, w in enumerate(chosen) if w and w not in chosen[:i]]
    echoes = []
    for window in chosen:
        weight = np.array([light[i] + DIM * share for i in window])
        mean = float((weight * [float(range_m[i]) for i in window]).sum() / weight.sum())
        echoes.append((mean, float(sum(light[i] for i in window)), max(window, key=lambda i: (light[i], -range_m[i]))))
    return sorted(echoes)


def received_rays(range_m, intensity, mode, cutoff_m, threshold=0.0):
    """Returns of one pulse as the text of Goodin 2018 §3.2.3 has them: (range, intensity, index of the most intense).

    Args:
        range_m, intensity: (S,) of the sub-rays; inf where nothing was met.
    """
    seen = [i for i in range(len(range_m)) if np.isfinite(range_m[i]) and intensity[i] * MORE >= threshold]
    if not seen:
        return []
    strongest = min(seen, key=lambda i: (-intensity[i], range_m[i]))
    last = min(seen, key=lambda i: (-range_m[i], -intensity[i]))
    if mode == "first":
        reach = np.float32(np.float32(min(range_m[i] for i in seen)) + np.float32(cutoff_m))
        within = [i for i in seen if range_m[i] <= reach]
        brightest = min(within, key=lambda i: (-intensity[i], range_m[i]))
        return [(np.mean(range_m[within], dtype=float), np.mean(intensity[within], dtype=float), brightest)]
    chosen = {"strongest": [strongest], "last": [last], "strongest+last": list(dict.fromkeys([strongest, last]))}[mode]
    return [(float(range_m[i]), float(intensity[i]), i) for i in chosen]


def recorded(range_m, light, at_m, fwhm_m, slant_m=0.0):
    """The signal of one pulse at (K,) ranges: a Gaussian for each sub-ray that met something.

    Args:
        slant_m: (S,) standard deviation of the range within each sub-ray's part of the spot: makes echoes longer and
            lower, with as much light in all.
    """
    signal = np.zeros(len(at_m))
    for r, strength, slant in zip(range_m, light, np.broadcast_to(slant_m, len(range_m)), strict=True):
        if np.isfinite(r):
            length_m = np.hypot(fwhm_m, np.sqrt(8 * np.log(2)) * slant)
            height = (strength + DIM / len(range_m)) * fwhm_m / length_m
            signal += height * np.exp(-4 * np.log(2) * ((at_m - r) / length_m) ** 2)
    return signal


def detected(echoes, normals, mode, detection, max_returns=5):
    """What a receiver reports of the echoes of one pulse: their numbers, nearest first.

    Args:
        echoes: (range, light) of each, nearest first.
        normals: one standard normal number for each.
        mode: return mode.
        detection: of the sensor's file.
    """
    light = [strength * np.exp(detection.softness * z) for (_, strength), z in zip(echoes, normals, strict=True)]
    ranked = []
    for i in sorted(range(len(echoes)), key=lambda i: (-light[i], i)):
        if not ranked:
            seen = light[i] >= detection.threshold
        else:
            seen = light[i] >= detection.second_threshold * detection.threshold
            seen &= light[i] >= detection.second_ratio * light[ranked[0]]
            seen &= all(abs(echoes[i][0] - echoes[j][0]) >= detection.separation_m for j in ranked)
        if seen:
            ranked.append(i)
    if not ranked:
        return []
    strongest, last = ranked[0], max(ranked)
    second = ranked[1:2]
    chosen = {
        "first": [min(ranked)],
        "strongest": [strongest],
        "last": [last],
        "second": second or [strongest],
        "strongest+last": [strongest, last],
        "strongest+second": [strongest, *second],
        "strongest+last-or-second": [strongest, *([last] if last != strongest else second)],
        "all": sorted(ranked)[:max_returns],
        "waveform": sorted(ranked)[:max_returns],
    }[mode]
    return sorted(set(chosen))


def peaks_of(samples, at_m, threshold=0.0):
    """Peaks of a sampled signal: list of (range, height, full width at half maximum), as the words have it."""
    found = []
    for k in range(1, len(samples) - 1):
        before, here, after = samples[k - 1 : k + 2]
        if not (here > before and here >= after and here >= 1e-6 * samples.max()):
            continue
        a, b, c = np.log(np.maximum(samples[k - 1 : k + 2], 1e-37))
        offset = np.clip(0.5 * (a - c) / (a - 2 * b + c), -0.5, 0.5) if a - 2 * b + c < 0 else 0.0
        height = np.exp(b - 0.25 * (a - c) * offset)
        if height < threshold:
            continue
        ends = []
        for side in (-1, 1):
            j = k
            while 0 <= j + side < len(samples) and samples[j + side] >= height / 2 and samples[j + side] <= samples[j]:
                j += side
            fell = samples[j] - samples[j + side]
            part = (samples[j] - height / 2) / fell if samples[j + side] < height / 2 and fell > 0 else 0.0
            ends.append(j + side * part)
        step_m = at_m[1] - at_m[0]
        found.append((at_m[k] + offset * step_m, height, (ends[1] - ends[0]) * step_m))
    return found
