# SPDX-License-Identifier: Apache-2.0
"""Progress over the stages of learning: which one it is, and how far."""

from collections.abc import Callable
from dataclasses import dataclass

Report = Callable[[str, int, int], object]
"""Called with the stage, how many beams of it are done, and how many there are."""


@dataclass(slots=True)
class Stages:
    """Gives each stage its own meter. Some pass over a part of the beams only; a stage is over when the next begins."""

    n_beams: int
    report: Report | None = None
    prefix: str = ""
    """What the name of every stage begins with."""
    running: str = ""
    """The stage that is not over yet."""

    def meter(self, stage: str) -> Callable[[int], None] | None:
        """Return what a stage calls with the number of beams done; None if nobody watches."""
        report = self.report
        if report is None:
            return None
        self.finish()
        self.running = stage = self.prefix + stage
        report(stage, 0, self.n_beams)
        return lambda done: _tell(report, stage, done, self.n_beams)

    def finish(self) -> None:
        """Tell that the running stage is over."""
        if self.report is not None and self.running:
            self.report(self.running, self.n_beams, self.n_beams)
        self.running = ""


def _tell(report: Report, stage: str, done: int, total: int) -> None:
    report(stage, min(done, total), total)
