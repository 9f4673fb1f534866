# SPDX-License-Identifier: Apache-2.0
"""The experiment on seams in small: a hedge along a lane takes the place of the trail."""

from typing import Any

import numpy as np
import pytest

from hedgerow import Beams
from hedgerow.models import learn
from hedgerow.models.topdown import TopdownParameters
from hedgerow.reproduce import seams
from hedgerow.reproduce.experiment import EXPERIMENTS
from hedgerow.reproduce.seams import Judged
from hedgerow.world import Gaussians, LearnedWorld


def drive(seed, sweeps=3, per_sweep=6000):
    """Sweeps along a hedge of 40 m, each from a place of its own."""
    rng = np.random.default_rng(5)
    mean = np.stack([rng.uniform(-20, 20, 900), rng.uniform(7, 9, 900), rng.uniform(-1, 1, 900)], axis=1)
    shade = {"stop": np.full(900, 0.5, np.float32), "label": np.full(900, 7, np.uint16)}
    table = Gaussians.plain(mean, np.tile(np.eye(3) * 0.12**2, (900, 1, 1)), **shade)
    hedge = LearnedWorld(table, kind="test", max_range_m=40.0)
    rng = np.random.default_rng(seed)
    azimuth = np.pi / 2 + rng.uniform(-1.1, 1.1, sweeps * per_sweep)
    up = rng.uniform(-0.12, 0.12, sweeps * per_sweep)
    sweep = np.repeat(np.arange(sweeps), per_sweep)
    beams = Beams.from_arrays(
        origins=np.stack([4.0 * sweep - 4, 0 * azimuth, 0 * azimuth], axis=1),
        directions=np.stack([np.cos(azimuth) * np.cos(up), np.sin(azimuth) * np.cos(up), np.sin(up)], axis=1),
        sweeps=sweep,
    )
    return hedge.fire(beams, seed=seed)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seams, "record", lambda site, size, seed: (drive(seed, size), drive(seed + 1, size)))
        patch.setattr(seams, "TILE_M", 3.0)
        return seams.run(tmp_path_factory.mktemp("out"), 3, say=lambda line: None)


def tables(outcome):
    """Rows of both tables, by their first cells."""
    lines = [line.strip("| ").split(" | ") for line in outcome.text.splitlines() if line.startswith("| ")]
    return {tuple(row[:2]): row for row in lines if row[0] != "---"}


def test_paged_worlds_differ_nowhere(outcome):
    rows = [row for row in tables(outcome).values() if row[0] in seams.TILE_MODELS]
    assert len(rows) == len(seams.TILE_MODELS)
    for row in rows:
        assert row[-3:] == ["0", "0", "0"]
        assert int(row[1]) >= 6  # several tiles, a third of them in memory
        assert int(row[2].replace(",", "")) > 100  # beams near their borders


def test_cells_are_compared_with_the_whole_near_borders_and_elsewhere(outcome):
    rows = tables(outcome)
    for label in ("hits found [%]", "real to simulated [cm]", "simulated to real [cm]"):
        for where in ("within 0.5 m", "farther"):
            _, _, n, whole, cells, interval = rows[(label, where)]
            low, high = (float(word) for word in interval.split(" to "))
            assert int(n.replace(",", "")) > 100
            assert low - 0.01 <= float(cells) - float(whole) <= high + 0.01  # rounded to two digits
    assert outcome.pictures[0].read_bytes()[:4] == b"\x89PNG"


def test_a_world_that_is_lost_in_the_middle_is_told_by_its_range_difference(monkeypatch):
    """The comparison sees a seam where there is one: a paged world without its first tile."""
    train = drive(1)

    def broken(path, **how):
        world = seams_load(path, **how)
        within = world._tiles.within
        monkeypatch.setattr(type(world._tiles), "within", lambda self, low, high: within(low, high)[1:])
        return world

    seams_load = seams.load_world
    monkeypatch.setattr(seams, "load_world", broken)
    whole, paged, _ = seams.fire_both(learn(train, "voxel"), train, 1)
    assert np.count_nonzero(whole != paged) > 10


def test_borders_of_tiles_are_multiples_of_their_side():
    at_m = np.array([[8.25, 4.0, 3.0], [-0.5, 4.0, 0.0], [4.0, 4.0, 8.0], [12.0, -7.75, 0.0]])
    np.testing.assert_allclose(seams.border_of_tiles(at_m), [0.25, 0.5, 4.0, 0.25])


def test_borders_of_two_cells_lie_halfway_between_their_means():
    class Halves:
        def cells_of(self, position_m):
            return (position_m[:, 0] > 1.0).astype(np.int64)

    at_m = np.array([[1.05, 0, 0], [0.7, 5, 0], [2.9, 0, 0], [9.0, 0, 0]])
    halves: Any = Halves()
    np.testing.assert_array_equal(seams.border_of_cells(halves, at_m), [0.125, 0.5, 2.0, np.inf])


def test_the_cells_are_those_of_the_learner():
    """Cells are convex, so an element has its mean in the cell of its points; label counts tell how many these are."""
    train = drive(1)
    n_points = int(train.returns.hit.sum())
    parameters = TopdownParameters(cell_points=n_points // 6)
    tree = seams.cells_of(train, parameters)
    assert tree.n_cells > 6
    points_in = np.bincount(tree.cells_of(train.points()), minlength=tree.n_cells)
    table = learn(train, "topdown", cell_points=n_points // 6).tables["gaussians"]
    whole = learn(train, "topdown", cell_points=n_points + 100).tables["gaussians"]
    assert isinstance(table, Gaussians) and isinstance(whole, Gaussians)

    def counted(gaussians):
        each = np.add.reduceat(gaussians.label.count, gaussians.label.first[:-1])  # all have the one label
        return np.bincount(tree.cells_of(gaussians.mean_m), each, tree.n_cells)

    np.testing.assert_array_equal(counted(table), points_in)
    assert (counted(whole) != points_in).any()  # so the test can fail


def test_the_interval_holds_a_known_difference_and_squares_err_together():
    rng = np.random.default_rng(2)
    at_m = np.c_[rng.uniform(0, 200, (4000, 2)), np.zeros(4000)]
    one = np.repeat(np.inf, 4000)
    noise = rng.normal(size=4000)
    low, high = seams.difference(Judged(at_m, one, noise), Judged(at_m, one, noise + 0.5), 1)
    assert low == pytest.approx(0.5) and high == pytest.approx(0.5)  # the same places: no noise in the difference
    together = rng.normal(size=2500)[(at_m[:, 0] // 4 * 50 + at_m[:, 1] // 4).astype(int)]
    low, high = seams.difference(Judged(at_m, one, 0 * noise), Judged(at_m, one, together), 1)
    # About 2,000 squares that count up to several places each, so that the spread is 1.6 / sqrt(4000 / 1.6) or more.
    assert 0.07 < high - low < 0.3
    assert np.isnan(seams.difference(Judged(at_m[:0], one[:0], one[:0]), Judged(at_m, one, noise), 1)).all()


def test_it_is_in_the_table_of_experiments():
    assert EXPERIMENTS["seams"].module == "seams"
