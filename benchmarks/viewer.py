# SPDX-License-Identifier: Apache-2.0
"""Frames per second of the viewer in headless Chromium, without a GPU, while the camera is dragged.

    python benchmarks/viewer.py [--points N] [--points-moving N] [--query '?fixedDpr=0.5']

Shows the courtyard, 25 sweeps together, and drags the camera. A frame counts when points were drawn in it. The same
run without level of detail: --points-moving 0. Without a GPU a frame of 2 million points takes
seconds: --points 250000.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from chromium import Browser

COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()", "view", "courtyard", "--port", "0"]
X, Y = 400, 450
COUNT = """
window.frames_drawn = [];
const draw = WebGL2RenderingContext.prototype.drawArrays;
WebGL2RenderingContext.prototype.drawArrays = function (mode, first, count) {
  if (mode === this.POINTS) {
    const time_ms = document.timeline.currentTime, last = window.frames_drawn.at(-1);
    if (last && last[0] === time_ms) last[1] += count; else window.frames_drawn.push([time_ms, count]);
  }
  return draw.apply(this, arguments);
};
"""


def frames(browser):
    """Time [ms] and points of each frame so far."""
    return browser.run("window.frames_drawn")


def mouse(browser, kind, x, **more):
    browser.send("Input.dispatchMouseEvent", type=kind, x=x, y=Y, button="left", **more)


def drag(browser, seconds):
    """Drag the camera to and fro; return the frames of that time."""
    began = len(frames(browser))
    mouse(browser, "mousePressed", X, clickCount=1)
    end, step = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        step += 1
        mouse(browser, "mouseMoved", X + abs(step * 4 % 400 - 200), buttons=1)
    mouse(browser, "mouseReleased", X, clickCount=1)
    return frames(browser)[began:]


def cpu_seconds(process):
    """Processor time so far of a process and all those that it started."""
    started, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            started.setdefault(int(fields[1]), []).append(int(folder.name))
            spent[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    ids = [process.pid]
    for number in ids:
        ids += started.get(number, [])
    return sum(spent.get(number, 0.0) for number in ids)


def told(title, drawn):
    if len(drawn) < 3:
        return f"{title}: {len(drawn)} frames"
    seconds = (drawn[-1][0] - drawn[0][0]) / 1000
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(drawn)]
    rate, points = (len(drawn) - 1) / seconds, sorted(n for _, n in drawn)
    middle, longest = sorted(gaps)[len(gaps) // 2], max(gaps)
    return (
        f"{title}: {rate:.1f} frames/s, middle {middle:.0f} ms, longest {longest:.0f} ms, "
        f"{points[len(points) // 2]:,} points (from {points[0]:,} to {points[-1]:,})"
    )


def refined(browser, patience_s=8):
    """When the points of the last frames grew to what they stay at, in seconds after now, and how many they are."""
    began, seen = len(frames(browser)), []
    time.sleep(patience_s)
    seen = frames(browser)[began:]
    most = seen[-1][1]
    first = next(time_ms for time_ms, n in seen if n == most)
    return (first - seen[0][0]) / 1000, most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", default="2000000")
    parser.add_argument("--points-moving")
    parser.add_argument("--query", default="")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    command = [*COMMAND, "--sweep", "24", "--accumulate", "25", "--points", asked.points]
    command += ["--points-moving", asked.points_moving] if asked.points_moving is not None else []
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        url = running.stdout.readline().split()[1]
        with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
            browser.send("Page.addScriptToEvaluateOnNewDocument", source=COUNT)
            began = time.monotonic()
            browser.open(url + "/" + asked.query)
            browser.wait_for("points", 100)
            while not frames(browser):
                time.sleep(0.1)
            print(f"first points after {time.monotonic() - began:.1f} s")
            time.sleep(10)
            print(f"at rest: {frames(browser)[-1][1]:,} points")
            for number in (1, 2, 3):
                before_s = cpu_seconds(browser.process)
                drawn = drag(browser, asked.seconds)
                cpu_ms = 1000 * (cpu_seconds(browser.process) - before_s) / max(len(drawn), 1)
                print(told(f"drag {number}", drawn) + f", {cpu_ms:.0f} ms of processor time per frame")
                if asked.picture and number == 3:
                    browser.screenshot(asked.picture.with_stem(asked.picture.stem + "_moving"))
                seconds, most = refined(browser)
                print(f"  at rest: {most:,} points after {seconds:.1f} s")
            if asked.picture:
                browser.screenshot(asked.picture)
    finally:
        running.send_signal(2)
        running.wait(30)
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")


main()
