# SPDX-License-Identifier: Apache-2.0
"""The knob for fidelity in small: a fence of Gaussians takes the place of the trail."""

import numpy as np
import pytest

from hedgerow import Beams, Log
from hedgerow.reproduce import coarser
from hedgerow.reproduce.experiment import EXPERIMENTS
from hedgerow.world import Gaussians, LearnedWorld


def drive(seed, sweeps=4, per_sweep=1500):
    """Sweeps towards a hedge 8 m away, half of it hit, each from a place of its own."""
    rng = np.random.default_rng(5)
    mean = np.stack([rng.uniform(7, 9, 300), rng.uniform(-5, 5, 300), rng.uniform(-1, 1, 300)], axis=1)
    table = Gaussians.plain(mean, np.tile(np.eye(3) * 0.1**2, (300, 1, 1)), stop=np.full(300, 0.5, np.float32))
    hedge = LearnedWorld(table, kind="test", max_range_m=30.0)
    rng = np.random.default_rng(seed)
    azimuth, up = rng.uniform(-0.5, 0.5, sweeps * per_sweep), rng.uniform(-0.12, 0.12, sweeps * per_sweep)
    sweep = np.repeat(np.arange(sweeps), per_sweep)
    beams = Beams.from_arrays(
        origins=np.stack([0 * azimuth, 0.2 * sweep, 0 * azimuth], axis=1),
        directions=np.stack([np.cos(azimuth) * np.cos(up), np.sin(azimuth) * np.cos(up), np.sin(up)], axis=1),
        sweeps=sweep,
    )
    return hedge.fire(beams, seed=seed)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coarser, "record", lambda site, size, seed: (drive(seed, size), drive(seed + 1, size)))
        folder = tmp_path_factory.mktemp("out")
        return coarser.run(folder, 4, say=said.append, shares=(2, 8), learned=(4,)), said


def rows(outcome):
    head, _, *body = (line.strip("| ").split(" | ") for line in outcome.text.splitlines())
    return {row[0]: dict(zip(["elements", "speed", *head[2:]], row[1:], strict=True)) for row in body}


def test_every_world_has_its_elements_and_its_speed(outcome):
    found = rows(outcome[0])
    assert list(found) == [
        "Refined", "Refined, merged, 1/2", "Refined, merged, 1/8", "Refined, learned, 1/4",
        "Top Down", "Top Down, merged, 1/2", "Top Down, merged, 1/8", "Top Down, learned, 1/4",
    ]  # fmt: skip
    elements = {name: int(row["elements"].replace(",", "")) for name, row in found.items()}
    for name in ("Refined", "Top Down"):
        assert elements[f"{name}, merged, 1/8"] == elements[name] // 8
        assert elements[f"{name}, learned, 1/4"] < elements[name]
    assert float(found["Refined"]["speed"]) == 1
    assert all(float(row["speed"]) > 0 for row in found.values())


def test_fewer_elements_cost_likelihood_and_the_curve_is_drawn(outcome):
    found = rows(outcome[0])
    cost = [float(found[name]["-log L"]) for name in ("Refined", "Refined, merged, 1/2", "Refined, merged, 1/8")]
    assert cost == sorted(cost) and cost[-1] < cost[0] + 3  # nat; a world without elements would lose more
    assert outcome[0].pictures[0].read_bytes()[:4] == b"\x89PNG"
    assert any(line.startswith("merged Top Down") for line in outcome[1])


def test_the_speed_is_relative_to_the_first_world():
    class Slow(LearnedWorld):
        def fire(self, beams, seed=0, **options):
            for _ in range(3):
                super().fire(beams, seed, **options)
            return super().fire(beams, seed, **options)

    log = drive(1)
    table = Gaussians.plain(np.array([[8.0, 0, 0]]), np.eye(3)[None])
    worlds = [
        coarser.Sized("Refined, merged", 1, LearnedWorld(table, kind="test", max_range_m=30.0)),
        coarser.Sized("Refined, merged", 2, Slow(table, kind="test", max_range_m=30.0)),
    ]
    beams = Log.concatenate([log] * 20)
    speed = coarser.measure_speed(worlds, beams, 0)
    assert speed["Refined"] == 1
    assert speed["Refined, merged, 1/2"] == pytest.approx(0.25, rel=0.3)  # four times the work; processor time wavers


def test_it_is_in_the_table_of_experiments():
    assert EXPERIMENTS["coarser"].module == "coarser"
