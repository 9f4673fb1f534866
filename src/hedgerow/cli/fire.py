# SPDX-License-Identifier: Apache-2.0
"""hedgerow fire: drives a sensor through a scene or a learned world, sweep by sweep, into a log or live."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.app import app, out
from hedgerow.cli.options import (
    NOMINAL,
    Anyway,
    Flag,
    Noise,
    Output,
    PoseErrorTexts,
    PulseOptions,
    RateHz,
    SceneName,
    SceneSeed,
    SceneSettings,
    Seed,
    SensorName,
    WriteAs,
    amounts,
    parse_pose_errors,
    parse_settings,
)
from hedgerow.cli.server_options import AllowOrigin, Token, make_address
from hedgerow.cli.worker_options import Scheduler, WorkerCount, WorkerMemory, WorkerOptions, open_engine, parse_bytes

if TYPE_CHECKING:
    from hedgerow.base.progress import Progress
    from hedgerow.drives import Drive
    from hedgerow.io.source import Written
    from hedgerow.log import Log
    from hedgerow.sensor import Sensor
    from hedgerow.sensor.pose_errors import PoseErrors
    from hedgerow.simulate import Simulation


@app.command
def fire(
    scene: SceneName,
    /,
    *,
    output: Output | None = None,
    write_as: WriteAs = None,
    sensor: SensorName = None,
    trajectory: str | None = None,
    sweeps: int | None = None,
    start_s: float = 0.0,
    rate_hz: RateHz = None,
    pose_rate_hz: float | None = None,
    pulses: PulseOptions = NOMINAL,
    noise: Noise = None,
    sway_deg: float = 0.0,
    pose_errors: PoseErrorTexts = None,
    response: Path | None = None,
    seed: Seed = 0,
    scene_seed: SceneSeed = None,
    settings: SceneSettings = None,
    anyway: Anyway = False,
    picture: Path | None = None,
    live: Flag = False,
    loop: Flag = False,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: Token = None,
    allow_origin: AllowOrigin = None,
    memory: str | None = None,
    workers: WorkerCount = 0,
    scheduler: Scheduler = None,
    worker_memory: WorkerMemory = None,
) -> None:
    """Drive a lidar through a scene, or through a learned world, and write what it sees, or send it live.

    Parameters
    ----------
    output
        the log to write; its suffix says the format (hedgerow convert --formats lists them), a folder without one is
        Parquet in parts; not needed with --live
    trajectory
        a trajectory named in the scene, or a file (.tum, .kitti, .txt); default: the scene's first trajectory
    sweeps
        how many; default: to the end of the trajectory
    start_s
        when to start, in seconds after the trajectory's first pose
    pose_rate_hz
        for KITTI poses, which carry no times: poses per second
    sway_deg
        sway the vehicle on its way: standard deviation of roll and pitch, which change from sweep to sweep, as in
        Browning 2012 Fig. 20; the log knows these
    response
        vegetation response: a TOML file of hedgerow calibrate vegetation, which scatters the ranges on vegetation as
        in Mattes 2021
    picture
        also draw the middle sweep into this image; with --live, the last one
    live
        send the sweeps over a Foxglove WebSocket at the pace of the sensor, as ROS 2 PointCloud2
    loop
        with --live: begin again at the end of the trajectory, until Ctrl-C or --sweeps
    host
        with --live: where to listen; 0.0.0.0 lets other machines in, with the token in the printed address
    port
        with --live: where to listen; 0 takes a free one
    memory
        memory for the tiles of a learned world, for example 2G, which are then read as the beams need them; default:
        all of it is loaded
    """
    from hedgerow.drives import Drive, absolute, stamp_of
    from hedgerow.view.sweep import draw_sweep

    # Before the scene is built, which can take minutes: all that can be refused without it.
    changes, writing = _split(parse_settings(settings))
    spread = WorkerOptions(workers, scheduler, worker_memory)
    spread.memory()
    _require_output(output, write_as, writing, picture, live, loop, spread)
    address = make_address(host, port, token, allow_origin)
    if live:
        address.require_free()
    drive = Drive(
        absolute(scene),
        tuple(sorted(changes.items())),
        scene_seed=scene_seed,
        sensor=sensor if sensor is None else absolute(sensor),
        rate_hz=rate_hz,
        trajectory=trajectory if trajectory is None else absolute(trajectory),
        pose_rate_hz=pose_rate_hz,
        sweeps=sweeps,
        start_s=start_s,
        seed=seed,
        noise=noise,
        aim=pulses.aim(seed),
        pose_errors=parse_pose_errors(pose_errors, seed),
        response=None if response is None else str(response.absolute()),
        anyway=anyway,
        memory_bytes=None if memory is None else parse_bytes("--memory", memory),
        stamp=stamp_of(scene, sensor, trajectory, response),
    )
    place, lidar = drive.place, drive.lidar
    _require_files(drive)
    drive = drive.changed(beam=pulses.beam_settings_for(place, lidar), sway=_sway(sway_deg, lidar, seed))
    if live:
        from hedgerow.live.stream import stream_drive

        simulation = _open(drive, loop)
        shown, _ = stream_drive(
            simulation,
            address=address,
            output=output,
            write_as=write_as,
            loop=loop,
            n_sweeps=sweeps if loop else None,
            say=out.print,
        )
    else:
        assert output is not None  # checked above
        record = _record_in_parts if _in_parts(output, write_as) else _record
        shown = record(drive, output, write_as, writing, spread)
    if picture is not None:
        title = f"{lidar.name} in {place.name}, sweep {shown.beams.sweep[0]}"
        draw_sweep(shown, picture, title, half_m=_reach_m(shown))
        out.print(f"drew {picture}")


def _sway(sigma_deg: float, sensor: "Sensor", seed: int) -> "PoseErrors":
    """Return the true motion of a vehicle on rough ground: tilts that last about a sweep."""
    from hedgerow.sensor.pose_errors import PoseErrors

    # A seed of its own, or the errors of the reported pose would be the same.
    values = {"tilt_sigma_deg": sigma_deg, "tilt_correlation_s": max(sensor.sweep_s, 0.01), "seed": seed ^ 1}
    return PoseErrors.parse(values, "--sway-deg")


def _split(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part what `--set` says into values of the scene and options of the writer."""
    from hedgerow.io.options import WriteOptions

    writing = {name: value for name, value in settings.items() if name in WriteOptions.model_fields}
    return {name: value for name, value in settings.items() if name not in writing}, writing


def _require_files(drive: "Drive") -> None:
    """Read trajectory and vegetation response, which refuses them if they are wrong; and check the memory."""
    from hedgerow.errors import InputError
    from hedgerow.pulse.vegetation import VegetationSettings

    _ = drive.chosen
    if drive.response is not None:
        VegetationSettings.load(drive.response)
    if drive.memory_bytes is not None and drive.place.plan is not None:
        raise InputError("--memory", f"only for learned worlds, and {drive.scene} is a scene")


def _require_output(
    output: Path | None,
    write_as: str | None,
    writing: dict[str, Any],
    picture: Path | None,
    live: bool,
    loop: bool,
    spread: WorkerOptions,
) -> None:
    from hedgerow.base.atomic import require_folder
    from hedgerow.errors import InputError
    from hedgerow.io.formats import format_of
    from hedgerow.io.options import write_options

    if output is None and not live:
        raise InputError("--output", "give the log to write, for example -o drive.parquet, or --live")
    if output is not None:
        made = format_of(output, write_as, reading=False)
        write_options(writing, made.write_options, made.name)
    if writing and live:
        raise InputError(f"--set {next(iter(writing))}", "not with --live; convert what was recorded")
    if loop and not live:
        raise InputError("--loop", "only with --live")
    if spread.is_spread and (live or output is None or not _in_parts(output, write_as)):
        raise InputError(
            "--workers", "several workers write a folder of Parquet parts: give -o NAME without a suffix, and no --live"
        )
    for path in (output, picture):
        if path is not None:
            require_folder(path)


def _in_parts(output: Path, write_as: str | None) -> bool:
    """Tell whether the log is a folder of Parquet parts."""
    from hedgerow.base.places import is_address

    return output.suffix == "" and write_as in (None, "parquet") and not is_address(output)


def _reach_m(log: "Log") -> float:
    """How far a picture should show: nearly all returns, but not more than 28 m [m]."""
    import numpy as np

    range_m = log.returns.first_m[log.returns.first_m < np.inf]
    return float(np.clip(1.1 * np.percentile(range_m, 98), 0.5, 28)) if len(range_m) else 28.0


def _open(drive: "Drive", loop: bool = False) -> "Simulation":
    """Build the scene, or load the world, and say what was done."""
    from hedgerow.base.progress import step_bar

    with step_bar() as progress:
        simulation, summary = drive.open(progress, loop=loop)
    out.print(summary)
    return simulation


def _record_in_parts(
    drive: "Drive", output: Path, write_as: str | None, writing: dict[str, Any], spread: WorkerOptions
) -> "Log":
    """Fire into a folder of Parquet parts, say what was written, and return the middle sweep."""
    from hedgerow.base.progress import progress_bar, step_bar
    from hedgerow.drives import plan_drive, record_in_parts
    from hedgerow.io import read_log

    with open_engine(output, spread) as engine:
        with step_bar() as steps:
            planned = plan_drive(drive, engine, steps)
        out.print(planned.summary)
        start = time.perf_counter()
        with progress_bar("firing", planned.n_sweeps) as progress:
            wrote = record_in_parts(drive, output, engine, n_sweeps=planned.n_sweeps, progress=progress)
        took_s = time.perf_counter() - start
    _say_recorded(drive, output, planned.n_sweeps, took_s, wrote)
    return read_log(output, sweeps=[planned.n_sweeps // 2])


def _record(
    drive: "Drive", output: Path, write_as: str | None, writing: dict[str, Any], spread: WorkerOptions
) -> "Log":
    """Fire into a log of any format, say what was written, and return the middle sweep."""
    from hedgerow.base.progress import progress_bar

    simulation = _open(drive)
    start = time.perf_counter()
    with progress_bar("firing", len(simulation)) as progress:
        wrote, middle = _write_log(simulation, output, write_as, writing, progress)
    _say_recorded(drive, output, len(simulation), time.perf_counter() - start, wrote)
    return simulation.sweep(len(simulation) // 2) if middle is None else middle


def _say_recorded(drive: "Drive", output: Path, n: int, took_s: float, wrote: "Written") -> None:
    from hedgerow.io.describe import count

    lidar, lost = drive.lidar, wrote.n_misses_left_out
    out.print(
        f"fired {count(n, 'sweep')} of {lidar.name} ({n * lidar.sweep_s:.1f} s) in {took_s:.1f} s: "
        f"{n * lidar.sweep_s / took_s:.2f} times real time"
    )
    out.print(f"wrote {output}: {amounts(wrote.n_beams - lost, wrote.n_returns, wrote.n_misses - lost)}")


def _write_log(
    simulation: "Simulation", output: Path, write_as: str | None, writing: dict[str, Any], progress: "Progress"
) -> "tuple[Written, Log | None]":
    """Fire sweep by sweep into one log; return what was written, and the middle sweep."""
    from hedgerow.base.progress import counted, one
    from hedgerow.io import open_sink

    n = len(simulation)
    middle: Log | None = None
    with open_sink(output, format=write_as, trajectory=simulation.reported, **writing) as sink:
        for number, log in enumerate(counted(simulation, progress, one)):
            sink.append(log)
            middle = log if number == n // 2 else middle
    return sink.written, middle
