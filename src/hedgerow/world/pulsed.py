# SPDX-License-Identifier: Apache-2.0
"""PhysicsWorld: a scene seen by pulses with width, through a receiver (Goodin 2018 §3.2).

Meshes, learned Gaussians, permeable or not, and placed copies of them all take part in one beam: every sub-ray throws
its own coins. A pulse gives a return if any of its sub-rays does, whatever its axis meets.

Range noise of surfaces (`SurfaceNoise`) is that of the electronics: one draw per return, by range, incidence and
material of its brightest sub-ray. Where in a Gaussian a sub-ray ends is geometry: each sub-ray draws its own.

The spot's axes are "left", horizontal in the map, and "up", as a level sensor has them: beams do not tell how the
sensor is rolled, so the spot of a tilted one stays level.

`fire_pulses` is the border to the kernel of that name: settings go over as one struct, answers come back by name. A new
setting of the receiver is a field of its struct and one line of its binding (`cpp/pulse`, `cpp/bind/pulses.cpp`), and a
field of `BeamSettings` that is handed over in `_pulse_settings`. Equations: docs/models.md §17 to §19.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.base import arrays
from hedgerow.base.arguments import as_number, require_kind
from hedgerow.base.box import Box
from hedgerow.base.progress import Progress
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.pulse.receiver import BeamSettings, PulseOptics, resolve_pulse
from hedgerow.pulse.waveform import LIGHT_M_PER_NS, Waveforms, range_of_ns
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import Detection, ReturnMode
from hedgerow.world.scene import Scene, require_threads
from hedgerow.world.world import Answered, Shot, World, objects_column, require_end_of_range

_MAX_WAVEFORM_BYTES = 4 << 30


@dataclass(frozen=True, slots=True, eq=False)
class SubRayHits:
    """What each sub-ray met within the range limits; (N, S) each. Nothing met: inf, NaN, 0, -1."""

    range_m: NDArray[np.float32]
    intensity: NDArray[np.float32]
    """Of the element, before shares and falloff."""
    label: NDArray[np.uint16]
    element: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PulseReturns:
    """The returns of some pulses, and the details that were asked for."""

    returns: Returns
    """(N,), or (N, R) in modes that give several, nearest first."""
    sub_rays: SubRayHits | None
    """If asked for."""
    echo_width_ns: NDArray[np.float32] | None
    """(N, R) full width at half maximum of each return's echo, NaN without one; of recorded signals [ns]."""
    amplitude: NDArray[np.float32] | None
    """(N, R) light at the peak of each return's echo, NaN without one; of recorded signals: who is strongest."""
    waveforms: Waveforms | None
    """If asked for, of recorded signals: mode waveform, or signal sensor."""


def fire_pulses(
    scene: Scene,
    beams: Beams,
    optics: PulseOptics,
    settings: BeamSettings,
    limits_m: tuple[float, float],
    *,
    seed: int = 0,
    sub_rays: bool = False,
    waveforms: bool = False,
    threads: int = 0,
    progress: Progress | None = None,
) -> PulseReturns:
    """Fire pulses with width at a scene.

    Args:
        scene: what they are fired at.
        beams: the axes of the pulses, map frame, in any order.
        optics: stencil, cone, return mode and cutoff, resolved from settings and sensor.
        settings: all other settings of the receiver.
        limits_m: nearest and farthest range of a return [m].
        seed: same seed, same answer, on any number of threads and for any slice of the beams.
        sub_rays: whether to keep what each sub-ray met.
        waveforms: whether to keep the recorded signals.
        threads: 0 for all.
        progress: called between batches with the number of beams done.

    Raises:
        InputError: a wrong seed or number of threads; or waveforms are wanted where none are recorded, without a
            maximum range, or more of them than fit into memory.
    """
    records = optics.mode == "waveform" or optics.detection is not None
    step_m = range_of_ns((optics.detection or settings.waveform).sample_ns)
    if waveforms and not records:
        raise InputError("waveforms", f"only mode waveform and signal sensor record them, the mode is {optics.mode}")
    first, n_samples = _clock(step_m, len(beams), limits_m) if waveforms else (0, 0)
    answer = _core.fire_pulses(
        scene.native,
        scene.beam_arrays(beams),
        _pulse_settings(optics, settings, limits_m, require_seed(seed)),
        _core.PulseDetails(sub_rays=sub_rays, first_sample=first, n_samples=n_samples),
        threads=require_threads(threads),
        progress=progress,
    )
    range_m = step_m * np.arange(first, first + n_samples, dtype=np.float64)
    return PulseReturns(
        returns=_returns(scene, answer, optics.detection),
        sub_rays=_sub_rays(answer.sub_rays) if sub_rays else None,
        echo_width_ns=answer.width_m * np.float32(2 / LIGHT_M_PER_NS) if records else None,
        amplitude=answer.amplitude if records else None,
        waveforms=Waveforms(answer.samples, range_m) if waveforms else None,
    )


def pulse_log_likelihood(
    scene: Scene,
    log: Log,
    optics: PulseOptics,
    *,
    min_sigma_m: float = 0.001,
    threads: int = 0,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Return the (N,) log density of each pulse's first return, or of its absence, within the log's own limits.

    A mixture over the sub-rays, each with its share of the light (docs/models.md §32).

    Raises:
        InputError: a wrong number of threads, or `min_sigma_m`.
    """
    as_number("min_sigma_m", min_sigma_m, 0, arrays.FARTHEST_M)
    return _core.pulse_log_likelihood(
        scene.native,
        scene.beam_arrays(log.beams),
        range_m=np.ascontiguousarray(log.returns.first_m),
        spot=_spot(optics),
        limits=_core.RangeLimits(min_m=log.min_range_m, max_m=log.max_range_m),
        min_sigma_m=min_sigma_m,
        threads=require_threads(threads),
        progress=progress,
    )


def _spot(optics: PulseOptics) -> _core.Spot:
    return _core.Spot(
        points=optics.stencil.points,
        cells=optics.stencil.cells,
        share=optics.stencil.share,
        round=optics.stencil.round,
        half_m=optics.cone.half_m,
        tangent=optics.cone.tangent,
        part_sigma=optics.stencil.part_sigma,
    )


def _pulse_settings(
    optics: PulseOptics, settings: BeamSettings, limits_m: tuple[float, float], seed: int
) -> _core.PulseSettings:
    """Return the settings as the kernel takes them."""
    low_m, high_m = limits_m
    detection = optics.detection
    falloff_m = settings.falloff_range_m if settings.range_falloff else 0.0
    digitiser = detection or settings.waveform
    return _core.PulseSettings(
        spot=_spot(optics),
        light=_core.LightModel(
            falloff_m=falloff_m if detection is None else detection.range_m,
            falloff=2.0 if detection is None else detection.falloff,
            unknown_intensity=settings.unknown_intensity,
        ),
        limits=_core.RangeLimits(min_m=low_m, max_m=high_m),
        receiver=_core.Receiver(
            mode=native_mode(optics.mode),
            processing=_core.Processing[settings.processing if detection is None else "detected"],
            cutoff_m=optics.cutoff_m,
            threshold=settings.threshold,
            max_returns=settings.max_returns,
        ),
        digitiser=_core.Digitiser(fwhm_m=range_of_ns(digitiser.pulse_ns), step_m=range_of_ns(digitiser.sample_ns)),
        detector=_detector(detection),
        seed=seed,
    )


def _detector(detection: Detection | None) -> _core.Detector:
    """Return the figures of a receiver that detects; zeros for one that sees all light."""
    names = ("threshold", "softness", "second_threshold", "second_ratio", "separation_m", "false_alarms")
    return _core.Detector(**{name: 0.0 if detection is None else getattr(detection, name) for name in names})


def native_mode(mode: ReturnMode) -> _core.ReturnMode:
    """Return the kernel's mode of that name; names in C++ have no plus sign and no hyphen."""
    return _core.ReturnMode[mode.replace("+", "_and_").replace("-", "_")]


def _clock(step_m: float, n: int, limits_m: tuple[float, float]) -> tuple[int, int]:
    """Return the number of the first sample within the range limits, and how many samples there are."""
    low_m, high_m = limits_m
    if not np.isfinite(high_m):
        raise InputError("waveforms", "a record needs an end; give max_range_m or a sensor")
    first = int(np.floor(low_m / step_m))
    n_samples = int(np.ceil(high_m / step_m)) + 1 - first
    if 4 * n * n_samples > _MAX_WAVEFORM_BYTES:
        raise InputError(
            "waveforms",
            f"{n} pulses of {n_samples} samples take over {_MAX_WAVEFORM_BYTES >> 30} GiB; fire fewer at once",
        )
    return first, n_samples


def _returns(scene: Scene, answer: _core.PulseAnswer, detection: Detection | None) -> Returns:
    found = answer.returns
    columns: dict[str, NDArray[Any]] = {
        "range_m": found.range_m,
        "intensity": found.intensity if detection is None else _calibrated(answer, detection),
        "label": found.label,
        "element": found.element,
    }
    columns |= objects_column(scene, found.element)
    flat = found.range_m.shape[1] == 1
    return Returns.without_checks({name: column[:, 0] if flat else column for name, column in columns.items()})


def _calibrated(answer: _core.PulseAnswer, detection: Detection) -> NDArray[np.float32]:
    """Return the intensity of each echo with the fall by range undone: what a sensor calls reflectance."""
    found = answer.returns
    with np.errstate(invalid="ignore"):  # inf of what did not return
        reflectance = answer.amplitude * (found.range_m / np.float32(detection.range_m)) ** detection.falloff
    known = np.minimum(reflectance, np.float32(detection.saturation))
    return np.where(np.isnan(found.intensity), np.float32(np.nan), known).astype(np.float32)


def _sub_rays(found: _core.PulseColumns) -> SubRayHits:
    return SubRayHits(range_m=found.range_m, intensity=found.intensity, label=found.label, element=found.element)


def answered_by(scene: Scene, returns: Returns) -> Answered:
    """Tell which returns have noise, in a scene where some elements were learned and others are meshes."""
    if returns.element is None or not scene.answers("pulse"):
        return Answered(returns)
    first = returns.element if returns.element.ndim == 1 else returns.element[:, 0]
    return Answered(returns, scene.holds_width(np.ascontiguousarray(first)))


@dataclass(frozen=True, slots=True, eq=False)
class DetailedLog:
    """A log, and what the receiver knew besides."""

    log: Log
    sub_rays: SubRayHits | None
    """If asked for."""
    echo_width_ns: NDArray[np.float32] | None
    """(N, R) full width at half maximum of each return's echo, NaN without one; of recorded signals [ns]."""
    amplitude: NDArray[np.float32] | None
    """(N, R) light at the peak of each return's echo, NaN without one; of recorded signals: who is strongest."""
    waveforms: Waveforms | None
    """If asked for, of recorded signals: mode waveform, or signal sensor."""


class PhysicsWorld(World):
    """A scene seen by pulses with width."""

    axis_answers = False
    has_likelihood = True

    def __init__(
        self,
        scene: Scene,
        settings: BeamSettings | None = None,
        *,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        source: Mapping[str, Any] | None = None,
        classes: Mapping[str, int] | None = None,
    ) -> None:
        """Wrap a scene.

        Args:
            scene: what beams are fired at.
            settings: how pulses are sampled and received; what they leave open is the sensor's.
            min_range_m, max_range_m: limits where no sensor is named [m].
            source: where the scene comes from (name, seed, settings), for the logs that are fired; must fit into JSON.
            classes: numbers of the classes that its labels are of, by name.
        """
        super().__init__(min_range_m=min_range_m, max_range_m=max_range_m)
        require_kind("scene", scene, Scene, "a Scene")
        require_kind("settings", settings, (BeamSettings, NoneType), "BeamSettings")
        self.scene = scene
        self.settings = settings or BeamSettings()
        self.source = dict(source or {})
        self._classes = dict(classes or {})
        # What was learned has the noise of its sensor; where meshes stand beside it, each return has its own answer.
        self.has_noise = scene.answers("pulse") and not scene.answers("sub_ray")

    @property
    def classes(self) -> dict[str, int]:
        """Numbers of the classes that its labels are of, by name."""
        return self._classes

    @property
    def box(self) -> Box | None:
        """From where to where the scene reaches, map frame; None if it is empty."""
        return self.scene.box

    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Return what the receiver makes of each pulse: (N,), or (N, R) in modes that give several, nearest first.

        Raises:
            InputError: the stencil does not go with the beam's shape.
        """
        return self._pulses(beams, shot).returns

    def answered(self, beams: Beams, shot: Shot) -> Answered:
        """Return what comes back, and which of it has noise: what was learned has."""
        return answered_by(self.scene, self.returns(beams, shot))

    def log_likelihood(
        self, log: Log, *, min_sigma_m: float = 0.001, threads: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return the log density of each pulse's first return, or of its absence, within the log's own limits.

        Pulses are those of the log's own sensor, where that is known.
        """
        require_end_of_range(log)
        optics = resolve_pulse(self.settings, Sensor.of(log))
        return pulse_log_likelihood(
            self.scene, log, optics, min_sigma_m=min_sigma_m, threads=threads, progress=progress
        )

    def provenance(self) -> dict[str, Any]:
        """Return which scene it is, and how pulses are sampled and received."""
        return {"kind": "scene", **self.source, "beam": self.settings.model_dump(mode="json")}

    def labelled_scene(self) -> Scene:
        """Return the scene."""
        return self.scene

    def fire_detailed(
        self,
        beams: Beams,
        seed: int = 0,
        *,
        sensor: Sensor | None = None,
        sub_rays: bool = False,
        waveforms: bool = False,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> DetailedLog:
        """Fire as `fire` does and keep more: what the sub-rays met, and the recorded signals of mode waveform.

        Raises:
            InputError: as `fire`; or waveforms are wanted where none are recorded, without a maximum range, or more of
                them than fit into memory.
        """
        require_kind("beams", beams, Beams, "Beams; of a log, fire log.beams")
        shot = self._shot(seed, sensor, None, threads, progress)
        fired = self._pulses(beams, shot, sub_rays=sub_rays, waveforms=waveforms)
        log = self._log(beams, Answered(fired.returns), shot, noise=False)
        return DetailedLog(log, fired.sub_rays, fired.echo_width_ns, fired.amplitude, fired.waveforms)

    def _pulses(self, beams: Beams, shot: Shot, *, sub_rays: bool = False, waveforms: bool = False) -> PulseReturns:
        return fire_pulses(
            self.scene,
            beams,
            resolve_pulse(self.settings, shot.sensor),
            self.settings,
            (shot.min_range_m, shot.max_range_m),
            seed=shot.seed,
            sub_rays=sub_rays,
            waveforms=waveforms,
            threads=shot.threads,
            progress=shot.progress,
        )
