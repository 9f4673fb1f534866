# SPDX-License-Identifier: Apache-2.0
"""How far a simulation is from reality: metrics of beams, sweeps and clouds."""

from hedgerow.evaluate.compare import compare, tally
from hedgerow.evaluate.config import CompareSettings
from hedgerow.evaluate.judge import judge
from hedgerow.evaluate.scores import Comparison, Scores

__all__ = ["CompareSettings", "Comparison", "Scores", "compare", "judge", "tally"]
