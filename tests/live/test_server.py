# SPDX-License-Identifier: Apache-2.0
"""Pose in, returns out, through a real socket on a free port of this machine."""

import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from mcap_ros2._dynamic import serialize_dynamic
from websockets import Subprotocol
from websockets.sync.client import connect

from hedgerow import Beams, InputError, MissingPackage, Pose, Trajectory, World
from hedgerow.errors import SocketError
from hedgerow.io.ros.messages import POINT_CLOUD2, POSE_STAMPED, TF_MESSAGE
from hedgerow.live import client as protocol
from hedgerow.live import publisher as packages
from hedgerow.live.client import Client
from hedgerow.live.points import make_points
from hedgerow.live.publisher import Address, Publisher, encode_transform
from hedgerow.live.server import SweepServer
from hedgerow.sensor.drive import Aim
from hedgerow.simulate import fire_sweep

HERE = Pose.from_xyz_rpy((1, 0.5, 1), (0.01, 0.02, 0.1))
THERE = Pose.from_xyz_rpy((1.4, 0.6, 1.1), (0.0, 0.02, 0.2))


def direct(world, sensor, start, end, *, seed=0, number=0, stamp_ns=0):
    """The same sweep without any socket, by the public interface."""
    times = np.array([stamp_ns, stamp_ns + round(sensor.sweep_s * 1e9)])
    beams = sensor.drive(Trajectory.from_poses(times, [start, end]), n_sweeps=1)
    counted = {"pulse": beams.pulse + number * sensor.pulses_per_sweep, "sweep": beams.sweep + np.int32(number)}
    return world.fire(Beams.without_checks(beams.columns() | counted), seed, sensor=sensor)


def ros_pose(pose, stamp_ns):
    """A geometry_msgs/PoseStamped in CDR, as another program writes it."""
    seconds, nanoseconds = divmod(stamp_ns, 10**9)
    kind = packages.ros2_messages().definition(POSE_STAMPED)
    header = {"stamp": {"sec": seconds, "nanosec": nanoseconds}, "frame_id": "map"}
    position, orientation = (
        dict(zip("xyzw", values, strict=False)) for values in (pose.position_m, pose.quaternion_xyzw)
    )
    message = {"header": header, "pose": {"position": position, "orientation": orientation}}
    return serialize_dynamic(POSE_STAMPED, kind)[POSE_STAMPED](message)


@contextmanager
def opened(url):
    """Connect by hand; give the socket and the server's channels by topic."""
    with connect(url, subprotocols=[Subprotocol("foxglove.sdk.v1")], compression=None, max_size=None, proxy=None) as ws:
        channels = []
        while not channels:
            channels = json.loads(ws.recv(timeout=10)).get("channels", [])
        yield ws, {each["topic"]: each for each in channels}


def raw_request(url, messages, *, topic="/pose", encoding="json", schema="x", heard=lambda lines: None):
    """Publish messages by hand; return what comes on /answers, a line for each, and the last cloud."""
    with opened(url) as (ws, channels):
        ws.send(protocol.encode_subscription({channels["/answers"]["id"]: 1, channels["/points"]["id"]: 2}))
        ws.send(protocol.encode_advertisement(3, topic, encoding, schema))
        n = 0
        for message in messages:
            ws.send(protocol.encode_message(3, message))
            n += 1
        lines, cloud = [], None
        while len(lines) < n:
            data = protocol.decode_message(ws.recv(timeout=10))
            if isinstance(data, protocol.TopicMessage) and data.subscription == 1:
                lines.append(json.loads(data.payload))
                heard(lines)
            elif isinstance(data, protocol.TopicMessage):
                cloud = packages.ros2_messages().read_cloud(data.payload)
        return lines, cloud


def test_channels_say_what_they_carry_and_tf_where_the_sensor_is(server, client):
    with opened(server.url) as (ws, channels):
        kinds = {
            topic: (each["encoding"], each["schemaName"]) for topic, each in channels.items() if topic != "/answers"
        }
        assert kinds == {"/points": ("cdr", POINT_CLOUD2), "/tf": ("cdr", TF_MESSAGE)}
        assert channels["/points"]["schemaEncoding"] == "ros2msg"
        assert channels["/points"]["schema"] == packages.ros2_messages().definition(POINT_CLOUD2)
        ws.send(protocol.encode_subscription({channels["/tf"]["id"]: 4}))
        ws.ping().wait(10)  # the subscription is in force
        client.sweep(HERE, end=THERE, stamp_ns=5)
        data = None
        while not isinstance(data, protocol.TopicMessage):
            data = protocol.decode_message(ws.recv(timeout=10))
    assert data.payload == encode_transform(HERE, 5)


def test_a_sweep_over_the_socket_is_that_of_a_direct_fire(world, sensor, client):
    sweep = client.sweep(HERE, end=THERE, seed=11, number=3, stamp_ns=5_000_000_007)
    log = direct(world, sensor, HERE, THERE, seed=11, number=3, stamp_ns=5_000_000_007)
    assert sweep.points.tobytes() == make_points(sensor, log, 5_000_000_007).tobytes()
    assert (sweep.cloud.stamp_ns, sweep.cloud.frame_id) == (5_000_000_007, "lidar")
    assert (sweep.sensor, sweep.seed, sweep.number) == ("vlp-16", 11, 3)
    assert len(sweep.points) > 1000
    assert np.abs(sweep.map_points() - log.points()).max() < 1e-5  # float32 directions at 10 m: 1e-6


def test_a_velocity_is_a_second_pose(world, sensor, client):
    sweep = client.sweep(HERE, velocity_mps=(10, 0, 0), number=0)
    end = Pose(HERE.position_m + np.array([10 * sensor.sweep_s, 0, 0]), HERE.quaternion_xyzw)
    assert sweep.points.tobytes() == client.sweep(HERE, end=end, number=0).points.tobytes()
    assert sweep.points.tobytes() != client.sweep(HERE, number=0).points.tobytes()


def test_sweeps_count_up_so_that_noise_differs_and_can_be_repeated(client):
    first, second = client.sweep(HERE), client.sweep(HERE)
    assert (first.number, second.number) == (0, 1)
    assert first.points.tobytes() != second.points.tobytes()
    assert client.sweep(HERE, number=1).points.tobytes() == second.points.tobytes()


def test_misses_are_sent_when_asked_for(client, sensor):
    sweep = client.sweep(HERE, misses=True, number=0)
    assert len(sweep.points) == sensor.pulses_per_sweep
    hit = np.isfinite(sweep.xyz()).all(axis=1)
    assert sweep.points[hit].tobytes() == client.sweep(HERE, number=0).points.tobytes()
    assert np.isnan(sweep.map_points()[~hit]).all()


@pytest.mark.parametrize("noise", [None, False, True])
def test_a_learned_world_has_its_noise_and_gets_more_only_when_asked_for(world, sensor, noise):
    with SweepServer(world, sensor, Address(port=0), noise=noise) as server, Client(server.url) as client:
        sweep = client.sweep(HERE, seed=2)
    log = direct(world, sensor, HERE, HERE, seed=2)
    log = sensor.degrade(log, 2) if noise else log
    assert sweep.points.tobytes() == make_points(sensor, log, 0).tobytes()


def test_pulses_are_aimed_by_the_seed_of_the_request(world, sensor):
    aim = Aim("uniform", cone=True)
    with SweepServer(world, sensor, Address(port=0), aim=aim) as server, Client(server.url) as client:
        answer = client.sweep(HERE, stamp_ns=0, seed=5, number=2)
    standing = Trajectory.from_poses([0, round(sensor.sweep_s * 1e9)], [HERE, HERE])
    expected = fire_sweep(world, sensor, standing, 2, 0, seed=5, aim=replace(aim, seed=5))
    assert answer.points.tobytes() == make_points(sensor, expected, 0).tobytes()
    plain = fire_sweep(world, sensor, standing, 2, 0, seed=5)
    assert not np.array_equal(plain.returns.range_m, expected.returns.range_m)


def test_a_ros_pose_is_answered_with_its_stamp(server, world, sensor):
    data = ros_pose(HERE, 9_000_000_001)
    schema = "geometry_msgs/msg/PoseStamped"
    [line], cloud = raw_request(server.url, [data], encoding="cdr", schema=schema)
    assert cloud is not None
    assert cloud.stamp_ns == line["stamp_ns"] == 9_000_000_001
    log = direct(world, sensor, HERE, HERE, stamp_ns=9_000_000_001)
    assert cloud.points.tobytes() == make_points(sensor, log, 9_000_000_001).tobytes()


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        (b'{"id": "a", "pose": {"position_m": [0, NaN, 0]}}', "pose.position_m[1]: input should be a finite number"),
        (b'{"id": "a", "pose": {"position_m": [0, 0]}}', "pose.position_m[2]: missing"),
        (b'{"id": "a", "pose": {"position_m": [0, 0, 0, 0]}}', "pose.position_m"),
        (b'{"id": "a", "pose": {"position_m": [0, 0, 1e300]}}', "pose.position_m[2]: input should be less than"),
        (b'{"id": "a", "pose": {"position_m": [0, 0, 0], "quaternion_xyzw": [0, 0, 0, 2]}}', "quaternion_xyzw"),
        (b'{"id": "a"}', "pose: missing"),
        (
            b'{"id": "a", "pose": {"position_m": [0, 0, 0]}, "sede": 1}',
            "sede: a request has no such parameter; did you mean seed?",
        ),
        (b'{"id": "a", "pose": {"position_m": [0, 0, 0]}, "seed": -1}', "seed: input should be greater than"),
        (b'{"id": "a", "pose": {"position_m": [0, 0, 0]}, "stamp_ns": 1e30}', "stamp_ns"),
        (b'{"id": "a", "pose": 3, "end": 4}', "pose"),
        (
            b'{"id": "a", "pose": {"position_m": [0,0,0]}, "end": {"position_m": [0,0,0]}, "velocity_mps": [1,1,1]}',
            "velocity_mps: give either this or end",
        ),
    ],
)
def test_a_wrong_request_gets_one_sentence_and_the_next_one_its_sweep(server, request_, part):
    good = b'{"id": "b", "pose": {"position_m": [0, 0, 1]}}'
    lines, cloud = raw_request(server.url, [request_, good])
    wrong, right = sorted(lines, key=lambda line: line["id"])
    assert wrong["id"] == "a" and part in wrong["error"] and "\n" not in wrong["error"]
    assert cloud is not None
    assert right["id"] == "b" and right["n_points"] == len(cloud.points) > 1000


@pytest.mark.parametrize(
    ("data", "kind", "part"),
    [
        (b"", {}, "request: not JSON"),
        (b"\xff\xfe", {}, "request: not JSON"),
        (b"[" * 100_000, {}, "request: not JSON"),
        (b"[1, 2]", {}, "request: expected a JSON object, found [1, 2]"),
        (b"{}", {"topic": "/goal"}, "/goal: nothing is listened for there; publish poses on /pose"),
        (b"{}", {"encoding": "protobuf"}, "/pose: encoding 'protobuf' is not known"),
        (b"", {"encoding": "cdr"}, "/pose: message 'x' is not known; use geometry_msgs/msg/PoseStamped"),
        (b"", {"encoding": "cdr", "schema": "geometry_msgs/PoseStamped"}, "PoseStamped: does not start like"),
        (
            b"\0\1\0\0abc",
            {"encoding": "cdr", "schema": "geometry_msgs/PoseStamped"},
            "PoseStamped: its 7 bytes are cut off",
        ),
    ],
)
def test_a_message_of_another_kind_gets_one_sentence(server, data, kind, part):
    [line], cloud = raw_request(server.url, [data], **kind)
    assert part in line["error"] and "\n" not in line["error"]
    assert cloud is None


def test_a_ros_pose_with_nan_gets_one_sentence(server):
    data = bytearray(ros_pose(HERE, 0))
    data[-8:] = np.array([np.nan]).tobytes()
    [line], _ = raw_request(server.url, [bytes(data)], encoding="cdr", schema="geometry_msgs/PoseStamped")
    assert "pose.quaternion_xyzw[3]: input should be a finite number" in line["error"]


def test_several_clients_each_get_their_own_answers(server):
    found = {}

    def ask(x_m):
        with Client(server.url) as client:
            found[x_m] = [client.sweep(Pose.from_xyz_rpy((x_m, 0, 1)), misses=True) for _ in range(3)]

    threads = [threading.Thread(target=ask, args=(x_m,)) for x_m in (0.0, 2.0, 4.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x_m, sweeps in found.items():
        for sweep in sweeps:
            ahead = sweep.xyz()[np.abs(sweep.points["y"]) < 0.3]
            assert abs(np.median(ahead[ahead[:, 0] > 0, 0]) - (8 - x_m)) < 0.3  # the wall's sigma is 0.1 m
    assert sorted(found) == [0.0, 2.0, 4.0]
    assert server.n_answered == 9


def test_poses_beyond_the_backlog_drop_the_oldest_with_a_message(world, sensor):
    busy, go = threading.Event(), threading.Event()

    class Slow(World):
        def returns(self, beams, shot):
            busy.set()
            go.wait(10)
            return world.returns(beams, shot)

    def requests():
        for k in range(5):
            yield json.dumps({"id": str(k), "pose": {"position_m": [0, 0, 1]}}).encode()
            busy.wait(10)  # the first is being fired when the others come

    def heard(lines):
        if len(lines) == 2:
            go.set()

    with SweepServer(Slow(), sensor, Address(port=0), max_waiting=2) as server:
        lines, _ = raw_request(server.url, requests(), heard=heard)
    assert [line["id"] for line in lines] == ["1", "2", "0", "3", "4"]
    assert ["error" in line for line in lines] == [True, True, False, False, False]
    assert "dropped: more than 2 poses were waiting" in lines[0]["error"]
    assert [line["number"] for line in lines[2:]] == [0, 1, 2]


def test_a_bug_while_firing_is_told_and_the_server_lives_on(world, sensor):
    class Broken(World):
        def returns(self, beams, shot):
            if shot.seed == 1:
                raise RuntimeError("no luck")
            return world.returns(beams, shot)

    with SweepServer(Broken(), sensor, Address(port=0)) as server, Client(server.url) as client:
        with pytest.raises(InputError, match="the server failed with RuntimeError: no luck"):
            client.sweep(HERE, seed=1)
        assert len(client.sweep(HERE).points) > 1000


def test_it_listens_to_this_machine_alone_unless_told_otherwise(server):
    assert Address() == Address("127.0.0.1", 8765)
    port = int(server.url.rpartition(":")[2])
    assert server.url == f"ws://127.0.0.1:{port}"
    with socket.socket() as other, pytest.raises(OSError):
        other.connect(("127.0.0.2", port))  # loopback too, but another address: a wildcard would answer


def test_a_busy_port_is_refused_in_one_sentence(server, world, sensor):
    port = int(server.url.rpartition(":")[2])
    for listen in (lambda: SweepServer(world, sensor, Address(port=port)), Address(port=port).require_free):
        with pytest.raises(SocketError) as caught:
            listen()
        assert str(caught.value).startswith(f"127.0.0.1:{port}: cannot listen there (Address already in use")
        assert "\n" not in str(caught.value) and "--port" in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_looking_whether_a_port_is_free_leaves_it_so(host):
    with socket.socket(socket.AF_INET6 if host == "::1" else socket.AF_INET) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        port = probe.getsockname()[1]
    for _ in range(2):
        Address(host, port).require_free()
    with Publisher(Address(host, port), "x") as publisher:
        assert publisher.url.endswith(f":{port}")


def test_wrong_addresses_are_refused(world, sensor):
    with pytest.raises(InputError, match="port: expected 0 to 65535, found 80000"):
        Address(port=80000)
    for listen in (lambda where: Publisher(where, "x"), Address.require_free):
        with pytest.raises(SocketError, match=r"192\.0\.2\.1:0: cannot listen there"):
            listen(Address("192.0.2.1", 0))  # reserved for documents, RFC 5737
    with pytest.raises(InputError, match="max_waiting: expected at least 1"):
        SweepServer(world, sensor, max_waiting=0)


def test_a_client_without_a_server_says_so(server):
    server.close()
    with pytest.raises(SocketError, match=r"nobody answers .*; is hedgerow serve running there\?"):
        Client(server.url)
    with pytest.raises(SocketError, match="nobody answers"):
        Client("http://nowhere")


def test_a_client_whose_server_goes_says_so(server, client):
    server.close()
    with pytest.raises(SocketError, match="the server is gone"):
        client.sweep(HERE)


def test_a_client_checks_what_it_asks_for(client):
    with pytest.raises(InputError, match="seed: input should be greater"):
        client.sweep(HERE, seed=-1)
    with pytest.raises(InputError, match=r"velocity_mps\[2\]: missing"):
        client.sweep(HERE, velocity_mps=(1, 2))


@pytest.mark.parametrize("package", ["websockets", "rosbags"])
@pytest.mark.parametrize("call", ["Publisher(Address(), 'x')", "Address().require_free()"])
def test_an_absent_package_is_named_with_the_pip_line(package, call):
    with pytest.raises(MissingPackage, match=r"package no_such_package, .*pip install 'hedgerow\[live\]'"):
        packages.live_package("no_such_package.part")
    code = (
        f"import sys; sys.modules['{package}'] = None\nfrom hedgerow.live.publisher import Address, Publisher\n{call}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"needs the package {package}," in done.stderr.splitlines()[-1]
