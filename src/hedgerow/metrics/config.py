# SPDX-License-Identifier: Apache-2.0
"""Every setting of `compare`, with its unit, bounds and default."""

from typing import Annotated

from pydantic import Field

from hedgerow.base.parameters import Parameters, Positive


class CompareSettings(Parameters):
    """How logs are compared; the defaults are those of Browning 2012 and Tallavajhula 2018."""

    bearing_step_deg: Annotated[float, Field(ge=0.045, le=10)] = 0.09
    """Bin width of beam directions, for a standing sensor. Default: encoder of an HDL-64E (Browning 2012 §6.1.2)."""
    range_step_m: Annotated[float, Field(ge=0.0001, le=10)] = 0.002
    """Bin width of the ranges in each direction, and of `nll_binned`."""
    histogram_step_m: Annotated[float, Field(ge=0.001, le=100)] = 0.1
    """Bin width of the histogram of all ranges."""
    outlier_share: Annotated[float, Field(gt=0, lt=0.5)] = 0.001
    """Share e of outliers in the likelihood, p = (1 - e) p_world + e u, and in the log score of returns
    (docs/models.md §27, §33)."""
    draws: Annotated[int, Field(ge=0, le=10_000)] = 8
    """Answers drawn to forecast each beam where a world does not know its own distribution, and to forecast intensities
    and labels, 2 or more; 0: no such forecasts."""
    drawn_beams: Annotated[int, Field(ge=100)] = 16_384
    """About how many beams of a sweep are drawn so often for intensities and labels alone."""
    static: bool | None = None
    """Whether the sensor stands still. Default: found from its origins and from how often directions repeat."""
    static_tolerance_m: Positive = 0.05
    """Maximum distance between the centres of sweeps for a sensor to count as standing still."""
    min_repeats: Annotated[int, Field(ge=2)] = 5
    """Minimum number of beams per direction: others are left out; a log with fewer on average is not static."""
    density_length_m: Positive = 0.2
    """At which distance from the nearest point a point counts as found by 1 / e, in the density-aware Chamfer distance
    (1 / alpha of Wu et al. 2021)."""
    elevation_step_deg: Annotated[float, Field(ge=0.05, le=90)] = 1.0
    """Width of the bands of elevation in which shares of returns are compared."""
    learned_voxel_m: Annotated[float, Field(ge=0.001, le=1)] = 0.03
    """Of the learned returns one is kept in each voxel of this side, for distances to the nearest of them."""
    novel_view: bool = False
    """Whether to give the scores of the lidar re-simulation papers too (novel_view.py); they take two more look-ups of
    nearest points a sweep."""
    match_deg: Annotated[float, Field(ge=0, le=10)] = 0.1
    """How far apart a beam of a simulated log and a real one may point to be partners, where the log does not hold the
    very same beams; half the step of most spinning sensors. 0: other beams are refused."""
    match_origin_m: Positive = 0.1
    """How far apart partners may start."""
    match_place_m: Positive = 5.0
    """How far from the centre of a real sweep that of a simulated one may be to be compared with it."""
    max_cloud_points: Annotated[int, Field(ge=1000)] = 8_000_000
    """Maximum number of distinct points per cloud, 32 bytes each and as much again at times; more are thinned."""
