# SPDX-License-Identifier: Apache-2.0
"""Whether what is fired can meet anything: poses or a log in another frame than the world are noticed beforehand.

A trajectory in UTM fired into a site around zero gives a log without a single return, and no error: every number is
right by itself. So the place of the poses is held against that of the world, once for a drive. What cannot be meant
is refused; what could be, such as a drive that begins outside the site, is warned of.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.box import Box, distance_text
from hedgerow.errors import InputError, warn
from hedgerow.world.world import World

ELSEWHERE = 10.0
"""Poses farther from the world than this many times the reach of the sensor are of another frame."""
ELSEWHERE_M = 1e5
"""Beams of a recording farther from the world than this are of another frame; a long drive may well leave it."""
_SOME_BEAMS = 1000


def require_reach(world: World, position_m: NDArray[np.float64], reach_m: float, *, anyway: bool = False) -> None:
    """Check that a sensor that goes along a trajectory comes near the world.

    Args:
        world: what is fired at; one that does not know where it lies passes.
        position_m: (K, 3) where the sensor is, map frame.
        reach_m: its maximum range.
        anyway: warn instead of refusing.

    Raises:
        InputError: all of it is so far from the world that another frame must be meant; says where both are.
    """
    box = world.box
    if box is None or not np.isfinite(reach_m):
        return
    away_m = box.distance_m(position_m)
    nearest_m = _least_away_m(box, position_m)
    if nearest_m > reach_m:
        said = f"{_apart('it', box, position_m, nearest_m, world)}, and the sensor reaches {distance_text(reach_m)}"
        if nearest_m > ELSEWHERE * reach_m and not anyway:
            shift_m = -world.map_origin_m
            remedy = _remedy(box, position_m, reach_m, shift_m, "subtract the map's origin from its poses")
            raise InputError("trajectory", f"{said}; {remedy}, or fire anyway (--anyway, anyway=True)")
        warn(f"trajectory: {said}: nothing can be met")
    elif (n_far := int(np.count_nonzero(away_m > reach_m))) > 0:
        most = distance_text(float(away_m.max()))
        warn(
            f"trajectory: {n_far:,} of {len(away_m):,} poses are farther from the site than the sensor reaches "
            f"({distance_text(reach_m)}), up to {most}; the site spans {box.text()}"
        )


def beams_away_m(world: World, origin_m: NDArray[np.float64]) -> float:
    """Return how far the nearest of some of (N, 3) origins of beams is from a world, 0 if it does not know [m]."""
    box = world.box
    if box is None or len(origin_m) == 0:
        return 0.0
    # Some tell: the beams of a sweep begin within metres, and those of a log along a path.
    return float(box.distance_m(origin_m[:: max(1, len(origin_m) // _SOME_BEAMS)]).min())


def require_same_place(
    name: str, world: World, origin_m: NDArray[np.float64], log_origin_m: NDArray[np.float64]
) -> None:
    """Check that the beams of a recording lie somewhere near the world.

    Args:
        name: of the world.
        world: what is fired at.
        origin_m: (N, 3) where the beams begin, map frame.
        log_origin_m: (3,) map origin of the recording.

    Raises:
        InputError: they are so far from it that another frame must be meant; says where both are.
    """
    away_m = beams_away_m(world, origin_m)
    box = world.box
    if box is None or away_m <= ELSEWHERE_M:
        return
    remedy = _remedy(box, origin_m[:1], ELSEWHERE_M, log_origin_m, "add its map_origin_m to its beams")
    raise InputError(name, f"{_apart('the log', box, origin_m[:1], away_m, world)}; {remedy}")


def _least_away_m(box: Box, position_m: NDArray[np.float64]) -> float:
    """Return how far a path of (K, 3) poses is from a box at least; it may pass between two of them [m]."""
    return float(box.distance_m(position_m[:-1], position_m[1:]).min(initial=box.distance_m(position_m[:1])[0]))


def _apart(what: str, box: Box, position_m: NDArray[np.float64], nearest_m: float, world: World) -> str:
    first, origin = ([f"{number:.0f}" for number in place] for place in (position_m[0], world.map_origin_m))
    return (
        f"{what} is {distance_text(nearest_m)} from the site: it begins at {' '.join(first)} m, the site spans "
        f"{box.text()}, its map's origin is {' '.join(origin)}"
    )


def _remedy(
    box: Box, position_m: NDArray[np.float64], reach_m: float, shift_m: NDArray[np.float64], mended: str
) -> str:
    """Return what would bring poses to the world: a known shift if that does, else that frames differ."""
    if shift_m.any() and _least_away_m(box, position_m + shift_m) <= reach_m:
        return f"{mended}, which brings them there"
    return "bring both into one frame"
