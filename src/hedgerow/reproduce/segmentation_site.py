# SPDX-License-Identifier: Apache-2.0
"""A site of which everything is known: which copy of which plant made every return, and what is ground.

Hilly ground with tussocks of grass; all seven classes of plants, free-standing in the first half and as a forest whose
crowns touch in the second; two hedges of shrubs that run on; a hut, a fence, posts and vehicles. Copies are placed one
after the other, so the number of the element that made a return tells its copy.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.labels import LABELS
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Log
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.reproduce.recording import NOISE_M, record_drive
from hedgerow.scenes.annotation import OTHER_CLASS
from hedgerow.scenes.file.placeables import Appearance
from hedgerow.scenes.materials import materials
from hedgerow.scenes.mesh import Mesh, MeshPart, box, cylinder
from hedgerow.scenes.plants import PLANTS
from hedgerow.scenes.terrain import Terrain
from hedgerow.sensor import Sensor
from hedgerow.world.pulsed import PhysicsWorld
from hedgerow.world.scene import Scene

LENGTH_M, WIDTH_M = 130.0, 56.0
PATH_M = 4.0
"""Nothing stands nearer than this to the path, which runs along y = 0."""
SENSOR = "hdl-32e"
_DETAIL = 0.15
KINDS = {
    "low-shrub": ("shrub", {"height_m": 1.1, "crown_diameter_m": 1.2, "leaf_area_index": 3.0}),
    "small-shrub": ("shrub", {"height_m": 2.1, "crown_diameter_m": 1.8, "leaf_area_index": 3.0}),
    "medium-shrub": ("shrub", {"height_m": 3.8, "crown_diameter_m": 2.8, "stems": 14}),
    "large-shrub": ("shrub", {"height_m": 5.4, "crown_diameter_m": 3.6, "stems": 16}),
    "small-tree": ("broadleaf", {"height_m": 5.9, "crown_diameter_m": 3.0, "crown_base_m": 1.8}),
    "medium-tree": ("broadleaf", {"height_m": 9.4, "crown_diameter_m": 4.5, "crown_base_m": 2.4}),
    "large-tree": ("broadleaf", {"height_m": 13.4, "crown_diameter_m": 5.5, "crown_base_m": 3.0}),
}
"""Plants of the mean heights of Tallavajhula 2018 Table 4.2."""
N_EACH = {
    "low-shrub": 26,
    "small-shrub": 24,
    "medium-shrub": 16,
    "large-shrub": 10,
    "small-tree": 26,
    "medium-tree": 20,
    "large-tree": 12,
}
_HEDGES = (("small-shrub", (-48.0, 7.0), 14), ("low-shrub", (-20.0, -6.0), 16))
"""Class, first foot and number of shrubs of each hedge."""


@dataclass
class KnownSite:
    """A scene, and what each of its elements belongs to."""

    scene: Scene
    terrain: Terrain
    class_name: list[str] = field(default_factory=lambda: ["ground"])
    """Of object k; object 0 is the ground."""
    element: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(E,) the object of each element; -1 for grass."""

    def objects_of(self, log: Log) -> NDArray[np.int64]:
        """Return (M,) the object that made each return of a log."""
        found = log.returns.element
        assert found is not None
        return self.element[found[log.returns.hit]]


def build_site(seed: int = 1) -> KnownSite:
    """Build the site."""
    rng = np.random.default_rng(seed)
    size = (LENGTH_M, WIDTH_M)
    terrain = Terrain.from_noise(seed, size, relief_m=5, wavelength_m=45, spacing_m=0.5)
    look = Appearance(materials(), LABELS, 905.0)
    site = KnownSite(Scene(np.zeros(3)), terrain)
    for part in terrain.parts():
        look.add(site.scene, part)
    owner: list[NDArray[np.int64]] = [np.zeros(site.scene.n_elements, np.int64)]
    _add_others(site, look, owner)
    _place_plants(site, look, owner, rng)
    _place_grass(site, look, owner, rng)
    site.element = np.concatenate(owner)
    return site


def record(site: KnownSite, n_sweeps: int, seed: int = 1) -> Log:
    """Drive through it at 2.4 m/s, as Tallavajhula 2018 §4.4.1 did, an HDL-32E two metres above the ground."""
    x = np.linspace(-LENGTH_M / 2 + 10, LENGTH_M / 2 - 10, 200)
    z = site.terrain.height_m(x, 0 * x) + 2.0
    poses = [Pose.from_xyz_rpy(place) for place in np.column_stack([x, 0 * x, z])]
    time_s = (x - x[0]) / 2.4
    world = PhysicsWorld(site.scene, BeamSettings(sampling="stratified", sub_rays=5))
    span_s = (0.0, float(time_s[-1]))
    path = Trajectory.from_poses(time_s, poses)
    return Log.concatenate(
        list(record_drive(world, Sensor.named(SENSOR), path, n_sweeps, seed, span_s=span_s, noise_m=NOISE_M))
    )


def _add_others(site: KnownSite, look: Appearance, owner: list[NDArray[np.int64]]) -> None:
    """Add a hut, a fence, posts and vehicles: they are part of the scene itself, before any copy."""
    things: list[tuple[Mesh, str, str, float]] = [(box((-30, 10, -1), (-25, 13.5, 2.8)), "wood", "building", 0.0)]
    things += [(box((-12, -9, 0.2), (-7.8, -7.2, 1.5)), "metal", "car", 0.0)]
    things += [(box((22, 5.5, 0.2), (26.2, 7.3, 1.5)), "metal", "car", 0.0)]
    things += [(box((-60, -12.05, -1), (-42, -12, 1.6)), "metal", "fence", 0.6)]
    posts = [(-35.0, 5.0), (-5.0, 6.0), (10.0, -5.5), (35.0, 5.0), (48.0, -5.0)]
    things += [(cylinder((x, y, -0.5), 4.5, 0.08, sides=8), "wood", "pole", 0.0) for x, y in posts]
    for mesh, material, label, permeability in things:
        middle = mesh.vertices_m.mean(axis=0)
        ground = float(site.terrain.height_m(middle[0], middle[1]))
        before = site.scene.n_elements
        moved = Mesh(mesh.vertices_m + np.array([0.0, 0.0, ground]), mesh.triangles)
        look.add(site.scene, MeshPart(moved, material, label), permeability)
        owner.append(np.full(site.scene.n_elements - before, len(site.class_name)))
        site.class_name.append(OTHER_CLASS)


def _place_plants(site: KnownSite, look: Appearance, owner: list[NDArray[np.int64]], rng: np.random.Generator) -> None:
    feet = _feet(rng)
    for name, (kind, values) in KINDS.items():
        grown = [PLANTS[kind].grow(seed, detail=_DETAIL, **values) for seed in (1, 2)]
        variants = [look.make_scene(parts) for parts in grown]
        hedges = [_hedge(*hedge[1:], rng) for hedge in _HEDGES if hedge[0] == name]
        # A plant grows a little lower than it is told to; scaled, it has the height of its class.
        low = [values["height_m"] / max(part.mesh.vertices_m[:, 2].max() for part in parts) for parts in grown]
        for k, scene in enumerate(variants):
            xy = feet[name][k::2]
            number = np.arange(len(xy)) + len(site.class_name)
            site.class_name += [name] * len(xy)
            for hedge in hedges:
                xy = np.concatenate([xy, hedge[k::2]])
                # All shrubs of a hedge are one object: a patch.
                shared = site.class_name.index(f"{name} patch") if k else len(site.class_name)
                site.class_name += [] if k else [f"{name} patch"]
                number = np.append(number, np.full(len(hedge[k::2]), shared))
            site.scene.place(scene, _transforms(xy, site.terrain, rng, low[k]))
            owner.append(np.repeat(number, scene.n_elements))


def _feet(rng: np.random.Generator) -> dict[str, Array]:
    """Draw where plants stand: apart from each other in the first half, crowns touching in the second."""
    taken: list[tuple[float, float, float]] = [(-27.5, 11.7, 4.0), (-9.9, -8.1, 3.5), (24.1, 6.4, 3.5)]
    taken += [(float(x), -12.0, 2.0) for x in range(-60, -41, 2)]
    taken += [(first[0] + k, first[1], 2.5) for _, first, n in _HEDGES for k in range(n)]
    out: dict[str, Array] = {}
    for name in reversed(KINDS):
        width_m = float(KINDS[name][1]["crown_diameter_m"])
        found: list[tuple[float, float]] = []
        for k in range(N_EACH[name]):
            in_forest = k >= N_EACH[name] // 2
            found.append(_free(rng, taken, width_m / 2, in_forest))
            taken.append((*found[-1], width_m / 2))
        out[name] = np.array(found)
    return out


def _free(
    rng: np.random.Generator, taken: list[tuple[float, float, float]], radius_m: float, in_forest: bool
) -> tuple[float, float]:
    apart = 0.75 if in_forest else 1.0
    clear_m = 0.0 if in_forest else 1.2
    others = np.array(taken)
    x = y = 0.0
    for _ in range(4000):
        x = rng.uniform(4, LENGTH_M / 2 - 5) if in_forest else rng.uniform(-LENGTH_M / 2 + 5, 0)
        y = rng.choice([-1, 1]) * rng.uniform(PATH_M + radius_m * 0.6, WIDTH_M / 2 - 8)
        distance = np.hypot(others[:, 0] - x, others[:, 1] - y)
        if (distance > apart * (others[:, 2] + radius_m) + clear_m).all():
            break
    return float(x), float(y)


def _hedge(first: tuple[float, float], n: int, rng: np.random.Generator) -> Array:
    across = rng.uniform(-0.3, 0.3, n)
    return np.column_stack([first[0] + 0.9 * np.arange(n), first[1] + across]).astype(np.float64)


def _place_grass(site: KnownSite, look: Appearance, owner: list[NDArray[np.int64]], rng: np.random.Generator) -> None:
    scene = look.make_scene(PLANTS["tussock"].grow(1))
    n = 6000
    xy = np.column_stack([rng.uniform(-LENGTH_M / 2, LENGTH_M / 2, n), rng.uniform(-WIDTH_M / 2, WIDTH_M / 2, n)])
    xy = xy[np.abs(xy[:, 1]) > 2.0]
    site.scene.place(scene, _transforms(xy, site.terrain, rng))
    owner.append(np.full(len(xy) * scene.n_elements, -1))


def _transforms(xy_m: Array, terrain: Terrain, rng: np.random.Generator, factor: float = 1.0) -> Array:
    n = len(xy_m)
    yaw, scale = rng.uniform(0, 2 * np.pi, n), factor * rng.uniform(0.9, 1.1, n)
    places = np.tile(np.eye(4), (n, 1, 1))
    places[:, 0, 0], places[:, 1, 1] = np.cos(yaw), np.cos(yaw)
    places[:, 0, 1], places[:, 1, 0] = -np.sin(yaw), np.sin(yaw)
    places[:, :3, :3] *= scale[:, None, None]
    places[:, :3, 3] = np.column_stack([xy_m, terrain.height_m(*xy_m.T) - 0.03])
    return places
