# SPDX-License-Identifier: Apache-2.0
"""Sensors in words: the rows of the catalogue's table, and everything about one sensor."""

import numpy as np

from hedgerow.errors import one_line
from hedgerow.sensor.sensor import Sensor

COLUMNS = ("name", "maker", "rings", "pulses/s", "range [m]", "elevation [deg]", "divergence [mrad]")
"""Headings of the catalogue's table."""


def catalogue_rows() -> list[dict[str, str]]:
    """Return one row for each sensor of the catalogue, with the keys of COLUMNS."""
    return [row(Sensor.named(name)) for name in Sensor.names()]


def row(sensor: Sensor) -> dict[str, str]:
    """Return a sensor's row of the table, with the keys of COLUMNS."""
    config = sensor.config
    lowest, highest = elevation_span_deg(sensor)
    values = (
        one_line(sensor.name),
        one_line(config.maker),
        str(sensor.n_rings),
        f"{sensor.pulses_per_sweep / sensor.sweep_s:,.0f}",
        f"{config.range.min_m:g} to {config.range.max_m:g}",
        "0" if lowest == highest == 0 else f"{lowest:.1f} to {highest:.1f}",
        f"{config.beam.divergence_horizontal_mrad:g} x {config.beam.divergence_vertical_mrad:g}",
    )
    return dict(zip(COLUMNS, values, strict=True))


def details(sensor: Sensor) -> list[tuple[str, str]]:
    """Return everything worth telling about a sensor, as (what, value) in reading order."""
    config = sensor.config
    beam, errors, signal = config.beam, config.range, config.signal
    lowest, highest = elevation_span_deg(sensor)
    noise = f"{errors.sigma_m * 1e3:g} mm" + (
        f" + {errors.sigma_per_m2 * 1e3:g} mm per m²" if errors.sigma_per_m2 else ""
    )
    return [
        ("name", one_line(sensor.name)),
        ("maker", one_line(config.maker)),
        ("about", one_line(config.about, 2000)),
        ("scan", f"{config.pattern.kind}, {config.pattern.turns} seen from above"),
        ("rate", f"{sensor.rate_hz:g} Hz (possible: {config.pattern.rates.text()})"),
        ("sweep", f"{sensor.pulses_per_sweep:,} pulses in {sensor.sweep_s * 1e3:.4g} ms"),
        ("pulses", f"{sensor.pulses_per_sweep / sensor.sweep_s:,.0f} per second"),
        ("rings", f"{sensor.n_rings}, numbered {_ring_order(sensor)}"),
        ("elevation", f"{lowest:.2f} to {highest:.2f} degrees"),
        ("azimuth", _azimuth(sensor)),
        (
            "range",
            f"{errors.min_m:g} to {errors.max_m:g} m, noise {noise} (1 sigma), steps of {errors.step_m * 1e3:g} mm",
        ),
        ("drop-outs", f"{errors.dropout:.1%} of the pulses"),
        ("encoder step", f"{config.encoder_step_deg:g} degrees" if config.encoder_step_deg else "exact"),
        (
            "beam",
            f"{beam.spot}, {beam.divergence_horizontal_mrad:g} x {beam.divergence_vertical_mrad:g} mrad, "
            f"{beam.wavelength_nm:g} nm",
        ),
        ("returns", f"{signal.mode} (possible: {', '.join(signal.modes)}), cutoff {signal.cutoff_m:g} m"),
        ("sources", "\n".join(map(one_line, config.sources))),
    ]


def elevation_span_deg(sensor: Sensor) -> tuple[float, float]:
    """Return the lowest and the highest elevation of all beams [deg]."""
    upward = sensor.pattern.direction[:, 2].astype(np.float64)
    return float(np.rad2deg(np.arcsin(upward.min()))), float(np.rad2deg(np.arcsin(upward.max())))


def _ring_order(sensor: Sensor) -> str:
    order = getattr(sensor.config.pattern, "rings", None)
    return f"{order}" if order else "as listed" if sensor.n_rings > 1 else "0"


def _azimuth(sensor: Sensor) -> str:
    scan = sensor.config.pattern
    if scan.kind == "planar":
        way = "left" if scan.turns == "counter-clockwise" else "right"
        return f"{scan.extent_deg:g} degrees to the {way} from {scan.first_azimuth_deg:g}, steps of {scan.step_deg:g}"
    if scan.kind == "rosette":
        return f"all round; the scan repeats after {scan.sweeps_per_cycle} sweeps"
    first = sensor.pattern.ring == sensor.pattern.ring[0]
    steps = np.abs(np.diff(sensor.pattern.rotor_rad[first]))
    return f"all round, steps of {np.rad2deg(np.median(steps)):.4g} degrees at this rate"
