# SPDX-License-Identifier: Apache-2.0
"""Progress of learning: which stage runs, and how far it is."""

from collections.abc import Callable
from dataclasses import dataclass

Report = Callable[[str, int, int], object]
"""Called with the name of the stage, the number of beams done, and the number of all beams."""


@dataclass(slots=True)
class Stages:
    """Reports the progress of one stage after the other. A stage ends when the next begins, even if it read only a part
    of the beams."""

    n_beams: int
    report: Report | None = None
    prefix: str = ""
    """Put before the name of every stage."""
    running: str = ""
    """Name of the stage that has not ended yet; empty between stages."""

    def meter(self, stage: str) -> Callable[[int], None] | None:
        """Begin a stage; return what it calls with the number of beams done, None if nobody watches."""
        report = self.report
        if report is None:
            return None
        self.finish()
        self.running = stage = self.prefix + stage
        report(stage, 0, self.n_beams)
        return lambda done: _tell(report, stage, done, self.n_beams)

    def finish(self) -> None:
        """End the running stage."""
        if self.report is not None and self.running:
            self.report(self.running, self.n_beams, self.n_beams)
        self.running = ""


def _tell(report: Report, stage: str, done: int, total: int) -> None:
    report(stage, min(done, total), total)
