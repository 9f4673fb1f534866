# SPDX-License-Identifier: Apache-2.0
"""Scores as tables and JSON."""

import json
from io import StringIO

import numpy as np
import pytest
from known_logs import NormalWorld, drive, log_of, random_ranges, with_ranges
from rich.console import Console

from hedgerow import InputError
from hedgerow.metrics import compare
from hedgerow.metrics.metric import Value
from hedgerow.metrics.scores import score_table


def marks(key, *values, **floors):
    columns = {str(i): value for i, value in enumerate(values)} | floors
    [row] = score_table({name: {key: Value(value, 10)} for name, value in columns.items()}).rows
    return [cell.mark for cell in row.cells]


def test_the_best_is_bold_and_the_worst_italic():
    assert marks("nll", 0.993, 0.985, 0.959, 0.998) == ["", "", "best", "worst"]
    assert marks("range_histogram_match_m", 0.15, 0.81, 0.12) == ["", "worst", "best"]


def test_what_looks_equal_is_equally_good():
    assert marks("brier", 0.12341, 0.12342, 0.2) == ["best", "best", "worst"]
    assert marks("brier", 0.5, 0.5, 0.5) == ["", "", ""]


def test_hits_and_distances_are_to_be_near_reality_again_from_either_side():
    again = {"reality again": 0.95}
    assert marks("hits_found", 0.999, 0.96, 0.80, **again) == ["", "best", "worst", ""]
    assert marks("beam_error_mean_m", 0.2, 0.9, 0.7, **again) == ["worst", "best", "", ""]
    assert marks("sweep_distance_m", 1.0, 0.94, **{"Scene again": 0.95}) == ["", "best", ""]


def test_hits_and_distances_are_not_ranked_without_reality_again():
    assert marks("hits_found", 0.993, 0.985, 0.998) == ["", "", ""]
    assert marks("f1", 0.993, 0.985, climatology=0.9) == ["", "", ""]
    assert marks("cloud_distance_m", 0.1, 0.2, **{"reality again": None}) == ["", "", ""]


def test_the_spread_nearest_to_one_is_best():
    assert marks("spread", 0.46, 1.05, 1.4) == ["worst", "best", ""]


def test_floors_are_not_ranked():
    assert marks("crps_m", 2.0, 3.0, climatology=9.0, **{"reality again": 1.0}) == ["best", "", "", ""]


def test_two_have_a_best_but_no_worst():
    assert marks("nll", 1.0, 2.0) == ["best", ""]


def test_undefined_values_are_neither():
    assert marks("nll", None, 2.0, 1.0, 3.0) == ["", "", "best", "worst"]


def test_sizes_without_a_better_way_are_not_marked():
    assert marks("elements", 1.0, 2.0, 3.0) == ["", "", ""]


def test_units_are_shown_and_numbers_grouped():
    table = score_table({"a": {"sweep_distance_m": Value(12.3456, 1_234_567), "elements": Value(154586.0)}})
    assert [(row.label, row.cells[0].text, row.n_text) for row in table.rows] == [
        ("Sweep to sweep, worse way [cm]", "1,234.56", "1,234,567 returns"),
        ("Elements", "154,586", ""),
    ]


def test_markdown_marks_best_and_worst_and_escapes_bars():
    table = score_table({name: {"nll": Value(v, n)} for name, v, n in (("a|b", 0.3, 5), ("c", 0.2, 7), ("d", 0.1, 7))})
    assert table.to_markdown().splitlines() == [
        "|  | a\\|b | c | d | of |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| -log L of the density, mean | *0.300* | 0.200 | **0.100** | 5 to 7 beams |",
    ]


def test_long_tables_stand_under_headings_and_short_ones_do_not():
    table = compare(drive(), drive()).table()
    headings = [heading for heading, _ in table.groups()]
    assert headings == ["Single beams", "Clouds and distributions"]
    assert [row for _, rows in table.groups() for row in rows] == list(table.rows)
    assert "| *Single beams* |  |  |" in table.to_markdown()
    assert '<tr class="heading"><th>Single beams</th><td colspan="2"></td></tr>' in table.to_html()
    short = score_table({"a": {"hits_found": Value(0.5, 9), "elements": Value(3.0)}})
    assert [heading for heading, _ in short.groups()] == [""]


def test_html_escapes_names():
    html = score_table({"<script>": {"f1": Value(0.1, 5)}}).to_html()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_rich_prints_every_row():
    out = StringIO()
    Console(width=200, file=out).print(compare(drive(), drive()).table().to_rich())
    text = out.getvalue()
    assert "Hits found [%]" in text and "100.0" in text and "1,800 beams" in text


def test_json_has_every_metric_and_no_nan():
    real = drive(1)
    empty = with_ranges(real, np.full(len(real), np.inf))
    both = compare(real, {"normal": NormalWorld(20, 3), "empty": empty})
    found = json.loads(both.to_json(), parse_constant=lambda text: pytest.fail(f"JSON holds {text}"))
    assert found["empty"]["metrics"]["cloud_distance_m"]["value"] is None
    assert found["normal"]["metrics"]["nll"] == {"value": both["normal"]["nll"], "n": 1800}
    assert found["normal"]["settings"]["range_step_m"] == 0.002
    assert (
        sum(found["normal"]["range_histogram"]["real"]) + found["normal"]["range_histogram"]["real_no_return"] == 1800
    )


def test_notes_name_the_simulations_they_hold_for():
    real = drive(2)
    both = compare(real, {"world": NormalWorld(20, 3), "log": with_ranges(real, random_ranges(np.random, len(real)))})
    assert sum(note.startswith("log: no likelihood") for note in both.notes) == 1
    assert sum(note.startswith("world: -log L has a floor") for note in both.notes) == 1


def test_unknown_names_are_refused():
    both = compare(log_of([20.0]), {"normal": NormalWorld()})
    with pytest.raises(InputError, match="no simulation 'voxel'; there are normal"):
        both["voxel"]
    with pytest.raises(InputError, match="no metric 'entropy'"):
        both["normal"]["entropy"]


def test_scores_cannot_be_changed():
    scores = compare(log_of([20.0]), NormalWorld())
    with pytest.raises(AttributeError):
        scores.n_beams = 3  # pyright: ignore[reportAttributeAccessIssue]  # wrong on purpose
