# SPDX-License-Identifier: Apache-2.0
"""A comparison in plain sentences, for those who do not want to read a table first."""

from hedgerow.evaluate import Comparison, Scores
from hedgerow.evaluate.catalogue import METRICS

_SENTENCES = (
    (
        ("hits_found", "{} % of the real returns are returns in simulation too"),
        ("misses_found", "{} % of the beams without return have none there either"),
    ),
    (
        ("beam_error_median_m", "of the beams that returned in both, half end within {} cm of where they really did"),
        ("cloud_distance_average_m", "all points together lie {} cm from the real ones on average"),
    ),
)


def in_short(scores: Scores) -> str:
    """Return the numbers that matter most as up to two sentences; empty if none of them applies."""
    sentences: list[str] = []
    for parts in _SENTENCES:
        known = [(text, METRICS[key].text(scores[key])) for key, text in parts if scores[key] is not None]
        if known:
            sentence = ", and ".join(text.format(value) for text, value in known)
            sentences.append(f"{sentence[0].upper()}{sentence[1:]}.")
    return " ".join(sentences)


def headline(comparison: Comparison) -> str:
    """Return a title that names what was compared; of many names, the first two."""
    names = list(comparison)
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    named = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{named} against reality"
