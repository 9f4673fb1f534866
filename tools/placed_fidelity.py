# SPDX-License-Identifier: Apache-2.0
"""A learned world by itself, placed in a scene, and composed and saved: the same scores against real sweeps.

    python tools/placed_fidelity.py DATA [--models voxel hybrid ...]

DATA holds kitti_0029_start (tools/real_logs.py). Six sweeps are learned from and two others between them are compared
with, all within 25 m. Placed and composed worlds are fired with the beam of the log's own sensor. docs/compose.md has
the table.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from real_logs import Choice, logs

import hedgerow as hr
from hedgerow.compose.composition import compose
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.site import load_site

SWEEPS = "20:28"
SCENE = """
[terrain]
size_m = [1, 1]
height_m = -1000
[worlds.site]
file = "site.world"
[objects.here]
what = "site"
at_m = [0, 0, 0]
"""
KEYS = {
    "hits_found": "hits found [%]",
    "misses_found": "misses found [%]",
    "beam_error_mean_m": "beam error [cm]",
    "cloud_distance_m": "cloud [cm]",
    "nll": "-log L",
}
N_SEEDS = 8


def main() -> None:
    """Learn, place, compose and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--models", nargs="+", default=["voxel", "hybrid"])
    given = parser.parse_args()
    folder = given.data / "kitti_0029_start"
    train, test = (
        hr.Log.concatenate(list(logs(folder, choice, sensor="hdl-64e", max_range_m=25.0)))
        for choice in (Choice(SWEEPS, skip_every=4), Choice(SWEEPS, only_every=4))
    )
    for model in given.models:
        with tempfile.TemporaryDirectory() as made:
            world = hr.learn(train, model)
            world.save(Path(made) / "site.world")
            scene = Path(made) / "scene.toml"
            scene.write_text(SCENE, encoding="utf-8")
            kinds = {"by itself": world, "placed": load_site(scene).world(), "composed": compose(scene)}
            rows = [(name, *_scores(test, each)) for name, each in kinds.items()]
            print(f"\n{model}\n\n{markdown_table(('mean ± deviation over seeds', *KEYS.values()), rows)}")


def _scores(test: hr.Log, world: hr.World) -> list[str]:
    """Score a world with several seeds; the likelihood has none."""
    found = [hr.compare(test, world, seed=seed) for seed in range(N_SEEDS)]
    texts: list[str] = []
    for key in KEYS:
        values = [float(each[key] or np.nan) * (1 if key == "nll" else 100) for each in found]
        texts.append(f"{np.mean(values):.2f} ± {np.std(values):.2f}")
    return texts


if __name__ == "__main__":
    main()
