# SPDX-License-Identifier: Apache-2.0
"""Worlds at addresses: the same files as on the disk, and the same bytes when they are fired at, whole or paged."""

import logging
import time

import pytest
from s3_servers import BUCKET, KEY, SECRET, address, moto_server, objects, rclone_server, requests, use_keys
from saved import files_of, site
from small_worlds import gaussians, rays, world

from hedgerow import FileError
from hedgerow.base.places import Address, as_place
from hedgerow.inputs import kind_of
from hedgerow.world import LearnedWorld, load_world
from hedgerow.world.assets import Asset
from hedgerow.world.store import files
from hedgerow.world.store.files import WorldFile, describe_world
from hedgerow.world.tiled import TiledWorld

BUDGET_BYTES = 150_000
"""Less than the 192,500 that the site takes by estimate, more than any one beam needs of it."""


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    use_keys(monkeypatch)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)


@pytest.fixture(scope="module")
def url():
    with moto_server(forgets=True) as started:
        yield started


@pytest.fixture(scope="module")
def strict_url(tmp_path_factory):
    with rclone_server(tmp_path_factory.mktemp("rclone")) as started:
        yield started


@pytest.fixture(scope="module")
def stored(url):
    with pytest.MonkeyPatch.context() as patch:
        use_keys(patch)
        site().save(address(url, "sites/site.world"))
    return address(url, "sites/site.world")


def fired(opened):
    """Fire three sweeps, and forget where the world lies."""
    log = opened.fire(rays(2000, sweeps=3, step=(10.0, 0.0, 0.0)), seed=3)
    log.metadata["world"].pop("path", None)
    assert log.returns.hit.mean() > 0.05
    return log


def refused(work, *parts):
    with pytest.raises(FileError) as caught:
        work()
    said = str(caught.value)
    assert all(part in said for part in parts), said
    assert SECRET not in said
    return said


def stored_files(where):
    place = as_place(where)
    return {each.relative_to(place): each.read_bytes() for each in place.rglob("*") if each.is_file()}


def test_the_objects_are_the_files_of_the_disk(stored, tmp_path):
    site().save(tmp_path / "site.world")
    on_disk = {str(name): content for name, content in files_of(tmp_path / "site.world").items()}
    assert stored_files(stored) == on_disk


def test_a_world_at_an_address_is_fired_at_with_the_same_bytes(stored):
    opened = load_world(stored)
    assert isinstance(opened, LearnedWorld)
    assert kind_of(stored) == "learned world"
    assert fired(opened).equal(fired(site()))


def test_a_world_is_paged_from_an_address_with_the_same_bytes(stored):
    opened = load_world(stored, max_bytes=BUDGET_BYTES)
    assert isinstance(opened, TiledWorld)
    assert fired(opened).equal(fired(site()))
    assert 0 < len(opened.loaded_tiles) < len(WorldFile(stored).tiles)


def test_a_world_with_assets_goes_to_an_address_and_back(url, tmp_path):
    made = LearnedWorld(gaussians(50), kind="test", max_range_m=60.0, assets=[Asset("bush", (gaussians(20),))])
    made.save(address(url, "assets.world"))
    made.save(tmp_path / "assets.world")
    read = load_world(address(url, "assets.world"))
    assert [each.name for each in read.assets] == ["bush"]
    assert stored_files(address(url, "assets.world")).keys() == {str(n) for n in files_of(tmp_path / "assets.world")}


def test_a_log_fired_at_a_stored_world_names_it_without_keys(url, stored):
    login = f"{KEY}:{SECRET}@"
    opened = load_world(address(url, "sites/site.world", login))
    log = opened.fire(rays(10), seed=0)
    assert log.metadata["world"]["path"] == stored
    lines = describe_world(address(url, "sites/site.world", login))
    assert lines["File"].startswith(f"{stored}, world in")
    assert SECRET not in str(lines)


def test_a_smaller_world_replaces_a_larger_one(url):
    where = address(url, "again.world")
    site().save(where)
    n_before = len(stored_files(where))
    small = world(gaussians(5))
    small.save(where)
    assert len(stored_files(where)) < n_before
    assert fired_rows(load_world(where)) == fired_rows(small)


def fired_rows(opened):
    return {name: len(table) for name, table in opened.tables.items()}


def test_world_toml_is_written_last_and_goes_first(url, monkeypatch):
    where = address(url, "order.world")
    world(gaussians(5)).save(where)
    done = []
    for name in ("write_bytes", "unlink", "clear"):
        original = getattr(Address, name)

        def noted(self, *given, _name=name, _original=original):
            done.append((_name, self.name))
            return _original(self, *given)

        monkeypatch.setattr(Address, name, noted)
    world(gaussians(5, seed=3)).save(where)
    assert done[:2] == [("unlink", "world.toml"), ("clear", "order.world")]
    assert done[-1] == ("write_bytes", "world.toml")


def test_a_world_that_was_killed_half_way_is_no_world_and_can_be_replaced(url):
    where = address(url, "half.world")
    site().save(where)
    (as_place(where) / "world.toml").unlink()  # what is left when a process is killed
    refused(lambda: load_world(where), "no world, world.toml is missing")
    site().save(where)
    assert fired(load_world(where)).equal(fired(site()))


def test_saving_that_fails_leaves_nothing(url, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(files, "tile_rows", fails)  # after the tiles, before their list
    with pytest.raises(ZeroDivisionError):
        site().save(address(url, "fails.world"))
    assert not [each for each in objects(url) if each.startswith("fails.world")]


def test_a_folder_of_other_things_is_not_replaced(url):
    as_place(address(url, "mine/triangles/proof.txt")).write_bytes(b"QED")
    refused(lambda: site().save(address(url, "mine")), "holds other things (triangles/proof.txt)")
    assert as_place(address(url, "mine/triangles/proof.txt")).read_bytes() == b"QED"


def test_a_missing_tile_and_a_changed_one_are_told_as_on_the_disk(url):
    where = address(url, "tiles.world")
    site().save(where)
    tile = min(str(name) for name in stored_files(where) if str(name).startswith("gaussians/"))
    changed = address(url, f"tiles.world/{tile}")
    as_place(changed).write_bytes(b"PAR1")
    refused(lambda: load_world(where), tile, "checksum differs")
    refused(lambda: describe_world(where), tile, "checksum differs")
    as_place(changed).unlink()
    refused(lambda: load_world(where), tile, "missing; the world is incomplete")


def test_a_world_is_opened_with_few_requests_however_many_tiles_it_has(url, stored):
    n_tiles = len(WorldFile(stored).tiles)
    assert n_tiles > 40
    with requests() as asked:
        WorldFile(stored)
    assert len(asked) < 10
    with requests() as asked:
        load_world(stored)
    assert len(asked) < 10 + 2 * n_tiles  # of each its size and its content


def test_a_world_that_is_not_there_is_one_sentence(url):
    refused(lambda: load_world(address(url, "none.world")), "no such folder")


def test_a_connection_that_is_lost_while_tiles_are_paged_is_one_sentence():
    with moto_server() as lost:
        where = address(lost, "lost.world")
        site().save(where)
        opened = load_world(where, max_bytes=BUDGET_BYTES)
    start = time.perf_counter()
    refused(lambda: fired(opened), "no connection to", ".parquet")
    assert time.perf_counter() - start < 10  # two tries; see base/stores.py


# rclone: on the disk, with signatures checked


def test_a_world_on_a_server_that_checks_signatures(strict_url):
    where = address(strict_url, "sites/site.world")
    site().save(where)
    assert fired(load_world(where)).equal(fired(site()))
    assert fired(load_world(where, max_bytes=BUDGET_BYTES)).equal(fired(site()))


def test_a_wrong_secret_is_refused_and_so_is_a_wrong_key(strict_url, monkeypatch):
    where = address(strict_url, "refused.world")
    for login in (f"{KEY}:wrong@", f"wrong:{SECRET}@"):
        refused(lambda login=login: load_world(address(strict_url, "refused.world", login)), "access denied by")
        refused(lambda login=login: site().save(address(strict_url, "refused.world", login)), "access denied by")
    use_keys(monkeypatch, secret="wrong")
    refused(lambda: load_world(f"{where}&region=eu-north-1"), "access denied by", "AWS_SECRET_ACCESS_KEY")


def test_the_bucket_of_a_server_on_the_disk_holds_the_files(strict_url):
    where = address(strict_url, "plain.world", f"{KEY}:{SECRET}@")
    world(gaussians(5)).save(where)
    assert BUCKET in str(as_place(where))
    assert {"world.toml", "tiles.parquet"} < stored_files(where).keys()
