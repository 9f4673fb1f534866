# SPDX-License-Identifier: Apache-2.0
"""Cover ground with a dense plant: large patches where they fit, smaller ones, and single plants at the borders.

A patch is many plants merged into one square mesh: grass merged into patches of 10 m before instancing is faster to
fire at than clumps placed one by one (docs/decisions.md). A few variants of a patch are placed on a grid, turned by
random quarters. A square that does not lie wholly on allowed ground, or on which a plane cannot follow the ground
within `max_gap_m`, is cut into four, down to 1.25 m; what is left then is cut plant by plant: only plants whose foot is
allowed stay, each at the height of the ground under it. Whole patches are sheared along the ground's plane, not tilted:
stems stay upright and the squares stay square.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.scenes.file.budget import Budget, require_few_squares
from hedgerow.scenes.file.scatter import Region, random_transforms
from hedgerow.scenes.file.schema import ScatterSpec
from hedgerow.scenes.mesh import Mesh, MeshPart, count_triangles, join_meshes
from hedgerow.scenes.plants.grass import PatchParameters
from hedgerow.scenes.plants.plant import Plant
from hedgerow.scenes.terrain import Terrain

_GROUNDED_M = 0.01
"""What reaches down to here stands on the ground."""


class Patch(NamedTuple):
    """Plants in a square around (0, 0)."""

    parts: tuple[MeshPart, ...]
    plant: tuple[NDArray[np.int64], ...]
    """For each part, (V,) which plant a vertex belongs to."""
    foot_m: Array
    """(P, 2) where each plant stands [m]."""


def grow_patch(
    plant: Plant, parameters: PatchParameters, side_m: float, density_per_m2: float, rng: np.random.Generator
) -> Patch:
    """Grow a patch of a grass; each connected component on the ground is a stem, other ones go with the nearest."""
    changes = {"side_m": side_m, "side_y_m": None, "density_per_m2": density_per_m2}
    parts = plant.make(parameters.model_copy(update=changes), rng)
    components = [_components(part.mesh) for part in parts]
    feet = [_feet(part.mesh.vertices_m, *each) for part, each in zip(parts, components, strict=True)]
    foot = np.concatenate([np.zeros((0, 3)), *feet])
    stem = _stem_of(foot)
    first = np.cumsum([0, *[len(each) for each in feet]])
    owners = tuple(stem[owner + start] for (owner, _), start in zip(components, first, strict=False))
    return Patch(parts, owners, foot[foot[:, 2] < _GROUNDED_M, :2])


def merge_patch(
    variants: Sequence[tuple[MeshPart, ...]],
    rule: ScatterSpec,
    side_m: float,
    density_per_m2: float,
    rng: np.random.Generator,
) -> Patch:
    """Merge copies of a placeable at random places, turned, scaled and tilted by the rule, into one patch."""
    n = rng.poisson(density_per_m2 * side_m**2)
    feet = np.concatenate([rng.uniform(-side_m / 2, side_m / 2, (n, 2)), np.zeros((n, 1))], axis=1)
    places, variant = random_transforms(feet, rule, rng), rng.integers(0, len(variants), n)
    groups: dict[tuple[str, str], list[tuple[Mesh, NDArray[np.int64]]]] = {}
    for k, parts in enumerate(variants):
        chosen = np.flatnonzero(variant == k)
        for part in parts:
            copies = _copies(part.mesh, places[chosen], chosen)
            groups.setdefault((part.material, part.label), []).append(copies)
    merged = tuple(MeshPart(join_meshes(*[mesh for mesh, _ in group]), *names) for names, group in groups.items())
    return Patch(merged, tuple(np.concatenate([owner for _, owner in group]) for group in groups.values()), feet[:, :2])


def cut_patch(patch: Patch, keep: NDArray[np.bool_], lift_m: Array) -> tuple[MeshPart, ...]:
    """Return the plants of a patch that are kept, (P,), each lifted by (P,) metres."""
    parts: list[MeshPart] = []
    for part, owner in zip(patch.parts, patch.plant, strict=True):
        vertices, triangles = part.mesh
        kept = keep[owner]
        number = np.cumsum(kept) - 1
        raised = vertices[kept] + np.stack([np.zeros(kept.sum())] * 2 + [lift_m[owner[kept]]], axis=1)
        parts.append(part._replace(mesh=Mesh(raised, number[triangles[kept[triangles[:, 0]]]])))
    return tuple(parts)


def _copies(mesh: Mesh, places: Array, owner: NDArray[np.int64]) -> tuple[Mesh, NDArray[np.int64]]:
    n, size = len(places), len(mesh.vertices_m)
    vertices = np.einsum("nij,vj->nvi", places[:, :3, :3], mesh.vertices_m) + places[:, None, :3, 3]
    triangles = mesh.triangles[None] + size * np.arange(n)[:, None, None]
    return Mesh(vertices.reshape(-1, 3), triangles.reshape(-1, 3)), np.repeat(owner, size)


def _components(mesh: Mesh) -> tuple[NDArray[np.int64], int]:
    """Number the connected components of a mesh: (V,) numbers, and how many there are."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(mesh.vertices_m)
    a, b = mesh.triangles[:, [0, 1]].T, mesh.triangles[:, [1, 2]].T
    start, end = np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])
    graph = coo_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(n, n))
    count, number = connected_components(graph, directed=False)
    return number.astype(np.int64), int(count)


def _feet(vertices_m: Array, owner: NDArray[np.int64], n: int) -> Array:
    """Middle of the lowest vertices of each component, (n, 3)."""
    lowest = np.full(n, np.inf)
    np.minimum.at(lowest, owner, vertices_m[:, 2])
    low = vertices_m[:, 2] <= lowest[owner] + 1e-6
    count = np.bincount(owner[low], minlength=n)
    sums = [np.bincount(owner[low], vertices_m[low, k], minlength=n) for k in (0, 1)]
    return np.stack([*sums, lowest * count], axis=1) / count[:, None]


def _stem_of(foot_m: Array) -> NDArray[np.int64]:
    """Number n components by stem: those whose foot is on the ground are stems, others belong to the nearest."""
    grounded = foot_m[:, 2] < _GROUNDED_M
    number = np.cumsum(grounded) - 1
    if not grounded.all() and grounded.any():
        from scipy.spatial import KDTree

        number[~grounded] = KDTree(foot_m[grounded, :2]).query(foot_m[~grounded, :2])[1]
    return number


Grow = Callable[[float, np.random.Generator], Patch]
"""Makes a patch from the length of its sides [m] and random numbers."""

LARGEST_M = 10.0
"""Side of the largest patches."""
SMALLEST_M = 1.25
"""Side of the smallest patches."""
MOST_PLANTS = 60_000
"""Per patch: denser plants get smaller patches, so that a few variants do not fill the memory."""

MOST_CELLS = 1000
"""Cells of the terrain along the side of a patch: of finer ground, smaller patches are fitted to it."""


@dataclass
class GroundCover:
    """What covers the ground."""

    placed: list[tuple[Patch, Array]] = field(default_factory=list[tuple[Patch, Array]])
    """Patches, each with its (M, 4, 4) transforms."""
    cut_parts: list[MeshPart] = field(default_factory=list[MeshPart])
    """Plants of patches that were cut, at borders and on rough ground."""
    n_plants: int = 0
    """All plants, copies counted."""
    largest_gap_m: float = 0.0
    """Largest distance between a placed patch's foot and the ground, at the ground's grid lines [m]."""


def cover(
    region: Region,
    density_per_m2: float,
    variants: int,
    grow: Grow,
    rng: np.random.Generator,
    budget: Budget | None = None,
    plant_triangles: int = 1,
) -> GroundCover:
    """Cover a region.

    Args:
        region: allowed ground, with the rule.
        density_per_m2: plants per square metre.
        variants: different patches of each size.
        grow: makes patches.
        rng: decides which patch goes where.
        budget: what the scene may still spend. Default: as if it had nothing else.
        plant_triangles: triangles of one plant.

    Raises:
        InputError: it would take too many patches, or too many plants cut out of patches; names the field.
    """
    done, budget = GroundCover(), budget or Budget()
    for squares in _squares(region, density_per_m2):
        whole = squares.is_whole
        if not (whole | squares.is_cut).any():
            continue
        n_patches = variants * (4 if squares.is_last else 1)
        budget.take_triangles(n_patches * density_per_m2 * squares.side_m**2 * plant_triangles, "density_per_m2")
        patches = [grow(squares.side_m, rng) for _ in range(n_patches)]
        which, turn = rng.integers(0, len(patches), len(whole)), rng.integers(0, 4, len(whole))
        for k, patch in enumerate(patches):
            chosen = whole & (which == k)
            if chosen.any():
                places = _places(squares.middle_m[chosen], squares.plane[chosen], turn[chosen], region.rule.sink_m)
                done.placed.append((patch, places))
                done.n_plants += len(patch.foot_m) * int(chosen.sum())
        done.largest_gap_m = max(done.largest_gap_m, float(squares.gap_m[whole].max(initial=0)))
        cut = np.flatnonzero(squares.is_cut)
        budget.take_copies(int(whole.sum()), "max_gap_m")
        n_triangles = np.array([count_triangles(patch.parts) for patch in patches])
        budget.take_triangles(float(n_triangles[which[cut]].sum()), "max_gap_m")
        parts, n_plants = _cut_out([patches[int(k)] for k in which[cut]], squares.middle_m[cut], turn[cut], region)
        done.cut_parts += parts
        done.n_plants += n_plants
    return done


@dataclass
class _Squares:
    """Squares of one size."""

    side_m: float
    middle_m: Array
    """(N, 2)."""
    plane: Array
    """(N, 3) height in the middle and slope along x and y."""
    gap_m: Array
    """(N,) largest distance between plane and ground."""
    is_whole: NDArray[np.bool_]
    """To be covered by a whole patch."""
    is_cut: NDArray[np.bool_]
    """To be covered plant by plant; only among the smallest."""
    is_last: bool


def _squares(region: Region, density_per_m2: float) -> Iterator[_Squares]:
    side = LARGEST_M
    while density_per_m2 * side**2 > MOST_PLANTS and side > SMALLEST_M:
        side /= 2
    # A terrain of very fine cells is looked at in small squares: they hold fewer of its points.
    while side / min(region.terrain.spacing_m) > MOST_CELLS and side > SMALLEST_M:
        side /= 2
    low_x, low_y, high_x, high_y = region.box_m
    require_few_squares(max(0.0, high_x - low_x) / side * max(0.0, high_y - low_y) / side)
    # Tolerance: 300 m are 30 squares even if the last digit says 300.0000001.
    x, y = (np.arange(low + side / 2, high + side / 2 - 1e-6, side) for low, high in ((low_x, high_x), (low_y, high_y)))
    middle = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    while True:
        is_last = side / 2 < SMALLEST_M
        middle = middle[~region.misses(middle, side / 2)]
        require_few_squares(len(middle))
        if len(middle) == 0:
            return
        plane, gap, slope_fits = _on_ground(region, middle, side)
        whole = region.covers(middle, side / 2) & (gap <= region.rule.max_gap_m) & slope_fits
        yield _Squares(side, middle, plane, gap, whole, ~whole & is_last, is_last)
        if is_last:
            return
        quarter = side / 4 * np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
        middle = (middle[~whole, None] + quarter).reshape(-1, 2)
        side /= 2


def _on_ground(region: Region, middle_m: Array, side_m: float) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Fit a plane to the ground of each square: (N, 3) planes, (N,) gaps [m], (N,) whether the slope is allowed."""
    terrain = region.terrain
    planes, gaps, fits = np.zeros((len(middle_m), 3)), np.zeros(len(middle_m)), np.ones(len(middle_m), dtype=bool)
    n_per_square = (side_m / min(terrain.spacing_m) + 3) ** 2
    for rows in np.array_split(np.arange(len(middle_m)), max(1, int(len(middle_m) * n_per_square / 1e6))):
        x, y = (_grid_lines(axis, middle_m[rows, k], side_m) for k, axis in enumerate((terrain.x_m, terrain.y_m)))
        x, y = (each.reshape(len(rows), -1) for each in np.broadcast_arrays(x[:, None, :], y[:, :, None]))
        z = terrain.height_m(*_within(terrain, x, y))
        u, v = x - middle_m[rows, :1], y - middle_m[rows, 1:]
        # Least squares over the corners of the ground's triangles and those where the square cuts their edges.
        design = np.stack([np.ones_like(u), u, v], axis=-1)
        normal = np.einsum("npi,npj->nij", design, design) + 1e-12 * np.eye(3)
        moment: Array = np.einsum("npi,np->ni", design, z)
        planes[rows] = np.linalg.solve(normal, moment[..., None])[..., 0]
        gaps[rows] = np.abs(z - np.einsum("npi,ni->np", design, planes[rows])).max(axis=1, initial=0)
        fits[rows] = _slope_fits(region, x, y, middle_m[rows] + side_m / 2)
    return planes, gaps, fits


def _slope_fits(region: Region, x: Array, y: Array, end_m: Array) -> NDArray[np.bool_]:
    """Whether the slope is allowed on all triangles that begin at (N, K) places, of squares that end at (N, 2) [m]."""
    fits = np.ones(len(x), dtype=bool)
    if region.rule.slope_deg is None:
        return fits
    dx, dy = region.terrain.spacing_m
    for third in (1 / 3, 2 / 3):  # the middles of a cell's two triangles
        inner = np.minimum(x + third * dx, end_m[:, :1]), np.minimum(y + third * dy, end_m[:, 1:])
        fits &= region.slope_fits(*_within(region.terrain, *inner)).all(axis=1)
    return fits


def _grid_lines(axis_m: Array, middle_m: Array, side_m: float) -> Array:
    """(N, K) coordinates of the ground's grid lines across each square, and of the square's two sides."""
    step = (axis_m[-1] - axis_m[0]) / (len(axis_m) - 1)
    first = np.floor((middle_m - side_m / 2 - axis_m[0]) / step)
    n = int(np.ceil(side_m / step)) + 2
    lines = axis_m[0] + (first[:, None] + np.arange(n)) * step
    return np.clip(lines, (middle_m - side_m / 2)[:, None], (middle_m + side_m / 2)[:, None])


def _within(terrain: Terrain, x_m: Array, y_m: Array) -> tuple[Array, Array]:
    low_x, low_y, high_x, high_y = terrain.bounds_m  # squares at the border may reach beyond; they are cut later
    return np.clip(x_m, low_x, high_x), np.clip(y_m, low_y, high_y)


def _turned(turn: NDArray[np.int64]) -> Array:
    """(N, 2, 2) rotations by so many quarters."""
    c, s = np.array([1.0, 0, -1, 0])[turn], np.array([0.0, 1, 0, -1])[turn]
    return np.stack([c, -s, s, c], axis=-1).reshape(*turn.shape, 2, 2)


def _places(middle_m: Array, plane: Array, turn: NDArray[np.int64], sink_m: float) -> Array:
    """(N, 4, 4): quarter turn, shear along the plane, move."""
    places = np.tile(np.eye(4), (len(middle_m), 1, 1))
    places[:, :2, :2] = _turned(turn)
    places[:, 2, :2] = np.einsum("ni,nij->nj", plane[:, 1:], _turned(turn))
    places[:, :2, 3] = middle_m
    places[:, 2, 3] = plane[:, 0] - sink_m
    return places


def _cut_out(
    patches: Sequence[Patch], middle_m: Array, turn: NDArray[np.int64], region: Region
) -> tuple[list[MeshPart], int]:
    """Plants of one patch for each square whose feet are allowed, each on the ground, and how many they are."""
    places = np.tile(np.eye(4), (len(patches), 1, 1))
    places[:, :2, :2] = _turned(turn)
    places[:, :2, 3] = middle_m
    turned = [patch.foot_m @ place[:2, :2].T + place[:2, 3] for patch, place in zip(patches, places, strict=True)]
    foot = np.concatenate([np.zeros((0, 2)), *turned])
    keep = region.contains(foot)
    lift = np.zeros(len(foot))
    lift[keep] = region.terrain.height_m(*foot[keep].T) - region.rule.sink_m
    parts: list[MeshPart] = []
    end = 0
    for patch, place in zip(patches, places, strict=True):
        rows = slice(end, end := end + len(patch.foot_m))
        if keep[rows].any():
            kept = cut_patch(patch, keep[rows], lift[rows])
            parts += [part._replace(mesh=part.mesh.transformed(place)) for part in kept]
    return parts, int(keep.sum())
