# SPDX-License-Identifier: Apache-2.0
"""The command that fires a sensor through a scene or a learned world, sweep by sweep."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from hedgerow.cli.app import app, out, settings_of

if TYPE_CHECKING:
    from hedgerow.frames import Trajectory
    from hedgerow.log import Log
    from hedgerow.physics.receiver import BeamSettings
    from hedgerow.physics.vegetation import SolidWorld
    from hedgerow.sensor import Sensor
    from hedgerow.world import World


@app.command
def fire(
    scene: str,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    sensor: str | None = None,
    trajectory: str | None = None,
    sweeps: int | None = None,
    start_s: float = 0.0,
    rate_hz: float | None = None,
    pose_rate_hz: float | None = None,
    sub_rays: int | None = None,
    mode: str | None = None,
    noise: bool | None = None,
    response: Path | None = None,
    seed: int = 0,
    scene_seed: int | None = None,
    settings: Annotated[list[str] | None, Parameter(name=["--set", "-s"], negative=())] = None,
    picture: Path | None = None,
    live: Annotated[bool, Parameter(negative=())] = False,
    loop: Annotated[bool, Parameter(negative=())] = False,
    host: str = "127.0.0.1",
    port: int = 8765,
) -> None:
    """Drive a lidar through a scene, or through a learned world, and write what it sees, or send it live.

    Parameters
    ----------
    scene
        a shipped scene, for example trail (hedgerow scenes lists them), a scene file (.toml), or a learned world
    output
        the log to write: a .parquet file, or a folder for a long one; not needed with --live
    sensor
        a name of the catalogue, for example hdl-64e, or a TOML file; default: the scene's
    trajectory
        a named pass of the scene, or a file (.tum, .kitti, .txt); default: the scene's first pass
    sweeps
        how many; default: to the end of the trajectory
    start_s
        when to start, in seconds after the trajectory's first pose
    rate_hz
        turns of the sensor per second; default: its usual rate
    pose_rate_hz
        for KITTI poses, which carry no times: poses per second
    sub_rays
        rays for each pulse of a scene, 1 to 81; default: 9
    mode
        first, strongest, last, strongest+last, all or waveform, for scenes; default: the sensor's
    noise
        add the sensor's own range noise, range steps and drop-outs; default: to scenes, learned worlds have them
    response
        a TOML file of hedgerow calibrate vegetation: scatters the ranges on vegetation as in 004
    seed
        of the firing: same seed, same answer
    scene_seed
        of the scene; default: the file's
    settings
        values of the scene's parameters or fields, each NAME=VALUE
    picture
        also draw the middle sweep into this image; with --live, the last one
    live
        send the sweeps over a Foxglove WebSocket at the pace of the sensor, as ROS 2 PointCloud2
    loop
        with --live: begin again at the end of the trajectory, until Ctrl-C or --sweeps
    host
        with --live: where to listen; 0.0.0.0 lets other machines in
    port
        with --live: where to listen; 0 takes a free one
    """
    from hedgerow.live.publisher import Address
    from hedgerow.physics.vegetation import VegetationResponse, VegetationSettings
    from hedgerow.view.sweep import draw_sweep

    # Before the scene is built, which can take minutes: all that can be refused without it.
    _require_output(output, picture, live, loop)
    address = Address(host, port)
    if live:
        address.require_free()
    scatter = None if response is None else VegetationSettings.load(response)
    changes = settings_of(settings)
    lidar = sensor_for(scene, sensor, rate_hz, changes)
    chosen = _chosen(trajectory, _passes(scene, changes), pose_rate_hz)
    beam = {name: value for name, value in {"sub_rays": sub_rays, "mode": mode}.items() if value is not None}
    world, passes = world_for(scene, lidar, scene_seed, changes, beam)
    if scatter is not None:
        world = VegetationResponse(cast("SolidWorld", world), scatter)  # it says which worlds it cannot look through
    way = passes[chosen] if isinstance(chosen, str) else chosen
    if live:
        from hedgerow.live.stream import stream_drive

        shown, _ = stream_drive(
            world,
            lidar,
            way,
            address=address,
            output=output,
            start_s=start_s,
            n_sweeps=sweeps,
            loop=loop,
            seed=seed,
            noise=noise,
            say=out.print,
        )
    else:
        assert output is not None  # checked above
        shown = _fire(world, lidar, way, output, start_s, sweeps, seed, noise)
    if picture is not None:
        title = f"{lidar.name} in {Path(scene).stem}, sweep {shown.beams.sweep[0]}"
        draw_sweep(shown, picture, title, half_m=_reach_m(shown))
        out.print(f"drew {picture}")


def _require_output(output: Path | None, picture: Path | None, live: bool, loop: bool) -> None:
    from hedgerow.errors import InputError
    from hedgerow.io.atomic import require_folder

    if output is None and not live:
        raise InputError("--output: give the log to write, for example -o drive.parquet, or --live")
    if loop and not live:
        raise InputError("--loop: only with --live")
    for path in (output, picture):
        if path is not None:
            require_folder(path)


def _reach_m(log: "Log") -> float:
    """How far a picture should show: nearly all returns, but not more than 28 m [m]."""
    import numpy as np

    range_m = log.returns.first_m[log.returns.first_m < np.inf]
    return float(np.clip(1.1 * np.percentile(range_m, 98), 0.5, 28)) if len(range_m) else 28.0


def _is_learned(scene: str) -> bool:
    from hedgerow.world import is_world

    return is_world(scene)


def sensor_for(scene: str, name: str | None, rate_hz: float | None, changes: Mapping[str, Any]) -> "Sensor":
    """Return the sensor that was named, or the scene's own."""
    from hedgerow.errors import InputError
    from hedgerow.physics.site import check_scene
    from hedgerow.sensor import Sensor

    if name is None:
        if _is_learned(scene):
            raise InputError("--sensor: a learned world names none; give one, for example --sensor hdl-64e")
        name = check_scene(scene, changes)[1].sensor
    return Sensor.load(name, rate_hz) if name.lower().endswith(".toml") else Sensor.named(name, rate_hz)


def world_for(
    scene: str, lidar: "Sensor", seed: int | None, changes: Mapping[str, Any], beam: Mapping[str, Any]
) -> tuple["World", dict[str, "Trajectory"]]:
    """Build the scene, or open the learned world, and return it with its named passes."""
    from hedgerow.errors import InputError
    from hedgerow.physics.site import load_site
    from hedgerow.progress import stage_bar
    from hedgerow.world import load_world

    if _is_learned(scene):
        if changes or beam or seed is not None:
            raise InputError("--set, --scene-seed, --sub-rays, --mode: only for scenes, and this is a learned world")
        return load_world(scene), {}
    settings = _beam_settings(beam)
    start = time.perf_counter()
    with stage_bar() as progress:
        wavelength_nm = lidar.config.beam.wavelength_nm
        site = load_site(scene, wavelength_nm=wavelength_nm, seed=seed, set=changes, progress=progress)
    out.print(f"built {site.name}: {site.n_triangles:,} triangles in {time.perf_counter() - start:.1f} s")
    return site.world(settings), site.trajectories


def _beam_settings(values: Mapping[str, Any]) -> "BeamSettings":
    from pydantic import ValidationError

    from hedgerow import complaint
    from hedgerow.errors import InputError
    from hedgerow.physics.receiver import BeamSettings

    try:
        return BeamSettings(**values)
    except ValidationError as error:
        raise InputError(complaint.sentence(error)) from None


def _passes(scene: str, changes: Mapping[str, Any]) -> list[str]:
    """Name the passes of a scene, which is not built for that."""
    from hedgerow.physics.site import check_scene

    return [] if _is_learned(scene) else list(check_scene(scene, changes)[1].trajectories)


def _chosen(name: str | None, passes: list[str], pose_rate_hz: float | None) -> "Trajectory | str":
    """Return the trajectory of a file, or the name of a pass."""
    from hedgerow.errors import InputError
    from hedgerow.io import read_trajectory

    wanted = name or next(iter(passes), "")
    if wanted in passes:
        return wanted
    if not wanted or not Path(wanted).exists():
        known = f"its passes are {', '.join(passes)}" if passes else "it has no named passes"
        raise InputError(f"--trajectory {wanted}: give a pass of the scene or a file of poses; {known}")
    return read_trajectory(wanted, rate_hz=pose_rate_hz)


def _fire(
    world: "World",
    lidar: "Sensor",
    way: "Trajectory",
    output: Path,
    start_s: float,
    sweeps: int | None,
    seed: int,
    noise: bool | None,
) -> "Log":
    """Fire sweep by sweep into a file and return the middle sweep."""
    from hedgerow.io.parquet_writer import LogWriter
    from hedgerow.live.sweeps import fired
    from hedgerow.progress import progress_bar
    from hedgerow.sensor.driving import extent

    _, n = extent(lidar.pattern, way, start_s, None, sweeps)
    middle: Log | None = None
    n_pulses = n_hits = 0
    start = time.perf_counter()
    with LogWriter(output) as writer, progress_bar("firing", n) as progress:
        for number, beams in enumerate(lidar.drive_sweeps(way, start_s=start_s, n_sweeps=n)):
            log = fired(world, lidar, beams, seed, noise)
            writer.append(log)
            n_pulses += len(log)
            n_hits += (
                int(log.returns.hit.any(axis=-1).sum()) if log.returns.hit.ndim > 1 else int(log.returns.hit.sum())
            )
            middle = log if number == n // 2 else middle
            progress(number + 1)
    took_s = time.perf_counter() - start
    assert middle is not None  # extent() gives at least one sweep
    out.print(
        f"fired {n_pulses:,} pulses ({lidar.name}, {n} sweeps, {n * lidar.sweep_s:.1f} s) in {took_s:.1f} s: "
        f"{n * lidar.sweep_s / took_s:.2f} times real time, {n_hits / n_pulses:.1%} returned"
    )
    out.print(f"wrote {output}")
    return middle
