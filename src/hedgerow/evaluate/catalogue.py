# SPDX-License-Identifier: Apache-2.0
"""The metrics: what each is called, in which unit it is shown, which way is better, and where it is defined."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """How one number is shown."""

    label: str
    unit: str
    """As shown; empty for plain numbers."""
    scale: float
    """Stored values (metres, shares) times this are shown."""
    decimals: int
    better: Literal["low", "high"] | None
    of: str
    """What is counted in `Value.n`; empty if nothing is."""
    source: str
    """Section or equation; the number is the paper's."""

    def text(self, value: float | None) -> str:
        """Write a value as a table shows it; a dash if it is undefined."""
        return "-" if value is None else f"{value * self.scale:,.{self.decimals}f}"


METRICS: dict[str, Metric] = {
    "bhattacharyya": Metric("Bhattacharyya, bearing by range", "", 1, 3, "low", "beams", "000 eq. 14, Table 3"),
    "bhattacharyya_per_direction": Metric(
        "Bhattacharyya, mean of directions", "", 1, 3, "low", "beams", "000 eq. 14 in each direction"
    ),
    "histogram_match_m": Metric("Histogram match, mean of directions", "cm", 100, 2, "low", "beams", "001 §3.4.3"),
    "hits_found": Metric("Hits found", "%", 100, 1, "high", "beams", "000 §5.3"),
    "misses_found": Metric("Misses found", "%", 100, 1, "high", "beams", "000 §5.3"),
    "precision": Metric("Precision of hits", "", 1, 3, "high", "beams", "001 eq. 4.5"),
    "recall": Metric("Recall of hits", "", 1, 3, "high", "beams", "001 eq. 4.6"),
    "f1": Metric("F1 of hits", "", 1, 3, "high", "beams", "001 eq. 4.4"),
    "beam_error_mean_m": Metric("Beam error, mean", "cm", 100, 2, "low", "beams", "001 eq. 4.3"),
    "beam_error_median_m": Metric("Beam error, median", "cm", 100, 2, "low", "beams", "001 eq. 4.3"),
    "sweep_distance_m": Metric("Sweep to sweep, worse way", "cm", 100, 2, "low", "returns", "000 eq. 16"),
    "sweep_distance_average_m": Metric("Sweep to sweep, average", "cm", 100, 2, "low", "returns", "001 eq. 4.9"),
    "cloud_distance_m": Metric("Cloud to cloud, worse way", "cm", 100, 2, "low", "returns", "000 eq. 16"),
    "cloud_distance_average_m": Metric("Cloud to cloud, average", "cm", 100, 2, "low", "returns", "001 eq. 4.9"),
    "range_histogram_match_m": Metric("Range histogram match", "cm", 100, 2, "low", "beams", "001 §3.4.3"),
    "nll": Metric("-log L of the density, mean", "", 1, 3, "low", "beams", "000 eq. 17"),
    "nll_binned": Metric("-log L of the range bin, mean", "", 1, 3, "low", "beams", "000 eq. 17"),
    "floored": Metric("Beams at the density floor", "%", 100, 2, "low", "beams", "MODELS §5"),
    "elements": Metric("Elements", "", 1, 0, None, "", "000 Table 8"),
    "parameters": Metric("Parameters", "", 1, 0, "low", "", "000 Table 8"),
    "bytes": Metric("Size", "MB", 1e-6, 2, None, "", ""),
}
"""In the order of the tables."""
