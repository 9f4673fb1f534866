# SPDX-License-Identifier: Apache-2.0
"""Virtual beams lie on the surfaces between rings, and nowhere else."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from hedgerow.models.refined.virtual_beams import AddVirtualBeams, VirtualBeamParameters, virtual_beams

RINGS, COLUMNS = 16, 360


def sweep_of(range_of, number=0, per_pulse=1, order=None):
    """A sweep of 16 rings from 25 degrees down to 5 degrees up; `range_of` gives ranges of (N, 3) directions."""
    elevation = np.radians(np.linspace(-25, 5, RINGS))[:, None]
    azimuth = np.radians(np.arange(COLUMNS))[None, :]
    direction = np.stack(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation) + 0 * azimuth],
        axis=-1,
    ).reshape(-1, 3)
    ring = np.repeat(np.arange(RINGS), COLUMNS)
    ranges = range_of(direction)
    if per_pulse > 1:
        ranges = np.c_[ranges, np.full((len(ranges), per_pulse - 1), np.inf)]
    log = hr.Log.from_arrays(
        origins=np.tile([3.0, -2.0, 2.0], (len(direction), 1)), directions=direction, ranges=ranges,
        intensities=np.where(np.isfinite(ranges), 0.4, np.nan), labels=np.where(np.isfinite(ranges), 9, 0),
        rings=ring if order is None else order[ring], sweeps=np.full(len(direction), number), max_range_m=80,
    )  # fmt: skip
    return log


def ground(direction):
    """Flat ground two metres below; the sky above it."""
    with np.errstate(divide="ignore"):
        range_m = -2.0 / np.minimum(direction[:, 2], -1e-9)
    return np.where(range_m < 60, range_m, np.inf)


def test_on_flat_ground_they_lie_on_the_ground():
    made = virtual_beams(sweep_of(ground), VirtualBeamParameters(max_gap_m=20))
    hit = np.isfinite(made.returns.first_m)
    assert hit.sum() > 0.5 * (RINGS / 2) * COLUMNS
    assert_allclose(made.points()[:, 2], 0.0, atol=2e-3)  # exact on a line; the rest is the turn between columns
    assert_allclose(np.linalg.norm(made.beams.direction, axis=1), 1, rtol=1e-6)
    assert made.returns.label is not None and made.returns.intensity is not None
    assert set(made.returns.label[hit]) == {9} and np.all(made.returns.intensity[hit] == np.float32(0.4))


def test_between_beams_without_return_there_is_none_and_over_the_last_ring_on_the_ground_nothing_is_said():
    log = sweep_of(ground)
    made = virtual_beams(log, VirtualBeamParameters(max_gap_m=20))
    lost = np.isinf(made.returns.first_m)
    assert lost.any()
    last = log.beams.direction[np.isfinite(log.returns.first_m), 2].max()
    first = log.beams.direction[np.isinf(log.returns.first_m), 2].min()
    height = made.beams.direction[:, 2]
    assert not ((height > last + 1e-6) & (height < first - 1e-6)).any()
    assert (height[lost] > first - 1e-6).all()


def test_nothing_is_added_among_leaves():
    rng = np.random.default_rng(4)
    made = virtual_beams(sweep_of(lambda d: rng.uniform(5, 9, len(d))), VirtualBeamParameters())
    # A third return lies within 5 % of the line by chance alone.
    assert len(made) < 0.2 * RINGS * COLUMNS


@pytest.mark.parametrize("per_pulse", [1, 2])
def test_a_log_keeps_its_beams_and_virtual_ones_come_behind(per_pulse):
    log = hr.Log.concatenate([sweep_of(ground, 0, per_pulse), sweep_of(ground, 1, per_pulse)])
    add = AddVirtualBeams(VirtualBeamParameters(max_gap_m=20))
    both = add(log)
    assert len(both) > len(log)
    assert_array_equal(both.returns.range_m[: len(log)], log.returns.range_m)
    assert set(both.beams.sweep[len(log) :]) == {0, 1}
    alone = add(log.select(sweep=1))  # the same, however the log is cut
    second = both.select(sweep=1)
    assert_array_equal(second.returns.first_m, alone.returns.first_m)
    if per_pulse == 2:
        assert np.isinf(both.returns.range_m[len(log) :, 1]).all()


def test_rings_need_not_be_numbered_by_elevation():
    order = np.random.default_rng(1).permutation(RINGS)
    plain = virtual_beams(sweep_of(ground), VirtualBeamParameters(max_gap_m=20))
    mixed = virtual_beams(sweep_of(ground, order=order), VirtualBeamParameters(max_gap_m=20))
    assert_allclose(np.sort(mixed.beams.direction[:, 2]), np.sort(plain.beams.direction[:, 2]), atol=1e-6)


def test_a_planar_sensor_and_an_empty_sweep_have_none():
    log = sweep_of(ground)
    assert len(virtual_beams(log.select(ring=3), VirtualBeamParameters())) == 0
    assert len(virtual_beams(log[:0], VirtualBeamParameters())) == 0
    assert len(virtual_beams(log, VirtualBeamParameters(share=0))) == 0
