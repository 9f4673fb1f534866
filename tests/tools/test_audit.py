# SPDX-License-Identifier: Apache-2.0
"""tools/audit.py never calls unaudited packages audited."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from audit import AUDITED, NOT_AUDITED, VULNERABLE, report

FINE = {"name": "numpy", "version": "2.4.6", "vulns": []}
BAD = {"name": "old", "version": "0.1", "vulns": [{"id": "PYSEC-2020-1"}, {"id": "GHSA-x"}]}
SKIPPED = {"name": "rich", "skip_reason": "Dependency not found: no connection"}


@pytest.mark.parametrize(
    ("rows", "n_packages", "code", "said"),
    [
        ([FINE], 1, AUDITED, "audited 1 packages: 0 with"),
        ([FINE, BAD], 2, VULNERABLE, "old 0.1: PYSEC-2020-1, GHSA-x"),
        ([FINE, SKIPPED], 2, NOT_AUDITED, "not audited: 1 of 2 packages. rich (Dependency not found"),
        ([FINE], 2, NOT_AUDITED, "not audited: 1 of 2"),
        ([BAD, SKIPPED], 2, VULNERABLE, "not audited: 1 of 2"),
    ],
)
def test_what_was_not_looked_up_is_not_audited(rows, n_packages, code, said, capsys):
    assert report(json.dumps({"dependencies": rows}), "", n_packages) == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("stdout", ["", "no json", "[]", "{}"])
def test_no_answer_is_no_audit(stdout, capsys):
    assert report(stdout, "ERROR: no connection", 3) == NOT_AUDITED
    assert capsys.readouterr().out == "not audited: pip-audit gave no answer (ERROR: no connection)\n"
