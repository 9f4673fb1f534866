# SPDX-License-Identifier: Apache-2.0
"""One good client of a sweep server in a crowd: alone, beside 200 silent clients, beside one that floods, beside both.

Server, flood and good client are processes of their own; conditions take turns, so that a busy moment hits all alike.
Half of the silent clients say nothing, the other half send half a handshake.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import numpy as np
from measure import Result, at_least

from hedgerow import LearnedWorld, Pose, Sensor
from hedgerow.live.client import Client, encode_advertisement, encode_message
from hedgerow.live.publisher import Address
from hedgerow.live.server import SweepServer
from hedgerow.world import Gaussians

N_SILENT = 200
TURNS, SWEEPS = 4, 60  # of each condition, and of each turn
POSE = Pose.from_xyz_rpy((0, 0, 1))
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"


def wall():
    points = np.stack(np.meshgrid([8.0], np.linspace(-6, 6, 60), np.linspace(-2, 4, 30)), axis=-1).reshape(-1, 3)
    stop = np.full(len(points), 0.4, np.float32)
    covariance = np.tile(np.eye(3) * 0.01, (len(points), 1, 1))
    return LearnedWorld(Gaussians.plain(points, covariance, stop=stop), kind="voxel")


def serve():
    """Answer until the standard input ends."""
    with SweepServer(wall(), Sensor.named("vlp-16"), Address(port=0), noise=False) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def flood(url):
    """Send poses as fast as the socket takes them, and read what comes, until the standard input ends."""
    from websockets import Subprotocol
    from websockets.sync.client import connect

    n, start_s = 0, time.monotonic()

    def end():
        sys.stdin.read()
        print(n, time.monotonic() - start_s, flush=True)
        os._exit(0)  # without a goodbye, which would wait behind the flood

    threading.Thread(target=end).start()
    with connect(url, subprotocols=[Subprotocol("foxglove.sdk.v1")], compression=None, max_size=None, proxy=None) as ws:
        threading.Thread(target=lambda: [None for _ in ws]).start()
        ws.send(encode_advertisement(1, "/pose", "json", "x"))
        message = encode_message(1, b'{"id": "flood", "pose": {"position_m": [0, 0, 1]}}')
        start_s = time.monotonic()
        print("flooding", flush=True)
        while True:
            ws.send(message)
            n += 1


@contextmanager
def started(*words):
    """A process of this file, until the block ends."""
    command = [sys.executable, __file__, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        yield process
        process.stdin.close()


@contextmanager
def silent(url):
    """Clients that open a connection and say nothing, or half of what a client says first."""
    where = ("127.0.0.1", int(url.rpartition(":")[2]))
    with ExitStack() as stack:
        for number in range(N_SILENT):
            client = stack.enter_context(socket.create_connection(where, timeout=5))
            if number % 2:
                client.sendall(HALF)
        yield


@contextmanager
def flooded(url, sent):
    """A flood; how many poses it sent, and in how many seconds, is noted at its end."""
    with started("flood", url) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        time.sleep(0.2)
        yield
        process.stdin.close()
        sent.append(tuple(map(float, process.stdout.read().split())))


def ask(client):
    """Seconds from pose to sweep, of each of some sweeps."""
    took_s = []
    for _ in range(SWEEPS):
        start_s = time.perf_counter()
        client.sweep(POSE, number=0)
        took_s.append(time.perf_counter() - start_s)
    return took_s


def latencies():
    """Seconds of each sweep by condition, and how many poses the flood sent in how many seconds."""
    found, sent = {"alone": [], "silent": [], "flood": [], "both": []}, []
    with started("serve") as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        for _ in range(TURNS):
            for condition, took_s in found.items():
                with ExitStack() as stack:
                    if condition in ("silent", "both"):
                        stack.enter_context(silent(url))
                    if condition in ("flood", "both"):
                        stack.enter_context(flooded(url, sent))
                    client = stack.enter_context(Client(url))
                    client.sweep(POSE, number=0)
                    took_s += ask(client)
    return found, sent


def results():
    found, sent = latencies()
    titles = {
        "alone": "one client alone",
        "silent": f"beside {N_SILENT} silent clients",
        "flood": "beside a flood",
        "both": f"beside {N_SILENT} silent clients and a flood",
    }
    alone_s = np.median(found["alone"])
    for condition, title in titles.items():
        median_ms, most_ms = 1e3 * np.quantile(found[condition], [0.5, 0.99])
        told = f"{median_ms:.1f} ms (99 %: {most_ms:.1f} ms)"
        if condition == "alone":
            yield Result(f"pose to sweep, vlp-16, {title}", told, "", None)
        else:
            goal = 0.8 if condition == "silent" else 0.25
            yield at_least(f"alone / {title}", float(alone_s / np.median(found[condition])), goal, told)
    n, seconds = np.sum(sent, axis=0)
    yield Result("poses that the flood got rid of", f"{n / seconds:,.0f} per s", "", None)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["flood"]:
        flood(sys.argv[2])
    else:
        for result in results():
            print(f"{result.what}: {result.value}")
