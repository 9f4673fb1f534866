# SPDX-License-Identifier: Apache-2.0
"""A stretch of a scene that plays reality, driven again and again: by which pass and sensor, with which seed."""

from dataclasses import dataclass
from typing import Self

from hedgerow.frames import Trajectory
from hedgerow.log import Log
from hedgerow.physics.site import Site, load_site
from hedgerow.reproduce.recording import REALITY, record_drive
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import Beam

SENSOR = "hdl-64e-s2"
# Of the sensor; 000 §3.3.2 fits 15 mm on all surfaces, their roughness included.
NOISE_M = 0.012


@dataclass(frozen=True)
class Course:
    """A scene that was built once, and which part of its passes is driven."""

    place: Site
    span_s: tuple[float, float]

    @classmethod
    def open(cls, scene: str, span_s: tuple[float, float]) -> Self:
        """Build a shipped scene, for the wavelength of the HDL-64E."""
        return cls(load_site(scene, wavelength_nm=Sensor.named(SENSOR).config.beam.wavelength_nm), span_s)

    def record(
        self, way: str | Trajectory, n_sweeps: int, seed: int, sensor: str = SENSOR, *, width: float = 1.0
    ) -> Log:
        """Return the log of one drive: `n_sweeps` sweeps, evenly spread over the span.

        Args:
            way: name of a pass of the scene, or a trajectory with the times of one.
            n_sweeps: how many.
            seed: two drives of one way with other seeds have the same beams and other returns.
            sensor: a name of the catalogue.
            width: of the pulses, as a multiple of the sensor's own; 0: rays.
        """
        trajectory = self.place.trajectories[way] if isinstance(way, str) else way
        model = Sensor.named(sensor)
        sweeps = record_drive(
            self.place.world(REALITY.model_copy(update={"beam": _widened(model.config.beam, width)})),
            model,
            trajectory,
            n_sweeps,
            seed,
            span_s=self.span_s,
            noise_m=NOISE_M,
        )
        return Log.concatenate(list(sweeps))


def _widened(beam: Beam, factor: float) -> Beam:
    sizes = (
        "divergence_horizontal_mrad",
        "divergence_vertical_mrad",
        "aperture_horizontal_mm",
        "aperture_vertical_mm",
    )
    return beam.model_copy(update={name: factor * getattr(beam, name) for name in sizes})
