# SPDX-License-Identifier: Apache-2.0
"""Distances between clouds on the disk, tile by tile: those of all points at once."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from hedgerow import Log, write_log
from hedgerow.errors import InputError
from hedgerow.metrics import cloud_in_tiles
from hedgerow.metrics.cloud_in_tiles import cloud_distances
from hedgerow.parallel import InProcess, Results, log_parts

N, SWEEPS = 4000, 5


def cloud(seed, shift_m=0.0, share=0.9):
    """Beams from along x that end on a rough ground, 150 m long; some do not return."""
    rng = np.random.default_rng(seed)
    sweep = np.repeat(np.arange(SWEEPS), N // SWEEPS)
    origins = np.column_stack([30.0 * sweep, np.zeros(N), np.full(N, 2.0)])
    azimuth = rng.uniform(0, 2 * np.pi, N)
    direction = np.column_stack([np.cos(azimuth), np.sin(azimuth), -0.1 - 0.1 * rng.random(N)])
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    range_m = np.where(rng.random(N) < share, rng.uniform(3, 30, N) + shift_m, np.inf)
    return Log.from_arrays(origins=origins, directions=direction, ranges=range_m, sweeps=sweep, max_range_m=100.0)


def points(log):
    hit = np.isfinite(log.returns.first_m)
    return log.beams.origin_m[hit] + log.returns.first_m[hit].astype(float)[:, None] * log.beams.direction[hit]


def oracle_m(real, simulated):
    """Mean distances real to simulated and back, of all points at once."""
    a, b = points(real), points(simulated)
    return np.mean(cKDTree(b).query(a)[0]), np.mean(cKDTree(a).query(b)[0])


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.setattr(log_parts, "BEAMS_PER_PART", 1000)
    made = {"real": cloud(1), "near": cloud(2), "off": cloud(3, 5.0, 0.3)}
    for name, log in made.items():
        write_log(log, tmp_path / f"{name}.parquet")
    return made, {name: tmp_path / f"{name}.parquet" for name in made}


def test_distances_are_those_of_all_points_at_once(logs):
    made, paths = logs
    found = cloud_distances(paths["real"], {name: paths[name] for name in ("near", "off")})
    for name, each in found.items():
        there_m, back_m = oracle_m(made["real"], made[name])
        # Points are written in float32 within a tile of 32 m: steps of 2 micrometres.
        assert (each.to_simulated_m, each.to_real_m) == pytest.approx((there_m, back_m), abs=5e-6)
        assert each.worse_m == max(each.to_simulated_m, each.to_real_m)
        assert each.average_m == pytest.approx((there_m + back_m) / 2, abs=5e-6)
        assert (each.n_real, each.n_simulated) == (len(points(made["real"])), len(points(made[name])))
    assert found["off"].worse_m > 1.1 * found["near"].worse_m  # so the oracle tells them apart


def test_without_looking_around_tiles_they_would_be_larger(logs, monkeypatch):
    made, paths = logs
    monkeypatch.setattr(cloud_in_tiles, "TILE_M", 2.0)
    monkeypatch.setattr(cloud_in_tiles, "REACH_M", 10.0)
    there_m, _ = oracle_m(made["real"], made["near"])
    assert cloud_distances(paths["real"], {"near": paths["near"]})["near"].to_simulated_m == pytest.approx(there_m)
    exact = cloud_distances(paths["real"], {"near": paths["near"]}, most_asking=N // 4)["near"]
    monkeypatch.setattr(cloud_in_tiles, "REACH_M", 0.0)
    bound = cloud_distances(paths["real"], {"near": paths["near"]}, most_asking=N // 4)["near"]
    assert bound.to_simulated_m > 1.2 * exact.to_simulated_m  # a quarter of the points answers: up to twice as far
    assert bound.n_far > exact.n_far == 0


def test_a_sample_that_asks_gives_nearly_the_same(logs):
    made, paths = logs
    part = cloud_distances(paths["real"], {"near": paths["near"]}, most_asking=N // 4)["near"]
    there_m, back_m = oracle_m(made["real"], made["near"])
    # About 900 of 3,600 distances, which scatter by about their mean: 4 % is more than one standard deviation.
    assert part.to_simulated_m == pytest.approx(there_m, rel=0.15) and part.to_simulated_m != there_m
    assert part.to_real_m == pytest.approx(back_m, rel=0.15)


def test_a_journal_changes_nothing_and_is_used(logs, tmp_path):
    _, paths = logs
    simulated = {"near": paths["near"]}
    plain = cloud_distances(paths["real"], simulated)
    engine = InProcess(Results(tmp_path / "parts"))
    assert cloud_distances(paths["real"], simulated, engine) == plain
    assert len(list((tmp_path / "parts").glob("cloud-*.npy"))) == 2 * SWEEPS  # a part holds a sweep of 800 beams


def test_a_far_point_is_counted_and_bounded(tmp_path):
    def write(name, ranges):
        beams = {"origins": np.zeros((3, 3)), "directions": np.tile([1.0, 0, 0], (3, 1)), "sweeps": [0, 0, 0]}
        write_log(Log.from_arrays(**beams, ranges=ranges, max_range_m=200.0), tmp_path / f"{name}.parquet")
        return tmp_path / f"{name}.parquet"

    found = cloud_distances(write("real", [1.0, 2.0, 3.0]), {"far": write("far", [1.0, 2.0, 150.0])})["far"]
    assert found.n_far == 1 and found.to_real_m == pytest.approx(147 / 3)


def test_a_simulation_without_returns_is_refused_by_its_name(logs, tmp_path):
    made, paths = logs
    real = made["real"]
    nothing = Log.from_arrays(
        origins=real.beams.origin_m, directions=real.beams.direction, ranges=np.full(N, np.inf),
        sweeps=real.beams.sweep, max_range_m=100.0,
    )  # fmt: skip
    write_log(nothing, tmp_path / "empty.parquet")
    with pytest.raises(InputError, match=r"empty.*nothing returned"):
        cloud_distances(paths["real"], {"empty": tmp_path / "empty.parquet"})
