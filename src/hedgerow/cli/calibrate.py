# SPDX-License-Identifier: Apache-2.0
"""hedgerow calibrate: measures the settings of a physical model on a log."""

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Output

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource
    from hedgerow.models.receiver_calibration import Band
    from hedgerow.models.vegetation_calibration import Calibration
    from hedgerow.sensor import Sensor
    from hedgerow.world import World

calibrate = App(name="calibrate", help="Measure the settings of a physical model on a log.")
app.command(calibrate)

Box = tuple[float, float, float, float, float, float]


@calibrate.command
def vegetation(
    log: Path,
    /,
    *,
    box: Annotated[Box | None, Parameter(negative=())] = None,
    label: Annotated[list[int] | None, Parameter(negative=())] = None,
    scene: str | None = None,
    sensor: str | None = None,
    simulated: Path | None = None,
    output: Output | None = None,
    window_deg: float = 1.0,
    seed: Annotated[int | None, Parameter(negative=())] = None,
) -> None:
    """Measure how far vegetation scatters the ranges of a log, for the vegetation response (Mattes 2021 §3.1).

    The range of each return on vegetation is compared with the mean of its neighbours on the same ring. What a scene or
    a simulated log scatters by itself is subtracted, so that the rest is what the response has to add.

    Parameters
    ----------
    log
        a Parquet log, file or folder; larger than memory is fine
    box
        vegetation is what lies in this box: x0 y0 z0 x1 y1 z1, map frame [m]
    label
        vegetation is what has this label, or a finer one that folds into it (70: grass, shrubs, leaves); may be given
        several times, and together with a box
    scene
        at what the log's beams are fired, as the log was made: a learned world, a shipped scene or a scene file
    sensor
        what fires at the scene, a name of the catalogue or a TOML file; default: what the log names
    simulated
        a simulated log of such a scene, instead of the scene itself
    output
        write the settings to this TOML file
    window_deg
        neighbours on a ring are at most this far off
    seed
        seed for firing; default: that of the log, or 0
    """
    from math import radians

    from hedgerow.base.progress import progress_bar
    from hedgerow.errors import InputError
    from hedgerow.inputs import open_log, open_sensor
    from hedgerow.models.vegetation_calibration import Selection
    from hedgerow.models.vegetation_calibration import calibrate as measure
    from hedgerow.sensor import Sensor

    if scene is not None and simulated is not None:
        raise InputError("--scene, --simulated", "give one of the two, not both")
    if box is None and not label:
        raise InputError("--box, --label", "give one, to say which returns are vegetation")
    selection = Selection(box, tuple(label or ()))
    recording = open_log(log, "calibrate")
    lidar = Sensor.of(recording) if sensor is None else open_sensor(sensor)
    other: LogSource | World | None = None
    if simulated is not None:
        other = open_log(simulated, "calibrate")
    elif scene is not None:
        other = _open_world(scene, recording, lidar)
    with progress_bar("measuring", recording.n_beams) as progress:
        found = measure(
            recording,
            selection,
            simulated=other,
            window_rad=radians(window_deg),
            seed=seed,
            sensor=lidar,
            progress=progress,
        )
    print_table(("", "returns", "mean [m]", "variance [m²]", "without the neighbours' [m²]"), _rows(found))
    for note in found.notes:
        out.print(f"note: {note}")
    out.print(f"the response should add a normal number of mean {found.mean_m:.3f} m, deviation {found.sigma_m:.3f} m")
    if output is not None:
        found.save(output, source=str(log))
        out.print(f"wrote {output}, for returns labelled {', '.join(map(str, found.settings().labels))}")


@calibrate.command
def receiver(
    log: Path,
    /,
    *,
    reflectance: float = 0.08,
    grazing: float = 0.0,
    falloff: float = 2.0,
    max_range_m: float = 80.0,
    scene: str | None = None,
    sensor: str | None = None,
    output: Output | None = None,
) -> None:
    """Measure what a sensor detects, on the ground of a recording: the link budget and threshold of its file.

    Where each beam should meet the ground is known from a plane through the ground of its sweep, or from a world. Which
    of these beams returned tells the range at which half of them do, and how soft that threshold is.

    Parameters
    ----------
    log
        a log of any format that keeps its missing returns; larger than memory is fine
    reflectance
        of the ground, head-on; 0.08 is asphalt
    grazing
        exponent by which the light of the ground falls with the cosine of the incidence angle: 0 for a rough surface
        such as asphalt or grass, 1 for a smooth one
    falloff
        exponent by which light falls with the range
    max_range_m
        beams that should meet the ground farther off do not count
    scene
        a learned world or a scene that says where the ground is, if it is no plane
    sensor
        whose pulses they are, a name of the catalogue or a TOML file; default: what the log names
    output
        write a sensor file with what was found, for fire --sensor FILE --signal sensor
    """
    from hedgerow.base.progress import progress_bar
    from hedgerow.inputs import open_log, open_sensor
    from hedgerow.models.receiver_calibration import ReceiverCalibrationSettings, calibrate_receiver
    from hedgerow.sensor import Sensor

    given = {"reflectance": reflectance, "grazing": grazing, "falloff": falloff, "max_range_m": max_range_m}
    settings = ReceiverCalibrationSettings.parse(given, "the receiver")
    recording = open_log(log, "calibrate")
    lidar = Sensor.of(recording) if sensor is None else open_sensor(sensor)
    world = None if scene is None else _open_world(scene, recording, lidar)
    with progress_bar("measuring", recording.n_beams) as progress:
        found = calibrate_receiver(recording, settings, sensor=lidar, world=world, progress=progress)
    rows = [[_shown(band), f"{band.n:,}", f"{band.detected:.3f}", f"{band.fitted:.3f}"] for band in found.bands]
    print_table(("ground should be at [m]", "beams", "returned", "fitted"), rows)
    out.print(f"half of the pulses on a wall of 10 % return from {found.range_m} m")
    out.print(f"softness {found.softness}; lost whatever their light: {found.lost}")
    if found.intensity is not None:
        out.print(f"a reflectance of 1 has intensity {found.intensity} (median of all, lowest and highest sector)")
    out.print(f"from {found.n_beams:,} beams on ground of reflectance {reflectance:g}; 95 % intervals over directions")
    if output is not None:
        found.save(output, source=str(log))
        out.print(f"wrote {output}; use it with: hedgerow fire SCENE --sensor {output} --signal sensor")


def _shown(band: "Band") -> str:
    return f"{band.low_m:g} to {band.high_m:g}" if isfinite(band.high_m) else f"over {band.low_m:g}"


def _open_world(scene: str, recording: "LogSource", lidar: "Sensor | None") -> "World":
    """Open what to fire at; a scene that the log was fired at, as it was then."""
    from hedgerow.base.progress import step_bar
    from hedgerow.errors import InputError
    from hedgerow.inputs import open_place
    from hedgerow.pulse.receiver import BeamSettings

    place = open_place(scene, "calibrate")
    if place.plan is None:
        return place.open().world
    if lidar is None:
        said = "the log does not say its sensor, whose pulses are fired at the scene; for example --sensor hdl-64e"
        raise InputError("--sensor", said)
    made_in: dict[str, Any] = recording.metadata.get("world") or {}
    if made_in.get("scene") == scene:
        place = open_place(scene, "calibrate", made_in.get("set"), made_in.get("seed"))
    beam = made_in.get("beam")
    settings = None if beam is None else BeamSettings.parse_from(beam, "the log", "world.beam")
    with step_bar() as steps:
        return place.open(lidar, settings=settings, progress=steps).world


def _rows(found: "Calibration") -> list[list[str]]:
    rows: list[list[str]] = []
    for name, part in (("measured", found.measured), ("simulated", found.simulated)):
        if part is not None:
            figures = (part.mean_m, part.variance_m2, part.own_variance_m2)
            rows.append([name, f"{part.n:,}", *[f"{figure:.4f}" for figure in figures]])
    if found.offset is not None:
        pair = found.offset
        rows.append(["beam by beam", f"{pair.n:,}", f"{pair.mean_m:.4f}", f"{pair.variance_m2:.4f}", "-"])
    return rows
