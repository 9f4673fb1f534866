# SPDX-License-Identifier: Apache-2.0
"""What paths become: layers, worlds, scenes, and the sensor's path."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sessions import bush_world, fan, layer

import hedgerow as hr
from hedgerow.inputs import Place
from hedgerow.view.web.session import make_log_layer, open_session, trace_path


def test_a_log_and_a_world_become_a_recording_a_firing_and_shapes(tmp_path):
    hr.write_log(fan(n=50, sweeps=3), tmp_path / "drive.parquet")
    bush_world().save(tmp_path / "site.world")
    session = open_session([tmp_path / "site.world", tmp_path / "drive.parquet"], seed=3)
    assert [(each.name, each.is_fired) for each in session.layers] == [("drive", False), ("site", True)]
    assert [layer.name for layer in session.worlds] == ["site"]
    expected = bush_world().fire(fan(n=50, sweeps=3).select(sweep=2).beams, seed=3)
    found = session.sweep(1, 2)
    assert found is not None
    assert found.returns.equal(expected.returns)


def test_a_world_alone_has_shapes_and_no_sweeps(tmp_path):
    bush_world(x_m=700.2).save(tmp_path / "site.world")
    session = open_session([tmp_path / "site.world"])
    assert session.layers == [] and len(session.sweeps) == 0
    assert_allclose(session.centre_m, [700, 0, 0])


def test_a_scene_alone_is_seen_by_its_own_sensor_sweep_by_sweep():
    session = open_session(["rods"], seed=1)
    last = int(session.sweeps[-1])
    log = session.sweep(0, last)
    assert log is not None
    assert log.sensor == "lms-291"
    assert set(log.beams.sweep.tolist()) == {last}
    assert log.returns.hit.any()
    other = session.sweep(0, 0)
    assert other is not None
    assert len(np.intersect1d(log.beams.pulse, other.beams.pulse)) == 0  # no two share their random numbers


def test_the_path_goes_through_the_places_of_the_beams_in_time():
    log = fan(n=30, sweeps=5)
    path_m = trace_path(layer(log))
    assert_allclose(path_m[:: len(path_m) // 5], [[0, 0.1 * sweep, 0] for sweep in range(5)])


@pytest.mark.parametrize(("step_m", "heading"), [((0.0, 2.0, 0.3), (0, 1, 0)), ((0.0, 0.0, 0.0), (1, 0, 0))])
def test_the_heading_is_level_and_along_the_path(tmp_path, step_m, heading):
    log = fan(n=30, sweeps=5)
    origins = log.beams.sweep[:, None] * np.array(step_m)
    moved = hr.Log.from_arrays(
        origins=origins, directions=log.beams.direction, ranges=log.returns.range_m, sweeps=log.beams.sweep,
        max_range_m=50,
    )  # fmt: skip
    hr.write_log(moved, tmp_path / "drive.parquet")
    assert_allclose(open_session([tmp_path / "drive.parquet"]).heading(2), heading, atol=1e-9)


def test_a_wrong_path_is_told_before_a_scene_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(Place, "open", lambda *_: pytest.fail("the scene was built"))
    (tmp_path / "text.docx").write_text("hello")
    with pytest.raises(hr.errors.FileError, match=r"text\.docx: unknown kind"):
        open_session(["trail", tmp_path / "text.docx"])


def test_options_reach_the_reader_of_a_log(tmp_path):
    log = fan(n=30, sweeps=1)
    hr.write_log(log, tmp_path / "drive.parquet")
    with pytest.raises(hr.errors.InputError, match="static"):
        open_session([tmp_path / "drive.parquet"], options={"static": True})


def test_the_way_of_a_log_with_poses_is_theirs(tmp_path):
    class Recording:
        sweeps = np.array([0], dtype=np.int32)
        trajectory = hr.Trajectory.line((0, 0, 0), (4, 0, 0), 2.0)

        def read(self, sweeps=None):
            raise AssertionError("nothing has to be read for it")

    assert_allclose(trace_path(make_log_layer("log", Recording()))[[0, -1]], [[0, 0, 0], [4, 0, 0]])
