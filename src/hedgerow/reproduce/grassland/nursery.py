# SPDX-License-Identifier: Apache-2.0
"""The nursery: dense grass and some plants, grown leaf by leaf, recorded, learned, and cut into assets.

A meadow of blades, 20 triangles each as Browning 2012 §1 counts them, is driven over; so is a row of shrubs and trees
on bare ground. The grass is learned as Gaussians fitted to the beams (`refined`), and cut into square patches
(compose/ground_patches.py); the plants are learned and cut out by their boxes as any library is.

    nursery = raise_plants(folder, NurserySizes(), seed=1, say=print)
    nursery.assets        # patches first, two halves each, then plants
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.atomic import atomic_file
from hedgerow.base.labels import LABELS
from hedgerow.compose.ground_patches import HALVES, cut_squares, patch_halves
from hedgerow.frames import Trajectory
from hedgerow.log import Beams, Log
from hedgerow.models import learn
from hedgerow.reproduce.composition.sites import make_library
from hedgerow.reproduce.experiment import Print
from hedgerow.reproduce.recording import NOISE_M, REALITY, with_noise
from hedgerow.reproduce.segmentation_site import KINDS
from hedgerow.scenes.annotation import Annotation
from hedgerow.scenes.site import Site, load_site
from hedgerow.sensor import Sensor
from hedgerow.sensor.drive import Aim
from hedgerow.world import World
from hedgerow.world.assets import Asset
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.learned import LearnedWorld
from hedgerow.world.surface_noise import SurfaceNoise

SENSOR = "hdl-32e"
PATCH_M = 8.0
"""Side of a patch: eight of them are a tile's side of the site."""
TRIANGLES_PER_BLADE = 20
"""Five segments of a folded blade."""
TALL_M = 0.6
"""No blade is taller."""
MARGIN_M = 1.0
"""Grass is learned from beams that come down this far around the patches, too."""
_SPACING_M = 14.0
_ROW_M = 40.0
"""How far the row of plants is from the middle of the meadow."""
_REACH_M, _TREES_M = 4.0, 16.0
"""No plant of the row reaches farther to its sides, nor higher."""
_DETAIL = 0.15
PLANT_VOXEL_M = 0.35
"""Side of the voxels that plants are learned in."""
ASSETS = "parts.world"
"""The library with all assets, in the folder."""


@dataclass(frozen=True)
class NurserySizes:
    """How much is grown and recorded."""

    blades_per_m2: float = 4000.0
    """Of wild grass; Browning 2012 takes 46,000 per square foot, 500,000 per square metre."""
    leaf_area_index: float = 1.5
    patches: int = 2
    """Along a side: four patches that differ."""
    sweeps: int = 24
    """Over the meadow, to learn from."""
    judged_sweeps: int = 4
    """Over the meadow, to judge by."""
    plant_sweeps: int = 80
    classes: tuple[str, ...] = tuple(KINDS)
    variants: int = 2
    """Plants of each class."""
    model: str = "refined"
    """Of the grass."""

    @property
    def half_m(self) -> float:
        """Half the side of all patches together."""
        return self.patches * PATCH_M / 2

    @property
    def n_patch_assets(self) -> int:
        """Assets that are halves of patches; they come first."""
        return HALVES * self.patches**2


@dataclass(frozen=True)
class Nursery:
    """What was grown and learned."""

    sizes: NurserySizes
    site: Site
    assets: tuple[Asset, ...]
    """Halves of patches, then plants."""
    n_beams: int
    """Of the grass, to learn from."""
    recorded_s: float
    """Processor time that these took, in the meadow."""

    @property
    def triangles_per_m2(self) -> float:
        """Triangles of the grass as it was grown."""
        n_blades = self.site.n_copies["grass"]
        return n_blades / (2 * _meadow_half_m(self.sizes)) ** 2 * TRIANGLES_PER_BLADE

    @property
    def elements_per_m2(self) -> float:
        """Elements of the patches that were learned, ground included."""
        return (
            sum(asset.n_elements for asset in self.assets[: self.sizes.n_patch_assets]) / (2 * self.sizes.half_m) ** 2
        )


def raise_plants(folder: Path, sizes: NurserySizes, seed: int, say: Print) -> Nursery:
    """Grow, record, learn and cut; scene file, library and assets stay in the folder."""
    with atomic_file(folder / "nursery.toml") as temporary:
        temporary.write_text(scene_text(sizes, seed))
    site = load_site(folder / "nursery.toml", wavelength_nm=Sensor.named(SENSOR).config.beam.wavelength_nm)
    say(f"grown: {site.n_copies['grass']:,} blades on {(2 * _meadow_half_m(sizes)) ** 2:,.0f} m²")
    begin_s = time.process_time()
    log = record_grass(site, sizes, sizes.sweeps, seed)
    recorded_s = time.process_time() - begin_s
    patches = learn_patches(log, sizes)
    say(f"grass learned from {len(log):,} beams: {sum(each.n_elements for each in patches):,} elements")
    plants = learn_plants(folder, site, sizes, seed)
    say(f"{len(plants)} plants learned: {sum(each.n_elements for each in plants):,} elements")
    nursery = Nursery(sizes, site, (*patches, *plants), len(log), recorded_s)
    LearnedWorld(kind="library", assets=nursery.assets, max_range_m=log.max_range_m).save(folder / ASSETS)
    return nursery


def _meadow_half_m(sizes: NurserySizes) -> float:
    return sizes.half_m + 5.0  # the patches must have grass around them, and beams come in at grazing angles


def scene_text(sizes: NurserySizes, seed: int) -> str:
    """Return the scene file: a meadow around (0, 0), and a row of plants beside it."""
    half, inner = _meadow_half_m(sizes), sizes.half_m
    lanes = np.linspace(-inner, inner, 5)
    turns = [[(-1) ** k * side * (inner + 3), float(y)] for k, y in enumerate(lanes) for side in (-1, 1)]
    row = _row(sizes)
    plants = "\n\n".join(_plant_text(name, feet) for name, feet in row.items())
    end = max(foot[0] for feet in row.values() for foot in feet) + 15
    # From far away too: near by, the sensor does not look up to the tops of trees.
    passes = [[(-1) ** k * side * end, _ROW_M + off] for k, off in enumerate((-9.0, 25.0, 58.0)) for side in (-1, 1)]
    return f"""# SPDX-License-Identifier: Apache-2.0
about = "A meadow, blade by blade, and a row of plants: what the grassland is made of."
seed = {seed}
sensor = "{SENSOR}"

[terrain]
kind = "flat"
size_m = [{2 * end + 80:.0f}, {2 * _ROW_M + 140:.0f}]

[plants.grass]
kind = "blade-grass"
variants = 4
parameters = {{ height_m = 0.35, segments = 5, folded = true, leaf_area_index = {sizes.leaf_area_index} }}

[scatter.grass]
what = "grass"
density_per_m2 = {sizes.blades_per_m2}
box_m = [{-half}, {-half}, {half}, {half}]

{plants}

[trajectories.meadow]
waypoints_m = {turns}
smooth = false
speed_mps = 5

[trajectories.plants]
waypoints_m = {passes}
smooth = false
speed_mps = 5
"""


def _plant_text(name: str, feet: list[tuple[float, float]]) -> str:
    """Return the tables of a class of plants that stand in a row, each of its own variant."""
    kind, values = KINDS[name]
    inline = ", ".join(f"{key} = {value}" for key, value in (values | {"detail": _DETAIL}).items())
    return (
        f'[plants.{name}]\nkind = "{kind}"\nvariants = {len(feet)}\nparameters = {{ {inline} }}\n\n'
        f'[objects.{name}-row]\nwhat = "{name}"\nat_m = {list(feet[0])}\n'
        f"repeat = {{ count = {len(feet)}, step_m = [{_SPACING_M}, 0] }}"
    )


def _row(sizes: NurserySizes) -> dict[str, list[tuple[float, float]]]:
    """Return where the plants of each class stand."""
    n = sizes.variants
    first = -_SPACING_M * (n * len(sizes.classes) - 1) / 2
    return {
        name: [(first + _SPACING_M * (n * k + i), _ROW_M) for i in range(n)] for k, name in enumerate(sizes.classes)
    }


def comes_down(beams: Beams, half_m: float) -> NDArray[np.bool_]:
    """Tell which beams enter the grass, and would reach the ground, within a square around (0, 0)."""
    falls = beams.direction[:, 2].astype(np.float64)
    inside = falls < -1e-3
    for height_m in (0.0, TALL_M):
        along_m = (height_m - beams.origin_m[:, 2]) / np.where(inside, falls, -1.0)
        at_m = beams.origin_m[:, :2] + along_m[:, None] * beams.direction[:, :2]
        inside &= (along_m > 0) & (np.abs(at_m) < half_m).all(axis=1)
    return inside


def record_grass(
    site: Site, sizes: NurserySizes, n_sweeps: int, seed: int, *, half_m: float | None = None, again: int = 0
) -> Log:
    """Record the beams of a drive over the meadow that come down among the patches; the others are not fired.

    Args:
        site: the nursery.
        sizes: of it.
        n_sweeps: evenly spread over the way.
        seed: of the beams.
        half_m: half the side of the square in which beams come down. Default: the patches and a margin.
        again: other numbers give other returns of the same beams.
    """
    half_m = sizes.half_m + MARGIN_M if half_m is None else half_m
    way, sensor = site.trajectories["meadow"], Sensor.named(SENSOR)
    duration_s = (way.end_ns - way.start_ns) / 1e9
    # Half a step later for another seed: no sweep is fired from a place that was learned from.
    at_s = (np.arange(n_sweeps) + 0.25 + 0.5 * (seed % 2)) / n_sweeps * (duration_s - sensor.sweep_s)
    return record_some(
        site.world(REALITY), sensor, way, at_s, lambda beams: comes_down(beams, half_m), (seed, seed + 1000 * again)
    )


def record_some(
    world: World,
    sensor: Sensor,
    way: Trajectory,
    at_s: NDArray[np.float64],
    keep: Callable[[Beams], NDArray[np.bool_]],
    seeds: tuple[int, int],
) -> Log:
    """Record some beams of a drive as `record_drive` records all: those that `keep` chooses by where they are aimed."""
    noisy, aim, seed = with_noise(sensor, NOISE_M), Aim("uniform", seed=seeds[0]), seeds[1]
    sweeps: list[Log] = []
    for number, start_s in enumerate(at_s):
        start_ns = way.start_ns + round(start_s * 1e9)
        nominal = sensor.sweep_at(way, number, start_ns)
        rows = np.flatnonzero(keep(nominal))
        true = sensor.sweep_at(way, number, start_ns, aim=aim)[rows]
        sweeps.append(replace(world.fire(true, seed, sensor=noisy, noise=True), beams=nominal[rows]))
    return Log.concatenate([sweep for sweep in sweeps if len(sweep)])


def learn_patches(log: Log, sizes: NurserySizes) -> list[Asset]:
    """Learn the grass, and cut it into patches of two halves each, on solid ground."""
    learned = learn(log, sizes.model).tables["gaussians"]
    assert isinstance(learned, Gaussians)
    ground = ground_triangle(log)
    return [
        half
        for number, square in enumerate(cut_squares(learned, PATCH_M, sizes.patches))
        for half in patch_halves(f"grass-{number}", square, PATCH_M, ground)
    ]


def ground_triangle(log: Log) -> Triangles:
    """Return one triangle of the ground, of the mean intensity of its returns in a log, if there are any."""
    returns, number = log.returns, LABELS["ground"].number
    assert returns.label is not None and returns.intensity is not None
    seen = returns.intensity[returns.hit & (returns.label == number)]
    intensity = np.full(1, seen.mean() if len(seen) else np.nan, dtype=np.float32)
    return Triangles.plain(np.eye(3)[None], label=number, intensity=intensity, noise=SurfaceNoise(NOISE_M, 0.0))


def learn_plants(folder: Path, site: Site, sizes: NurserySizes, seed: int) -> list[Asset]:
    """Drive past the row of plants, learn it, and cut the plants out; none are asked for, none are learned."""
    if not sizes.classes:
        return []
    way, sensor = site.trajectories["plants"], Sensor.named(SENSOR)
    duration_s = (way.end_ns - way.start_ns) / 1e9
    at_s = np.linspace(0.0, duration_s - sensor.sweep_s, sizes.plant_sweeps)
    log = record_some(site.world(REALITY), sensor, way, at_s, crosses_row, (seed, seed))
    world = learn(log, "voxel", side_m=PLANT_VOXEL_M, min_points=3)
    library = make_library(world, true_boxes(sizes), log, folder / "plants.world")
    return [library.read(number) for number in range(len(library))]


def crosses_row(beams: Beams) -> NDArray[np.bool_]:
    """Tell which beams may meet a plant of the row: they cross it above the ground, and not above all trees."""
    across = beams.direction[:, 1].astype(np.float64)
    found = np.zeros(len(beams), dtype=bool)
    for y_m in _ROW_M + np.linspace(-_REACH_M, _REACH_M, 5):
        with np.errstate(divide="ignore", invalid="ignore"):
            along_m = (y_m - beams.origin_m[:, 1]) / across
        z_m = beams.origin_m[:, 2] + along_m * beams.direction[:, 2]
        found |= (along_m > 0) & (along_m < 100.0) & (z_m > -0.5) & (z_m < _TREES_M)
    return found


def true_boxes(sizes: NurserySizes) -> Annotation:
    """Return the boxes of the plants, wide enough for any of them: nothing else stands near."""
    names: list[str] = []
    feet: list[tuple[float, float]] = []
    size: list[tuple[float, float, float]] = []
    for name, places in _row(sizes).items():
        values = KINDS[name][1]
        wide_m = 1.6 * values["crown_diameter_m"]
        names += [name] * len(places)
        feet += places
        size += [(wide_m, wide_m, 1.4 * values["height_m"])] * len(places)
    return Annotation.of_boxes(names, np.array(feet), np.zeros(len(names)), np.array(size))
