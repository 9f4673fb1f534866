# SPDX-License-Identifier: Apache-2.0
"""Sensor: a lidar of the catalogue or of a file of your own; pose or trajectory in, `Beams` out.

Frame: REP 103, x straight ahead, y left, z up. Pulses come in the order in which the sensor fires them, each with
its own time and pose. The id of a pulse is its running number over the drive, so a sweep made alone has the same ids,
and the same random numbers, as within the drive. All beams come from a `Drive`: `drive` and `drive_sweeps` take it
whole or by sweeps, `sweep_at` takes one sweep of it, and `sweep` one of a drive that stands still.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from hedgerow.base.arguments import as_path, as_positive, as_whole, require_kind
from hedgerow.base.arrays import LAST_NS
from hedgerow.errors import FileError, InputError, shown
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Beams, Log
from hedgerow.sensor.drive import MAX_SWEEP_NUMBER, Aim, Drive, Encoder, extent, require_on_trajectory
from hedgerow.sensor.load import catalogue_names, check_sensor, is_catalogue_name, read_catalogue, read_sensor_file
from hedgerow.sensor.noise import degrade
from hedgerow.sensor.scan.pattern import Pattern, build

if TYPE_CHECKING:
    from hedgerow.sensor.config import SensorConfig


@runtime_checkable
class _SaysSensor(Protocol):
    """A log, in memory or on the disk."""

    @property
    def sensor(self) -> str: ...
    @property
    def metadata(self) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class Sensor:
    """A lidar that turns at a given rate. Raises InputError if it does not have that rate."""

    config: "SensorConfig"
    """All its figures."""
    rate_hz: float
    """Turns (for a rosette: sweeps) per second."""

    def __post_init__(self) -> None:
        """Check the rate."""
        from hedgerow.sensor.config import SensorConfig  # pydantic takes its time

        require_kind("config", self.config, SensorConfig, "a SensorConfig; hr.Sensor.named and load make sensors")
        rates = self.config.pattern.rates
        if not rates.allows(as_positive("rate_hz", self.rate_hz)):
            raise InputError("rate_hz", f"{self.name} turns at {rates.text()}, found {self.rate_hz}")

    @classmethod
    def named(cls, name: str, rate_hz: float | None = None) -> "Sensor":
        """Return a sensor of the catalogue; upper case, blanks, dashes and underscores do not matter.

        Args:
            name: for example "hdl-64e"; see `names`.
            rate_hz: turns per second. Default: the sensor's usual rate.

        Raises:
            InputError: no such sensor, or a rate that it does not have.
        """
        require_kind("name", name, str, "the name of a sensor")
        return _named(name, None if rate_hz is None else as_positive("rate_hz", rate_hz))

    @classmethod
    def load(cls, path: str | Path, rate_hz: float | None = None) -> "Sensor":
        """Read a sensor from a TOML file of your own, with the fields of config.py.

        Raises:
            FileError: missing, not TOML, or a field is wrong; names the field.
            InputError: a rate that it does not have.
        """
        return _made(read_sensor_file(as_path("path", path)), rate_hz)

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all sensors of the catalogue."""
        return catalogue_names()

    @classmethod
    def is_name(cls, name: str) -> bool:
        """Tell whether `named` knows this name."""
        require_kind("name", name, str, "the name of a sensor")
        return is_catalogue_name(name)

    @classmethod
    def of(cls, log: "_SaysSensor") -> "Sensor | None":
        """Return the sensor that a log was made with, by its name or its metadata; None if that is not known."""
        require_kind("log", log, _SaysSensor, "a log")
        said = log.metadata.get("sensor")
        if isinstance(said, dict) and "config" in said:
            return _logged(log.sensor, cast("dict[str, Any]", said))
        return cls.named(log.sensor) if log.sensor in cls.names() else None

    @property
    def name(self) -> str:
        """Short name."""
        return self.config.name

    @property
    def min_range_m(self) -> float:
        """Minimum range [m]."""
        return self.config.range.min_m

    @property
    def max_range_m(self) -> float:
        """Maximum range [m]."""
        return self.config.range.max_m

    @cached_property
    def pattern(self) -> Pattern:
        """All pulses until the scan repeats, in the sensor's frame."""
        return build(self.config, self.rate_hz)

    @property
    def sweep_s(self) -> float:
        """Time from one sweep to the next [s]."""
        return self.pattern.period_ns * 1e-9 / self.pattern.n_sweeps

    @property
    def pulses_per_sweep(self) -> int:
        """Pulses in one sweep."""
        return self.pattern.pulses_per_sweep

    @property
    def n_rings(self) -> int:
        """Lasers, or lines that the driver tells apart."""
        return int(self.pattern.ring.max()) + 1

    def sweep(
        self,
        pose: Pose | None = None,
        *,
        number: int = 0,
        encoder: Encoder = "exact",
        cone: bool = False,
        seed: int = 0,
    ) -> Beams:
        """Fire one sweep standing still; time 0 is the start of sweep 0.

        Args:
            pose: T_map_sensor. Default: at the map's origin, looking along x.
            number: which sweep of the scan; only in time and ids different, unless the scan does not repeat.
            encoder: "exact"; "rounded" to the nearest encoder count; "uniform" within half a count of that.
            cone: whether each ray is drawn from the beam's truncated cone, instead of being its axis.
            seed: of the random numbers of encoder and cone.

        Returns:
            One sweep of beams, map frame.
        """
        as_whole("number", number, 0, MAX_SWEEP_NUMBER, f"a sweep from 0 on, up to {MAX_SWEEP_NUMBER}")
        require_kind("pose", pose, (Pose, NoneType), "a Pose")
        standing = Trajectory.standing(pose or Pose(), (number + 2) * self.sweep_s)
        return self.sweep_at(standing, number, self.pattern.start_ns(number), aim=Aim(encoder, cone, seed), threads=1)

    def drive(
        self,
        trajectory: Trajectory,
        *,
        mount: Pose | None = None,
        start_s: float = 0.0,
        duration_s: float | None = None,
        n_sweeps: int | None = None,
        encoder: Encoder = "exact",
        cone: bool = False,
        seed: int = 0,
        threads: int = 0,
    ) -> Beams:
        """Fire sweep after sweep along a trajectory, every pulse from the pose of its own instant.

        Args:
            trajectory: T_map_base.
            mount: T_base_sensor. Default: the trajectory is the sensor's own.
            start_s: when the first sweep starts, after the trajectory's first pose [s].
            duration_s: fire all sweeps that start and end within this time [s]. Default: to the end.
            n_sweeps: number of sweeps, instead of duration_s.
            encoder, cone, seed: as in `sweep`.
            threads: 0 uses all.

        Returns:
            Whole sweeps of beams, map frame, sweep and pulse numbered from 0.

        Raises:
            InputError: the sweeps do not fit into the trajectory, or are too many for memory.
        """
        start_ns, count = extent(self.pattern, trajectory, start_s, duration_s, n_sweeps)
        return self._drive(trajectory, mount, start_ns, count, Aim(encoder, cone, seed), threads).all_sweeps()

    def drive_sweeps(
        self,
        trajectory: Trajectory,
        *,
        mount: Pose | None = None,
        start_s: float = 0.0,
        duration_s: float | None = None,
        n_sweeps: int | None = None,
        encoder: Encoder = "exact",
        cone: bool = False,
        seed: int = 0,
        threads: int = 0,
    ) -> Iterator[Beams]:
        """Give what `drive` returns sweep by sweep, in bounded memory; the arguments are the same."""
        start_ns, count = extent(self.pattern, trajectory, start_s, duration_s, n_sweeps)
        drive = self._drive(trajectory, mount, start_ns, count, Aim(encoder, cone, seed), threads)
        return map(drive.sweep, range(count))

    def sweep_at(
        self,
        trajectory: Trajectory,
        number: int,
        start_ns: int,
        *,
        mount: Pose | None = None,
        aim: Aim | None = None,
        threads: int = 0,
    ) -> Beams:
        """Fire any sweep of the scan at any time, every pulse from the pose of its own instant.

        Args:
            trajectory: T_map_base, over the whole sweep.
            number: which sweep of the scan; pulse ids, and with them random numbers, follow from it.
            start_ns: when on the trajectory it starts [ns].
            mount: T_base_sensor. Default: the trajectory is the sensor's own.
            aim: how pulses differ from the scan pattern. Default: not at all.
            threads: 0 uses all.

        Returns:
            One sweep of beams, map frame: the bytes of the same sweep in a `drive` that comes there at that time.
        """
        require_kind("trajectory", trajectory, Trajectory, "a Trajectory; hr.read_trajectory reads one")
        as_whole("number", number, 0, MAX_SWEEP_NUMBER)
        as_whole("start_ns", start_ns, -LAST_NS, LAST_NS)
        require_on_trajectory(self.pattern, trajectory, number, start_ns)
        begin_ns = start_ns - self.pattern.start_ns(number)
        aimed = Aim() if aim is None else aim
        return self._drive(trajectory, mount, begin_ns, number + 1, aimed, threads).sweep(number)

    def with_range(self, **figures: float) -> "Sensor":
        """Return this sensor with other figures of its [range] table, for example `sigma_m=0.02, dropout=0`.

        Raises:
            FileError: a figure is unknown or out of bounds; names it.
        """
        content = self.config.model_dump()
        content["range"] |= figures
        return Sensor(check_sensor(content, self.name), self.rate_hz)

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """What a log says of the sensor that fired it: name, rate, and what differs from the catalogue."""
        shipped = _named(self.name, None).config.model_dump(mode="json") if self.name in self.names() else {}
        own = {key: value for key, value in self.config.model_dump(mode="json").items() if shipped.get(key) != value}
        return {"name": self.name, "rate_hz": self.rate_hz, **({"config": own} if own else {})}

    def degrade(
        self, log: Log, seed: int = 0, *, noise: bool = True, quantise: bool = True, dropout: float | None = None
    ) -> Log:
        """Add this sensor's range noise, range steps and random drop-outs to a simulated log.

        Args:
            log: exact ranges; its beams stay as they are.
            seed: random numbers are keyed by this, the pulse id and the return.
            noise: add N(0, sigma²), sigma from the sensor's figures.
            quantise: round to the sensor's range step.
            dropout: share of pulses to lose, from 0 to 1. Default: the sensor's figure.

        Returns:
            A log with the same beams; ranges that leave the log's limits are "no return".
        """
        require_kind("log", log, Log, "a Log")
        errors = self.config.range
        share = errors.dropout if dropout is None else dropout
        return degrade(log, errors, seed=seed, noise=noise, quantise=quantise, dropout=share)

    def _drive(
        self, trajectory: Trajectory, mount: Pose | None, start_ns: int, n_sweeps: int, aim: Aim, threads: int
    ) -> Drive:
        as_whole("threads", threads, 0, 1024, "0 for all or a number above")
        require_kind("mount", mount, (Pose, NoneType), "a Pose")
        require_kind("aim", aim, Aim, "an Aim")
        return Drive(self.config, self.pattern, trajectory, mount or Pose(), start_ns, n_sweeps, aim, threads)


@lru_cache(maxsize=64)
def _named(name: str, rate_hz: float | None) -> Sensor:
    # Kept, so that the pattern of a sensor is computed once however often it is named.
    return _made(read_catalogue(name), rate_hz)


def _logged(name: str, said: dict[str, Any]) -> Sensor:
    """Make the sensor that a log describes: what differs from the catalogue, and the rate."""
    where, config, rate_hz = f"the log's sensor {name}", said["config"], said.get("rate_hz")
    if not isinstance(config, dict):
        raise FileError(f"{where}: config: expected a table of values by name, found {shown(config)}")
    if not isinstance(rate_hz, (int, float)):
        raise FileError(f"{where}: rate_hz: expected a number, found {shown(rate_hz)}")
    shipped = _named(name, None).config.model_dump() if name in catalogue_names() else {}
    return _made(check_sensor(shipped | cast("dict[str, Any]", config), where), rate_hz)


def _made(config: "SensorConfig", rate_hz: float | None) -> Sensor:
    return Sensor(config, config.pattern.rates.default_hz if rate_hz is None else as_positive("rate_hz", rate_hz))
