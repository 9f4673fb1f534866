# SPDX-License-Identifier: Apache-2.0
"""Robot applications that use a lidar, simulated or real, and programs with parameters whose error can be measured."""

from hedgerow.apps.app import App, Objective, Outcome, fail, minus_f1, minus_iou, program, ratio, root_ratio
from hedgerow.apps.registry import open_app
from hedgerow.apps.space import Space, choice, log_number, number, whole

__all__ = [
    "App",
    "Objective",
    "Outcome",
    "Space",
    "choice",
    "fail",
    "log_number",
    "minus_f1",
    "minus_iou",
    "number",
    "open_app",
    "program",
    "ratio",
    "root_ratio",
    "whole",
]
