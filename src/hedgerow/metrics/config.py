# SPDX-License-Identifier: Apache-2.0
"""Every setting of `compare`, with its unit, bounds and default."""

from typing import Annotated, Any

from pydantic import Field

from hedgerow.base.parameters import Parameters, Positive


class CompareSettings(Parameters):
    """How two logs are compared; the defaults are those of Browning 2012 and Tallavajhula 2018."""

    bearing_step_deg: Annotated[float, Field(ge=0.045, le=10)] = 0.09
    """Width of a beam direction of a standing sensor: the encoder of an HDL-64E (Browning 2012 §6.1.2)."""
    range_step_m: Annotated[float, Field(ge=0.0001, le=10)] = 0.002
    """Width of its range bins; also the bin of `nll_binned`."""
    histogram_step_m: Annotated[float, Field(ge=0.001, le=100)] = 0.1
    """Bins of the range histogram of all beams."""
    outlier_share: Annotated[float, Field(gt=0, lt=0.5)] = 0.001
    """Share e of the density floor: p = (1 - e) p_world + e u (docs/models.md §27)."""
    static: bool | None = None
    """Whether the sensor stands still; None: decided by its origins and by how often directions repeat."""
    static_tolerance_m: Positive = 0.05
    """A sensor whose sweeps are centred no farther apart than this stands still."""
    min_repeats: Annotated[int, Field(ge=2)] = 5
    """Directions with fewer beams have no histogram worth comparing; a static log has more on average."""
    max_cloud_points: Annotated[int, Field(ge=1000)] = 8_000_000
    """Clouds with more distinct points are thinned, see cloud_distance.py; 24 to 48 bytes each."""


def settings_from(values: dict[str, Any]) -> CompareSettings:
    """Check settings given by name.

    Raises:
        InputError: unknown name or value out of bounds; names it.
    """
    return CompareSettings.parse(values, "compare")
