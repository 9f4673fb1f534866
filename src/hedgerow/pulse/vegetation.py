# SPDX-License-Identifier: Apache-2.0
"""Vegetation response (Mattes 2021): range noise and second returns on whatever is labelled vegetation.

A coarse model of a plant (a hull, a few cards, large leaves) returns ranges that are too smooth. Mattes 2021 adds a
normal number to the range of each return on vegetation, but never past the next object behind it on the same beam, and
gives that object as the second return. By default the next *solid* object counts, all that is not labelled vegetation:
Mattes 2021 speaks of "any objects" (§3.1) and of "a hard object" (§4.1), and a plant of single leaves would otherwise
hold back its own scatter. `behind = "any"` counts the next leaf, too. This stands for detail that the model does not
have; a world of real leaves and a beam of many sub-rays (`PhysicsWorld`) has that spread by itself.

    scattering = world.with_vegetation(VegetationSettings(labels=(70,), mean_m=0.0, sigma_m=1.0, dual=True))
    log = scattering.fire(beams, seed=7, sensor=sensor)

Equations: docs/models.md §21.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hedgerow.base import randomness
from hedgerow.base.columns import Columns
from hedgerow.base.labels import LABELS, with_finer
from hedgerow.base.parameters import Finite, NotNegative, Parameters
from hedgerow.base.settings_file import read_toml
from hedgerow.errors import FileError, InputError, ParameterError
from hedgerow.log import MISSING, Beams, Log, Returns

Label = Annotated[int, Field(ge=0, le=65535)]

NEAREST_M = 0.001
"""No range falls below this, even of a sensor without a minimum: a range is above 0."""
_PAST_M = 0.001
"""What is sought behind a leaf is at least this far behind it, so that the leaf itself is not found."""
_TAIL = 8.0
"""A normal number is farther out than this with a probability of 1e-15."""
_MISSING: dict[str, np.generic] = {"range_m": np.float32(np.inf), **MISSING}
_ABSENT: Columns = dict.fromkeys(_MISSING)


class VegetationSettings(Parameters):
    """What is vegetation, and how far its returns scatter."""

    labels: Annotated[tuple[Label, ...], Field(min_length=1)] = (70,)
    """Labels of vegetation, each with the finer ones that fold into it: 70, SemanticKITTI's vegetation, is also our
    grass, shrubs and leaves. Everything else is solid."""
    mean_m: Finite | dict[Label, Finite] = 0.0
    """Mean of the range error on vegetation [m]: one number, or one for each label."""
    sigma_m: NotNegative | dict[Label, NotNegative] = 1.0
    """Standard deviation of the range error [m], about 1 m on bushes in Mattes 2021: one number, or one per label."""
    dual: bool = False
    """Whether a pulse has two returns. The second is from the object behind the vegetation; it repeats the first where
    that is not on vegetation."""
    behind: Literal["solid", "any"] = "solid"
    """Which object behind the vegetation limits the error and is the second return. solid: the next that is not
    vegetation. any: the next of any kind, another leaf included."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("mean_m", "sigma_m"):
            value = getattr(self, name)
            if isinstance(value, dict) and set(value) != set(self.labels):  # pyright: ignore[reportUnknownArgumentType]
                raise ParameterError((name,), f"has values for other labels than labels, {sorted(self.labels)}")
        return self

    @property
    def all_labels(self) -> frozenset[int]:
        """All labels of vegetation: those named, and the finer ones that fold into them."""
        return with_finer(self.labels)

    @property
    def passed_labels(self) -> frozenset[int]:
        """Labels of what does not count as an object behind the vegetation."""
        return self.all_labels if self.behind == "solid" else frozenset()

    @classmethod
    def load(cls, path: str | Path, **changes: Any) -> Self:
        """Read the table [vegetation] of a TOML file, as `hedgerow calibrate vegetation` writes it.

        Args:
            path: the file; other tables in it are left alone.
            changes: settings that replace those of the file, for example `dual=True`.

        Raises:
            FileError: missing, no TOML, without the table, or a setting is wrong; names it.
        """
        table = read_toml(Path(path), "file of vegetation settings").get("vegetation")
        if not isinstance(table, dict):
            raise FileError(f"{path}: has no table [vegetation]; hedgerow calibrate vegetation writes one")
        return cls.parse_from(cast("dict[str, Any]", table) | changes, path, "vegetation")


FirstBehind = Callable[[Beams, NDArray[np.float32], NDArray[np.float32]], dict[str, NDArray[Any]]]
"""Finds the first object of each beam from a near to a far range whose label is not passed: columns of returns."""


def respond(
    log: Log, settings: VegetationSettings, seed: int, first_behind: FirstBehind, sigma: tuple[float, float]
) -> Returns:
    """Let vegetation scatter the ranges of a log.

    Args:
        log: simulated, with one labelled return per pulse.
        settings: what is vegetation, and how far it scatters.
        seed: random numbers are keyed by this and the pulse.
        first_behind: finds what limits the noise, and gives the second return; passes `settings.passed_labels`.
        sigma: range noise of the world's surfaces: a part that is always there, and one per metre [m, 1]; 0 for pulses
            with width, whose axis may meet something nearer than the leaf that answered.

    Returns:
        (N,) returns, or (N, 2) if dual. A range that would leave the plant for a place nearer than the sensor sees
        stays at the nearest; one that is carried beyond the farthest, with nothing on the way, is lost. A pulse with
        nothing behind its vegetation has no second return.

    Raises:
        InputError: the log has several returns per pulse, or no labels.
    """
    if log.returns.n_per_pulse > 1:
        raise InputError(
            "world",
            f"gives {log.returns.n_per_pulse} returns per pulse; the vegetation response starts from one, "
            "so choose a mode with one (first, strongest or last)",
        )
    label = log.returns.label
    if label is None:
        raise InputError("world", "its returns have no labels, so none is known to be vegetation")
    is_vegetation = np.zeros(1 << 16, dtype=np.bool_)
    is_vegetation[list(settings.all_labels)] = True
    rows = np.flatnonzero(is_vegetation[label] & log.returns.hit)
    mean_m, sigma_m = (_by_label(value, label[rows]) for value in (settings.mean_m, settings.sigma_m))
    draw = randomness.normal(seed, log.beams.pulse[rows], randomness.VEGETATION)
    noisy_m = (log.returns.range_m[rows] + mean_m + sigma_m * draw).astype(np.float32)
    behind = _behind(log, rows, noisy_m, settings, first_behind, sigma)
    return _returns(log, rows, noisy_m, settings.dual, behind)


def _behind(
    log: Log,
    rows: NDArray[np.intp],
    noisy_m: NDArray[np.float32],
    settings: VegetationSettings,
    first_behind: FirstBehind,
    sigma: tuple[float, float],
) -> dict[str, NDArray[Any]]:
    """Find the next object of these pulses, as far as it matters: columns of returns.

    A world of single rays throws the same coins again, so nothing solid before the vegetation can be found. If the
    range has noise of its own, the search for something solid starts a little nearer than the return, which may lie
    behind the wall; that for anything starts as much farther off, so that the leaf itself is not found again.
    """
    range_m = log.returns.range_m[rows]
    slack_m = np.float32(_TAIL) * (np.float32(sigma[0]) + np.float32(sigma[1]) * range_m)
    begin_m = range_m - slack_m if settings.behind == "solid" else range_m + slack_m + np.float32(_PAST_M)
    near_m = np.maximum(begin_m, np.float32(0))
    far_m = np.full(len(rows), log.max_range_m, dtype=np.float32)
    if not settings.dual:  # what stands farther off than the noise reaches cannot limit it
        far_m = np.minimum(far_m, np.maximum(noisy_m + slack_m, np.float32(0)))
    reached = far_m >= near_m
    found = first_behind(log.beams[rows[reached]], near_m[reached], far_m[reached])
    columns: dict[str, NDArray[Any]] = {}
    for name, missing in _MISSING.items():
        columns[name] = np.full(len(rows), missing)
        columns[name][reached] = found.get(name, missing)  # what is simulated has no colours
    return columns


def _returns(
    log: Log, rows: NDArray[np.intp], noisy_m: NDArray[np.float32], dual: bool, behind: dict[str, NDArray[Any]]
) -> Returns:
    floor_m, max_m = np.float32(max(log.min_range_m, NEAREST_M)), np.float32(log.max_range_m)
    first = {name: column.copy() for name, column in log.returns.columns().items() if column is not None}
    first["range_m"][rows] = np.maximum(np.minimum(noisy_m, behind["range_m"]), floor_m)
    lost = rows[first["range_m"][rows] > max_m]
    for name, column in first.items():
        column[lost] = _MISSING[name]
    if not dual:
        return Returns.without_checks(_ABSENT | first)
    unseen = (behind["range_m"] < floor_m) | (behind["range_m"] > max_m)
    both: dict[str, NDArray[Any]] = {}
    for name, column in first.items():
        both[name] = np.stack([column, column], axis=1)
        both[name][rows, 1] = np.where(unseen, _MISSING[name], behind[name])
    return Returns.without_checks(_ABSENT | both)


def _by_label(value: float | dict[int, float], label: NDArray[np.uint16]) -> float | NDArray[np.float64]:
    if not isinstance(value, dict):
        return value
    table = np.zeros(1 << 16)
    for finer in LABELS.values():  # a finer label that has no value of its own has that of what it folds into
        table[finer.number] = value.get(finer.semantic_kitti, 0.0)
    table[list(value)] = list(value.values())
    return table[label]
