# SPDX-License-Identifier: Apache-2.0
"""Learned worlds: one way of firing for all tables, densities that agree with it, sizes, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest, norm
from small_worlds import gaussians, modes, points, rays, triangles, world

from hedgerow import Beams, InputError, Sensor
from hedgerow.log import Log, Returns
from hedgerow.world import Gaussians, LearnedWorld, Points, Scene, SurfaceNoise, World
from hedgerow.world.elements import Triangles

FALSE_ALARM = 1e-6  # per test; every seed below is fixed, so a pass stays a pass
UTM = np.array([412_352.0, 5_612_352.0, 250.0])  # whole tiles, so that elements have the same numbers here and there


def one(direction=(1.0, 0.0, 0.0), origin=(0.0, 0.0, 0.0), n=1):
    return Beams.from_arrays(origins=origin, directions=np.broadcast_to(direction, (n, 3)))


def single_gaussian(sigma=0.2, mean=(5.0, 0.0, 0.0), **settings):
    return Gaussians.plain(np.array([mean]), np.eye(3)[None] * sigma**2, **settings)


def test_a_learned_world_fires_as_the_scene_of_its_tables():
    made = world(triangles(40), gaussians(60))
    scene = Scene(made.header.origin_m)
    for table in made.tables.values():
        assert isinstance(table, Triangles | Gaussians)
        table.add_to(scene)
    beams = rays(3000)
    log, hits = made.fire(beams, seed=5), scene.fire(beams, seed=5, max_range_m=60.0)
    assert isinstance(made, World)
    assert np.isfinite(hits.range_m).mean() > 0.2
    for name in ("range_m", "intensity", "label", "element"):
        assert getattr(log.returns, name).tobytes() == getattr(hits, name).tobytes()
    assert log.metadata["seed"] == 5
    assert log.metadata["world"]["kind"] == "test"


def test_elements_are_numbered_triangles_gaussians_points_whatever_the_order_of_the_tables():
    a = world(points(50, reach_m=0.5), gaussians(60), triangles(40))
    b = world(triangles(40), points(50, reach_m=0.5), gaussians(60))
    assert list(a.tables) == ["triangles", "gaussians", "points"]
    log = a.fire(rays(20_000), seed=1)
    assert log.equal(b.fire(rays(20_000), seed=1))
    element = log.returns.element
    label = modes(*a.tables.values())
    hit = log.returns.hit
    assert element is not None and log.returns.label is not None
    np.testing.assert_array_equal(label[element[hit]], log.returns.label[hit])
    counts = np.histogram(element, [0, 40, 100, 151])[0]
    assert (counts > 20).all()


def test_ranges_of_one_gaussian_are_normal_and_carry_its_label_and_intensity():
    made = world(
        single_gaussian(
            label=np.array([7], np.uint16),
            intensity=np.array([0.5], np.float32),
            intensity_sigma=np.array([0.02], np.float32),
        )
    )
    log = made.fire(one(n=20_000), seed=3)
    assert kstest(log.returns.range_m, norm(5, 0.2).cdf).pvalue > FALSE_ALARM
    assert log.returns.intensity is not None
    assert kstest(log.returns.intensity, norm(0.5, 0.02).cdf).pvalue > FALSE_ALARM
    assert (log.returns.label == 7).all()
    assert (log.returns.element == 0).all()


def test_sensor_sets_name_and_limits():
    sensor = Sensor.named("vlp-16")
    log = world(gaussians(30)).fire(rays(100), sensor=sensor)
    assert (log.sensor, log.min_range_m, log.max_range_m) == ("vlp-16", sensor.min_range_m, sensor.max_range_m)


def test_map_origin_goes_into_the_fired_log():
    log = world(gaussians(30), map_origin_m=UTM).fire(rays(10))
    np.testing.assert_array_equal(log.map_origin_m, UTM)


@pytest.mark.parametrize("make", [gaussians, triangles, points])
def test_a_world_in_utm_coordinates_keeps_millimetres(make):
    more = {"reach_m": 0.5} if make is points else {}
    shifted, local = (world(make(400, centre=centre, **more)) for centre in (UTM, np.zeros(3)))
    there = shifted.fire(rays(3000, origin=UTM + np.array([0, 0, 1])), seed=2)
    here = local.fire(rays(3000), seed=2)
    alike = there.returns.hit & (there.returns.element == here.returns.element)
    assert alike.sum() > 150
    # A ray at the rim of an element may fall to its other side.
    assert (there.returns.element == here.returns.element).mean() > 0.995
    # float32 of ±40 m steps by 4e-6; grazed triangles stretch that.
    difference = (there.returns.range_m[alike] - here.returns.range_m[alike]).astype(float)
    assert np.quantile(np.abs(difference), 0.99) < 1e-3


def test_result_does_not_depend_on_threads():
    made = world(triangles(40), gaussians(60), points(80, reach_m=0.3))
    beams = rays(9000)
    assert made.fire(beams, seed=4, threads=1).equal(made.fire(beams, seed=4, threads=5))


def test_a_slice_of_the_beams_gives_the_slice_of_the_returns():
    made = world(triangles(40), gaussians(60), points(80, reach_m=0.3))
    beams = rays(2000)
    assert made.fire(beams, seed=4)[500:900].equal(made.fire(beams[500:900], seed=4))


def test_empty_world_returns_nothing_and_is_sure_of_it():
    for made in (world(), world(gaussians(0)), world(triangles(0), gaussians(0), points(0))):
        log = made.fire(rays(100))
        assert not log.returns.hit.any()
        np.testing.assert_array_equal(made.log_likelihood(log), 0)
        assert made.pdf(rays(1), [1.0, 2.0]).no_return == 1
        assert made.size().parameters == 0


def test_no_beams_give_no_returns():
    assert len(world(gaussians(5)).fire(rays(10)[:0])) == 0


# pdf and likelihood


@pytest.mark.parametrize("tables", [(0, 1, 0), (1, 0, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1)])
def test_density_integrates_to_one_minus_no_return(tables):
    makers = (lambda: triangles(600), lambda: gaussians(200), lambda: points(2000, reach_m=0.3))
    made = world(*(make() for make, wanted in zip(makers, tables, strict=True) if wanted), max_range_m=20.0)
    grid = np.arange(0.0005, 20.0, 0.001)
    busy = 0
    for beam in range(20):
        pdf = made.pdf(rays(20)[beam : beam + 1], grid)
        # Midpoints a fifteenth of the smallest sigma apart: far below 1e-4.
        assert pdf.density_per_m.sum() * 0.001 + pdf.no_return == pytest.approx(1, abs=1e-4)
        busy += pdf.no_return < 0.9
    assert busy >= 5


@pytest.mark.parametrize("tables", [(1, 1, 0), (0, 0, 1)])
def test_density_is_the_exponential_of_the_log_likelihood(tables):
    makers = (lambda: triangles(600), lambda: gaussians(200), lambda: points(2000, reach_m=0.3))
    made = world(*(make() for make, wanted in zip(makers, tables, strict=True) if wanted), max_range_m=20.0)
    for beam in range(8):
        ranges = np.linspace(0.5, 19.5, 200, dtype=np.float32)
        beams = Beams.concatenate([rays(20)[beam : beam + 1]] * 201)
        log = Log(beams, Returns(np.append(ranges, np.float32(np.inf))), max_range_m=20.0)
        pdf = made.pdf(beams[:1], ranges)
        likelihood = np.exp(made.log_likelihood(log))
        # Both sum float32 means and sigmas; the tails of a grazed triangle amplify that.
        np.testing.assert_allclose(pdf.density_per_m, likelihood[:-1], rtol=2e-3, atol=1e-9)
        assert pdf.no_return == pytest.approx(likelihood[-1], rel=1e-5, abs=1e-12)


def test_histogram_of_firing_follows_the_density():
    made = world(triangles(60), gaussians(200), max_range_m=20.0)
    beam = rays(20)[4:5]
    edges = np.linspace(0, 20, 41)
    n = 40_000
    repeated = Beams.from_arrays(origins=np.repeat(beam.origin_m, n, 0), directions=np.repeat(beam.direction, n, 0))
    counts = np.histogram(made.fire(repeated, seed=9).returns.range_m, edges)[0]
    grid = np.arange(0.0005, 20, 0.001)
    density = made.pdf(beam, grid).density_per_m
    expected = np.histogram(grid, edges, weights=density * 0.001 * n)[0]
    assert (expected > 100).sum() >= 2
    # Six standard deviations of a count.
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected + 1)).all()


def test_pdf_wants_one_beam():
    with pytest.raises(InputError, match="beam: expected one pulse, found 2"):
        world(gaussians(5)).pdf(rays(2), [1.0])


def test_likelihood_of_points_is_certain_of_a_return_or_of_none():
    table = Points.plain(
        np.array([[5.0, 0.005, 0.0]]), np.array([[-1.0, 0.0, 0.0]], np.float32), noise=SurfaceNoise(0.02, 0.0)
    )
    made = world(table, max_range_m=20.0)
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]])
    log = Log(beams, Returns(np.array([5.01, np.inf, np.inf, 3.0], np.float32)), max_range_m=20.0)
    found = made.log_likelihood(log)
    assert found[0] == pytest.approx(norm(5, 0.02).logpdf(5.01), abs=1e-3)  # float32 of 5.01: 5e-7 over 0.02
    assert found[1] < -1000
    assert found[2] == 0
    assert found[3] == -np.inf


def test_likelihood_of_points_beside_other_elements_is_refused():
    made = world(gaussians(5), points(5))
    with pytest.raises(InputError, match="points beside other elements"):
        made.log_likelihood(made.fire(rays(10)))


def test_likelihood_without_maximal_range_is_refused():
    made = world(gaussians(5), max_range_m=np.inf)
    with pytest.raises(InputError, match="no max_range_m"):
        made.log_likelihood(made.fire(rays(100)))


# size


def test_parameters_are_counted_as_in_tables_8_and_9():
    solid, permeable = triangles(7, permeable=False), triangles(7)
    assert world(gaussians(5)).size().parameters == 50
    assert world(solid).size().parameters == 63
    assert world(permeable).size().parameters == 70
    assert world(points(4)).size().parameters == 12
    size = world(gaussians(5), permeable).size()
    assert size.parameters == 120
    assert size.tables == {"triangles": 7, "gaussians": 5}
    assert size.elements == 12
    # 72 + 24 bytes of float64, 12 of float32, 18 of the one label and 4 of the object each; 72, 12, 18 and 4; 8 where
    # the labels end.
    assert size.bytes == 5 * 130 + 7 * 106 + 2 * 8


# refusals


def test_nan_mean_is_refused_by_row():
    table = gaussians(5)
    table.mean_m[3, 1] = np.nan
    with pytest.raises(InputError, match=r"gaussians.mean_m: row 3 .* finite"):
        world(table)


@pytest.mark.parametrize(
    ("make", "column", "value", "message"),
    [
        (gaussians, "covariance_m2", np.inf, r"gaussians.covariance_m2: row 2 .* finite"),
        (gaussians, "stop", 1.5, r"gaussians.stop: row 2 is 1.5; expected .* 0 to 1"),
        (gaussians, "stop", np.nan, r"gaussians.stop: row 2 is nan"),
        (gaussians, "intensity", -1, r"gaussians.intensity: row 2 is -1"),
        (gaussians, "intensity_sigma", np.nan, r"gaussians.intensity_sigma: row 2 is nan"),
        (triangles, "permeability", -0.1, r"triangles.permeability: row 2 is -0.1"),
        (triangles, "corners_m", 1e12, r"triangles.corners_m: row 2 .* farther than 100,000,000 m"),
        (points, "position_m", np.nan, r"points.position_m: row 2 .* finite"),
        (points, "normal", 3.0, r"points.normal: row 2 .* unit length"),
    ],
)
def test_wrong_values_are_refused_by_table_column_and_row(make, column, value, message):
    table = make(5)
    getattr(table, column)[2] = value
    with pytest.raises(InputError, match=message):
        world(table)


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (gaussians, {"tau": 0.0}, "gaussians.tau: expected a finite number above 0, found 0.0"),
        (gaussians, {"law": "magic"}, "gaussians.law: expected permeability or extinction or depth, found 'magic'"),
        (gaussians, {"min_sigma_m": np.nan}, "gaussians.min_sigma_m"),
        (points, {"label": [1, 2, 3, 4, 5]}, "points.label: expected a NumPy array, found list"),
        (points, {"label": np.full(5, 70_000)}, "points.label: row 0 is 70000"),
        (gaussians, {"label": np.full(5, 70_000)}, "label: row 0 is 70000"),
        (points, {"reach_m": -1.0}, "points.reach_m"),
        (points, {"pick": "last"}, "points.pick: expected nearest or first, found 'last'"),
        (triangles, {"noise": 0.1}, "triangles.noise: expected SurfaceNoise, found float"),
    ],
)
def test_wrong_settings_are_refused_by_table_and_name(make, settings, message):
    with pytest.raises(InputError, match=message):
        world(make(5, **settings))


def test_skew_covariance_is_refused_and_rounding_is_mended():
    table = gaussians(5)
    table.covariance_m2[1, 0, 2] += 1e-9
    made = world(table)
    mended = made.tables["gaussians"]
    assert isinstance(mended, Gaussians)
    covariance = mended.covariance_m2
    np.testing.assert_array_equal(covariance, covariance.transpose(0, 2, 1))
    table.covariance_m2[1, 0, 2] += 0.1
    with pytest.raises(InputError, match=r"gaussians.covariance_m2: row 1 is not symmetric"):
        world(table)


@pytest.mark.parametrize("kind", ["", "Voxel", "a b", "../x", "voxel\n"])
def test_kind_that_is_no_name_is_refused(kind):
    with pytest.raises(InputError, match="kind: expected lower-case letters"):
        world(gaussians(1), kind=kind)


def test_other_things_are_refused():
    with pytest.raises(InputError, match="gaussians: given twice"):
        world(gaussians(1), gaussians(2))
    with pytest.raises(InputError, match="expected Gaussians, Triangles, Points or RememberedBeams, found Scene"):
        world(Scene())
    with pytest.raises(InputError, match="range limits"):
        world(gaussians(1), max_range_m=0.0)
    with pytest.raises(InputError, match="tile_m"):
        world(gaussians(1), tile_m=0.0)
    with pytest.raises(InputError, match="map_origin_m: expected three finite numbers"):
        world(gaussians(1), map_origin_m=(0, np.nan, 0))
    with pytest.raises(InputError, match=r"parameters.a\[1\]: complex does not fit"):
        world(gaussians(1), parameters={"a": [1, 1j]})
    with pytest.raises(InputError, match="threads"):
        world(points(1)).fire(rays(1), threads=-1)
    with pytest.raises(InputError, match="seed"):
        world(points(1)).fire(rays(1), seed=-1)
    with pytest.raises(InputError, match=r"stop: has 2 rows, expected 1"):
        single_gaussian(stop=np.zeros(2, np.float32))
    with pytest.raises(InputError, match=r"label: expected shape \(1,\), found \(2,\)"):
        single_gaussian(label=np.zeros(2, np.uint16))
    with pytest.raises(InputError, match=r"gaussians.label: expected LabelCounts, found ndarray"):
        world(replace(gaussians(1), label=np.zeros(1, np.uint16)))


def test_parameters_that_are_none_are_left_out():
    made = LearnedWorld(kind="voxel", parameters={"a": None, "b": {"c": (1, 2.5), "d": None}, "e": np.float32(0.5)})
    assert made.header.parameters == {"b": {"c": [1, 2.5]}, "e": 0.5}
