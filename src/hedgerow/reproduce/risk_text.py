# SPDX-License-Identifier: Apache-2.0
"""Risk of several simulators for a program, as the experiments tell it: summary, table, who is better."""

from hedgerow.reproduce.tables import markdown_table
from hedgerow.risk.score import RiskScores
from hedgerow.risk.words import risk_rows, summary


def risk_text(scores: RiskScores) -> str:
    """Return what was run, a table with a column for each simulator, and whether their differences are decided."""
    head, rows = risk_rows(scores)
    parts = [summary(scores), markdown_table(head, rows), *(f"- {each.words()}" for each in scores.differences)]
    return "\n\n".join(parts[:2]) + "\n\n" + "\n".join(parts[2:])


def holds(is_so: bool) -> str:
    """Say whether a conclusion of a paper holds here."""
    return "holds" if is_so else "does not hold here"
