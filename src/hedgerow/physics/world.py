# SPDX-License-Identifier: Apache-2.0
"""PhysicsWorld: a scene seen by pulses with width, through a receiver (003 §3.2).

Meshes, learned Gaussians, permeable or not, and placed copies of them all take part in one beam: every sub-ray throws
its own coins. A pulse gives a return if any of its sub-rays does, whatever its axis meets.

Range noise of surfaces (`SurfaceNoise`) is that of the electronics: one draw per return, by range, incidence and
material of its brightest sub-ray. Where in a Gaussian a sub-ray ends is geometry: each sub-ray draws its own.

The spot's axes are "left", horizontal in the map, and "up", as a level sensor has them: beams do not tell how the
sensor is rolled, so the spot of a tilted one stays level.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.physics.receiver import MODES, BeamSettings, Optics, optics
from hedgerow.physics.waveform import LIGHT_M_PER_NS, Waveforms, range_of_ns
from hedgerow.sensor import Sensor
from hedgerow.world.scene import Progress, Scene
from hedgerow.world.world import Shot, World

_MOST_BYTES = 4 << 30


@dataclass(frozen=True, slots=True, eq=False)
class SubRayHits:
    """What each sub-ray met within the range limits; (N, S) each. Nothing met: inf, NaN, 0, -1."""

    range_m: NDArray[np.float32]
    intensity: NDArray[np.float32]
    """Of the element, before shares and falloff."""
    label: NDArray[np.uint16]
    element: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class DetailedLog:
    """A log with what the receiver knew besides."""

    log: Log
    sub_rays: SubRayHits | None
    """If asked for."""
    echo_width_ns: NDArray[np.float32] | None
    """(N, R) full width at half maximum of each return's echo, NaN without one; of mode waveform [ns]."""
    waveforms: Waveforms | None
    """If asked for, of mode waveform."""


class PhysicsWorld(World):
    """A scene seen by pulses with width."""

    def __init__(
        self,
        scene: Scene,
        settings: BeamSettings | None = None,
        *,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """Wrap a scene.

        Args:
            scene: what beams are fired at.
            settings: how pulses are sampled and received; what they leave open is the sensor's.
            min_range_m, max_range_m: limits where no sensor is named [m].
            source: where the scene comes from (name, seed, settings), for the logs that are fired; must fit into JSON.
        """
        super().__init__(min_range_m=min_range_m, max_range_m=max_range_m)
        self.scene = scene
        self.settings = settings or BeamSettings()
        self.source = dict(source or {})

    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Give what the receiver makes of each pulse: (N,), or (N, R) in modes that give several, nearest first.

        Raises:
            InputError: the stencil does not go with the beam's shape.
        """
        return _returns(self._pulses(beams, shot, optics(self.settings, shot.sensor)))

    def provenance(self) -> dict[str, Any]:
        """Say which scene it is and how pulses are sampled and received."""
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
            InputError: as `fire`; or waveforms are wanted without mode waveform, without a maximal range, or more of
                them than fit into memory.
        """
        shot = self._shot(seed, sensor, None, threads, progress)
        chosen = optics(self.settings, sensor)
        clock = self._clock(chosen, len(beams), shot.min_range_m, shot.max_range_m) if waveforms else (0, 0)
        answer = self._pulses(beams, shot, chosen, sub_rays, clock)
        log = self._log(beams, _returns(answer), shot, noise=False)
        first, n_samples = clock
        return DetailedLog(
            log,
            SubRayHits(*answer[5:9]) if sub_rays else None,
            answer[4] * np.float32(2 / LIGHT_M_PER_NS) if chosen.mode == "waveform" else None,
            Waveforms(answer[9], self._step_m * np.arange(first, first + n_samples, dtype=np.float64))
            if waveforms
            else None,
        )

    def _pulses(
        self, beams: Beams, shot: Shot, chosen: Optics, sub_rays: bool = False, clock: tuple[int, int] = (0, 0)
    ) -> tuple[NDArray[Any], ...]:
        return _core.fire_beam(
            self.scene.native,
            **self.scene.seen(beams),
            **self._arguments(chosen),
            min_range_m=shot.min_range_m,
            max_range_m=shot.max_range_m,
            keep_sub_rays=sub_rays,
            first_sample=clock[0],
            n_samples=clock[1],
            seed=shot.seed,
            threads=shot.threads,
            progress=shot.progress,
        )

    @property
    def _step_m(self) -> float:
        return range_of_ns(self.settings.waveform.sample_ns)

    def _arguments(self, chosen: Optics) -> dict[str, Any]:
        settings = self.settings
        return {
            "points": chosen.stencil.points,
            "cells": chosen.stencil.cells,
            "share": chosen.stencil.share,
            "round": chosen.stencil.round,
            "half_m": chosen.cone.half_m,
            "tangent": chosen.cone.tangent,
            "falloff_m": settings.falloff_range_m if settings.range_falloff else 0.0,
            "unknown_intensity": settings.unknown_intensity,
            "mode": MODES.index(chosen.mode),
            "cutoff_m": chosen.cutoff_m,
            "threshold": settings.threshold,
            "max_returns": settings.max_returns,
            "fwhm_m": range_of_ns(settings.waveform.pulse_ns),
            "step_m": self._step_m,
        }

    def _clock(self, chosen: Optics, n: int, low_m: float, high_m: float) -> tuple[int, int]:
        """Return number of the first sample and how many cover the range limits."""
        if chosen.mode != "waveform":
            raise InputError(f"waveforms: only mode waveform records them, the mode is {chosen.mode}")
        if not np.isfinite(high_m):
            raise InputError("waveforms: a record needs an end; give max_range_m or a sensor")
        first = int(np.floor(low_m / self._step_m))
        n_samples = int(np.ceil(high_m / self._step_m)) + 1 - first
        if 4 * n * n_samples > _MOST_BYTES:
            raise InputError(
                f"waveforms: {n} pulses of {n_samples} samples take over {_MOST_BYTES >> 30} GiB; fire fewer at once"
            )
        return first, n_samples


def _returns(columns: tuple[NDArray[Any], ...]) -> Returns:
    names = ("range_m", "intensity", "label", "element")
    flat = columns[0].shape[1] == 1
    return Returns.trusted({name: a[:, 0] if flat else a for name, a in zip(names, columns[:4], strict=True)})
