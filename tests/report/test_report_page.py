# SPDX-License-Identifier: Apache-2.0
"""The report is one file that holds everything, says what it should, and is written completely or not at all."""

import base64
import json
from html.parser import HTMLParser

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.metrics import compare
from hedgerow.report import write_report

OUTSIDE = ("src", "href", "srcset", "data", "poster", "action")


STARTS = {"data:image/png": b"\x89PNG", "data:image/jpeg": b"\xff\xd8\xff", "data:image/svg+xml": b"<?xml"}


class Page(HTMLParser):
    """Collects what the tests look at."""

    def __init__(self, path):
        super().__init__()
        self.addresses, self.images, self.narrow, self.texts, self.scripts = [], [], [], [], []
        self._inside = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in OUTSIDE]
        if tag == "img":
            self.images.append(dict(attrs))
        if tag == "source":
            self.narrow.append(dict(attrs)["srcset"])
        if tag not in ("meta", "img", "source", "br"):
            self._inside.append(tag)

    def handle_endtag(self, tag):
        assert self._inside.pop() == tag  # the page is well nested

    def handle_data(self, data):
        (self.scripts if self._inside and self._inside[-1] == "script" else self.texts).append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def wall_world(x_m, sigma_m=0.02):
    scene = hr.Scene()
    corners = [[x_m, -40, -20], [x_m, 40, -20], [x_m, 40, 20], [x_m, -40, 20]]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], permeability=0.2, noise=hr.SurfaceNoise(sigma_m, 0.0))
    return hr.SceneWorld(scene)


@pytest.fixture(scope="module")
def real():
    sensor = hr.Sensor.named("vlp-16", 20)
    poses = hr.Trajectory(
        np.array([0, 10**9]), np.array([[0.0, 0, 2], [3.0, 0, 2]]), np.array([[0, 0, 0, 1.0], [0, 0, 0, 1.0]])
    )
    return wall_world(12.0).fire(sensor.drive(poses, n_sweeps=3), 1, sensor=sensor)


@pytest.fixture(scope="module")
def worlds():
    return {"true": wall_world(12.0), "<b>near & wrong</b>": wall_world(11.5)}


@pytest.fixture(scope="module")
def page(real, worlds, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    scores = compare(real, worlds, seed=3)
    write_report(
        path, scores, real, worlds, seed=3, title="Wall <&> world", commands=["hedgerow compare a.parquet b.world"]
    )
    return Page(path), scores


def test_nothing_is_loaded_from_outside(page):
    assert page[0].addresses
    assert all(address.startswith("data:image/") for address in page[0].addresses)


def test_pictures_are_whole_and_described(page):
    images = page[0].images
    # perspective, range images, from above; reliability, CRPS by range, returns by elevation, intensities by band and
    # their distribution, ranges, bearings, likelihood
    assert len(images) == 11
    assert all(len(image["alt"]) > 20 for image in images)
    addresses = [image["src"] for image in images] + page[0].narrow  # each for screens and for phones
    assert len(addresses) == 22
    for address in addresses:
        kind, _, data = address.partition(";base64,")
        start = base64.b64decode(data, validate=True)[:60]
        assert STARTS[kind] in start


def test_title_names_numbers_commands_and_versions_are_in_it(page):
    text = page[0].text
    assert "Wall <&> world" in text
    assert "<b>near & wrong</b>" in text
    assert "hedgerow compare a.parquet b.world" in text
    assert f"hedgerow {hr.__version__}" in text and f"numpy {np.__version__}" in text
    for row in page[1].table().rows:
        assert row.label in text
        for cell in row.cells:
            assert cell.text in text


def test_two_simulations_are_told_in_sentences(page):
    text = page[0].text
    for name in page[1]:
        assert f"{page[1].scores[name]['hits_found']:.1%}".replace("%", " %") in text
    assert text.count("a world made in Python") == 2


def test_the_gate_is_told_in_one_sentence_and_long_tables_have_headings(page):
    text = page[0].text
    for name, found in page[1].calibrations().items():
        assert found.sentence in text, name
    for heading in ("Forecasts", "Intensity", "Single beams", "Clouds and distributions"):
        assert heading in text


def test_the_scores_are_in_it_as_json(page):
    [script] = page[0].scripts
    assert json.loads(script) == page[1].to_dict()


def test_a_standing_sensor_and_a_single_simulation(tmp_path):
    rng = np.random.default_rng(0)
    n = 30
    directions = np.tile([[1.0, 0, 0], [0.9998, 0.02, 0]], (n, 1))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    log = hr.Log.from_arrays(
        origins=(0, 0, 0), directions=directions, ranges=rng.normal(8, 0.01, 2 * n), rings=[0, 1] * n,
        sweeps=np.repeat(np.arange(n), 2), max_range_m=50,
    )  # fmt: skip
    write_report(tmp_path / "static.html", compare(log, log), log, log)
    page = Page(tmp_path / "static.html")
    assert "Bhattacharyya" in page.text and "simulated against reality" in page.text
    assert len(page.images) == 5  # a log has no likelihood
    assert "a simulated log" in page.text


def test_logs_on_the_disk_are_drawn_sweep_by_sweep(real, tmp_path):
    hr.write_log(real, tmp_path / "real.parquet")
    file = hr.open_log(tmp_path / "real.parquet")
    write_report(tmp_path / "report.html", compare(file, {"same": file}), file, {"same": file}, sweep=2)
    assert "Sweep 2 from above" in Page(tmp_path / "report.html").text


def test_a_simulation_without_any_return_is_drawn(real, tmp_path):
    empty = hr.SceneWorld(hr.Scene())
    write_report(tmp_path / "report.html", compare(real, empty), real, empty)
    assert Page(tmp_path / "report.html").images


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sweep": 77}, "real: has no sweep 77"),
        ({"simulated": {}}, "simulated: has .* but the scores are of simulated"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(real, tmp_path, change, message):
    arguments = {"simulated": real} | change
    with pytest.raises(hr.InputError, match=message):
        write_report(tmp_path / "report.html", compare(real, real), real, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_said(real, tmp_path):
    with pytest.raises(hr.FileError, match="does not exist"):
        write_report(tmp_path / "none" / "report.html", compare(real, real), real, real)


def test_floors_have_columns_and_curves_but_no_pictures(real, worlds, tmp_path):
    scores = compare(real, worlds, seed=3, floors=True, again=worlds["true"])
    write_report(tmp_path / "report.html", scores, real, worlds, seed=3)
    page = Page(tmp_path / "report.html")
    assert "Not ranked: climatology, reality again." in page.text
    assert len(page.images) == 11
    assert page.text.count("a world made in Python") == 2  # floors are no simulations
    assert "true and <b>near & wrong</b> against reality" in page.text
    assert "CRPS of the range [m]" in page.text
    assert "less that of true" not in page.text  # three sweeps have no interval


def test_a_single_simulation_has_no_differences(real, tmp_path):
    world = wall_world(12.0)
    write_report(tmp_path / "report.html", compare(real, world, floors=True), real, world)
    assert "less that of" not in Page(tmp_path / "report.html").text
