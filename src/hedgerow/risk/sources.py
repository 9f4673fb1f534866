# SPDX-License-Identifier: Apache-2.0
"""Where the logs of scenes come from: a recording, a world that its beams are fired at, or a function.

A scene is one log with what is true there. Scenes of a drive are groups of consecutive sweeps. A simulated source has
the same scenes as the real one, with the same truth; only what came back is simulated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from hedgerow.apps.drive import DriveTruth, GroundMap, map_ground, sweep_poses
from hedgerow.base.arguments import as_whole
from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.io.source import LogSource
from hedgerow.log import Log, Returns
from hedgerow.metrics.matching import limit_ranges, require_same_beams
from hedgerow.simulate import replay, require_same_map
from hedgerow.world import World

Role = Literal["real", "again", "half", "simulated"]
"""again: another recording of the same kind of scenes. half: every second sweep of the real log, one of two."""


class Scene(NamedTuple):
    """What a program runs on."""

    log: Log
    truth: Any
    """Whatever the program compares its answer with."""


class Source(Protocol):
    """Scenes by name."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def role(self) -> Role:
        """What it is there for."""
        ...

    @property
    def identity(self) -> str:
        """Changes when the content does, so that runs on other content are not taken for runs on this."""
        ...

    @property
    def is_random(self) -> bool:
        """Whether another seed gives another log."""
        ...

    @property
    def scenes(self) -> Sequence[str]:
        """Names of the scenes, in order."""
        ...

    def scene(self, name: str, seed: int) -> Scene:
        """Return a scene, simulated with that seed if the source is random."""
        ...


@dataclass(frozen=True)
class FunctionSource:
    """Scenes that a function makes."""

    name: str
    scenes: Sequence[str]
    make: Callable[[str, int], Scene]
    """From name and seed to the scene."""
    role: Role = "simulated"
    is_random: bool = True
    identity: str = ""

    def scene(self, name: str, seed: int) -> Scene:
        """Call the function."""
        return self.make(name, seed)


class Drive:
    """A recording cut into scenes, with what is true in them."""

    def __init__(
        self,
        recording: LogSource,
        scene_sweeps: int = 10,
        *,
        trajectory: Trajectory | None = None,
        ground: bool = True,
        sweeps: Sequence[int] | None = None,
    ) -> None:
        """Cut a recording into groups of consecutive sweeps; sweeps left over at the end are left out.

        Args:
            recording: the real log.
            scene_sweeps: how many sweeps a scene has.
            trajectory: T_map_sensor. Default: the recording's own, or level frames along the path (`sweep_poses`).
            ground: whether to map the ground, which takes two readings of the log.
            sweeps: numbers of those that scenes are made of. Default: all. The ground is mapped from all.

        Raises:
            InputError: fewer sweeps than one scene needs.
        """
        as_whole("scene_sweeps", scene_sweeps, 1, 1_000_000)
        numbers = recording.sweeps.tolist() if sweeps is None else list(sweeps)
        n_scenes = len(numbers) // scene_sweeps
        if n_scenes == 0:
            raise InputError("scene_sweeps", f"is {scene_sweeps}, but there are {len(numbers)} sweeps")
        groups = [numbers[i * scene_sweeps : (i + 1) * scene_sweeps] for i in range(n_scenes)]
        self.sweeps: dict[str, list[int]] = {f"{each[0]:06d}-{each[-1]:06d}": each for each in groups}
        self.recording = recording
        self.trajectory = trajectory or recording.trajectory
        self.ground: GroundMap | None = _map(recording) if ground else None
        self._last: tuple[str, Scene] | None = None

    def half(self, every_second: int) -> "Drive":
        """Return the same scenes with every second sweep; what is true stays."""
        new = object.__new__(Drive)
        new.__dict__ |= self.__dict__ | {"_last": None}
        new.sweeps = {name: numbers[every_second::2] for name, numbers in self.sweeps.items()}
        return new

    def scene(self, name: str) -> Scene:
        """Return the real scene; the last one is kept."""
        if self._last is None or self._last[0] != name:
            log = self.recording.read(self.sweeps[name])
            self._last = name, Scene(log, DriveTruth(sweep_poses(log, self.trajectory), self.ground))
        return self._last[1]


def _map(recording: LogSource) -> GroundMap:
    return map_ground(lambda: (log for _, log in recording.iter_sweeps()))


@dataclass(frozen=True)
class RecordedSource:
    """The real drive itself, or another recording."""

    drive: Drive
    name: str = "real"
    role: Role = "real"
    identity: str = ""
    is_random: bool = False

    @property
    def scenes(self) -> Sequence[str]:
        """Names of the scenes."""
        return list(self.drive.sweeps)

    def scene(self, name: str, seed: int) -> Scene:
        """Read the scene."""
        return self.drive.scene(name)


@dataclass(frozen=True)
class SimulatedSource:
    """A world that the beams of the real drive are fired at, or a log of these beams."""

    name: str
    drive: Drive
    simulated: World | LogSource
    identity: str = ""
    role: Role = "simulated"
    is_random: bool = field(init=False)

    def __post_init__(self) -> None:
        """Tell whether another seed gives another log."""
        object.__setattr__(self, "is_random", isinstance(self.simulated, World))

    @property
    def scenes(self) -> Sequence[str]:
        """Names of the scenes."""
        return list(self.drive.sweeps)

    def scene(self, name: str, seed: int) -> Scene:
        """Fire the scene's beams, or read what was recorded of them.

        Raises:
            InputError: a recorded simulation has other beams; names the sweep.
        """
        real = self.drive.scene(name)
        if isinstance(self.simulated, World):
            require_same_map(self.name, self.simulated, real.log)
            return Scene(replay(self.simulated, real.log, seed=seed), real.truth)
        return Scene(self._recorded(self.simulated, real.log, self.drive.sweeps[name]), real.truth)

    def _recorded(self, source: LogSource, real: Log, numbers: list[int]) -> Log:
        missing = set(numbers) - set(source.sweeps.tolist())
        if missing:
            raise InputError(
                self.name, f"has no sweep {min(missing)}, which the real log has; both need the same beams"
            )
        parts: list[Log] = []
        for number, simulated in source.read(numbers).iter_sweeps():
            sweep = real.select(sweep=number)
            require_same_beams(self.name, sweep, simulated)
            range_m = limit_ranges(simulated.returns.first_m, sweep)
            parts.append(sweep.with_returns(_first(simulated.returns, range_m)))
        return Log.concatenate(parts)


def _first(returns: Returns, range_m: Any) -> Returns:
    """Return the first return of each pulse, with ranges that were limited."""
    kept = np.isfinite(range_m)
    intensity = returns.intensity
    if intensity is not None:
        first = intensity if intensity.ndim == 1 else intensity[:, 0]
        intensity = np.where(kept, first, np.float32(np.nan)).astype(np.float32)
    return Returns(range_m.astype(np.float32), intensity=intensity)


def digest(path: str | Path) -> str:
    """Return a digest of the bytes of a file, or of all files in a folder; the text itself if there is no such path."""
    from hashlib import blake2b

    place = Path(path)
    if not place.exists():
        return str(path)
    found = blake2b(digest_size=16)
    for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if file.is_file():
            found.update(str(file.relative_to(place)).encode())
            with file.open("rb") as content:
                while block := content.read(1 << 20):
                    found.update(block)
    return found.hexdigest()
