# SPDX-License-Identifier: Apache-2.0
"""Say how many misses refined worlds find where they find as many hits as other models do, as Markdown.

    python tools/trade_off.py DATA [--only NAME ...] [--out TABLE.md]

Any world finds more misses if it returns less, up to all of them if it returns nothing; so hits and misses of two
worlds tell little unless one of the two numbers is the same. The refined learner has a weight for lost hits. With
several of these weights it learns a few worlds, and of each, any share of the returns can be forgotten at random: for
every other model, the best of those that find as many hits as it does is taken.

DATA is that of tools/real_fidelity.py, whose recordings are compared; trail and street are the scenes of
hedgerow reproduce mobile-offroad and mobile-urban.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from real_fidelity import MODELS, RECORDINGS, limits, log_of

import hedgerow as hr
from hedgerow.learners.verdict import QualityWeights
from hedgerow.reproduce import mobile
from hedgerow.reproduce.markdown import markdown_table

LOST_HIT_NAT = (1.0, 3.0, 9.0, 30.0)
SCENES = {"trail": mobile.OFFROAD, "street": mobile.URBAN}
N_SWEEPS = 24


def passes(data: Path, name: str) -> tuple[hr.Log, hr.Log]:
    """Return what is learned from and what is compared with."""
    if name in SCENES:
        return mobile.record(SCENES[name], N_SWEEPS)
    recording = RECORDINGS[name]
    return log_of(data, recording, recording.train), log_of(data, recording, recording.test)


def rates(test: hr.Log, world: hr.LearnedWorld) -> tuple[float, float]:
    """Return the shares of the hits and of the misses that a world finds."""
    returned = world.fire(test.beams, seed=1).returns.hit
    hit = test.returns.hit
    return float(returned[hit].mean()), float((~returned)[~hit].mean())


def matched(hits: float, ours: Mapping[float, tuple[float, float]]) -> tuple[float, float] | None:
    """Return the most misses found with so many hits, and the weight it takes; none if no world finds as many."""
    found = [
        (1 - (1 - misses) * hits / most, weight) for weight, (most, misses) in ours.items() if most >= hits and most > 0
    ]
    return max(found, default=None)


def measure(data: Path, name: str) -> list[tuple[str, ...]]:
    """Learn all models, the refined one with several weights, and return two lines of the table."""
    train, test = passes(data, name)
    paper = mobile.PAPER_PARAMETERS if name in SCENES else {}
    worlds: dict[str, hr.LearnedWorld] = {}
    theirs: dict[str, tuple[float, float]] = {}
    for model in MODELS[:-1]:
        worlds[model] = hr.learn(train, model, **paper.get(model, {}))
        theirs[model] = rates(test, worlds[model])
    ours: dict[float, tuple[float, float]] = {}
    for weight in LOST_HIT_NAT:
        weights = QualityWeights(lost_hit_nat=weight)
        ours[weight] = rates(test, hr.learn(train, "refined", weights=weights, **limits("refined", worlds)))
        print(
            f"{name}: {weight:g} nat, {ours[weight][0]:.2%} of the hits, {ours[weight][1]:.2%} of the misses",
            flush=True,
        )
    best = [matched(hits, ours) for hits, _ in theirs.values()]
    return [
        (f"`{name}`, theirs", *(f"{100 * misses:.1f}" for _, misses in theirs.values())),
        ("refined", *("-" if found is None else f"{100 * found[0]:.1f} ({found[1]:g})" for found in best)),
    ]


def main() -> None:
    """Read the arguments and measure."""
    names = (*RECORDINGS, *SCENES)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--out", type=Path, help="write the table here instead of printing it")
    asked = parser.parse_args()
    head = ("misses found [%], at the hits found by:", *MODELS[:-1])
    table = markdown_table(head, [line for name in asked.only for line in measure(asked.data, name)])
    if asked.out is None:
        print(table)
    else:
        asked.out.write_text(table + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
