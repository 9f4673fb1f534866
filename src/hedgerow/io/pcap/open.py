# SPDX-License-Identifier: Apache-2.0
"""Open captures of lidar packets as logs: a Velodyne's by themselves, an Ouster's with its metadata."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hedgerow.errors import FileError, InputError
from hedgerow.io.beams.clouds import find_sensor
from hedgerow.io.beams.firings import FiringSource, require_trajectory, subtract_map_origin
from hedgerow.io.options import ReadOptions
from hedgerow.io.pcap.capture import Capture
from hedgerow.io.pcap.ouster import OusterMetadata, OusterSweeps
from hedgerow.io.pcap.velodyne import PACKET_BYTES, NoPackets, VelodyneSweeps
from hedgerow.io.source import Settings

KNOWN = {"method": "packets", "summary": "known; the packets tell every firing"}
"""What the metadata say about missing returns."""
_LIMITS_M = {"os0": (0.3, 150.0), "os1": (0.3, 250.0), "os2": (0.8, 500.0), "osdome": (0.3, 100.0)}
_LOOKED_AT = 1_000  # packets that are looked at to find out whose they are


def open_log(path: str | Path, options: ReadOptions) -> FiringSource:
    """Open a capture; see `options.ReadOptions`.

    Raises:
        FileError: damaged, of no lidar that is known, without metadata or poses that it needs.
    """
    path = Path(path)
    capture = Capture(path)
    metadata = _metadata_path(path, options)
    if metadata is None or metadata.suffix.lower() in (".yaml", ".yml"):
        return _velodyne(path, capture, options)
    try:
        sweeps = OusterSweeps(capture, OusterMetadata.read(metadata))
    except InputError as error:
        raise FileError(f"{metadata}: {error}") from error
    limits = _limits(sweeps.metadata.name)
    notes: dict[str, Any] = {"profile": sweeps.metadata.profile} | sweeps.clock.notes()
    settings = _settings(sweeps.metadata.name, limits, sweeps.layout.n_returns, notes)
    return _source(path, options, settings, sweeps, len(sweeps.turns))


def velodyne_settings(sweeps: VelodyneSweeps) -> Settings:
    """Return what all sweeps of a Velodyne have in common."""
    name = sweeps.model.name
    return _settings(name, _limits(name), 1 + sweeps.dual, sweeps.clock.notes())


def _velodyne(path: Path, capture: Capture, options: ReadOptions) -> FiringSource:
    try:
        sweeps = VelodyneSweeps(str(path), capture.datagrams, options.sensor, options.metadata)
    except NoPackets:
        raise FileError(f"{path}: {_what_else(capture)}") from None
    return _source(path, options, velodyne_settings(sweeps), sweeps, sweeps.count)


def _source(
    path: Path, options: ReadOptions, settings: Settings, sweeps: OusterSweeps | VelodyneSweeps, count: int
) -> FiringSource:
    trajectory, origin_m = subtract_map_origin(
        require_trajectory(path, options, sweeps.start_ns, sweeps.end_ns), options
    )
    settings = replace(options.apply_to(settings), map_origin_m=origin_m)
    return FiringSource(path, settings, trajectory, range(count), sweeps.load)


def _settings(name: str, limits_m: tuple[float, float], n_per_pulse: int, notes: dict[str, Any]) -> Settings:
    return Settings(
        sensor=name,
        min_range_m=limits_m[0],
        max_range_m=limits_m[1],
        metadata={"read_from": "pcap", "motion": "raw", "recovery": KNOWN} | notes,
        n_per_pulse=n_per_pulse,
        arrays=["intensity"],
    )


def _limits(name: str) -> tuple[float, float]:
    """Return the nearest and the farthest range of a lidar [m]: the catalogue's, else wide ones of its family."""
    sensor = find_sensor(name)
    if sensor is None:
        return _LIMITS_M.get(name.split("-")[0], (0.0, 500.0))
    return sensor.config.range.min_m, sensor.config.range.max_m


def _metadata_path(path: Path, options: ReadOptions) -> Path | None:
    if options.metadata is not None:
        return Path(options.metadata)
    beside = path.with_suffix(".json")
    return beside if beside.exists() else None


def _what_else(capture: Capture) -> str:
    """Say what a capture without Velodyne's packets holds."""
    sizes: dict[int, int] = {}
    for number, datagram in enumerate(capture.datagrams()):
        sizes[len(datagram.payload)] = sizes.get(len(datagram.payload), 0) + 1
        if number >= _LOOKED_AT:
            break
    if not sizes:
        cut = f"; {capture.n_cut} were cut short when they were captured" if capture.n_cut else ""
        return f"holds no UDP packets{cut}"
    usual = max(sizes, key=lambda size: sizes[size])
    expected = f"expected Velodyne's ({PACKET_BYTES} bytes), or beside it {capture.path.stem}.json of an Ouster lidar"
    return f"its packets of {usual} bytes are of an unknown lidar; {expected}"
