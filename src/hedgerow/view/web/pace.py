# SPDX-License-Identifier: Apache-2.0
"""Pace: how many points the browser in use can draw, from how fast it proves to be. No server in here.

While the camera moves, its messages come once per frame: their distance is the time of a frame, however far away the
browser is. At rest the browser is asked to draw, and the time to its answer counts.
"""

import threading
from collections import deque

import numpy as np

START = 250_000
"""Points that are drawn before anything is known."""
FEWEST, FEWEST_RESTING = 15_000, 125_000
MOVING_S, QUICK_S = 0.1, 0.05
"""While the camera moves: slower frames get fewer points, quicker ones more."""
RESTING_S = 2.0
"""At rest the answer may take so long. It waits for two or three frames: a frame then takes less than a second."""
REST_AFTER_S = 0.3
"""Without a message of the camera for so long it rests; if frames are slow, for three of them, or one at rest."""
_SAME_FRAME_S, _HALT_S = 0.03, 2.0
"""Messages so close are of one frame, which sends up to two; after so long the camera had come to rest."""
_FEW, _MANY = 5, 10
"""So many slow frames get fewer points, so many quick ones more."""
_ALL = 2**62


class Pace:
    """The budgets of points; called from several threads."""

    def __init__(self, moving_points: int | None = None) -> None:
        """Start carefully, or with a fixed number while moving (0: all) and all at rest."""
        self.fixed = moving_points
        self._lock = threading.Lock()
        self._moving = self._resting = START
        self._measured, self._answer_s = False, 0.0
        self._moved_s = self._frame_s = -np.inf
        self._frames_s: deque[float] = deque(maxlen=_MANY)
        self._lately_s: deque[float] = deque(maxlen=_FEW)  # kept over rests: a slow browser begins slowly too
        self._asked: set[int] = set()

    def restart(self) -> None:
        """Forget what is known: another browser is in use."""
        with self._lock:
            self._moving = self._resting = START
            self._measured, self._answer_s = False, 0.0
            self._frames_s.clear()
            self._lately_s.clear()
            self._asked.clear()

    def moved(self, now_s: float) -> None:
        """Take note of a message of the camera."""
        with self._lock:
            self._moved_s = now_s
            frame_s = now_s - self._frame_s
            if frame_s < _SAME_FRAME_S:
                return
            self._frame_s = now_s
            self._asked.clear()
            if frame_s > _HALT_S:
                self._frames_s.clear()
            else:
                self._frames_s.append(frame_s)
                self._lately_s.append(frame_s)
                self._adapt()

    def _adapt(self) -> None:
        times = list(self._frames_s)  # medians: a hand that halts leaves gaps
        if len(times) >= _FEW and (frame_s := float(np.median(times[-_FEW:]))) > MOVING_S:
            more = max(MOVING_S / frame_s, 0.25)
        elif len(times) == _MANY and float(np.median(times)) < QUICK_S:
            more = 2.0
        else:
            return
        self._measured = True
        self._moving = int(np.clip(self._moving * more, FEWEST, _ALL))
        self._frames_s.clear()

    def should_ask(self, n_points: int, now_s: float) -> bool:
        """Tell whether to ask the browser how long so many points take: once for each rest and number."""
        resting = self.rests_in_s(now_s) <= 0
        with self._lock:
            new = self.fixed is None and resting and n_points not in self._asked
            if new:
                self._asked.add(n_points)
            return new

    def drew(self, n_points: int, asked_s: float, now_s: float) -> None:
        """Take note that the browser has drawn so many points, and when it was asked to."""
        seconds = now_s - asked_s
        with self._lock:
            if self._moved_s > asked_s:
                return  # it was busy with the camera
            self._answer_s = seconds
            if 2 * seconds <= RESTING_S:
                self._resting = max(self._resting, 2 * n_points)
            elif seconds > RESTING_S:
                self._resting = max(n_points // 2, FEWEST_RESTING)
            else:
                self._resting = max(n_points, FEWEST_RESTING)
            if not self._measured and seconds > MOVING_S:
                self._moving = max(min(self._moving, int(n_points * MOVING_S / seconds)), FEWEST)

    def rests_in_s(self, now_s: float) -> float:
        """Return how long until the camera counts as resting; 0 or less if it does."""
        with self._lock:
            usual_s = float(np.median(self._lately_s)) if self._lately_s else 0.0
            # The first frame of a movement still is one at rest: nothing is heard of the camera until it is drawn.
            return self._moved_s + min(max(REST_AFTER_S, 3 * usual_s, self._answer_s), _HALT_S) - now_s

    def budget(self, now_s: float) -> int:
        """Return how many points may be drawn now."""
        moving = self.rests_in_s(now_s) > 0
        if self.fixed is not None:
            return (self.fixed if moving else 0) or _ALL
        # No more while moving than at rest: a cloud that grows when it is touched would be odd.
        return min(self._moving, self._resting) if moving else self._resting
