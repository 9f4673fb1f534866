# SPDX-License-Identifier: Apache-2.0
"""Permeability by counting comes back, however the log is cut."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.models.steps.permeability import Counts, count, drop_passed, with_permeability
from hedgerow.parallel.log_parts import cut_log
from hedgerow.world.elements import Gaussians, Triangles

WALL = np.array([[[8.0, -30, -30], [8, 30, -30], [8, 0, 60]]])
N = 120_000


def fenced_log(rho=0.7, seed=3):
    """Beams through a fence of permeability rho at 8 m, half of them towards a solid Gaussian behind it."""
    scene = hr.Scene()
    scene.add_mesh(WALL[0], [[0, 1, 2]], permeability=rho, noise=hr.SurfaceNoise(0.01))
    scene.add_gaussians([[14.0, 0, 0]], [np.eye(3) * 0.25])
    directions = np.broadcast_to([[1.0, 0, 0], [0.8, 0.6, 0]], (N // 2, 2, 3)).reshape(-1, 3)
    beams = hr.Beams.from_arrays(origins=(0, 0, 0), directions=directions, sweeps=np.arange(N) // 10_000)
    return hr.SceneWorld(scene, max_range_m=40).fire(beams, seed)


def tables():
    gaussians = Gaussians.plain(np.array([[14.0, 0, 0], [0.0, 20, 0]]), np.stack([np.eye(3) * 0.25] * 2))
    return Triangles.plain(WALL), gaussians


def test_a_chain_link_fence_comes_back_within_a_hundredth():
    log = fenced_log()
    triangles, gaussians = with_permeability(tables(), count(cut_log(log), tables(), max_range_m=40.0))
    assert isinstance(triangles, Triangles) and isinstance(gaussians, Gaussians)
    # 5 sigma of 120,000 coins is 0.0066.
    assert triangles.permeability[0] == pytest.approx(0.7, abs=0.0066)
    # All that passed the fence that way was stopped here; ranges beyond 3.5 sigma, one in 4,300, count as passes.
    assert gaussians.stop[0] < 0.002
    assert len(gaussians) == 1  # the one that no beam ever hit is gone


def test_counts_do_not_depend_on_how_the_log_is_cut():
    log = fenced_log()
    whole = count(cut_log(log), tables(), max_range_m=40.0)
    cuts = np.sort(np.random.default_rng(0).integers(0, N, 7))
    pieces = [log[a:b] for a, b in zip([0, *cuts], [*cuts, N], strict=True)]
    cut = count(lambda: reversed(pieces), tables(), max_range_m=40.0)
    np.testing.assert_array_equal(whole.hits, cut.hits)
    np.testing.assert_array_equal(whole.passes, cut.passes)
    half = Counts(whole.hits - cut.hits, whole.passes) + Counts(cut.hits, 0 * whole.passes)
    np.testing.assert_array_equal(half.hits, whole.hits)


def test_pseudo_counts_pull_towards_the_prior():
    counts = Counts(np.array([1, 0]), np.array([1, 0]))
    np.testing.assert_allclose(counts.permeability(1, 2), [3 / 5, 2 / 3], rtol=1e-6)
    np.testing.assert_allclose(counts.permeability(0, 0), [0.5, 0.0])


def test_progress_reaches_the_number_of_beams():
    done = []
    count(cut_log(fenced_log()), tables(), max_range_m=40.0, progress=done.append)
    assert done[-1] == N


def test_negative_priors_are_refused():
    with pytest.raises(hr.InputError, match="prior_hits"):
        with_permeability(tables(), Counts.zero(3), prior_hits=-1)


def test_triangles_that_most_beams_passed_go_and_those_that_none_met_stay():
    triangles = Triangles.plain(np.repeat(WALL, 4, axis=0), intensity=np.arange(4, dtype=np.float32))
    counts = Counts(hits=np.array([5, 4, 0, 0]), passes=np.array([5, 5, 0, 1]))
    np.testing.assert_array_equal(drop_passed(triangles, counts, 0.5).intensity, [0, 2])
    assert len(drop_passed(triangles, counts, 1.0)) == 4


def test_prior_counts_keep_triangles_that_few_beams_met_but_never_drop_unmet_ones():
    triangles = Triangles.plain(np.repeat(WALL, 4, axis=0), intensity=np.arange(4, dtype=np.float32))
    counts = Counts(hits=np.array([5, 4, 0, 0]), passes=np.array([5, 5, 0, 1]))
    np.testing.assert_array_equal(drop_passed(triangles, counts, 0.5, prior_hits=1).intensity, [0, 1, 2, 3])
    np.testing.assert_array_equal(drop_passed(triangles, counts, 0.5, prior_passes=1).intensity, [2])


@pytest.mark.parametrize(("keep_unhit", "kept"), [("none", [0]), ("unmet", [0, 2]), ("all", [0, 1, 2])])
def test_triangles_without_a_hit_stay_as_asked_and_gaussians_never_do(keep_unhit, kept):
    triangles = Triangles.plain(np.repeat(WALL, 3, axis=0), intensity=np.arange(3, dtype=np.float32))
    gaussians = tables()[1]
    counts = Counts(hits=np.array([3, 0, 0, 2, 0]), passes=np.array([1, 4, 0, 0, 0]))
    found, volumes = with_permeability((triangles, gaussians), counts, keep_unhit=keep_unhit)
    assert isinstance(found, Triangles)
    np.testing.assert_array_equal(found.intensity, kept)
    # Hit: 1 of 4 passed. Only passed: nothing stops there. Never met: solid, as nothing speaks against it.
    np.testing.assert_allclose(found.permeability, np.array([0.25, 1, 0])[kept])
    assert len(volumes) == 1


def test_priors_say_how_solid_an_unmet_triangle_is():
    counts = Counts(hits=np.array([0]), passes=np.array([0]))
    (found,) = with_permeability((Triangles.plain(WALL),), counts, prior_hits=1, prior_passes=2, keep_unhit="unmet")
    np.testing.assert_allclose(found.permeability, [2 / 3], rtol=1e-6)
