# SPDX-License-Identifier: Apache-2.0
"""The page of risk."""

import json
import re

import numpy as np
from small_logs import make_log

from hedgerow.apps import choice, log_number, number, program
from hedgerow.report.risk_page import write_risk_page
from hedgerow.risk.develop import coordinate_search, develop
from hedgerow.risk.measure import measure
from hedgerow.risk.score import score
from hedgerow.risk.sources import FunctionSource, Scene

LOG = make_log()


@program(voxel_m=log_number(0.1, 10), share=number(0, 1), kind=choice("a", "b"))
def fitted(log, parameters, truth):
    return (np.log10(parameters["voxel_m"]) - truth) ** 2 + parameters["share"]


def source(name, optimum, **more):
    return FunctionSource(
        name, ["s0", "s1", "s2"], lambda scene, seed: Scene(LOG, optimum + 0.01 * int(scene[1])), **more
    )


def test_the_page_has_tables_plots_and_numbers(tmp_path):
    sources = [source("real", 0.0, role="real", is_random=False), source("<b>near</b>", 0.1), source("far", 0.5)]
    table = measure(fitted, sources, settings=40, seeds=[0, 1])
    path = develop(fitted, table, sources[0], sources[2], coordinate_search, name="coordinate", steps=6)
    scores = score(table, fitted, replicates=50)
    write_risk_page(tmp_path / "risk.html", table, scores, fitted, paths=[path], commands=["hedgerow risk ..."])
    page = (tmp_path / "risk.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == 4
    assert "<b>near</b>" not in page.partition("<script")[0]  # names are escaped
    assert "voxel_m: real: an optimum at" in page
    found = re.search(r'<script type="application/json" id="scores">(.*)</script>', page)
    assert found is not None
    numbers = json.loads(found[1])
    assert numbers["scores"]["far"]["risk"] == scores.scores["far"].risk
    assert 'src="http' not in page


def test_a_page_of_failed_runs_is_written_too(tmp_path):
    sources = [source("real", 0.0, role="real", is_random=False), source("broken", float("nan"))]
    table = measure(fitted, sources, settings=5, seeds=[0])
    write_risk_page(tmp_path / "risk.html", table, score(table, fitted, replicates=50), fitted)
    page = (tmp_path / "risk.html").read_text(encoding="utf-8")
    assert "100.0% (not finite 100.0%)" in page
