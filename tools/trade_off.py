# SPDX-License-Identifier: Apache-2.0
"""Compare refined worlds with other models where they find as many hits: misses found and beam error, as Markdown.

    python tools/trade_off.py DATA [--only NAME ...] [--out TABLES.md]

Any world finds more misses if it returns less, up to all of them if it returns nothing, and has a smaller error if it
returns the easy beams alone; so worlds tell little about each other unless they find as many hits. The refined learner
has a weight for lost hits. With several of these weights it learns a few worlds; each is also made more transparent,
all depths by the same factor; and of each, any share of the returns can be forgotten at random. For every other model,
the best of those that find as many hits as it does is taken; its weight stands in brackets.

DATA is that of tools/real_fidelity.py, whose recordings are compared; trail and street are the scenes of
hedgerow reproduce mobile-offroad and mobile-urban. A scene can be driven again and again, which tells how often each
beam returns, and so how many misses anything at all can find with so many hits, if it knew every leaf ("at most").
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from real_fidelity import MODELS, RECORDINGS, budget_for, log_of

import hedgerow as hr
from hedgerow.models.refined.score import LossWeights
from hedgerow.reproduce import mobile
from hedgerow.reproduce.recording import SceneDrive
from hedgerow.reproduce.tables import markdown_table
from hedgerow.world.elements import Gaussians, Points, Triangles

LOST_HIT_NAT = (0.3, 1.0, 3.0, 9.0)
SCENE_LOST_HIT_NAT = (9.0, 30.0, 100.0)  # in the scenes, a model finds more hits than the usual 9 nats do
TRANSPARENCY = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015)
SCENES = {"trail": mobile.OFFROAD, "street": mobile.URBAN}
N_SWEEPS = 24
N_DRIVES = 16


@dataclass(frozen=True)
class Found:
    """What a world finds of some beams."""

    hits: float
    misses: float
    error_m: float
    """Mean, of the beams that return in both."""

    @classmethod
    def of(cls, test: hr.Log, world: hr.LearnedWorld) -> "Found":
        """Fire the beams once and count."""
        real, simulated = test.returns.first_m, hr.replay(world, test, seed=1).returns.first_m
        hit, returned = np.isfinite(real), np.isfinite(simulated)
        both = hit & returned
        error_m = float(np.abs(simulated[both] - real[both]).mean()) if both.any() else float("nan")
        return cls(float(returned[hit].mean()), float((~returned)[~hit].mean()), error_m)

    def thinned(self, hits: float) -> "Found":
        """As many returns forgotten, false ones as well as true ones, that so many hits are left."""
        return Found(hits, 1 - (1 - self.misses) * hits / self.hits, self.error_m)


def matched(hits: float, ours: Iterable[tuple[float, Found]]) -> list[tuple[float, Found]]:
    """Thin those worlds that find as many hits; each stands with its weight."""
    return [(weight, found.thinned(hits)) for weight, found in ours if found.hits >= hits and found.hits > 0]


def transparent(world: hr.LearnedWorld, factor: float) -> hr.LearnedWorld:
    """Multiply the depths of all Gaussians by a factor."""
    tables = [
        replace(table, stop=(table.stop * factor).astype(np.float32)) if isinstance(table, Gaussians) else table
        for table in world.tables.values()
        if isinstance(table, Gaussians | Triangles | Points)
    ]
    header = world.header
    return hr.LearnedWorld(*tables, kind="refined", min_range_m=header.min_range_m, max_range_m=header.max_range_m)


def return_shares(site: mobile.MobileSite) -> NDArray[np.float64]:
    """Make the second drive again and again; return of each beam the share of the drives in which it returned."""
    scene = SceneDrive.open(site.scene, site.span_s)
    drives = (scene.record("second", N_SWEEPS, seed) for seed in range(2, 2 + N_DRIVES))
    counts = sum(drive.returns.hit.astype(np.int64) for drive in drives)
    return np.asarray(counts / N_DRIVES)


def most_misses(hits: float, shares: NDArray[np.float64]) -> float:
    """Return the share of the misses that the best of all forecasts finds, if it is to find so many hits.

    It says "return" of the beams that return most often, as many as that needs (the lemma of Neyman and Pearson). The
    shares are taken for the truth, so it even knows a part of their chance: what comes out is rather too much.
    """
    surest = -np.sort(-shares[shares > 0])
    found = np.cumsum(surest) / shares.sum()
    false = np.cumsum(1 - surest) / (1 - shares).sum()
    return 1 - float(np.interp(hits, np.append(0, found), np.append(0, false)))


def train_and_test(data: Path, name: str) -> tuple[hr.Log, hr.Log]:
    """Return what is learned from and what is compared with."""
    if name in SCENES:
        return mobile.record(SCENES[name], N_SWEEPS)
    recording = RECORDINGS[name]
    return log_of(data, recording, recording.train), log_of(data, recording, recording.test)


def measure(data: Path, name: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Learn all models, the refined one with several weights, and return its lines of each table."""
    train, test = train_and_test(data, name)
    paper = mobile.PAPER_PARAMETERS if name in SCENES else {}
    worlds = {model: hr.learn(train, model, **paper.get(model, {})) for model in MODELS[:-1]}
    theirs = {model: Found.of(test, world) for model, world in worlds.items()}
    ours: list[tuple[float, Found]] = []
    for weight in SCENE_LOST_HIT_NAT if name in SCENES else LOST_HIT_NAT:
        weights = LossWeights(lost_hit_nat=weight)
        world = hr.learn(train, "refined", weights=weights, **budget_for("refined", worlds))
        ours += [(weight, Found.of(test, transparent(world, factor))) for factor in TRANSPARENCY]
        print(f"{name}: {weight:g} nat: {ours[-len(TRANSPARENCY)][1]}", flush=True)
    misses, errors = ["refined"], ["refined"]
    for each in theirs.values():
        good = matched(each.hits, ours) if each.hits else []
        weight, most = max(good, key=lambda own: own[1].misses, default=(0.0, None))
        misses.append(f"{100 * most.misses:.1f} ({weight:g})" if most else "-")
        weight, least = min(good, key=lambda own: own[1].error_m, default=(0.0, None))
        errors.append(f"{100 * least.error_m:.1f} ({weight:g})" if least else "-")
    title = f"scene `{name}`, theirs" if name in SCENES else f"`{name}`, theirs"
    limit: list[tuple[str, ...]] = []
    if name in SCENES:
        shares = return_shares(SCENES[name])
        limit = [("at most", *(f"{100 * most_misses(each.hits, shares):.1f}" for each in theirs.values()))]
    return (
        [(title, *(f"{100 * each.misses:.1f}" for each in theirs.values())), tuple(misses), *limit],
        [(title, *(f"{100 * each.error_m:.1f}" if each.hits else "-" for each in theirs.values())), tuple(errors)],
    )


def main() -> None:
    """Read the arguments and measure."""
    names = (*RECORDINGS, *SCENES)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--out", type=Path, help="write the table here instead of printing it")
    asked = parser.parse_args()
    titles = ("misses found [%], at the hits found by:", "mean beam error [cm], at the hits found by:")
    lines = [measure(asked.data, name) for name in asked.only]
    text = "\n\n".join(
        markdown_table((title, *MODELS[:-1]), [row for part in lines for row in part[number]])
        for number, title in enumerate(titles)
    )
    if asked.out is None:
        print(text)
    else:
        asked.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
