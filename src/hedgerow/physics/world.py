# SPDX-License-Identifier: Apache-2.0
"""PhysicsWorld: a scene seen by pulses with width, through a receiver (003 §3.2).

Meshes, learned Gaussians, permeable or not, and placed copies of them all take part in one beam: every sub-ray throws
its own coins. A pulse gives a return if any of its sub-rays does, whatever its axis meets.

Range noise of surfaces (`SurfaceNoise`) is that of the electronics: one draw per return, by range, incidence and
material of its brightest sub-ray. Where in a Gaussian a sub-ray ends is geometry: each sub-ray draws its own.

The spot's axes are "left", horizontal in the map, and "up", as a level sensor has them: beams do not tell how the
sensor is rolled, so the spot of a tilted one stays level.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams, Log
from hedgerow.physics.pulse_kernel import SubRayHits, fire_pulses
from hedgerow.physics.receiver import BeamSettings, optics
from hedgerow.physics.waveform import Waveforms
from hedgerow.sensor import Sensor
from hedgerow.world.scene import Progress, Scene, require_limits


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


class PhysicsWorld:
    """A scene seen by pulses with width."""

    def __init__(
        self,
        scene: Scene,
        settings: BeamSettings | None = None,
        *,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
    ) -> None:
        """Wrap a scene; the range limits hold where no sensor is named."""
        self.scene = scene
        self.settings = settings or BeamSettings()
        self.min_range_m = min_range_m
        self.max_range_m = max_range_m

    def fire(
        self,
        beams: Beams,
        seed: int = 0,
        *,
        sensor: Sensor | None = None,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Log:
        """Fire the beams through the world.

        Args:
            beams: the axes of the pulses, map frame, in any order.
            seed: same seed, same answer, on any number of threads and for any slice of the beams.
            sensor: sets name and range limits, and what the settings leave to it: beam shape, mode and cutoff.
            threads: 0 for all.
            progress: called between batches with the number of beams done.

        Returns:
            The beams with their returns: (N,), or (N, R) in modes that give several, nearest first.

        Raises:
            InputError: a wrong seed or number of threads, or a stencil that does not go with the beam's shape.
        """
        return self.fire_detailed(beams, seed, sensor=sensor, threads=threads, progress=progress).log

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
        chosen = optics(self.settings, sensor)
        low, high = self._limits(sensor)
        fired = fire_pulses(
            self.scene,
            beams,
            chosen,
            self.settings,
            (low, high),
            seed=seed,
            sub_rays=sub_rays,
            waveforms=waveforms,
            threads=threads,
            progress=progress,
        )
        said = {"seed": seed, "beam": self.settings.model_dump(mode="json")}
        name = "" if sensor is None else sensor.name
        log = Log(beams, fired.returns, name, min_range_m=low, max_range_m=high, metadata=said)
        return DetailedLog(log, fired.sub_rays, fired.echo_width_ns, fired.waveforms)

    def _limits(self, sensor: Sensor | None) -> tuple[float, float]:
        low, high = (self.min_range_m, self.max_range_m) if sensor is None else (sensor.min_range_m, sensor.max_range_m)
        require_limits(low, high)
        return low, high
