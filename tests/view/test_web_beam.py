# SPDX-License-Identifier: Apache-2.0
"""One beam and one world, as the viewer shows them: densities, clicks, shapes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sessions import WALL_X_M, bush_world, fan, session_of, wall_world

from hedgerow import Log
from hedgerow.errors import InputError
from hedgerow.view.web.beam import STEP_M, BeamAt, choose_plot_span, inspect_beam, pick_beam, range_density
from hedgerow.view.web.frame import Choice, make_frame
from hedgerow.view.web.shapes import ELLIPSOID_SIGMAS, Ellipsoids, Mesh, ellipsoid_axes, make_shapes

# ---- one beam -------------------------------------------------------------------------------------------------


def test_the_density_of_a_beam_through_a_gaussian_is_its_bell():
    real = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[9.0], max_range_m=50)
    found = range_density(bush_world(sigma_m=0.5, permeability=0.25), real, 0)
    bell = 0.75 * np.exp(-0.5 * ((found.range_m - 10) / 0.5) ** 2) / (0.5 * np.sqrt(2 * np.pi))
    assert_allclose(found.density_per_m, bell, atol=1e-4)  # the engine has the covariance in float32
    assert_allclose(STEP_M * found.density_per_m.sum() + found.no_return, 1, atol=1e-4)


def test_a_sharp_wall_does_not_fall_between_the_steps():
    real = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[9.0], max_range_m=50)
    found = range_density(wall_world(x_m=10.0023), real, 0)
    assert_allclose(STEP_M * found.density_per_m.sum(), 1, atol=1e-3)  # sum over steps of half a sigma


def test_looking_at_a_beam_gathers_all_layers():
    real, world = fan(n=101, sweeps=2), wall_world(x_m=12.0)
    session = session_of(real, world=world)
    view = inspect_beam(session, BeamAt(sweep=1, row=50))
    assert_allclose([view.measured_m["log0"], view.measured_m["world"]], [10.0, 12.0], rtol=1e-6)
    assert view.log_density["world"] == world.log_likelihood(real.select(sweep=1)[50:51])[0]
    assert list(view.density) == ["world"]
    low, high = choose_plot_span(view)
    assert low == pytest.approx(9.0) and high == pytest.approx(13.0, abs=0.1)  # a metre around both
    with pytest.raises(InputError, match="beam 101: sweep 1 has 101 beams"):
        inspect_beam(session, BeamAt(sweep=1, row=101))


def test_a_click_finds_the_beam_under_it_also_in_a_shifted_cloud():
    session = session_of(fan(n=101, sweeps=1), fan(n=101, sweeps=1, wall_x_m=20.0))
    frame = make_frame(session, Choice(spacing_m=40.0))
    eye = np.array([-5.0, 0.0, 30.0])
    for each, row in ((frame.shown[0], 33), (frame.shown[1], 70)):
        to = each.cloud.point_m[row] + each.shift_m - eye
        assert pick_beam(frame.shown, eye, to / np.linalg.norm(to)) == BeamAt(0, row, each.layer)
    assert pick_beam(frame.shown, eye, np.array([-1.0, 0.0, 0.0])) is None


def test_a_beam_of_another_log_is_looked_at_in_that_log():
    session = session_of(fan(n=50, sweeps=1), fan(n=70, sweeps=1, wall_x_m=20.0))
    view = inspect_beam(session, BeamAt(0, 60, layer=1))
    log = session.sweep(1, 0)
    assert log is not None
    assert_array_equal(view.direction, log.beams.direction[60])
    assert list(view.measured_m) == ["log1"]


def test_a_click_on_two_returns_in_line_takes_the_nearer_one():
    beams = {"origins": (0, 0, 0), "directions": [[1, 0, 0], [1, 0, 0]], "max_range_m": 50}
    frame = make_frame(session_of(Log.from_arrays(**beams, ranges=[8.0, 5.0])), Choice())
    assert pick_beam(frame.shown, np.zeros(3), np.array([1.0, 0.0, 0.0])) == BeamAt(0, 1)


# ---- worlds ---------------------------------------------------------------------------------------------------


def test_ellipsoids_have_the_axes_of_the_covariance():
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(20, 3, 3)))[0]
    sigma = np.random.default_rng(2).uniform(0.05, 1, (20, 3))
    covariance = np.einsum("nij,nj,nkj->nik", turn, sigma**2, turn)
    half, (w, x, y, z) = ellipsoid_axes(covariance)[0], ellipsoid_axes(covariance)[1].T.astype(float)
    axes = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]).transpose(2, 0, 1)  # fmt: skip
    rebuilt = np.einsum("nij,nj,nkj->nik", axes, (half / ELLIPSOID_SIGMAS) ** 2, axes)
    assert_allclose(rebuilt, covariance, atol=1e-5)  # float32 out


def test_shapes_are_thinned_and_carry_what_the_elements_have():
    mesh = make_shapes(wall_world(), np.array([1.0, 0, 0]), "height", None, 1)["triangles"]
    assert isinstance(mesh, Mesh)
    assert mesh.corner_m.shape == (2, 3, 3)  # only Gaussians are thinned to that number: holes in a mesh mislead
    assert_allclose(mesh.corner_m[..., 0], WALL_X_M - 1)
    bush = make_shapes(bush_world(permeability=0.25), np.zeros(3), "range error", None, 10)["gaussians"]
    assert isinstance(bush, Ellipsoids)
    assert_allclose(bush.opacity, [0.75])
    assert bush.colour.tolist() == [[170, 170, 170]]  # elements have no error
