# SPDX-License-Identifier: Apache-2.0
"""Three sections of one kind of country, of which everything is known: one to learn from, two to be composed.

Tallavajhula 2018 §4.4.1 drove an HDL-32E through one training section and two test sections of an off-road site, of
356, 650 and 294 m (Table 4.5). Ours are scene files of the same lengths: hilly ground, a trail, all seven classes of
plants in the numbers of Table 4.2, and tussocks of grass that no annotation names. Each section grows its plants from
its own seed, so no plant of one stands in another.

    section = open_section(folder, 2)
    log = section.record(offset_m=1.0, n_sweeps=40, seed=7)
    boxes = section.truth_annotation()
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.atomic import atomic_file
from hedgerow.compose.boxes import fit_frame
from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.log import Log
from hedgerow.reproduce.recording import NOISE_M, REALITY, record_drive
from hedgerow.reproduce.segmentation_site import KINDS
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation, label_of
from hedgerow.scenes.file.schema import TrajectorySpec
from hedgerow.scenes.site import Site, load_site
from hedgerow.scenes.trail import Polyline, make_trajectory
from hedgerow.sensor import Sensor
from hedgerow.world.elements import Instances, Triangles
from hedgerow.world.learned import LearnedWorld

LENGTH_M = {1: 350.0, 2: 650.0, 3: 300.0}
"""Of each section, by its number; the first is the one to learn from."""
WIDTH_M = 60.0
SENSOR = "hdl-32e"
SPEED_MPS = 2.4
"""As Tallavajhula 2018 §4.4.1 drove."""
_MARGIN_M = 8.0
"""Of the trail, at each end, that is not driven."""
_DETAIL = 0.15
_VARIANTS = 4
# Per 350 m: those of Table 4.2, but twice as many low shrubs, so that a short section has some.
_N_EACH = {
    "large-tree": 19,
    "medium-tree": 33,
    "small-tree": 32,
    "large-shrub": 10,
    "medium-shrub": 27,
    "small-shrub": 18,
    "low-shrub": 8,
}
_FROM_TRAIL_M = {
    "large-tree": (7.0, 25.0),
    "medium-tree": (6.0, 25.0),
    "small-tree": (5.0, 22.0),
    "large-shrub": (5.0, 18.0),
    "medium-shrub": (4.5, 15.0),
    "small-shrub": (3.5, 12.0),
    "low-shrub": (3.0, 9.0),
}
# A shrub grows lower than it is told to; scaled, its class has the mean height of Table 4.2.
_SCALE = {"broadleaf": [0.85, 1.15], "shrub": [1.0, 1.35]}
_LEAST = 3
"""Plants of a class in the shortest section."""
_GRASS_PER_M2 = 0.3


@dataclass(frozen=True)
class Section:
    """A built section. What it is made of is remembered, so its true boxes are known."""

    number: int
    path: Path
    """Its scene file."""
    site: Site
    length_m: float

    @property
    def object_class(self) -> NDArray[np.str_]:
        """(K,) class of each object, by the number that returns carry; empty for none, the ground and grass."""
        name = {label_of(each): each for each in PLANT_CLASSES}
        return np.array([name.get(int(each), "") for each in self.site.class_of_object])

    @cached_property
    def composed(self) -> LearnedWorld:
        """The section as assets and instances."""
        return self.site.composed(REALITY)

    def trajectory(self, offset_m: float = 0.0) -> Trajectory:
        """Return a drive along the trail, so far to the left of its middle line [m]."""
        assert self.site.file.trail is not None
        line = Polyline(self.site.file.trail.path_m, smooth=True)
        spec = TrajectorySpec.parse(_drive(line.length_m) | {"offset_m": offset_m}, "drive")
        return make_trajectory(spec, self.site.terrain, line)

    def record(
        self, offset_m: float, n_sweeps: int, seed: int, *, thin: int = 1, span: tuple[float, float] = (0.0, 1.0)
    ) -> Log:
        """Return the log of a drive, as a real HDL-32E would record it.

        Args:
            offset_m: to the left of the middle line of the trail.
            n_sweeps: evenly spread over the way.
            seed: of the sensor; two drives with other seeds have other returns.
            thin: keep every n-th of these sweeps.
            span: which part of the way, from 0 to 1.

        Raises:
            InputError: a number is out of bounds.
        """
        if n_sweeps < 1 or thin < 1:
            raise InputError("n_sweeps", f"expected at least 1, and thin at least 1; found {n_sweeps} and {thin}")
        if not 0 <= span[0] < span[1] <= 1:
            raise InputError("span", f"expected two shares from 0 to 1, the second larger, found {span}")
        way = self.trajectory(offset_m)
        duration_s = (int(way.time_ns[-1]) - int(way.time_ns[0])) / 1e9
        sensor = Sensor.named(SENSOR)
        span_s = span[0] * duration_s, max(span[1] * duration_s, span[0] * duration_s + sensor.sweep_s)
        world = self.site.world(REALITY)
        sweeps = record_drive(world, sensor, way, n_sweeps, seed, span_s=span_s, noise_m=NOISE_M)
        return Log.concatenate([sweeps.sweep(number) for number in range(0, n_sweeps, thin)])

    def truth_annotation(self) -> Annotation:
        """Return the true class, foot and box of every plant: an annotation by a hand that errs nowhere.

        Foot: of the stem, on the ground. Yaw: along the principal axis in the plane that is nearest the trail, as
        Tallavajhula 2018 §4.3.1.4 has it. Box: as far around the foot as the plant reaches. Objects have the numbers
        that returns carry.
        """
        instances = self.composed.tables["instances"]
        assert isinstance(instances, Instances) and self.site.file.trail is not None
        names = self.object_class[instances.object]
        rows = np.flatnonzero(names != "")
        rows = rows[np.argsort(instances.object[rows], kind="stable")]
        line = Polyline(self.site.file.trail.path_m, smooth=True)
        outline = {k: _corners(self.composed, k) for k in set(instances.asset[rows].tolist())}
        along = line.bearing_rad(instances.centre_m()[rows, :2]) + np.pi / 2
        boxes = [
            _box(outline[int(instances.asset[row])], instances.transform[row], float(heading))
            for row, heading in zip(rows, along, strict=True)
        ]
        foot = instances.centre_m()[rows].copy()
        foot[:, 2] = self.site.terrain.height_m(foot[:, 0], foot[:, 1])
        yaw, size = np.array([each[0] for each in boxes]), np.array([each[1] for each in boxes])
        return Annotation.of_boxes(names[rows].tolist(), foot, yaw, size, object=instances.object[rows])


def open_section(folder: Path, number: int, scale: float = 1.0, seed: int = 1) -> Section:
    """Write the scene file of a section into a folder, `section-NUMBER.toml`, and build it.

    Args:
        folder: exists, or its parent does.
        number: 1, 2 or 3.
        scale: of its length; below 1 for a quick run.
        seed: of all three; each section draws from its own.

    Raises:
        InputError: there is no such section, or a number is out of bounds.
        FileError: it cannot be written.
    """
    if number not in LENGTH_M:
        raise InputError("number", f"there is no section {number}; there are {', '.join(map(str, LENGTH_M))}")
    if not 0.1 <= scale <= 10:
        raise InputError("scale", f"expected 0.1 to 10, found {scale:g}")
    folder.mkdir(exist_ok=True)
    path, length_m = folder / f"section-{number}.toml", scale * LENGTH_M[number]
    with atomic_file(path) as temporary:
        temporary.write_text(section_text(number, length_m, seed))
    wavelength_nm = Sensor.named(SENSOR).config.beam.wavelength_nm
    return Section(number, path, load_site(path, wavelength_nm=wavelength_nm, record=True), length_m)


def section_text(number: int, length_m: float, seed: int = 1) -> str:
    """Return the scene file of a section of a length."""
    own = 1000 * seed + number
    rng = np.random.default_rng(own)
    path = _trail(length_m, rng)
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f'about = "Section {number}: hilly ground, a trail, seven classes of plants, none shared with other sections."',
        f"seed = {own}",
        f'sensor = "{SENSOR}"',
        _table("terrain", kind="noise", size_m=[length_m, WIDTH_M], relief_m=5, wavelength_m=45),
        _table("trail", path_m=path, width_m=2.6, shoulder_m=1.0),
    ]
    for name in reversed(PLANT_CLASSES):
        kind, values = KINDS[name]
        plant = _inline(values | {"detail": _DETAIL})
        lines.append(f'[plants.{name}-plant]\nkind = "{kind}"\nvariants = {_VARIANTS}\nparameters = {plant}')
        lines.append(_table(f"primitives.{name}", **{"class": name, "of": f"{name}-plant"}))
    tussock = _inline({"blades": 60, "width_m": 0.01, "segments": 3})
    lines.append(f'[plants.tussock]\nkind = "tussock"\nvariants = 3\nparameters = {tussock}')
    lines += [_rule(name, length_m) for name in reversed(PLANT_CLASSES)]
    lines.append(_table("scatter.grass", what="tussock", density_per_m2=_GRASS_PER_M2, trail_distance_m=[1.6, 100]))
    lines += [_table(f"trajectories.{name}", **_drive(length_m, offset)) for name, offset in _DRIVES.items()]
    return "\n\n".join(lines) + "\n"


_DRIVES = {"drive": 0.0, "beside": 1.0}


def _drive(length_m: float, offset_m: float = 0.0) -> dict[str, Any]:
    return {
        "along_trail": True,
        "from_m": _MARGIN_M,
        "to_m": float(round(length_m - _MARGIN_M, 3)),
        "offset_m": offset_m,
        "speed_mps": SPEED_MPS,
        "height_m": 2.0,
    }


def _trail(length_m: float, rng: np.random.Generator) -> list[list[float]]:
    """Corners every 30 m or so, up to 4 m off a straight line."""
    n = max(3, round(length_m / 30) + 1)
    x, y = np.linspace(-length_m / 2, length_m / 2, n), rng.uniform(-4, 4, n)
    return [[float(round(a, 2)), float(round(b, 2))] for a, b in zip(x, y, strict=True)]


def _rule(name: str, length_m: float) -> str:
    """Place a class: as many as its length asks for, away from what stands already."""
    count = max(_LEAST, round(_N_EACH[name] * length_m / LENGTH_M[1]))
    width_m = KINDS[name][1]["crown_diameter_m"]
    larger: list[str] = list(reversed(PLANT_CLASSES))
    earlier = {f"{each}s": (KINDS[each][1]["crown_diameter_m"] + width_m) / 2 for each in larger[: larger.index(name)]}
    away = {each: float(round(0.75 * apart, 2)) for each, apart in earlier.items()}
    how: dict[str, Any] = {"what": name, "count": count, "trail_distance_m": list(_FROM_TRAIL_M[name])}
    how |= {
        "spacing_m": float(round(0.8 * width_m, 2)),
        "scale": _SCALE[KINDS[name][0]],
        "sink_m": 0.03,
        "away_from": away,
    }
    return _table(f"scatter.{name}s", **how)


def _table(name: str, **values: Any) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {_value(value)}" for key, value in values.items())])


def _inline(values: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in values.items()) + " }"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return _inline(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _corners(world: LearnedWorld, number: int) -> Array:
    """(V, 3) corners of the triangles of an asset, in its own frame."""
    parts = [part for part in world.assets[number].parts if isinstance(part, Triangles)]
    return np.concatenate([part.corners_m.reshape(-1, 3) for part in parts])


def _box(corners_m: Array, transform: Array, heading_rad: float) -> tuple[float, Array]:
    """Yaw of a placed plant, and (3,) how far its box reaches around its foot."""
    off_m = corners_m @ transform[:, :3].T
    yaw = fit_frame(off_m[:, :2], (float(np.cos(heading_rad)), float(np.sin(heading_rad)))).yaw_rad
    c, s = np.cos(yaw), np.sin(yaw)
    local = off_m[:, :2] @ np.array([[c, -s], [s, c]])
    return yaw, np.array([*(2 * np.abs(local).max(axis=0)), off_m[:, 2].max()])
