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

from hedgerow.log import Beams, Log, Returns
from hedgerow.physics.pulse_kernel import PulseReturns, SubRayHits, fire_pulses
from hedgerow.physics.receiver import BeamSettings, optics
from hedgerow.physics.waveform import Waveforms
from hedgerow.sensor import Sensor
from hedgerow.world.scene import Progress, Scene
from hedgerow.world.world import Shot, World


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
        return self._pulses(beams, shot).returns

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
        fired = self._pulses(beams, shot, sub_rays=sub_rays, waveforms=waveforms)
        log = self._log(beams, fired.returns, shot, noise=False)
        return DetailedLog(log, fired.sub_rays, fired.echo_width_ns, fired.waveforms)

    def _pulses(self, beams: Beams, shot: Shot, *, sub_rays: bool = False, waveforms: bool = False) -> PulseReturns:
        return fire_pulses(
            self.scene,
            beams,
            optics(self.settings, shot.sensor),
            self.settings,
            (shot.min_range_m, shot.max_range_m),
            seed=shot.seed,
            sub_rays=sub_rays,
            waveforms=waveforms,
            threads=shot.threads,
            progress=shot.progress,
        )
