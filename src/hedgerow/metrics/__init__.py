# SPDX-License-Identifier: Apache-2.0
"""How far a simulation is from reality: metrics of beams, sweeps and clouds."""

from hedgerow.metrics.compare import accumulate, compare, score
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.scores import Comparison, Scores

__all__ = ["CompareSettings", "Comparison", "Scores", "accumulate", "compare", "score"]
