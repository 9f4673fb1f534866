# SPDX-License-Identifier: Apache-2.0
"""Train the shipped classifier of surface and volume (docs/models.md §12) and write its file anew.

    python tools/train_classifier.py [--generations N] [--output FILE]
    python tools/train_classifier.py --judge SEED...

It is trained on drives through the scenes trail and street, grown from other seeds than the shipped ones, along the
trajectory `first`. It is judged on drives through the scenes as they are shipped, along the trajectory `second`, with
other random numbers. Nothing is chosen on the latter. All of it is written into the file, beside the parameters.
--judge trains nothing: it judges the shipped classifier on the scenes grown from further seeds.
"""

import argparse
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w

import hedgerow
from hedgerow.base.atomic import atomic_file
from hedgerow.log import Log
from hedgerow.models.steps.classifier import ClassifierParameters
from hedgerow.models.steps.classifier_training import score_classifier, tune_classifier
from hedgerow.reproduce.recording import SceneDrive
from hedgerow.scenes.site import load_site

VOLUME_LABELS = (70,)
SEED = 0
MAX_VOXELS = 10_000
HEADER = "# Defaults of the classifier into surface and volume. Written by tools/train_classifier.py; do not edit.\n\n"


@dataclass(frozen=True)
class Drive:
    """A labelled drive through a scene, and how to record it again."""

    scene: str
    scene_seed: int
    trajectory: str
    span_s: tuple[float, float]
    sensor: str
    sweeps: int
    seed: int

    def record(self) -> Log:
        """Record it."""
        drive = SceneDrive(_site(self.scene, self.scene_seed), self.span_s)
        return drive.record(self.trajectory, self.sweeps, self.seed, self.sensor)


SENSORS = {"hdl-64e-s2": 20, "vlp-16": 24}
"""Sweeps of each sensor."""
SPANS_S = {"trail": (13.0, 25.0), "street": (6.0, 18.0)}
"""Sixty metres each, out of the meadow into the forest and past houses: as dense as in the mobile experiments."""
TRAINING_SEEDS, SHIPPED_SEEDS = {"trail": 101, "street": 102}, {"trail": 11, "street": 4}
TRAINING, HELD_OUT = (
    tuple(
        Drive(scene, scene_seeds[scene], trajectory, SPANS_S[scene], sensor, sweeps, seed)
        for scene in SPANS_S
        for sensor, sweeps in SENSORS.items()
    )
    for scene_seeds, trajectory, seed in ((TRAINING_SEEDS, "first", 1), (SHIPPED_SEEDS, "second", 2))
)


@cache
def _site(scene: str, seed: int) -> Any:
    return load_site(scene, seed=seed)


def judge(drives: Iterable[Drive], parameters: ClassifierParameters) -> list[dict[str, Any]]:
    """Return how well each drive is told apart, with how it was recorded."""
    rows: list[dict[str, Any]] = []
    for drive in drives:
        score = score_classifier(drive.record(), VOLUME_LABELS, parameters)
        rounded = {name: round(value, 3) for name, value in score._asdict().items()}
        rows.append(asdict(drive) | rounded)
        print(
            f"{drive.scene} (seed {drive.scene_seed}), {drive.trajectory}, {drive.sensor}: "
            f"weighted {score.weighted:.3f}, volume {score.volume_recall:.3f}, surface {score.surface_recall:.3f}",
            flush=True,
        )
    return rows


def main() -> None:
    """Train, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=6, help="generations of differential evolution")
    shipped = str(resources.files("hedgerow.models.steps") / "classifier_defaults.toml")
    parser.add_argument("--output", type=Path, default=Path(shipped), help="default: the shipped file")
    parser.add_argument("--judge", type=int, nargs="+", metavar="SEED", help="judge the shipped file on these scenes")
    given = parser.parse_args()
    if given.judge:
        judge((replace(drive, scene_seed=seed) for seed in given.judge for drive in HELD_OUT), ClassifierParameters())
        return
    parameters, score = tune_classifier(
        [drive.record() for drive in TRAINING],
        VOLUME_LABELS,
        seed=SEED,
        max_rounds=given.generations,
        max_voxels=MAX_VOXELS,
        progress=lambda done: print(f"generation {done} of {given.generations}", flush=True),
    )
    provenance = {
        "command": f"python tools/train_classifier.py --generations {given.generations}",
        "hedgerow": hedgerow.__version__,
        "volume_labels": list(VOLUME_LABELS),
        "seed": SEED,
        "max_voxels": MAX_VOXELS,
        "score": round(score, 3),
        "training": judge(TRAINING, parameters),
        "held_out": judge(HELD_OUT, parameters),
    }
    content = {"parameters": parameters.model_dump(), "provenance": provenance}
    with atomic_file(given.output) as path:
        path.write_text(HEADER + tomli_w.dumps(content), encoding="utf-8")
    print(f"weighted accuracy {score:.3f} on the blocks it was trained on; wrote {given.output}")


if __name__ == "__main__":
    main()
