# SPDX-License-Identifier: Apache-2.0
"""How the clouds of a topic become sweeps: looks at a few of them and picks one of three ways.

Clouds with a cell or a direction for every firing keep their missing returns. Those with two points per pulse keep
both. All others go the way of clouds in files, with recovery of missing returns if the lidar is known.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.clouds import Cloud, CloudSource, Frame, Plan
from hedgerow.io.firings import Firings, FiringSource
from hedgerow.io.folder_plan import known_sensor
from hedgerow.io.options import ReadOptions
from hedgerow.io.placing import uncompensated
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.ros import grid
from hedgerow.io.ros.clouds import CloudTopic, pulses_of, returns_per_pulse
from hedgerow.io.ros.points import Points
from hedgerow.io.source import Settings, SweepSource

_LOOKED_AT = 4


def cloud_source(
    path: Path,
    topic: CloudTopic,
    trajectory: Trajectory,
    settings: Settings,
    period_ns: int,
    options: ReadOptions,
    *,
    is_ours: bool,
) -> SweepSource:
    """Make a log of the clouds of a topic.

    Args:
        path: of the bag.
        topic: its clouds.
        trajectory: T_map_sensor.
        settings: all but arrays, returns per pulse and what the metadata say about missing returns.
        period_ns: how long a sweep takes, where the clouds do not tell.
        options: how to read.
        is_ours: whether Hedgerow wrote the bag, and told of missing returns.

    Raises:
        FileError: a cloud is damaged, or recovery was asked for and is not possible.
    """
    numbers = range(len(topic.entries))
    chosen = np.unique(np.linspace(0, len(numbers) - 1, _LOOKED_AT).round().astype(int)).tolist()
    some = [topic.points(number) for number in chosen]
    first = next((each for each in some if each.hit.any()), some[0])
    arrays = [name for name in ("intensity", "label") if getattr(first, name) is not None]
    settings = replace(settings, arrays=arrays)
    raw = _raw(topic, trajectory, bool(options.compensated))
    if topic.misses is not None and is_ours and options.recover != "no":
        return _told(path, topic, trajectory, settings)
    reason = ""
    if grid.is_organised(first) and options.recover != "no":
        spans = [_span(topic, number, each, period_ns) for number, each in zip(chosen, some, strict=True)]
        try:
            summary = _looked_at(
                [grid.fill(grid.by_laser(raw(k)), *span) for k, span in zip(chosen, spans, strict=True)]
            )
            return _organised(
                path, topic, trajectory, replace(settings, metadata=settings.metadata | summary), raw, period_ns
            )
        except NotRecovered as error:
            reason = str(error)
            if options.recover == "yes":
                raise FileError(f"{path}: empty cells cannot be told where they point, {error}") from None
    n_returns = max(returns_per_pulse(each) for each in some)
    if n_returns > 1:
        note = {"method": "none", "summary": "not recovered, every beam has a return (points are returns of one pulse)"}
        settings = replace(
            settings, n_per_pulse=n_returns, metadata=settings.metadata | {"motion": "raw", "recovery": note}
        )
        return FiringSource(path, settings, trajectory, numbers, lambda k: pulses_of(raw(k), None, n_returns))
    return _bare(path, topic, trajectory, settings, options, first, period_ns, reason)


def _raw(topic: CloudTopic, trajectory: Trajectory, compensated: bool) -> Callable[[int], Points]:
    """Return what gives the points of a cloud, each in the sensor frame of its own instant."""

    def load(number: int) -> Points:
        points = topic.points(number)
        if not compensated or points.time_ns is None:
            return points
        hit, xyz = points.hit, points.xyz.copy()
        xyz[hit] = uncompensated(trajectory, xyz[hit], points.time_ns[hit], topic.entries[number].stamp_ns)
        return replace(points, xyz=xyz)

    return load


def _told(path: Path, topic: CloudTopic, trajectory: Trajectory, settings: Settings) -> FiringSource:
    """Read what Hedgerow wrote: points, and directions of pulses without any."""
    note = {"motion": "raw", "recovery": {"method": "told", "summary": "known; the recording tells every firing"}}
    settings = replace(settings, metadata=settings.metadata | note)

    def load(number: int) -> Firings:
        points, misses = topic.both(number)
        return pulses_of(points, misses, settings.n_per_pulse)

    return FiringSource(path, settings, trajectory, range(len(topic.entries)), load)


def _organised(
    path: Path,
    topic: CloudTopic,
    trajectory: Trajectory,
    settings: Settings,
    raw: Callable[[int], Points],
    period_ns: int,
) -> FiringSource:
    def load(number: int) -> Firings:
        points = grid.by_laser(raw(number))
        try:
            return grid.fill(points, *_span(topic, number, points, period_ns)).firings
        except NotRecovered as error:
            raise FileError(f"{path}, sweep {number}: {error}; read it with recover=no") from None

    return FiringSource(path, replace(settings, n_per_pulse=1), trajectory, range(len(topic.entries)), load)


def _bare(
    path: Path,
    topic: CloudTopic,
    trajectory: Trajectory,
    settings: Settings,
    options: ReadOptions,
    first: Points,
    period_ns: int,
    reason: str,
) -> CloudSource:
    """Read clouds that hold nothing but points."""
    sensor = known_sensor(settings.sensor)
    config = None if sensor is None else sensor.config.pattern
    clockwise = config is None or config.turns == "clockwise"
    low, high = (each - topic.entries[0].stamp_ns for each in _span(topic, 0, topic.points(0), period_ns))
    frames = [Frame(k, e.stamp_ns + low, e.stamp_ns + high, e.stamp_ns) for k, e in enumerate(topic.entries)]

    def load(number: int) -> Cloud:
        points = topic.points(number)
        hit = points.hit
        label = None if points.label is None else points.label[hit]
        beside: list[NDArray[Any] | None] = [
            None if each is None else each[hit] for each in (points.intensity, points.ring, points.time_ns)
        ]
        ring = None if beside[1] is None else np.clip(beside[1], 0, 65535).astype(np.uint16)
        return Cloud(points.xyz[hit], beside[0], label, ring, beside[2])

    plan = Plan(
        sensor=sensor,
        start_rad=_start_rad(first),
        clockwise=clockwise,
        compensated=bool(options.compensated),
        times_by_laser=True,
        recover=options.recover,
        metadata={"organised": reason} if reason else {},
    )
    return CloudSource(path, replace(settings, n_per_pulse=1), trajectory, frames, load, plan)


def _span(topic: CloudTopic, number: int, points: Points, period_ns: int) -> tuple[int, int]:
    """Return when a cloud began and ended: by its times, else one sweep from its stamp on."""
    stamp_ns = topic.entries[number].stamp_ns
    if points.time_ns is None or not points.hit.any():
        return stamp_ns, stamp_ns + period_ns
    time_ns = points.time_ns[points.hit]
    return int(time_ns.min()), int(time_ns.max())


def _start_rad(points: Points) -> float:
    """Return the azimuth at which sweeps start: that of the earliest points, or of the first in order."""
    hit = points.hit
    xyz = points.xyz[hit]
    if not len(xyz):
        return float(np.pi)
    n = max(1, len(xyz) // 1000)
    rows = np.arange(n) if points.time_ns is None else np.argsort(points.time_ns[hit], kind="stable")[:n]
    return float(np.angle((xyz[rows, 0] + 1j * xyz[rows, 1]).sum()))


def _looked_at(filled: list[grid.Filled]) -> dict[str, Any]:
    rms_deg = float(np.rad2deg(np.sqrt(np.mean([each.rms_rad**2 for each in filled]))))
    share = float(np.mean([each.share_empty for each in filled]))
    summary = (
        f"kept, {share:.1%} of the cells of the organised clouds are empty; directions {rms_deg:.3f} degrees rms off"
    )
    recovery = {"method": "organised cloud", "rms_deg": round(rms_deg, 5), "empty": round(share, 5), "summary": summary}
    return {"motion": "raw", "recovery": recovery}
