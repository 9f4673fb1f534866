# SPDX-License-Identifier: Apache-2.0
"""What the pose errors of Browning 2012 §6 cost: worlds learned from logs with them, compared on an exact log.

The paper learns and tests with one system: position to 2 cm, heading to 0.1 degrees, pitch and roll to 0.02. It cannot
tell what they cost, since no log is without them. The trail plays reality here, so one can: the same drive is recorded
with exact poses, with errors of the position alone, of the heading alone, and with all three; pulses and ranges are the
same. The second drive, on which the worlds are compared, has exact poses. One pulse in three is kept, so that eight
sweeps, which see the same places from several poses, are learned in minutes.
"""

from collections.abc import Mapping
from pathlib import Path

from hedgerow.metrics import Scores, compare
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import MODELS, OFFROAD, learn_all
from hedgerow.reproduce.recording import SceneDrive
from hedgerow.reproduce.tables import markdown_table
from hedgerow.sensor.pose_errors import PRESETS, PoseErrors

ALL_MODELS: Mapping[str, str] = MODELS | {"Bottom Up": "bottomup"}
FIGURES = PRESETS["browning-2012"]
ERRORS: Mapping[str, tuple[str, ...]] = {
    "exact": (),
    "position 2 cm": ("position_sigma_m",),
    "heading 0.1°": ("heading_sigma_deg",),
    "all, with tilt 0.02°": tuple(FIGURES),
}
"""Which figures of the preset each log has."""
SHOWN: Mapping[str, tuple[str, float, int]] = {
    "nll_binned": ("-log L; lower is better", 1.0, 2),
    "hits_found": ("Hits found [%]; higher is better", 100.0, 1),
    "misses_found": ("Misses found [%]; higher is better", 100.0, 1),
    "cloud_distance_m": ("Cloud to cloud [cm]; lower is better", 100.0, 2),
}
"""What is shown of a metric: its heading, scale and digits."""


def run(
    folder: Path,
    size: int | None = None,
    seed: int = 1,
    say: Print = print,
    *,
    models: Mapping[str, str] = ALL_MODELS,
    errors: Mapping[str, tuple[str, ...]] = ERRORS,
    one_in: int = 3,
) -> Outcome:
    """Record a drive of `size` sweeps with each kind of error, learn all models from each, compare on another drive."""
    n_sweeps = size or 8
    drive = SceneDrive.open(OFFROAD.scene, OFFROAD.span_s)
    test = drive.record("second", n_sweeps, seed + 1)[::one_in]
    scores: dict[str, Mapping[str, Scores]] = {}
    for name, figures in errors.items():
        wrong = PoseErrors.parse({figure: FIGURES[figure] for figure in figures} | {"seed": seed}, name)
        say(f"{name}: recording and learning")
        train = drive.record("first", n_sweeps, seed, pose_errors=wrong)[::one_in]
        worlds = learn_all(train, models, say)
        scores[name] = compare(test, worlds, seed=seed).scores
    return Outcome(text="\n\n".join(_table(key, scores, list(models)) for key in SHOWN))


def _table(key: str, scores: Mapping[str, Mapping[str, Scores]], models: list[str]) -> str:
    """Return one metric in Markdown: a row for each model, a column for each kind of error."""
    heading, scale, digits = SHOWN[key]

    def cell(found: Mapping[str, Scores], model: str) -> str:
        value = found[model][key]
        return "-" if value is None else f"{scale * value:.{digits}f}"

    rows = [(model, *(cell(found, model) for found in scores.values())) for model in models]
    return f"**{heading}**\n\n" + markdown_table(("learned from a log that is", *scores), rows)
