# SPDX-License-Identifier: Apache-2.0
"""The table of all metrics; a new one is a file of its own and one row here."""

from hedgerow.metrics.beam_error import BEAM_ERROR_METRICS, BeamError
from hedgerow.metrics.bearing import BEARING_METRICS, BearingDistances
from hedgerow.metrics.cloud_distance import CLOUD_METRICS, SWEEP_METRICS, CloudDistances, SweepDistance
from hedgerow.metrics.density_chamfer import DENSITY_CHAMFER_METRICS, DensityChamfer
from hedgerow.metrics.forecast_scores import FORECAST_METRICS, ForecastScores
from hedgerow.metrics.hit_miss import HIT_MISS_METRICS, HitMiss
from hedgerow.metrics.intensity import INTENSITY_METRICS, IntensityScores
from hedgerow.metrics.label_scores import LABEL_METRICS, LabelScores
from hedgerow.metrics.likelihood import LIKELIHOOD_METRICS, Likelihood
from hedgerow.metrics.matching import Partners
from hedgerow.metrics.metric import Family, Metric
from hedgerow.metrics.near_learned import NEAR_LEARNED_METRICS, NearLearned
from hedgerow.metrics.novel_view import NOVEL_VIEW_METRICS, NovelView
from hedgerow.metrics.observation import OBSERVATION_METRICS, ObservationError
from hedgerow.metrics.range_histogram import RANGE_HISTOGRAM_METRICS, RangeHistograms
from hedgerow.metrics.shares import SHARES_METRICS, Shares

_FORECASTS = "Forecasts"
_BEAMS = "Single beams"
_CLOUDS = "Clouds and distributions"

FAMILIES: tuple[Family, ...] = (
    Family.of_pairs(Partners, {}, ""),
    Family.of_pairs(ForecastScores, FORECAST_METRICS, _FORECASTS),
    Family.of_pairs(Likelihood, LIKELIHOOD_METRICS, _FORECASTS),
    Family.of_pairs(NearLearned, NEAR_LEARNED_METRICS, "By distance to what was learned"),
    Family.of_pairs(IntensityScores, INTENSITY_METRICS, "Intensity"),
    Family.of_pairs(LabelScores, LABEL_METRICS, "Labels"),
    Family.of_pairs(HitMiss, HIT_MISS_METRICS, _BEAMS),
    Family.of_pairs(BeamError, BEAM_ERROR_METRICS, _BEAMS),
    Family.of_pairs(ObservationError, OBSERVATION_METRICS, _BEAMS),
    Family(BearingDistances, BEARING_METRICS, "By direction, sensor standing"),
    Family.of_pairs(SweepDistance, SWEEP_METRICS, _CLOUDS),
    Family(CloudDistances, CLOUD_METRICS, _CLOUDS),
    Family.of_pairs(DensityChamfer, DENSITY_CHAMFER_METRICS, _CLOUDS),
    Family(RangeHistograms, RANGE_HISTOGRAM_METRICS, _CLOUDS),
    Family(Shares, SHARES_METRICS, _CLOUDS),
    Family.of_pairs(NovelView, NOVEL_VIEW_METRICS, "Novel views"),
)
"""In the order of the tables."""

SIZE_METRICS = {
    "elements": Metric(
        label="Elements",
        meaning="triangles, Gaussians or points",
        source="Browning 2012 Table 8",
        decimals=0,
    ),
    "parameters": Metric(
        label="Parameters",
        meaning="numbers that describe them",
        source="Browning 2012 Table 8",
        better="low",
        decimals=0,
    ),
    "bytes": Metric(
        label="Size",
        meaning="bytes that they take",
        unit="MB",
        scale=1e-06,
        decimals=2,
    ),
}
"""What a world says of itself (`World.size`); nothing is accumulated."""

METRICS: dict[str, Metric] = {
    key: metric for table in (*(family.metrics for family in FAMILIES), SIZE_METRICS) for key, metric in table.items()
}
"""All metrics by key, in the order of the tables."""

HEADINGS: dict[str, str] = {
    key: heading
    for heading, table in (*((family.heading, family.metrics) for family in FAMILIES), ("Size", SIZE_METRICS))
    for key in table
}
"""Under which heading of a long table each metric stands, by key."""
