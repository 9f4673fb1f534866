# SPDX-License-Identifier: Apache-2.0
"""What a learned world loses when it is cut into primitives and put together again, every plant at its own place.

Three scenes of one world: placed whole, as [worlds.*], which must lose nothing; its plants as primitives in their own
boxes among the rest of the world; and the same on a ground fitted to the log, as composed sections have it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.base.atomic import atomic_file
from hedgerow.compose.box_segmentation import segment_by_boxes
from hedgerow.compose.composition import compose
from hedgerow.compose.segmentation import Segmentation
from hedgerow.io import write_log
from hedgerow.log import Log
from hedgerow.metrics import compare
from hedgerow.reproduce.composition.scoring import BeamScores, score_world
from hedgerow.reproduce.composition.sections import SENSOR
from hedgerow.reproduce.composition.sites import Ground, compose_section, of_library, write_boxes
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.annotation import Annotation
from hedgerow.scenes.primitive import Library
from hedgerow.world.learned import LearnedWorld

_COLUMNS = (
    ("hits_found", "hits found [%]", 100.0, 2),
    ("misses_found", "misses found [%]", 100.0, 2),
    ("beam_error_mean_m", "beam error [m]", 1.0, 3),
    ("cloud_distance_average_m", "cloud distance [m]", 1.0, 4),
)
_NO_GROUND = """[terrain]
kind = "flat"
size_m = [20000, 20000]
height_m = -5000
"""


def own_places(work: Path, world: LearnedWorld, boxes: Annotation, log: Log, whole: BeamScores, seed: int) -> str:
    """Return a table of what is lost, step by step.

    Args:
        work: holds `section-1.world` and `primitives.world`, cut out of it with these boxes.
        world: the learned world.
        boxes: of its plants.
        log: what it was learned from.
        whole: its scores on a test log.
        seed: of the firings.
    """
    write_log(log, work / "drive-1.parquet")
    plants = write_boxes(work, "plants-1", boxes, log)
    rest = without_plants(world, segment_by_boxes(world, boxes, use_labels=False))
    rest.save(work / "rest-1.world")
    things = of_library(Library(work / "primitives.world"))
    chosen = ", ".join(f'"{name}"' for name in things.classes)
    among = f'[annotation]\nfile = "{plants}"\nclasses = [{chosen}]\n\n{things.tables}'
    scored = {"learned": whole}
    for name, text in (("placed whole", _placed("section-1")), ("own primitives", f"{_placed('rest-1')}\n{among}")):
        path = work / f"{name.replace(' ', '-')}-1.toml"
        with atomic_file(path) as temporary:
            temporary.write_text(f'sensor = "{SENSOR}"\n\n{_NO_GROUND}\n{text}\n')
        scored[name] = score_world(compose(path), whole.log, seed=seed)
    fitted = compose_section(work / "own-ground-1.toml", things, plants, Ground("drive-1.parquet", thin=1), ())
    scored["own primitives, fitted ground"] = score_world(fitted, whole.log, seed=seed)
    return _table(scored)


def without_plants(world: LearnedWorld, found: Segmentation) -> LearnedWorld:
    """Return what of a world belongs to no object."""
    tables: list[Any] = [table[np.flatnonzero(found.object[name] == 0)] for name, table in world.tables.items()]
    return LearnedWorld(
        *tables,
        kind=world.kind,
        classes=world.classes,
        min_range_m=world.min_range_m,
        max_range_m=world.max_range_m,
    )


def _placed(name: str) -> str:
    return f'[worlds.all]\nfile = "{name}.world"\n\n[objects.all]\nwhat = "all"\nat_m = [0, 0, 0]\n'


def _table(scored: Mapping[str, BeamScores]) -> str:
    rows: list[tuple[str, ...]] = []
    for name, scores in scored.items():
        found = compare(scores.log, scores.simulated).values
        cells = [f"{factor * (found[key].value or 0.0):.{digits}f}" for key, _, factor, digits in _COLUMNS]
        rows.append((name, *cells, f"{scores.crps_m.mean():.3f}", f"{scores.nll.mean():.3f}"))
    head = ("the first section of its own primitives", *(label for _, label, _, _ in _COLUMNS), "CRPS [m]", "-log L")
    return markdown_table(head, rows)
