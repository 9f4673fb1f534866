# SPDX-License-Identifier: Apache-2.0
"""Goodin 2018 §3.4.1, Fig. 5: ranges of a diverging beam in a stand of cylinder grass, beside two closed forms.

A single beam of 1 mrad looks at a stand 10 m wide and 5 m deep from 20 or 30 m, from random places along it. As in the
paper, the receiver averages over 100 m: the closed forms know no cutoff. Many stands are drawn, so that one lucky gap
does not decide. The closed forms do not say how a pulse is sampled, so it is done with ours, drawn anew for each pulse
or fixed, and with the paper's own stencil and processing (receivers.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Beams
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.receivers import WAYS
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.plants import PLANTS
from hedgerow.sensor.config import Beam
from hedgerow.world import Scene
from hedgerow.world.pulsed import PhysicsWorld


@dataclass(frozen=True)
class Stand:
    """A stand of grass in front of a beam, and the closed forms for the range of the beam (Goodin 2018 §3.4.1).

    Stems are upright cylinders of one diameter at independent places. Both laws begin at the edge of the stand and know
    its depth only by being cut off there.
    """

    distance_m: float
    """D, from the sensor to the edge."""
    stems_per_m2: float
    """lambda."""
    diameter_m: float
    """d, of a stem."""
    divergence_rad: float
    """gamma, full angle of the beam."""
    depth_m: float = np.inf
    """How far the stand reaches behind its edge; beams that pass it give no range."""

    def exponential(self, range_m: ArrayLike) -> Array:
        """Share of returns up to (N,) ranges if the nearest stem in the beam answers (Goodin 2018 eq. 2).

        The paper's exponent has (r + D)² / 2; only with (r + D) / 2 is its density one, so that is what is meant.
        """
        r, a = np.asarray(range_m, dtype=np.float64), 2 * np.tan(self.divergence_rad / 2)

        def passed(r: Array | float) -> Array:
            into = np.maximum(np.asarray(r) - self.distance_m, 0)
            rate = self.stems_per_m2 * self.diameter_m
            return np.exp(-rate * into * (1 + a * (into + 2 * self.distance_m) / 2))

        end = passed(self.distance_m + self.depth_m) if np.isfinite(self.depth_m) else 0.0
        return np.minimum((1 - passed(r)) / (1 - end), 1)

    def gamma(self, range_m: ArrayLike) -> Array:
        """Share of returns up to (N,) ranges if the beam averages over its spot (Goodin 2018 eqs. 4 and 5)."""
        from scipy import special

        shape = 1 + self.divergence_rad * self.distance_m**2
        rate = shape * self.stems_per_m2 * self.diameter_m
        into = np.maximum(np.asarray(range_m, dtype=np.float64) - self.distance_m, 0)
        return np.minimum(special.gammainc(shape, rate * into) / special.gammainc(shape, rate * self.depth_m), 1)


DISTANCES_M = (20.0, 30.0)
STEMS_PER_M2 = (50.0, 100.0)
DIAMETERS_M = (0.01, 0.02)
DIVERGENCE_MRAD = 1.0
WIDTH_M, DEPTH_M, HEIGHT_M = 10.0, 5.0, 1.0
N_STANDS = 40
PEAK_BIN_M, PEAK_SMOOTH_M = 0.02, 0.06
DRAWN = "ours, drawn"
ALL_WAYS = {DRAWN: BeamSettings(sampling="stratified"), **WAYS}


@dataclass(frozen=True)
class Case:
    """One curve of the figure."""

    stand: Stand
    way: str
    """How pulses were sampled and received."""
    range_m: Array
    """Of the pulses that returned."""

    @property
    def distances(self) -> tuple[float, float]:
        """Kolmogorov-Smirnov distance of the ranges to the exponential and to the gamma law."""
        return ks_distance(self.range_m, self.stand.exponential), ks_distance(self.range_m, self.stand.gamma)

    @property
    def peak_error_m(self) -> float:
        """How far the most likely range is from the gamma law's; both smoothed, as a histogram has no sharp peak."""
        edges = self.stand.distance_m + np.arange(0, DEPTH_M + PEAK_BIN_M / 2, PEAK_BIN_M)
        found = np.histogram(self.range_m, edges)[0] / len(self.range_m)
        kernel = np.exp(-0.5 * (np.arange(-8, 9) * PEAK_BIN_M / PEAK_SMOOTH_M) ** 2)
        peaks = [int(np.convolve(each, kernel, "same").argmax()) for each in (found, np.diff(self.stand.gamma(edges)))]
        return PEAK_BIN_M * abs(peaks[0] - peaks[1])


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Fire `size` pulses (default 20,000) in each of the paper's eight cases and each way, compare with both laws."""
    cases: list[Case] = []
    for distance_m in DISTANCES_M:
        for stems in STEMS_PER_M2:
            for diameter_m in DIAMETERS_M:
                stand = Stand(distance_m, stems, diameter_m, DIVERGENCE_MRAD * 1e-3, DEPTH_M)
                for way, range_m in ranges(stand, size or 20_000, seed).items():
                    cases.append(Case(stand, way, range_m))
                    say("{}: D {:g} m, {:g} stems/m², {:g} mm: exponential {:.3f}, gamma {:.3f}".format(
                        way, *_row(cases[-1])
                    ))  # fmt: skip
    picture = folder / "grass-ranges.png"
    _draw([case for case in cases if case.way == DRAWN], picture)
    return Outcome(text=_text(cases), pictures=(picture,))


def ranges(stand: Stand, n_pulses: int, seed: int, ways: Mapping[str, BeamSettings] = ALL_WAYS) -> dict[str, Array]:
    """Return the ranges of those of `n_pulses` that come back from stands like this one, by way [m]."""
    divergence_mrad = stand.divergence_rad * 1e3
    beam = Beam(
        spot="circular",
        divergence_horizontal_mrad=divergence_mrad,
        divergence_vertical_mrad=divergence_mrad,
        wavelength_nm=905,
    )
    given: dict[str, Any] = {"beam": beam, "mode": "first", "cutoff_m": 100.0}
    rng = np.random.default_rng(seed)
    found: dict[str, list[Array]] = {way: [] for way in ways}
    for _ in range(N_STANDS):
        scene = _grown(stand, rng)
        beams = _beams(stand, n_pulses // N_STANDS, rng)
        for way, settings in ways.items():
            returns = PhysicsWorld(scene, settings.model_copy(update=given)).fire(beams, seed).returns
            found[way].append(returns.range_m[returns.hit].astype(np.float64))
    return {way: np.concatenate(parts) for way, parts in found.items()}


def _grown(stand: Stand, rng: np.random.Generator) -> Scene:
    """Grow one such stand, its edge at x = 0."""
    scene = Scene()
    parts = PLANTS["cylinder-grass"].grow(
        seed=int(rng.integers(2**32)),
        side_m=DEPTH_M,
        side_y_m=WIDTH_M,
        density_per_m2=stand.stems_per_m2,
        diameter_m=stand.diameter_m,
        height_m=HEIGHT_M,
        sides=16,
    )
    for part in parts:
        scene.add_mesh(*part.mesh.moved((DEPTH_M / 2, 0, 0)), reflectance=0.5)
    return scene


def _beams(stand: Stand, n: int, rng: np.random.Generator) -> Beams:
    """Look along x at the middle of the stems, from random places; the stand is wider than any beam can see."""
    y = rng.uniform(-0.45, 0.45, n) * WIDTH_M
    origin = np.stack([np.full(n, -stand.distance_m), y, np.full(n, HEIGHT_M / 2)], axis=1)
    return Beams.from_arrays(origins=origin, directions=np.tile([1.0, 0.0, 0.0], (n, 1)))


def ks_distance(range_m: Array, law: Callable[[Array], Array]) -> float:
    """Return the largest difference between the shares of ranges and a law's."""
    at = np.sort(range_m)
    share, n = law(at), len(at)
    return float(max(np.max(np.arange(1, n + 1) / n - share), np.max(share - np.arange(n) / n)))


def _row(case: Case) -> tuple[float, ...]:
    stand = case.stand
    return stand.distance_m, stand.stems_per_m2, stand.diameter_m * 1e3, *case.distances


def _text(cases: list[Case]) -> str:
    ways = list(dict.fromkeys(case.way for case in cases))
    head = ["D [m]", "stems per m²", "diameter [mm]", *(f"{way}: exponential, gamma" for way in ways)]
    rows: dict[tuple[float, ...], list[str]] = {}
    for case in cases:
        *where, exponential, gamma = _row(case)
        cells = [f"**{v:.3f}**" if v == min(exponential, gamma) else f"{v:.3f}" for v in (exponential, gamma)]
        rows.setdefault(tuple(where), [f"{v:g}" for v in where]).append(", ".join(cells))
    title = "Kolmogorov-Smirnov distance between the ranges and the closed forms of Goodin 2018 (lower is nearer)."
    words = [_words(way, [case for case in cases if case.way == way]) for way in ways]
    return "\n\n".join([title, markdown_table(head, rows.values()), "\n".join(words)])


def _words(way: str, cases: list[Case]) -> str:
    """Say how often the gamma law is nearer, and which stems it fits better."""
    wins = sum(case.distances[1] < case.distances[0] for case in cases)
    thin, thick = ([case for case in cases if case.stand.diameter_m == diameter_m] for diameter_m in DIAMETERS_M)
    fits = [fmean(case.distances[1] for case in some) for some in (thin, thick)]
    peaks = [fmean(case.peak_error_m for case in some) for some in (thin, thick)]
    return (
        f"- {way}: the gamma law is the nearer one in {wins} of {len(cases)} cases. Its mean distance is {fits[0]:.3f} "
        f"on thin stems and {fits[1]:.3f} on thick ones; its most likely range is off by {peaks[0]:.2f} and "
        f"{peaks[1]:.2f} m."
    )


def _draw(cases: list[Case], path: Path) -> None:
    figure = new_figure(11, 7.5)
    panels: Any = figure.subplots(2, 2).ravel()
    for panel, letter, pair in zip(panels, "abcd", zip(cases[::2], cases[1::2], strict=True), strict=True):
        for case, colour in zip(pair, ("tab:blue", "tab:orange"), strict=True):
            _draw_case(panel, case, colour)
        stand = pair[0].stand
        panel.set(
            title=f"({letter}) D = {stand.distance_m:g} m, {stand.stems_per_m2:g} stems per m²",
            xlabel="range into the stand [m]",
            ylabel="density [1/m]",
            xlim=(0, DEPTH_M),
        )
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    save_figure(figure, path)


def _draw_case(panel: Any, case: Case, colour: str) -> None:
    stand, edges = case.stand, np.linspace(0, DEPTH_M, 61)
    into = case.range_m - stand.distance_m
    panel.hist(into, edges, density=True, color=colour, alpha=0.35, label=f"{stand.diameter_m * 1e3:g} mm, simulated")
    fine = np.linspace(0, DEPTH_M, 401)
    middle = (fine[1:] + fine[:-1]) / 2
    for law, style, name in ((stand.gamma, "-", "gamma"), (stand.exponential, ":", "exponential")):
        panel.plot(middle, np.diff(law(fine + stand.distance_m)) / np.diff(fine), style, color=colour, label=name)
