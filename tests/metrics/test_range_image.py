# SPDX-License-Identifier: Apache-2.0
"""Range images: which beam is which pixel, and SSIM against its definition, window by window."""

import numpy as np
import pytest

from hedgerow.log import Beams
from hedgerow.metrics.range_image import WINDOW, pixels_of, structural_similarity


def slow_similarity(real, answer, peak):
    """SSIM written out: NumPy's own variances of each window, one at a time."""
    values = []
    for row in range(real.shape[0] - WINDOW + 1):
        for column in range(real.shape[1] - WINDOW + 1):
            window = np.s_[row : row + WINDOW, column : column + WINDOW]
            x, y = real[window].ravel(), answer[window].ravel()
            ((var_x, both), (_, var_y)) = np.cov(x, y)
            c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
            alike = (2 * x.mean() * y.mean() + c1) / (x.mean() ** 2 + y.mean() ** 2 + c1)
            values.append(alike * (2 * both + c2) / (var_x + var_y + c2))
    return np.mean(values)


@pytest.mark.parametrize("seed", [1, 2])
def test_similarity_is_that_of_its_definition(seed):
    rng = np.random.default_rng(seed)
    real, noise = rng.uniform(0, 80, (12, 15)), rng.normal(0, 10, (12, 15))
    real[rng.random(real.shape) < 0.3] = 0
    answer = np.clip(real + noise, 0, 80)
    assert structural_similarity(real, answer, 80.0) == pytest.approx(slow_similarity(real, answer, 80.0), abs=1e-12)


def test_similarity_of_two_flat_images_has_a_closed_form():
    real, answer, c1 = np.full((9, 9), 0.6), np.full((9, 9), 0.2), 0.01**2
    expected = (2 * 0.6 * 0.2 + c1) / (0.6**2 + 0.2**2 + c1)
    assert structural_similarity(real, answer, 1.0) == pytest.approx(expected)
    assert structural_similarity(real, real, 1.0) == pytest.approx(1)


def test_an_image_and_its_negative_are_the_opposite():
    # A chessboard: the means differ by 2 / 49 of 10, which takes 1e-5; the covariance is minus the variance.
    board = np.indices((7, 7)).sum(axis=0) % 2 * 2.0 - 1
    c2, variance = (0.03 * 2.0) ** 2, board.var(ddof=1)
    expected = (c2 - 2 * variance) / (c2 + 2 * variance)
    assert structural_similarity(10 + board, 10 - board, 2.0) == pytest.approx(expected, abs=2e-5)
    assert expected < -0.99


def turned(n_rings, azimuth_deg):
    azimuth = np.deg2rad(np.tile(azimuth_deg, n_rings))
    ring = np.repeat(np.arange(n_rings), len(azimuth_deg))
    elevation = np.deg2rad(1.0 * ring)
    direction = [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    return Beams.from_arrays(origins=[0, 0, 0], directions=np.column_stack(direction), rings=ring)


def test_rows_go_down_and_columns_clockwise_from_the_back():
    azimuth_deg = 180 - (np.arange(12) + 0.5) * 30
    beams = turned(8, azimuth_deg)
    pixels = pixels_of(beams)
    assert pixels is not None and pixels.shape == (8, 12)
    image = pixels.image(pixels.beam.astype(float))
    expected = np.arange(len(beams)).reshape(8, 12)[::-1]  # ring 0 is the lowest
    assert (image == expected).all()


def test_of_two_beams_in_a_column_that_nearest_to_its_middle_is_the_pixel():
    middle = 180 - (np.arange(10) + 0.5) * 36
    beams = turned(7, np.concatenate([middle - 10, middle + 4]))
    pixels = pixels_of(beams, columns=10)
    assert pixels is not None and pixels.shape == (7, 10) and len(pixels.beam) == 70
    assert (pixels.beam % 20 >= 10).all()


def test_pixels_without_a_beam_are_empty_and_few_rings_make_no_image():
    beams = turned(9, np.linspace(-180, -90, 30))
    pixels = pixels_of(beams, columns=20)
    assert pixels is not None
    image = pixels.image(np.ones(len(pixels.beam)))
    assert image[:, 15:].all() and not image[:, :14].any()
    assert pixels_of(turned(6, np.arange(0, 360, 5.0))) is None
    assert pixels_of(turned(6, np.zeros(0))) is None
