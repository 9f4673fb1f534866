# SPDX-License-Identifier: Apache-2.0
"""The site of the large-scale experiment, and what is driven through it.

400 m of trail over hills: a third meadow, a third wood, a third open wood, with shrubs, boulders and grass beside the
way. The second pass runs 1 m beside the first. The scene is written as a file, so that workers can grow it, too; so are
the sensor, with the noise of the experiments, and the line of the second pass, along which learned worlds are fired at.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedgerow.base.atomic import atomic_file
from hedgerow.drives import Drive, stamp_of
from hedgerow.frames import Trajectory
from hedgerow.io.trajectory import write_trajectory
from hedgerow.reproduce.recording import NOISE_M, REALITY, SENSOR, with_noise
from hedgerow.sensor import Sensor
from hedgerow.sensor.drive import Aim

LENGTH_M = 400.0
SPEED_MPS = 5.0
BEYOND_M = 70.0
"""How far the site goes on beyond both ends of the drive."""
HALF_WIDTH_M = 60.0
ASIDE_M = 1.0
"""How far the second pass runs beside the first."""
PULSES = REALITY.model_copy(update={"sub_rays": 4})
"""Four sub-rays instead of nine: the experiment fires a quarter of a billion pulses at leaves."""


def scene_text(length_m: float, seed: int = 5) -> str:
    """Return the scene file of a trail of that length."""
    rng = np.random.default_rng(seed)
    end = length_m / 2 + BEYOND_M
    x = np.linspace(-end, end, max(3, round(2 * end / 30)))
    way = ", ".join(f"[{a:.0f}, {b:.1f}]" for a, b in zip(x, rng.uniform(-6, 6, len(x)), strict=True))
    meadow, wood = f"[{-end:.0f}, -60, {-length_m / 6:.0f}, 60]", f"[{-length_m / 6:.0f}, -60, {length_m / 6:.0f}, 60]"
    light = f"[{length_m / 6:.0f}, -60, {end:.0f}, 60]"
    return f"""# SPDX-License-Identifier: Apache-2.0
about = "A trail of {length_m:g} m through meadow, wood and open wood, driven twice, {ASIDE_M:g} m apart."
seed = {seed}
sensor = "{SENSOR}"

[terrain]
kind = "noise"
size_m = [{2 * end:.0f}, {2 * HALF_WIDTH_M:.0f}]
spacing_m = 0.25
relief_m = 6
wavelength_m = 55
octaves = 5
roughness = 0.33

[trail]
path_m = [{way}]
width_m = 3.0
shoulder_m = 1.2
sunk_m = 0.05
rut_depth_m = 0.07
rut_width_m = 0.8
material = "gravel"

[plants.meadow]
kind = "blade-grass"
variants = 4
parameters = {{ height_m = 0.45, height_spread = 0.35, width_m = 0.006, segments = 4 }}

[plants.short]
kind = "blade-grass"
variants = 4
parameters = {{ height_m = 0.16, width_m = 0.005, bend_deg = 40, segments = 3 }}

[plants.fern]
kind = "fern"
variants = 4

[plants.bush]
kind = "shrub"
variants = 4

[plants.oak]
kind = "broadleaf"
variants = 4
parameters = {{ height_m = 9, crown_diameter_m = 5.5, crown_base_m = 2.2 }}

[plants.young-tree]
kind = "broadleaf"
variants = 3
parameters = {{ height_m = 4.5, crown_diameter_m = 2.4, crown_base_m = 0.8, stem_diameter_m = 0.08 }}

[plants.spruce]
kind = "conifer"
variants = 3
parameters = {{ height_m = 11 }}

[shapes.boulder]
kind = "ellipsoid"
size_m = [1.3, 1.0, 0.8]

[scatter.boulders]
what = "boulder"
density_per_m2 = 0.002
trail_distance_m = [2.6, 25]
scale = [0.4, 1.5]
tilt_deg = 20
sink_m = 0.12

[scatter.wood-oaks]
what = "oak"
density_per_m2 = 0.03
box_m = {wood}
trail_distance_m = [3.2, 80]
spacing_m = 2.5
scale = [0.7, 1.25]
tilt_deg = 4
sink_m = 0.1

[scatter.wood-spruces]
what = "spruce"
density_per_m2 = 0.015
box_m = {wood}
trail_distance_m = [3.2, 80]
spacing_m = 2.5
scale = [0.5, 1.15]
sink_m = 0.1

[scatter.lone-oaks]
what = "oak"
density_per_m2 = 0.0015
box_m = {meadow}
trail_distance_m = [5, 80]
spacing_m = 14
scale = [0.8, 1.2]
sink_m = 0.1

[scatter.light-oaks]
what = "oak"
density_per_m2 = 0.006
box_m = {light}
trail_distance_m = [3.2, 80]
spacing_m = 4
scale = [0.7, 1.25]
sink_m = 0.1

[scatter.light-spruces]
what = "spruce"
density_per_m2 = 0.005
box_m = {light}
trail_distance_m = [3.2, 80]
spacing_m = 3
scale = [0.5, 1.15]
sink_m = 0.1

[scatter.young-trees]
what = "young-tree"
density_per_m2 = 0.006
trail_distance_m = [2.8, 30]
spacing_m = 1.5
scale = [0.5, 1.3]
sink_m = 0.05

[scatter.bushes]
what = "bush"
density_per_m2 = 0.012
trail_distance_m = [2.6, 80]
spacing_m = 1.2
scale = [0.6, 1.4]
sink_m = 0.05

[scatter.ferns]
what = "fern"
density_per_m2 = 0.3
box_m = {wood}
trail_distance_m = [2.6, 40]
scale = [0.6, 1.3]

[scatter.meadow]
what = "meadow"
density_per_m2 = 40
box_m = {meadow}
trail_distance_m = [3.4, 40]

[scatter.floor]
what = "short"
density_per_m2 = 20
box_m = [{-length_m / 6:.0f}, -60, {end:.0f}, 60]
trail_distance_m = [3.4, 30]

[scatter.verge]
what = "short"
density_per_m2 = 80
trail_distance_m = [1.5, 3.4]

[trajectories.first]
along_trail = true
from_m = {BEYOND_M:g}
to_m = {BEYOND_M + length_m:g}
speed_mps = {SPEED_MPS:g}
height_m = 2.4

[trajectories.second]
along_trail = true
from_m = {BEYOND_M:g}
to_m = {BEYOND_M + length_m:g}
offset_m = {ASIDE_M:g}
speed_mps = {SPEED_MPS:g}
height_m = 2.4
"""


@dataclass(frozen=True)
class Survey:
    """Drives whose sweeps are evenly spread over the length of the site; what they need lies in one folder."""

    folder: Path
    sweeps: int
    """Of the first pass."""
    second_sweeps: int
    """Of the second."""
    length_m: float = LENGTH_M

    @property
    def sensor(self) -> Sensor:
        """The sensor of all drives."""
        return with_noise(Sensor.named(SENSOR), NOISE_M)

    def write(self) -> None:
        """Write scene and sensor; files that say the same already stay, and so do the parts that were made of them."""
        import tomli_w

        config = self.sensor.config.model_dump(mode="json", exclude_none=True)
        for path, text in ((self._scene, scene_text(self.length_m)), (self._sensor, tomli_w.dumps(config))):
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                with atomic_file(path) as temporary:
                    temporary.write_text(text, encoding="utf-8")

    def write_line(self, second: Trajectory) -> None:
        """Write the line of the second pass."""
        if not self._line.exists():
            write_trajectory(second, self._line)

    def reality(self, trajectory: str, seed: int) -> Drive:
        """Return a drive through the scene, along the trajectory `first` or `second`."""
        n = self.sweeps if trajectory == "first" else self.second_sweeps
        return Drive(
            str(self._scene),
            sensor=str(self._sensor),
            trajectory=trajectory,
            sweeps=n,
            every_s=self._every_s(n),
            seed=seed,
            noise=True,
            beam=PULSES,
            aim=Aim("uniform", seed=seed),
            stamp=stamp_of(self._scene, self._sensor),
        )

    def through(self, world: Path, seed: int, memory_bytes: int) -> Drive:
        """Return a drive along the second pass through a learned world, with so much memory for its tiles."""
        return Drive(
            str(world.absolute()),
            sensor=str(self._sensor),
            trajectory=str(self._line),
            sweeps=self.second_sweeps,
            every_s=self._every_s(self.second_sweeps),
            seed=seed,
            memory_bytes=memory_bytes,
            stamp=stamp_of(world, self._sensor, self._line),
        )

    def _every_s(self, n: int) -> float:
        # A little less than fits, as the trajectory's times are rounded.
        return 0.9999 * (self.length_m / SPEED_MPS - self.sensor.sweep_s) / max(1, n - 1)

    @property
    def _scene(self) -> Path:
        return (self.folder / "large-scale.toml").absolute()

    @property
    def _sensor(self) -> Path:
        return (self.folder / f"{SENSOR}.toml").absolute()

    @property
    def _line(self) -> Path:
        return (self.folder / "second.tum").absolute()
