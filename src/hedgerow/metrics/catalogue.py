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
    """Paper by author and year, with its section or equation."""
    meaning: str

    def text(self, value: float | None) -> str:
        """Write a value as a table shows it; a dash if it is undefined."""
        return "-" if value is None else f"{value * self.scale:,.{self.decimals}f}"


METRICS: dict[str, Metric] = {
    "bhattacharyya": Metric(
        "Bhattacharyya, bearing by range", "", 1, 3, "low", "beams", "Browning 2012 eq. 14, Table 3",
        "-log of the overlap of the two histograms of direction and range, with a bin for no return",
    ),
    "bhattacharyya_per_direction": Metric(
        "Bhattacharyya, mean of directions", "", 1, 3, "low", "beams", "Browning 2012 eq. 14",
        "the same for the range histogram of each direction alone, averaged over the beams",
    ),
    "histogram_match_m": Metric(
        "Histogram match, mean of directions", "cm", 100, 2, "low", "beams", "Tallavajhula 2018 §3.4.3",
        "how far returns have to move along their direction to turn one histogram into the other",
    ),
    "hits_found": Metric(
        "Hits found", "%", 100, 1, "high", "beams", "Browning 2012 §5.3",
        "real returns that are returns in simulation too"
    ),
    "misses_found": Metric(
        "Misses found", "%", 100, 1, "high", "beams", "Browning 2012 §5.3",
        "beams without return that have none in simulation"
    ),
    "precision": Metric(
        "Precision of hits", "", 1, 3, "high", "beams", "Tallavajhula 2018 eq. 4.5",
        "share of the simulated returns that are real"
    ),
    "recall": Metric("Recall of hits", "", 1, 3, "high", "beams", "Tallavajhula 2018 eq. 4.6",
        "the hits found, as a share"),
    "f1": Metric(
        "F1 of hits", "", 1, 3, "high", "beams", "Tallavajhula 2018 eq. 4.4", "harmonic mean of precision and recall"
    ),
    "beam_error_mean_m": Metric(
        "Beam error, mean", "cm", 100, 2, "low", "beams", "Tallavajhula 2018 eq. 4.3",
        "distance of the simulated from the real return of a beam, where both returned",
    ),
    "beam_error_median_m": Metric(
        "Beam error, median", "cm", 100, 2, "low", "beams", "Tallavajhula 2018 eq. 4.3", "the median of the same"
    ),
    "sweep_distance_m": Metric(
        "Sweep to sweep, worse way", "cm", 100, 2, "low", "returns", "Browning 2012 eq. 16",
        "mean distance to the nearest return of the other sweep, the worse of the two ways, averaged over sweeps",
    ),
    "sweep_distance_average_m": Metric(
        "Sweep to sweep, average", "cm", 100, 2, "low", "returns", "Tallavajhula 2018 eq. 4.9",
        "the average of the two ways"
    ),
    "cloud_distance_m": Metric(
        "Cloud to cloud, worse way", "cm", 100, 2, "low", "returns", "Browning 2012 eq. 16",
        "the same for the points of all sweeps together",
    ),
    "cloud_distance_average_m": Metric(
        "Cloud to cloud, average", "cm", 100, 2, "low", "returns", "Tallavajhula 2018 eq. 4.9",
        "the average of the two ways"
    ),
    "range_histogram_match_m": Metric(
        "Range histogram match", "cm", 100, 2, "low", "beams", "Tallavajhula 2018 §3.4.3",
        "how far ranges have to move to turn one histogram of all ranges into the other; no return is the limit",
    ),
    "nll": Metric(
        "-log L of the density, mean", "", 1, 3, "low", "beams", "Browning 2012 eq. 17",
        "how unlikely the world finds what was measured: density per metre of a return, probability of none",
    ),
    "nll_binned": Metric(
        "-log L of the range bin, mean", "", 1, 3, "low", "beams", "Browning 2012 eq. 17",
        "the same with the probability of a return's range bin, as the figures of Browning 2012 seem to be",
    ),
    "floored": Metric(
        "Beams at the density floor", "%", 100, 2, "low", "beams", "",
        "beams that the world finds less likely than an outlier",
    ),
    "elements": Metric("Elements", "", 1, 0, None, "", "Browning 2012 Table 8", "triangles, Gaussians or points"),
    "parameters": Metric("Parameters", "", 1, 0, "low", "", "Browning 2012 Table 8", "numbers that describe them"),
    "bytes": Metric("Size", "MB", 1e-6, 2, None, "", "", "bytes that they take"),
}  # fmt: skip
"""In the order of the tables."""


# A number with what it rests on.


@dataclass(frozen=True, slots=True)
class Value:
    """One metric of one simulation; the catalogue says what it is called and counted in."""

    value: float | None
    """In metres, shares or plain numbers; None where the data leaves it undefined."""
    n: int | None = None
    """How many beams or returns it rests on; None for what is not measured on beams."""


def share(part: float, whole: int) -> Value:
    """Return part / whole, undefined for a whole of nothing."""
    return Value(part / whole if whole else None, whole)
