# SPDX-License-Identifier: Apache-2.0
"""The viewer's server and panel, without a browser."""

import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sessions import fan, session_of, wall_world

import hedgerow as hr
from hedgerow.errors import HedgerowError, InputError, MissingPackage
from hedgerow.view.web.frame import Choice
from hedgerow.view.web.server import WebServer

pytest.importorskip("viser", reason="viser is not installed: pip install 'hedgerow[view]'")
COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()", "view"]


@pytest.fixture
def web():
    with WebServer(port=0) as started:
        yield started


@pytest.fixture
def server(web):
    return web.viser


@pytest.fixture
def log_file(tmp_path):
    hr.write_log(fan(n=60, sweeps=3), tmp_path / "drive.parquet")
    return tmp_path / "drive.parquet"


def refused(*words):
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("hedgerow: ") and done.stderr.count("\n") == 1
    return done.stderr


def test_the_server_answers_on_loopback_and_nowhere_else(web):
    with urllib.request.urlopen(web.url, timeout=20) as page:
        assert page.status == 200
        assert b"<html" in page.read().lower()
    assert web.viser.get_host() == "127.0.0.1"
    if sys.platform == "linux":  # the whole of 127/8 is this machine: a server on 0.0.0.0 would answer here
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", web.port), timeout=5)


def test_a_port_that_is_taken_is_refused_in_one_sentence(log_file):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refused(log_file, "--port", port)
    assert f"--port {port}: is taken" in message


def test_an_address_of_another_machine_and_a_port_that_cannot_be_are_refused():
    with pytest.raises(InputError, match=r"--host 192\.0\.2\.1: not an address of this machine"):
        WebServer("192.0.2.1", 0)
    with pytest.raises(InputError, match="--port 70000"):
        WebServer(port=70000)


def test_wrong_paths_and_options_are_refused_in_one_sentence(tmp_path, log_file):
    from hedgerow.cli.view import view

    (tmp_path / "text.docx").write_text("hello")
    hr.write_log(fan(n=5)[:0], tmp_path / "empty.parquet")
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"paths": [tmp_path / "none.parquet"]}, "none.parquet: no such file or folder; did you mean .*drive.parquet"),
        ({"paths": [tmp_path / "text.docx"]}, "text.docx"),
        ({"paths": [tmp_path / "empty.parquet"]}, "empty: has no beams"),
        ({"paths": [log_file], "sweep": 9}, "--sweep 9: there is no such sweep; there are 0 to 2"),
        ({"paths": [log_file], "colour": "pink"}, "--colour pink: expected one of layer"),
        ({"paths": [log_file], "accumulate": 0}, "--accumulate 0"),
        ({"paths": [log_file], "token": "short"}, "--token: expected 16"),
        ({"paths": [log_file], "allow_origin": ["null"]}, "--allow-origin 'null'"),
        ({"paths": [log_file], "points_moving": -1}, "--points-moving -1"),
        ({"paths": [log_file], "settings": ["static"]}, "--set static: expected NAME=VALUE"),
        ({"paths": []}, "name at least one"),
    )
    for words, message in cases:
        with pytest.raises(HedgerowError, match=message):
            view(words.pop("paths"), **words)


def test_a_taken_port_is_told_before_anything_slow(log_file, monkeypatch):
    from hedgerow.cli.view import view
    from hedgerow.view.web import session

    monkeypatch.setattr(session, "open_session", lambda *_: pytest.fail("the session was opened"))
    with socket.socket() as taken, pytest.raises(InputError, match="is taken"):
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        view([log_file], port=taken.getsockname()[1])


def test_a_missing_package_is_named_with_its_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(MissingPackage, match=r"pip install 'hedgerow\[view\]'"):
        WebServer(port=0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_says_the_address_and_ctrl_c_or_docker_stop_ends_it_cleanly(log_file, number):
    command = [*COMMAND, str(log_file), "--port", "0"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        url = line.split()[1]
        assert urllib.request.urlopen(url, timeout=20).status == 200
        running.send_signal(number)
        out, err = running.communicate(timeout=30)
    finally:
        running.kill()
    assert (running.returncode, out, err) == (0, "ended\n", "")


def test_the_first_ctrl_c_only_asks_to_stop_and_the_second_interrupts():
    from hedgerow.cli.view import _ended_by_ctrl_c

    asked, before = threading.Event(), signal.getsignal(signal.SIGINT)
    with _ended_by_ctrl_c(asked.set):
        signal.raise_signal(signal.SIGINT)
        assert asked.wait(10)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def shown(viewer, layer=0):
    """viser's handle of a small cloud: it has one slice."""
    [handle] = viewer.drawing.cloud(layer).slices.values()
    return handle


def until(viewer, fact):
    """Draw until something holds: callbacks of controls run in threads of their own."""
    end = time.monotonic() + 20
    while not fact():
        assert time.monotonic() < end
        viewer.draw()
        time.sleep(0.01)


def test_the_panel_moves_the_cloud_and_points_are_sent_as_float32(server):
    from hedgerow.view.web.viewer import Viewer

    log = fan(n=80, sweeps=3)
    viewer = Viewer(server, session_of(log), Choice())
    viewer.draw()
    assert shown(viewer).precision == "float32"
    assert_array_equal(shown(viewer).points, log.select(sweep=0).points().astype(np.float32))
    viewer.panel.slider.value = 2
    until(viewer, lambda: viewer.choice.position == 2 and viewer.idle)
    assert_array_equal(shown(viewer).points, log.select(sweep=2).points().astype(np.float32))
    viewer.panel.step()  # after the last sweep comes the first
    assert viewer.choice.position == 0


def test_values_that_a_control_does_not_offer_are_left_alone(server):
    from hedgerow.view.web.viewer import Viewer

    viewer = Viewer(server, session_of(fan(n=80, sweeps=3)), Choice())
    controls = {each.label: each for each in server.gui._gui_input_handle_from_uuid.values()}
    for label, value in {"by": "no such thing", "accumulate": 10**9, "at most [points]": 0, "sweeps/s": 0}.items():
        controls[label].value = value
    viewer.panel.path.value = False  # a last one, to know that all were seen
    until(viewer, lambda: not viewer.drawing.path.visible)
    assert (viewer.choice.quantity, viewer.choice.accumulate, viewer.choice.point_limit) == ("height", 1, 2_000_000)
    assert viewer.panel.seconds_per_sweep == 0.1


def test_switched_off_layers_vanish_and_others_are_not_sent_again(server):
    from hedgerow.view.web.viewer import Viewer

    viewer = Viewer(server, session_of(fan(n=40), world=wall_world()), Choice(quantity="layer"))
    viewer.draw()
    before = shown(viewer, 1)
    viewer.choice.hidden = {0}
    viewer.change("clouds")
    viewer.draw()
    assert not viewer.drawing.cloud(0).root.visible
    assert viewer.drawing.cloud(1).root.visible
    assert shown(viewer, 1) is before


def test_fewer_points_are_larger_and_nothing_is_sent_again_for_it(server):
    from hedgerow.view.web.drawing import COARSEST_POINTS
    from hedgerow.view.web.viewer import Viewer

    n = 8 * COARSEST_POINTS
    viewer = Viewer(server, session_of(fan(n=n, sweeps=1)), Choice())
    viewer.draw()
    slices = dict(viewer.drawing.cloud(0).slices)
    sent = [handle.points for handle in slices.values()]
    assert sum(map(len, sent)) == n and all(handle.visible for handle in slices.values())
    assert viewer.drawing.detail(0.05, n // 4) == n // 4
    assert {octave: handle.visible for octave, handle in slices.items()} == {0: False, 1: False, 2: True, 3: True}
    assert slices[3].point_size == pytest.approx(2 * 0.05)
    assert viewer.drawing.detail(0.05, n) == n
    assert slices[3].point_size == 0.05
    assert viewer.drawing.cloud(0).slices == slices
    assert all(handle.points is points for handle, points in zip(slices.values(), sent, strict=True))


def test_new_colours_of_a_sliced_cloud_stay_with_their_points(server):
    from hedgerow.view.web.drawing import COARSEST_POINTS
    from hedgerow.view.web.viewer import Viewer

    viewer = Viewer(server, session_of(fan(n=4 * COARSEST_POINTS, sweeps=1)), Choice(quantity="layer"))
    viewer.draw()
    viewer.choice.quantity = "intensity"  # grows with the beam's number, and so with y
    viewer.change("clouds")
    viewer.draw()
    assert viewer.frame is not None
    [whole] = viewer.frame.shown
    for handle in viewer.drawing.cloud(0).slices.values():
        rows = np.searchsorted(whole.cloud.point_m[:, 1], handle.points[:, 1])
        assert_array_equal(handle.colors, whole.colour[rows])


def test_side_by_side_moves_the_camera_back_to_see_all(server):
    from hedgerow.view.web.viewer import Viewer

    viewer = Viewer(server, session_of(fan(n=40), world=wall_world()), Choice())
    viewer.draw()
    near = np.array(server.initial_camera.position) - server.initial_camera.look_at
    viewer.choice.spacing_m = 50.0
    viewer.change("spacing")
    viewer.draw()
    far = np.array(server.initial_camera.position) - server.initial_camera.look_at
    assert np.linalg.norm(far) > 2 * np.linalg.norm(near)
    assert viewer.drawing.cloud(1).root.position[1] == pytest.approx(-50.0)


def test_a_beam_given_by_number_is_drawn_with_its_density(server):
    from hedgerow.view.web.beam import BeamAt
    from hedgerow.view.web.viewer import Viewer

    viewer = Viewer(server, session_of(fan(n=41), world=wall_world(x_m=12.0)), Choice())
    viewer.draw()
    viewer.show_beam(BeamAt(0, 20))
    line = server.scene.get_handle_by_name("/beam/line")
    assert_array_equal(line.points[0, 0], [0, 0, 0])
    assert server.scene.get_handle_by_name("/beam/world").position[0] == pytest.approx(12.0, abs=1e-5)
    viewer.show_beam(BeamAt(0, 4000))
    assert server.scene.get_handle_by_name("/beam/line") is None


@pytest.mark.parametrize("gaussians_as", ["splats", "ellipsoids"])
def test_worlds_alone_are_drawn_as_shapes(server, gaussians_as):
    from sessions import bush_world

    from hedgerow.view.web.session import Session, WorldLayer
    from hedgerow.view.web.viewer import Viewer

    session = Session([], [WorldLayer("bush", bush_world()), WorldLayer("wall", wall_world())])
    viewer = Viewer(server, session, Choice())
    viewer.panel.gaussians_as.value = gaussians_as
    until(viewer, lambda: viewer.idle)
    assert server.scene.get_handle_by_name("/worlds/bush/gaussians").visible
    assert server.scene.get_handle_by_name("/worlds/wall/triangles").visible
