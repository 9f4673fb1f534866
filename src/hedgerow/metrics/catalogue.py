# SPDX-License-Identifier: Apache-2.0
"""The table of all metrics; a new one is a file of its own and one row here."""

from hedgerow.metrics.beam_error import BEAM_ERROR_METRICS, BeamError
from hedgerow.metrics.bearing import BEARING_METRICS, BearingDistances
from hedgerow.metrics.cloud_distance import CLOUD_METRICS, SWEEP_METRICS, CloudDistances, SweepDistance
from hedgerow.metrics.forecast_scores import FORECAST_METRICS, ForecastScores
from hedgerow.metrics.hit_miss import HIT_MISS_METRICS, HitMiss
from hedgerow.metrics.likelihood import LIKELIHOOD_METRICS, Likelihood
from hedgerow.metrics.matching import Partners
from hedgerow.metrics.metric import Family, Metric
from hedgerow.metrics.novel_view import NOVEL_VIEW_METRICS, NovelView
from hedgerow.metrics.observation import OBSERVATION_METRICS, ObservationError
from hedgerow.metrics.range_histogram import RANGE_HISTOGRAM_METRICS, RangeHistograms

FAMILIES: tuple[Family, ...] = (
    Family.of_pairs(Partners, {}),
    Family.of_pairs(ForecastScores, FORECAST_METRICS),
    Family(BearingDistances, BEARING_METRICS),
    Family.of_pairs(HitMiss, HIT_MISS_METRICS),
    Family.of_pairs(BeamError, BEAM_ERROR_METRICS),
    Family.of_pairs(ObservationError, OBSERVATION_METRICS),
    Family.of_pairs(SweepDistance, SWEEP_METRICS),
    Family(CloudDistances, CLOUD_METRICS),
    Family(RangeHistograms, RANGE_HISTOGRAM_METRICS),
    Family.of_pairs(Likelihood, LIKELIHOOD_METRICS),
    Family.of_pairs(NovelView, NOVEL_VIEW_METRICS),
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
