# SPDX-License-Identifier: Apache-2.0
"""Pictures of scenes: things are where the camera should see them, lit from the side of the sun."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

from hedgerow.errors import FileError, InputError
from hedgerow.scenes import mesh
from hedgerow.view.render import Camera, named_colours, render, render_picture
from hedgerow.world import Scene, SurfaceNoise

RED, GREEN = 7, 300
COLOURS = {RED: (0.8, 0.1, 0.1), GREEN: (0.1, 0.6, 0.1)}
SMALL: dict[str, Any] = {"width_px": 60, "height_px": 40, "colours": COLOURS, "samples": 1}


def wall_and_ground(noise=None):
    more = {} if noise is None else {"noise": noise}
    scene = Scene()
    scene.add_mesh(*mesh.rectangle((-50, -50, 0), (100, 0, 0), (0, 100, 0)), label=GREEN, **more)
    scene.add_mesh(*mesh.rectangle((10, -1, 0), (0, 2, 0), (0, 0, 2)), label=RED, **more)
    return scene


def is_mostly(image, channel):
    others = [other for other in range(3) if other != channel]
    return image[..., channel].astype(int) > image[..., others].max(axis=-1).astype(int) + 20


def test_the_camera_looks_at_its_middle_and_right_is_right():
    camera = Camera(np.zeros(3), np.array([5.0, 0, 0]), 200, 100, 90.0)
    middle, right, top = camera.directions(np.array([100.0, 200, 100]), np.array([50.0, 50, 0]))
    np.testing.assert_allclose(middle, [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(right, [np.sqrt(0.5), -np.sqrt(0.5), 0], atol=1e-12)  # half of 90 degrees
    np.testing.assert_allclose(top / top[0], [1, 0, 0.5], atol=1e-12)


def test_a_camera_may_look_straight_down():
    image = render_picture(wall_and_ground(), (0, 0, 20), (0, 0, 0), **SMALL)
    assert is_mostly(image, 1).mean() > 0.95


def test_a_wall_covers_the_pixels_that_it_should():
    # 2 m by 2 m at 10 m, its middle in the middle: 60 px over 2 * 10 * tan(30 deg) = 11.5 m, so 10.4 px each way.
    image = render_picture(wall_and_ground(), (0, 0, 1), (10, 0, 1), fov_deg=60.0, sun_azimuth_deg=180, **SMALL)
    red = is_mostly(image, 0)
    assert red.sum() == pytest.approx(10.4**2, rel=0.2)  # whole pixels: one row more or less
    rows, columns = np.nonzero(red)
    assert rows.mean() == pytest.approx(19.5, abs=1) and columns.mean() == pytest.approx(29.5, abs=1)
    assert is_mostly(image[-10:], 1).all()
    assert is_mostly(image[:10], 2).all()  # sky


def test_what_the_sun_does_not_reach_is_darker():
    lit = render_picture(wall_and_ground(), (0, 0, 1), (10, 0, 1), sun_azimuth_deg=180, **SMALL)
    unlit = render_picture(wall_and_ground(), (0, 0, 1), (10, 0, 1), sun_azimuth_deg=0, **SMALL)
    assert lit[20, 30, 0] > 1.3 * unlit[20, 30, 0]
    # With the sun behind the wall, its shadow falls towards the eye, 2 m long at 45 degrees: 9 m away, 1 m below.
    row = 20 + round(60 / (2 * np.tan(np.radians(30))) / 9)
    assert unlit[row, 30, 1] < 0.75 * lit[row, 30, 1]
    assert unlit[-1, 30, 1] == pytest.approx(lit[-1, 30, 1], rel=0.05)  # nearer ground lies in the sun both times


def test_without_shadows_only_the_slope_counts():
    image = render_picture(wall_and_ground(), (0, 0, 1), (10, 0, 1), sun_azimuth_deg=0, shadows=False, **SMALL)
    ground = image[27:, :, 1].astype(int)
    assert np.ptp(ground) <= 6  # haze alone


def test_range_noise_does_not_change_the_slopes():
    plain = render_picture(wall_and_ground(), (0, 0, 1), (10, 0, 1), shadows=False, **SMALL)
    noisy = render_picture(wall_and_ground(SurfaceNoise(0.02, 0.0)), (0, 0, 1), (10, 0, 1), shadows=False, **SMALL)
    # Near ground: 2 cm of 2 m. Same colour but for the edge of the wall, where a pixel may change sides.
    assert np.percentile(np.abs(plain.astype(int) - noisy), 99) <= 3


def test_the_picture_does_not_depend_on_the_threads():
    one, two = (render_picture(wall_and_ground(), (0, 0, 1), (10, 0, 1), threads=n, **SMALL) for n in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_progress_ends_with_all_samples():
    done = []
    twice: dict[str, Any] = SMALL | {"samples": 2}
    render_picture(wall_and_ground(), (0, 0, 1), (10, 0, 1), progress=done.append, **twice)
    assert done[-1] == 60 * 40 * 2


def test_a_written_picture_has_the_size_asked_for(tmp_path):
    render(wall_and_ground(), tmp_path / "scene.png", (0, 0, 1), (10, 0, 1), **SMALL)
    with Image.open(tmp_path / "scene.png") as image:
        assert (image.size, image.mode, image.format) == ((60, 40), "RGB", "PNG")


def test_labels_get_the_colours_of_their_names():
    colours = named_colours({"grass": 101, "teapot": 7})
    assert set(colours) == {101, 7}
    assert np.argmax(colours[101]) == 1 and len(set(colours[7])) == 1  # green, grey


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"look_at_m": (0, 0, 1)}, "look_at_m"),
        ({"eye_m": (0, 0)}, "eye_m"),
        ({"eye_m": (0, 0, np.nan)}, "eye_m"),
        ({"width_px": 0}, "width_px"),
        ({"fov_deg": 170}, "fov_deg"),
        ({"samples": 0}, "samples"),
        ({"colours": {1: (2, 0, 0)}}, "colours: label 1"),
        ({"colours": {1: (0.5, 0.5)}}, "colours: label 1"),
    ],
)
def test_impossible_pictures_are_refused(change, words):
    arguments = {"eye_m": (0, 0, 1), "look_at_m": (10, 0, 1), **SMALL} | change
    with pytest.raises(InputError, match=words):
        render_picture(wall_and_ground(), **arguments)


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(FileError, match="suffix"):
        render(wall_and_ground(), tmp_path / "scene.gif", (0, 0, 1), (10, 0, 1), **SMALL)
    assert list(tmp_path.iterdir()) == []
