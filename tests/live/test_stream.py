# SPDX-License-Identifier: Apache-2.0
"""A drive sent live: what is sent, what is recorded, and how it ends. Sweeps are compared, times are not."""

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.base.interrupt import InterruptGuard
from hedgerow.cli import app
from hedgerow.cli.server_options import make_address
from hedgerow.errors import SocketError
from hedgerow.io import open_sink
from hedgerow.live.client import Client
from hedgerow.live.points import make_points
from hedgerow.live.publisher import Address, Publisher
from hedgerow.live.stream import stream_drive

TRAJECTORY = hr.Trajectory.line((0, 0, 1), (1, 0, 1), 4.0)  # 0.25 s, room for two sweeps


class Ready(hr.SceneWorld):
    """A world that waits with its first answer until somebody listens."""

    def __init__(self, world):
        super().__init__(world.scene)
        self.listened = threading.Event()

    def returns(self, beams, shot):
        self.listened.wait(10)
        return super().returns(beams, shot)

    def provenance(self):
        return {"kind": "SceneWorld"}


def fired_at_once(world):
    """The same world, which waits for nobody."""
    ready = Ready(world)
    ready.listened.set()
    return ready


def streamed(world, sensor, seed=0, noise=None, **settings):
    """Stream to a client; return the last sweep, the clouds that arrived by stamp, and what was said."""
    ready, said, told, done, clouds = Ready(world), [], threading.Event(), [], {}

    def say(line):
        said.append(line)
        told.set()

    def run():
        simulation = hr.simulate(ready, sensor, TRAJECTORY, seed=seed, noise=noise)
        done.append(stream_drive(simulation, address=Address(port=0), say=say, **settings))

    thread = threading.Thread(target=run)
    thread.start()
    told.wait(10)
    url = re.search(r"ws://\S+\d", said[0])
    assert url is not None
    with Client(url[0]) as client:
        ready.listened.set()
        with pytest.raises(SocketError, match="the server is gone"):
            for cloud in client.clouds():
                clouds[cloud.stamp_ns] = cloud
    thread.join()
    last, pace = done[0]
    assert pace.n_sweeps == last.beams.sweep[0] + 1
    return last, clouds, said


def test_what_is_streamed_recorded_and_fired_directly_is_the_same(tmp_path, world, sensor):
    last, clouds, said = streamed(world, sensor, seed=3, output=tmp_path / "a.parquet")
    direct = hr.Log.concatenate(list(hr.simulate(fired_at_once(world), sensor, TRAJECTORY, seed=3)))
    assert hr.read_log(tmp_path / "a.parquet").equal(direct)
    assert last.equal(direct.select(sweep=1))
    [stamp_ns] = {int(last.beams.time_ns[0])} & set(clouds)  # the client may have come too late for the first
    assert clouds[stamp_ns].points.tobytes() == make_points(sensor, last, stamp_ns).tobytes()
    assert re.fullmatch(r"sent 2 sweeps of vlp-16 in \d+\.\d s: .* sweeps/s, .* of real time, latency .*", said[1])
    assert said[2] == f"wrote {tmp_path / 'a.parquet'}"


def test_a_loop_goes_over_the_trajectory_again_while_time_and_pulses_count_on(tmp_path, world, sensor):
    streamed(world, sensor, loop=True, n_sweeps=5, noise=False, output=tmp_path / "a.parquet")
    log = hr.read_log(tmp_path / "a.parquet")
    direct = hr.Log.concatenate(list(hr.simulate(fired_at_once(world), sensor, TRAJECTORY, noise=False)))
    first, again = log.select(sweep=[0, 1]), log.select(sweep=[2, 3])
    assert log.sweeps.tolist() == [0, 1, 2, 3, 4]
    assert first.equal(direct)
    assert np.array_equal(again.beams.origin_m, first.beams.origin_m)
    assert np.array_equal(again.beams.pulse, first.beams.pulse + len(first))
    assert np.array_equal(again.beams.time_ns, first.beams.time_ns + round(2e9 * sensor.sweep_s))
    assert not np.array_equal(again.returns.range_m, first.returns.range_m)  # new chances


def test_only_a_loop_takes_a_number_of_sweeps_of_its_own(world, sensor):
    with pytest.raises(hr.InputError, match=r"^sweeps: 3 asked for, but the trajectory of 0\.25 s has room for 2"):
        hr.simulate(world, sensor, TRAJECTORY, sweeps=3)
    simulation = hr.simulate(world, sensor, TRAJECTORY)
    for n_sweeps, loop in ((0, True), (1, False)):
        with pytest.raises(hr.InputError, match="n_sweeps: expected 1 or more, of a loop"):
            stream_drive(simulation, address=Address(port=0), n_sweeps=n_sweeps, loop=loop)


def test_a_busy_port_leaves_no_record(tmp_path, world, sensor):
    with Publisher(Address(port=0), "x") as taken, pytest.raises(SocketError, match="cannot listen there"):
        port = int(taken.url.rpartition(":")[2])
        stream_drive(hr.simulate(world, sensor, TRAJECTORY), output=tmp_path / "a.parquet", address=Address(port=port))
    assert list(tmp_path.iterdir()) == []


def test_a_client_of_a_stream_cannot_ask(world, sensor):
    refused = pytest.raises(hr.InputError, match="streams a drive and takes no poses; start hedgerow serve")
    with Publisher(Address(port=0), "x") as publisher, Client(publisher.url) as client, refused:
        client.sweep(hr.Pose())


def test_the_first_ctrl_c_asks_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with InterruptGuard() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.asked
        stop.wait()  # returns at once
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_while_the_record_is_closed_does_not_lose_it(tmp_path, world, sensor, monkeypatch):
    @contextmanager
    def interrupted_at_the_end(path, **settings):
        with open_sink(path, **settings) as sink:
            yield sink
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("hedgerow.live.stream.open_sink", interrupted_at_the_end)
    simulation = hr.simulate(fired_at_once(world), sensor, TRAJECTORY)
    with pytest.raises(KeyboardInterrupt):
        stream_drive(simulation, address=Address(port=0), output=tmp_path / "x.parquet")
    assert len(hr.read_log(tmp_path / "x.parquet").sweeps) == len(simulation)


ENDS = [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "told to end", 143)]  # Ctrl-C, and docker stop
SCENE = """
sensor = "vlp-16"
terrain = { size_m = [60, 60] }
trajectories.here = { standing_m = [0, 0], duration_s = 0.35 }
"""


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(SCENE)
    return path


def started(*words, cwd):
    """Start the command line; return its process and the address it tells."""
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", *map(str, words), "--port", "0"]
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"ws://127\.0\.0\.1:\d+", line):
            return process, found[0]
    raise AssertionError(process.communicate()[1])


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C of a child process is another matter on Windows")
@pytest.mark.parametrize(("number", "word", "code"), ENDS)
def test_fire_live_ends_when_told_to_and_keeps_the_whole_sweeps_of_its_record(tmp_path, scene, number, word, code):
    process, url = started("fire", scene, "--live", "--loop", "-o", "out.parquet", "--sub-rays", 1, cwd=tmp_path)
    with Client(url) as client:
        clouds = client.clouds()
        cloud = next(clouds)
        process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == code, stderr
    assert stderr.endswith(f"hedgerow: {word}\n") and "Traceback" not in stderr
    assert "sweeps/s" in stdout and "wrote out.parquet" in stdout
    log = hr.read_log(tmp_path / "out.parquet")
    sensor = hr.Sensor.named("vlp-16")
    assert len(log) == len(log.sweeps) * sensor.pulses_per_sweep
    [sweep] = [part for _, part in log.iter_sweeps() if part.beams.time_ns[0] == cloud.stamp_ns]
    assert cloud.points.tobytes() == make_points(sensor, sweep, cloud.stamp_ns).tobytes()


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C of a child process is another matter on Windows")
@pytest.mark.parametrize(("number", "word", "code"), ENDS)
def test_serve_answers_and_ends_when_told_to(tmp_path, scene, number, word, code):
    process, url = started("serve", scene, "--sensor", "vlp-16", cwd=tmp_path)
    with Client(url) as client:
        sweep = client.sweep(hr.Pose.from_xyz_rpy((0, 0, 2)))
        assert sweep.sensor == "vlp-16"
        ground = sweep.map_points()
        assert len(ground) > 5000
        assert np.abs(np.median(ground[:, 2])) < 0.02  # level; 3 cm of noise along rays that are nearly level too
        process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == code, stderr
    assert stderr.endswith(f"hedgerow: {word}\n") and "Traceback" not in stderr
    assert "answered 1 poses, refused 0; pose to sweep" in stdout


def test_a_token_is_given_on_the_command_line_or_by_the_environment(monkeypatch):
    monkeypatch.setenv("HEDGEROW_TOKEN", "from-the-environment")
    assert make_address("127.0.0.1", 0, None, None).token == "from-the-environment"
    assert make_address("127.0.0.1", 0, "from-the-command-line", None).token == "from-the-command-line"
    monkeypatch.setenv("HEDGEROW_TOKEN", "")
    assert make_address("127.0.0.1", 0, None, ["https://a.example"]).token is None


@pytest.mark.parametrize("words", [["serve"], ["fire", "--live"]])
def test_a_busy_port_and_an_absent_package_are_told_before_the_scene_is_built(
    tmp_path, scene, monkeypatch, server, words
):
    def build(*words, **settings):
        raise AssertionError("the scene was built")

    monkeypatch.setattr("hedgerow.scenes.site.load_site", build)
    port = server.url.rpartition(":")[2]
    with pytest.raises(SocketError, match=f"127.0.0.1:{port}: cannot listen there"):
        app([*words, str(scene), "--port", port], exit_on_error=False, print_error=False)
    monkeypatch.setitem(sys.modules, "websockets", None)
    with pytest.raises(hr.MissingPackage, match="needs the package websockets,"):
        app([*words, str(scene), "--port", "0"], exit_on_error=False, print_error=False)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["fire", "own.toml", "-o", "no/a.parquet"], "no/a.parquet: the folder no does not exist"),
        (["fire", "own.toml", "-o", "a.parquet", "--picture", "no/a.png"], "no/a.png: the folder no does not exist"),
        (["fire", "own.toml", "--live", "--trajectory", "poses.tum"], "the scene has here"),
        (["serve", "own.toml", "--max-waiting", "0"], "max_waiting: expected at least 1"),
    ],
)
def test_what_can_be_refused_without_the_scene_is(tmp_path, scene, monkeypatch, words, part):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr("hedgerow.scenes.site.load_site")
    with pytest.raises(hr.HedgerowError) as caught:
        app([*words, *(["--port", "0"] if "--live" in words or "serve" in words else [])], exit_on_error=False)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["fire", "own.toml"], "--output: give the log to write, for example -o drive.parquet, or --live"),
        (["fire", "own.toml", "-o", "a.parquet", "--loop"], "--loop: only with --live"),
        (["fire", "own.toml", "--live", "--port", "70000"], "port: expected 0 to 65535"),
        (["serve", "own.toml", "--port", "-1"], "port: expected 0 to 65535"),
        (["serve", "own.toml", "--token", "short"], "--token: expected 16 to 200 letters"),
        (["fire", "own.toml", "--live", "--token", "short"], "--token: expected 16 to 200 letters"),
        (["fire", "own.toml", "--live", "--allow-origin", "*"], "--allow-origin '*': expected scheme and host"),
        (["serve", "own.toml", "--max-waiting", "0", "--port", "0"], "max_waiting: expected at least 1"),
        (["serve", "moon"], "moon: no such file or folder, nor the name of a scene"),
    ],
)
def test_the_command_line_refuses_in_one_sentence(tmp_path, scene, monkeypatch, words, part):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hr.HedgerowError) as caught:
        app(words, exit_on_error=False, print_error=False)
    assert part in str(caught.value) and "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]
