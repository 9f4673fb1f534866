# SPDX-License-Identifier: Apache-2.0
"""How the clouds of a topic become sweeps: looks at a few of them and picks one of three ways.

Clouds with a cell or a direction for every firing keep their missing returns. Those with two points per pulse keep
both. All others go the way of clouds in files, with recovery of missing returns if the lidar is known.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.beams.clouds import Cloud, CloudSource, Frame, Plan
from hedgerow.io.beams.firings import Firings, FiringSource
from hedgerow.io.beams.motion import uncompensated
from hedgerow.io.beams.organised import Points, is_organised, organised_source
from hedgerow.io.folder import known_sensor
from hedgerow.io.options import ReadOptions
from hedgerow.io.recovery.fit import first_lasers, nominal
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.ros.topic import CloudTopic, pulses_of, returns_per_pulse
from hedgerow.io.source import Settings, SweepSource

if TYPE_CHECKING:
    from hedgerow.sensor import Sensor

_LOOKED_AT = 4
_COLUMNS = 4096  # a sweep has at most about so many


@dataclass(frozen=True, slots=True, eq=False)
class CloudRecording:
    """A topic of clouds with everything that is known about it."""

    path: Path
    topic: CloudTopic
    trajectory: Trajectory
    """T_map_sensor."""
    settings: Settings
    """All but arrays, returns per pulse and what the metadata say about missing returns."""
    period_ns: int
    """How long a sweep takes, where the clouds do not tell."""
    options: ReadOptions
    is_ours: bool
    """Whether Hedgerow wrote the bag, and told of missing returns."""

    def source(self) -> SweepSource:
        """Look at a few clouds and make a log of them all.

        Raises:
            FileError: a cloud is damaged, or recovery was asked for and is not possible.
        """
        chosen = np.unique(np.linspace(0, len(self.topic.entries) - 1, _LOOKED_AT).round().astype(int)).tolist()
        some = [self.topic.points(number) for number in chosen]
        first = next((each for each in some if each.hit.any()), some[0])
        arrays = [name for name in ("intensity", "label") if getattr(first, name) is not None]
        known = replace(self, settings=replace(self.settings, arrays=arrays))
        if self.topic.misses is not None and self.is_ours and self.options.recover != "no":
            return known._told()
        reason = ""
        if is_organised(first) and self.options.recover != "no":
            try:
                return known._organised(chosen)
            except NotRecovered as error:
                reason = str(error)
                if self.options.recover == "yes":
                    raise FileError(f"{self.path}: empty cells cannot be told where they point, {error}") from None
        n_returns = max(returns_per_pulse(each) for each in some)
        return known._doubled(n_returns) if n_returns > 1 else known._bare(first, reason)

    def _raw(self, number: int) -> Points:
        """Return the points of a cloud, each in the sensor frame of its own instant."""
        points = self.topic.points(number)
        if not self.options.compensated or points.time_ns is None:
            return points
        hit, xyz = points.hit, points.xyz.copy()
        stamp_ns = self.topic.entries[number].stamp_ns
        xyz[hit] = uncompensated(self.trajectory, xyz[hit], points.time_ns[hit], stamp_ns)
        return replace(points, xyz=xyz)

    def _fired(self, load: Callable[[int], Firings], recovery: dict[str, Any], n_per_pulse: int) -> FiringSource:
        metadata = self.settings.metadata | {"motion": self._motion(), "recovery": recovery}
        settings = replace(self.settings, n_per_pulse=n_per_pulse, metadata=metadata)
        return FiringSource(self.path, settings, self.trajectory, range(len(self.topic.entries)), load)

    def _motion(self) -> str:
        return "compensated" if self.options.compensated else "raw"

    def _told(self) -> FiringSource:
        """Read what Hedgerow wrote: points, and directions of pulses without any."""
        n_returns = self.settings.n_per_pulse
        recovery = {"method": "told", "summary": "known; the recording tells every firing"}
        return self._fired(lambda number: pulses_of(*self.topic.both(number), n_returns), recovery, n_returns)

    def _doubled(self, n_returns: int) -> FiringSource:
        """Read clouds in which a pulse has several points."""
        summary = "not recovered, every beam has a return (points of one ring and time are returns of one pulse)"
        recovery = {"method": "none", "summary": summary}
        return self._fired(lambda number: pulses_of(self._raw(number), None, n_returns), recovery, n_returns)

    def _organised(self, chosen: list[int]) -> FiringSource:
        """Read clouds with a cell for every firing. Raises NotRecovered if those looked at are none."""
        settings = replace(self.settings, metadata=self.settings.metadata | {"motion": self._motion()})
        count = len(self.topic.entries)
        return organised_source(self.path, settings, self.trajectory, count, self._raw, self._span, chosen)

    def _bare(self, first: Points, reason: str) -> CloudSource:
        """Read clouds that hold nothing but points."""
        sensor = known_sensor(self.settings.sensor)
        entries = self.topic.entries
        low, high = (each - entries[0].stamp_ns for each in self._span(0, self.topic.points(0)))
        frames = [Frame(k, e.stamp_ns + low, e.stamp_ns + high, e.stamp_ns) for k, e in enumerate(entries)]
        plan = Plan(
            sensor=sensor,
            start_rad=_start_rad(first, sensor),
            clockwise=sensor is None or sensor.config.pattern.turns == "clockwise",
            compensated=bool(self.options.compensated),
            times_by_laser=True,
            recover=self.options.recover,
            metadata={"organised": reason} if reason else {},
        )
        settings = replace(self.settings, n_per_pulse=1)
        return CloudSource(
            self.path, settings, self.trajectory, frames, lambda number: _cloud(self.topic.points(number)), plan
        )

    def _span(self, number: int, points: Points) -> tuple[int, int]:
        """Return when a cloud began and ended: by its times, else one sweep from its stamp on."""
        stamp_ns, hit = self.topic.entries[number].stamp_ns, points.hit
        if points.time_ns is None or not hit.any():
            return stamp_ns, stamp_ns + self.period_ns
        time_ns = points.time_ns[hit]
        return int(time_ns.min()), int(time_ns.max())


def _cloud(points: Points) -> Cloud:
    hit = points.hit

    def chosen(values: Any) -> Any:
        return None if values is None else values[hit]

    ring = None if points.ring is None else np.clip(points.ring[hit], 0, 65535).astype(np.uint16)
    n_left_out = hit.size - int(np.count_nonzero(hit))
    xyz, time_ns = points.xyz[hit], chosen(points.time_ns)
    return Cloud(xyz, chosen(points.intensity), chosen(points.label), ring, time_ns, n_left_out=n_left_out)


def _start_rad(points: Points, sensor: "Sensor | None") -> float:
    """Return the angle of the rotor at which sweeps start: that of the earliest points, or of the first in order."""
    hit = points.hit
    xyz, ring = points.xyz[hit], None if points.ring is None else points.ring[hit]
    if not len(xyz):
        return float(np.pi)
    rows: NDArray[np.intp] = np.arange(max(1, len(xyz) // 1000))
    if points.time_ns is not None:
        time_ns = points.time_ns[hit]
        rows = np.flatnonzero(time_ns <= time_ns.min() + np.ptp(time_ns) // _COLUMNS)
    known = None if sensor is None else nominal(sensor)
    angle = np.arctan2(xyz[rows, 1], xyz[rows, 0])
    if known is not None:  # beams leave the rotor at an angle
        laser = first_lasers(xyz, known, ring)[rows]
        angle = known.lasers.rotor_rad(xyz[rows], laser)
    return float(np.angle(np.exp(1j * angle).sum()))
