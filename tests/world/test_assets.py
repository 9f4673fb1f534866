# SPDX-License-Identifier: Apache-2.0
"""Worlds of assets and instances: stored once, tiled and paged like the rest, refused where they are wrong."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from saved import edit, refused
from small_worlds import gaussians, rays, triangles, world

from hedgerow import FileError, InputError, load_world
from hedgerow.world.assets import Asset, instances_of
from hedgerow.world.elements import Gaussians, Instances, Triangles
from hedgerow.world.store.files import describe_world

N = 80


def plants():
    return [
        Asset("bush-0", (gaussians(12, seed=5, extent=1.0),), {"class_name": "low-shrub"}),
        Asset("tree-1", (triangles(6, seed=6, extent=0.5), gaussians(20, seed=7, extent=1.5, law="depth"))),
        Asset("hut", (Triangles.plain(np.eye(3)[None] * 2.0, answer="sub_ray", lambertian=True),)),
    ]


def places(n=N, seed=2):
    rng = np.random.default_rng(seed)
    matrices = np.tile(np.eye(4), (n, 1, 1))
    yaw = rng.uniform(0, 2 * np.pi, n)
    matrices[:, 0, 0] = matrices[:, 1, 1] = np.cos(yaw)
    matrices[:, 1, 0] = np.sin(yaw)
    matrices[:, 0, 1] = -np.sin(yaw)
    matrices[:, :2, 3] = rng.uniform(-60, 60, (n, 2))
    return matrices


def site(**settings):
    assets = plants()
    which = np.sort(np.arange(N) % len(assets))
    how = {
        "object": 1 + np.arange(N),
        "class_label": np.where(which == 0, 121, 0),
        "label": np.where(which == 1, 9, -1),
    }
    copies = instances_of(assets, which, places(), **how)
    tables = triangles(200, extent=60), copies
    return world(*tables, assets=assets, classes={"low-shrub": 121}, parameters={"beam": {}}, **settings)


@pytest.fixture
def path(tmp_path):
    site().save(tmp_path / "site.world")
    return tmp_path / "site.world"


def test_it_comes_back_as_it_was_saved(path):
    read, made = load_world(path), site()
    assert [each.name for each in read.assets] == [each.name for each in made.assets]
    assert read.classes == {"low-shrub": 121}
    assert read.assets[0].about == {"class_name": "low-shrub"}
    assert read.assets[2].parts[0].settings() == made.assets[2].parts[0].settings()
    for name, table in made.tables.items():
        for column, values in table.columns().items():
            if isinstance(values, np.ndarray):
                assert np.array_equal(getattr(read.tables[name], column), values, equal_nan=True)
    assert read.size() == made.size()


def test_the_tiles_around_the_beams_answer_as_the_whole_does(path):
    beams = rays(6000, sweeps=3, step=(25.0, 0, 0))
    whole = load_world(path).fire(beams, 3)
    paged = load_world(path, resident_tiles=20)
    fired = paged.fire(beams, 3)
    assert whole.equal(fired)
    assert len(paged.loaded_tiles) <= 20
    assert whole.returns.object is not None
    assert len(np.unique(whole.returns.object)) > 10
    np.testing.assert_array_equal(load_world(path).log_likelihood(whole), paged.log_likelihood(whole))


def test_instances_answer_as_flat_copies_do(path):
    """Every copy made by hand into one table of Gaussians gives the same share of returns."""
    from scipy import stats

    asset = plants()[0]
    matrices = places()
    table = asset.parts[0]
    assert isinstance(table, Gaussians)
    flat = [
        replace(
            table,
            mean_m=table.mean_m @ each[:3, :3].T + each[:3, 3],
            covariance_m2=each[:3, :3] @ table.covariance_m2 @ each[:3, :3].T,
        )
        for each in matrices
    ]
    copies = world(instances_of([asset], np.zeros(N, np.int32), matrices), assets=[asset])
    beams = rays(20_000)
    one = copies.fire(beams, 1).returns.hit.mean()
    other = world(Gaussians.join(flat)).fire(beams, 1).returns.hit.mean()
    sigma = np.sqrt(2 * one * (1 - one) / len(beams))
    assert abs(one - other) < stats.norm.isf(5e-7) * sigma  # false alarms: one in a million, with a fixed seed


def test_info_counts_instances_and_assets(path):
    lines = describe_world(path)
    assert f"{N} instances" in lines["Elements"]
    assert lines["Assets"].startswith("3 assets")
    assert "27 low-shrub" in lines["Instances"]


def test_a_library_has_no_instances(tmp_path):
    world(assets=plants(), kind="library").save(tmp_path / "lib.world")
    read = load_world(tmp_path / "lib.world")
    assert len(read.assets) == 3
    assert read.fire(rays(10)).returns.hit.sum() == 0


# refusals


def test_a_damaged_or_missing_asset_is_told(path):
    file = path / "assets" / "tree-1.1.parquet"
    content = file.read_bytes()
    file.write_bytes(content[:-10])
    with pytest.raises(FileError, match=r"tree-1\.1\.parquet: damaged, or changed since the world was saved"):
        load_world(path)
    file.unlink()
    refused(path, r"tree-1\.1\.parquet: missing; the world is incomplete")


def test_a_list_of_assets_that_was_exchanged_is_told(path):
    table = pq.read_table(path / "assets.parquet")
    pq.write_table(table.slice(0, 1), path / "assets.parquet")
    refused(path, r"assets\.parquet: damaged, or changed")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n = 3\n", "n = 2\n", "says 2 assets, but assets.parquet lists 3"),
        ("[assets]", "[asset]", "asset: unknown"),
        ("low-shrub = 121", "low-shrub = 70000", "classes.low-shrub: expected 0 to 65535"),
    ],
)
def test_wrong_settings_are_told(path, old, new, message):
    edit(path, old, new)
    refused(path, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"asset": np.full(N, 3, np.int32)}, "there are 3 assets"),
        ({"n_each": np.full(N, 4, np.int64)}, "elements"),
        ({"label": np.full(N, 70000, np.int32)}, r"instances\.label: row 0 is 70000"),
        ({"transform": np.zeros((N, 3, 4))}, "not invertible"),
    ],
)
def test_wrong_instances_are_refused(change, message):
    made = site()
    table = made.tables["instances"]
    wrong = type(table)(**(table.settings() | table.columns() | change))
    with pytest.raises(InputError, match=message):
        world(wrong, assets=made.assets)


def test_names_of_assets_are_checked():
    with pytest.raises(InputError, match="comes twice"):
        world(assets=[Asset("a", ()), Asset("a", ())])
    with pytest.raises(InputError, match="lower-case letters"):
        Asset("../evil", ())


def test_copies_are_spread_for_pictures():
    made = site()
    spread = made.spread()
    assert set(spread) == {"triangles", "instances of triangles", "instances of Gaussians"}
    instances = made.tables["instances"]
    assert isinstance(instances, Instances)
    n = sum(len(table) for name, table in spread.items() if name != "triangles")
    assert n == instances.n_each.sum()
    low, high = spread["instances of Gaussians"].bounds_m()
    assert made.box is not None
    assert (low.min(axis=0) >= made.box.low_m - 1e-3).all()
    assert (high.max(axis=0) <= made.box.high_m + 1e-3).all()
    assert sum(len(table) for table in made.spread(most=200).values()) < 600


def test_a_coarser_world_has_coarser_assets_and_the_same_instances():
    made = site()
    fewer = made.coarser(120)
    assert sum(asset.n_elements for asset in fewer.assets) < sum(asset.n_elements for asset in made.assets)
    assert len(fewer.tables["instances"]) == N
    assert fewer.fire(rays(500), 1).returns.hit.any()
