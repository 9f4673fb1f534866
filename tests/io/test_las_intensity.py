# SPDX-License-Identifier: Apache-2.0
"""Intensities of LAS files: one scale per file, undone on reading; what does not fit is counted and said."""

import warnings

import numpy as np
import pytest
from las_parser import parse_las

import hedgerow as hr
from hedgerow.errors import FileError, HedgerowWarning
from hedgerow.io import open_sink, read_log
from hedgerow.io.points.las_intensity import COUNT_8, COUNT_16, REFLECTANCE, SHARE, scale_of

SCENE = {"world": {"kind": "scene", "scene": "trail"}}


def sweep_of(number, intensity, metadata):
    """Return a log of one sweep with these intensities."""
    n = len(intensity)
    beams = hr.Beams.from_arrays(
        origins=[0, 0, 1],
        directions=np.tile([1.0, 0, 0], (n, 1)),
        times=np.arange(n) + 1000 * number,
        sweeps=number,
        pulses=np.arange(n) + 10**6 * number,
    )
    returns = hr.Returns(np.full(n, 5, np.float32), intensity=np.asarray(intensity, np.float32))
    return hr.Log(beams, returns, "hdl-64e", 1.0, 100.0, metadata=metadata)


def round_trip(path, sweeps):
    """Write sweeps and read them back: intensities before and after, what was warned of, and the scale."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with open_sink(path) as sink:
            for log in sweeps:
                sink.append(log)
    before = np.concatenate([log.returns.intensity for log in sweeps])
    after = read_log(path).returns.intensity
    assert after is not None
    return before, after, [str(each.message) for each in said], scale_of(sweeps[0])


def demo_like(rng, n=4000):
    """Return two sweeps as the demo has them: half below 0.15, and a retro-reflector in the second alone."""
    first, second = rng.gamma(2.5, 0.065, n), rng.gamma(2.5, 0.065, n)
    second[:36] = 10
    return [sweep_of(0, first, SCENE), sweep_of(1, second, SCENE)]


@pytest.mark.parametrize("name", ["x.las", "x.laz"])
def test_a_retro_reflector_in_a_later_sweep_costs_nothing(tmp_path, name):
    before, after, said, scale = round_trip(tmp_path / name, demo_like(np.random.default_rng(1)))
    assert (scale, said) == (REFLECTANCE, [])
    assert np.abs(after - before).max() <= 0.5 / REFLECTANCE + 1e-7  # 0.00012: half a step
    assert np.median(np.abs(after - before) / before) < 0.001
    assert np.count_nonzero(after == 0) == np.count_nonzero(before < 0.5 / REFLECTANCE)
    assert after.max() == 10


def test_one_bright_return_in_the_first_sweep_does_not_make_the_others_zero(tmp_path):
    sweeps = [sweep_of(0, np.r_[np.full(1000, 0.15), 10.0], {}), sweep_of(1, np.full(1000, 0.031), {})]
    before, after, said, _ = round_trip(tmp_path / "x.las", sweeps)
    assert said == []
    assert np.abs(after - before).max() <= 0.5 / REFLECTANCE + 1e-7


def test_shares_of_one_use_all_sixteen_bits(tmp_path):
    share = np.random.default_rng(2).random(5000)
    before, after, said, scale = round_trip(tmp_path / "x.las", [sweep_of(0, share, {})])
    assert (scale, said) == (SHARE, [])
    assert np.abs(after - before).max() <= 0.5 / SHARE + 1e-7


@pytest.mark.parametrize(
    ("metadata", "intensity", "scale"),
    [
        ({"read_from": "pcap"}, np.arange(256), COUNT_8),  # also if its first sweep is dark:
        ({"read_from": "pcap"}, [0, 1, 1], COUNT_8),
        ({"read_from": "pcap", "profile": "LEGACY"}, [0, 7, 60_000], COUNT_16),
        ({"read_from": "bag"}, [0, 3, 255], COUNT_16),
        ({"world": {"kind": "hybrid"}}, [3.25, 80.5, 170.75], COUNT_8),
        ({"world": "a name"}, [3.25, 80.5, 1700.75], COUNT_16),
        ({}, [0, 0, 1], SHARE),
        ({}, [np.nan, np.nan], REFLECTANCE),
    ],
)
def test_the_scale_follows_from_what_made_the_log(metadata, intensity, scale):
    assert scale_of(sweep_of(0, intensity, metadata)) == scale


@pytest.mark.parametrize("metadata", [{"read_from": "pcap"}, {"read_from": "bag"}])
def test_counts_come_back_exactly(tmp_path, metadata):
    before, after, said, _ = round_trip(tmp_path / "x.las", [sweep_of(0, np.arange(256), metadata)])
    assert np.array_equal(before, after) and said == []


def test_what_is_clipped_or_unknown_is_counted_over_all_sweeps(tmp_path):
    sweeps = [sweep_of(0, [0.25, 0.5, 1.0], {}), sweep_of(1, [1.5, 0.5, np.nan], {}), sweep_of(2, [8.0, np.nan], {})]
    _, after, said, _ = round_trip(tmp_path / "x.las", sweeps)
    assert said == [
        f"{tmp_path / 'x.las'}: 2 intensities above 1 clipped to it; 2 returns of unknown or negative intensity got 0"
    ]
    assert after.tolist() == pytest.approx([0.25, 0.5, 1, 1, 0.5, 0, 1, 0], abs=1e-5)
    assert parse_las(tmp_path / "x.las").points["intensity"].tolist() == [
        16384,
        32768,
        65535,
        65535,
        32768,
        0,
        65535,
        0,
    ]


def test_all_losses_are_said_in_one_warning(tmp_path):
    log = sweep_of(0, [0.5, 20.0], SCENE)
    missed = hr.Returns(np.array([5, np.inf], np.float32), intensity=np.array([20, np.nan], np.float32))
    with (
        pytest.warns(HedgerowWarning, match=r"x.las: 1 of 4 beams left out.*; 2 intensities above 16 clipped"),
        open_sink(tmp_path / "x.las") as sink,
    ):
        sink.append(log)
        sink.append(log.with_returns(missed))
    assert sink.written.n_misses_left_out == 1


@pytest.mark.parametrize("scale", ["0", "-1.0", '"many"', "NaN", "true"])
def test_a_scale_that_is_no_number_is_refused(tmp_path, scale):
    round_trip(tmp_path / "x.las", [sweep_of(0, [0.5], {})])
    data = (tmp_path / "x.las").read_bytes()
    text = b'"intensity_scale": 65535.0'
    assert data.count(text) == 1
    (tmp_path / "x.las").write_bytes(data.replace(text, f'"intensity_scale": {scale}'.encode().ljust(len(text))))
    with pytest.raises(FileError, match=r"x.las: what Hedgerow wrote into its header is damaged \(intensity_scale\)"):
        read_log(tmp_path / "x.las")
