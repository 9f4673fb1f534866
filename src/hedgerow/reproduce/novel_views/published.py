# SPDX-License-Identifier: Apache-2.0
"""Scores that were published for KITTI-360, and tables of ours beside them."""

from collections.abc import Mapping, Sequence

from hedgerow.metrics.catalogue import METRICS
from hedgerow.reproduce.tables import markdown_table

SCORES = {
    "chamfer_m2": "CD [m²]",
    "f_score": "F at 0.05 m²",
    "range_rmse_m": "range RMSE [m]",
    "range_medae_m": "range MedAE [m]",
    "range_ssim": "range SSIM",
    "range_psnr": "range PSNR [dB]",
    "intensity_rmse": "intensity RMSE",
    "intensity_medae": "intensity MedAE",
    "intensity_ssim": "intensity SSIM",
    "intensity_psnr": "intensity PSNR [dB]",
    "drop_rmse": "drop RMSE",
    "drop_accuracy": "drop accuracy",
    "drop_f1": "drop F1",
    "return_f1": "return F1",
}
"""What is shown, in the order of the tables; keys are those of `metrics/novel_view.py`."""

_PUBLISHED = tuple(key for key in SCORES if key.startswith(("chamfer", "f_", "range", "intensity")))


def _row(*values: float) -> dict[str, float]:
    return dict(zip(_PUBLISHED, values, strict=True))


LIDAR4D = {
    "static": _row(0.0834, 0.9312, 2.7413, 0.0367, 0.8484, 29.3359, 0.1116, 0.0335, 0.6120, 19.0619),
    "dynamic": _row(0.1002, 0.9320, 3.0589, 0.0280, 0.8770, 28.7477, 0.0995, 0.0262, 0.6561, 20.0884),
}
"""Of LiDAR4D 2024, as its repository has them (better than those of the paper), on the sequences of either kind."""
LIDAR_NERF = {
    "static": _row(0.0923, 0.9226, 3.6801, 0.0667, 0.6043, 26.7663, 0.1557, 0.0549, 0.2768, 16.1683),
    "dynamic": _row(0.1438, 0.9091, 4.1753, 0.0566, 0.6568, 25.9878, 0.1404, 0.0443, 0.3831, 17.1549),
}
"""Of LiDAR-NeRF 2023, likewise."""
LIDAR_RT_IMAGES_PER_S = 30
"""Of 64 x 2650 pixels, on a graphics card after two hours of learning (LiDAR-RT 2025, Fig. 1)."""


def score_table(columns: Mapping[str, Mapping[str, float]], keys: Sequence[str] = tuple(SCORES)) -> str:
    """Return a table in Markdown: a row for each score that any column has, a column for each name."""
    rows = [
        (SCORES[key], *(_text(key, values.get(key)) for values in columns.values()))
        for key in keys
        if any(key in values for values in columns.values())
    ]
    return markdown_table(("", *columns), rows)


def _text(key: str, value: float | None) -> str:
    return METRICS[f"median_{key}"].text(value)
