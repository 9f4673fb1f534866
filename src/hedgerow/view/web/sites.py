# SPDX-License-Identifier: Apache-2.0
"""Physical scenes: seen as a cloud, since their millions of instanced triangles are too many for a browser."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.errors import InputError
from hedgerow.log import Beams, Log
from hedgerow.physics.scene_file.read import SUFFIXES, scene_names
from hedgerow.sensor import Sensor
from hedgerow.view.web.layers import Layer, fired

if TYPE_CHECKING:
    from hedgerow.physics.site import Site

Stages = Callable[[str, int, int], None]
_PULSES_PER_SWEEP = 2**32

__all__ = ["SiteToFire", "Stages", "is_scene", "scene_names"]


def is_scene(path: Path) -> bool:
    """Tell whether a path is a scene file, or else no file but the name of a shipped scene."""
    return path.suffix.lower() in SUFFIXES or (not path.exists() and str(path) in scene_names())


@dataclass(frozen=True)
class SiteToFire:
    """A scene and the sensor that its file names."""

    site: "Site"
    sensor: Sensor

    @staticmethod
    def check(path: Path) -> Sensor:
        """Check a scene's file without building anything; return its sensor.

        Raises:
            FileError, InputError: the file or a field is wrong.
        """
        from hedgerow.physics.site import check_scene

        name = check_scene(path)[1].sensor
        return Sensor.load(name) if name.lower().endswith(".toml") else Sensor.named(name)

    @classmethod
    def load(cls, path: Path, progress: Stages | None) -> "SiteToFire":
        """Read and build a scene.

        Raises:
            FileError, InputError: the file or a field is wrong.
        """
        from hedgerow.physics.site import load_site

        sensor = cls.check(path)
        return cls(load_site(path, wavelength_nm=sensor.config.beam.wavelength_nm, progress=progress), sensor)

    def fired(self, real: Layer, seed: int) -> Layer:
        """Return the layer of a log's beams fired at the scene, as pulses of its sensor where that is known."""
        name = real.read(int(real.sweeps[0])).sensor
        sensor = Sensor.named(name) if name in Sensor.names() else None
        return fired(self.site.name, self.site.world(), real, seed, sensor=sensor)

    def own_pass(self, seed: int) -> Layer:
        """Return the layer of the scene's sensor on the scene's first pass.

        Raises:
            InputError: the scene has no pass.
        """
        from hedgerow.sensor.driving import extent

        way = next(iter(self.site.trajectories.values()), None)
        if way is None:
            raise InputError(f"{self.site.name}: the scene names no trajectory; give a log whose beams to fire at it")
        _, n = extent(self.sensor.pattern, way, 0.0, None, None)
        world = self.site.world()

        def fire(number: int) -> Log:
            beams = self.sensor.drive(way, start_s=number * self.sensor.sweep_s, n_sweeps=1)
            return world.fire(_numbered(beams, number), seed=seed, sensor=self.sensor)

        return Layer(self.site.name, np.arange(n, dtype=np.int32), fire, world=world, way_m=way.position_m)


def _numbered(beams: Beams, sweep: int) -> Beams:
    """Return the beams of a sweep that was made alone with its number, and ids that no other sweep has."""
    columns = {"sweep": np.full_like(beams.sweep, sweep), "pulse": beams.pulse + sweep * _PULSES_PER_SWEEP}
    return Beams.trusted(beams.columns() | columns)
