# SPDX-License-Identifier: Apache-2.0
"""SensorModel: how the reading of a range sensor is distributed, given what is really there.

    model.density(states, z)      # [1/m]; of inf the probability of a null reading
    model.sample(states, seed=7)  # readings; inf is a null reading

A state holds the features of one reading: the nominal range and the angle of incidence on the map (Tallavajhula 2018
§3.4.2), and which bearing it is. The models differ in what they take from training readings: see parametric.py and
nonparametric.py. Where the map has nothing within the sensor's range there are no features; every model learns the
share of null readings there, and takes the others for evenly spread.

Models are stored as one Parquet file: a row for each training state, all settings in its metadata.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays, randomness
from hedgerow.base.arguments import require_kind
from hedgerow.base.columns import Table, set_fields
from hedgerow.errors import FileError, InputError
from hedgerow.io.source import translate_errors
from hedgerow.planar.regression import Floats, Observations, Scale

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")  # as Any: the stubs know half of their types

STREAM = 40
"""Of the random numbers that draw readings."""
KEY = b"hedgerow_sensor_model"
_FORMAT = 1
_BLOCK = 500_000
"""Most densities held at once."""


@dataclass(frozen=True, slots=True, eq=False)
class States(Table):
    """Features of Q readings to be made."""

    feature: Floats
    """(Q, p) nominal range [m] and incidence [rad] for a lidar; NaN where the map has nothing within range."""
    group: NDArray[np.int64]
    """(Q,) bearing, numbered from 0; 0 for a sensor with one part."""

    def __post_init__(self) -> None:
        """Check shapes once."""
        feature = arrays.as_floats("feature", self.feature, ("Q", "P"))
        group = arrays.as_integers("group", self.group, (len(feature),), np.int64)
        set_fields(self, {"feature": feature, "group": group})

    @classmethod
    def of(cls, feature: ArrayLike, group: ArrayLike = 0) -> Self:
        """Make states from (Q, p) features, or (Q,) of them, and a group for each or for all."""
        values = arrays.as_floats("feature", feature, ("Q",), ("Q", "P"))
        values = values[:, None] if values.ndim == 1 else values
        return cls(values, arrays.as_integers("group", np.asarray(group), (len(values),), np.int64))

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """(Q,) where the map has nothing within range."""
        missing: NDArray[np.bool_] = np.isnan(self.feature)
        return np.any(missing, axis=1)


def rows_of(known: NDArray[np.int64], group: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return where each group stands among the known ones, ascending.

    Raises:
        InputError: one of them is not known.
    """
    row = np.minimum(np.searchsorted(known, group), len(known) - 1)
    unknown = known[row] != group
    if unknown.any():
        raise InputError("group", f"bearing {group[unknown][0]} was not trained; there are {len(known)}")
    return row


class SensorModel(ABC):
    """What every model of a sensor can do; a kind of model gives `density_at` and `quantile_at`."""

    kind: ClassVar[str]
    """Its name in files and tables."""
    kinds: ClassVar[dict[str, type["SensorModel"]]] = {}

    scale: Scale
    open_null: float = 1.0
    """Share of null readings where the map has nothing; the others are evenly spread."""

    def __init_subclass__(cls) -> None:
        """Register the kind, so that files of it can be loaded."""
        SensorModel.kinds[cls.kind] = cls

    @abstractmethod
    def density_at(self, states: States, reading_m: Floats) -> Floats:
        """Return the (Q,) density of readings at states that have features; of inf the null probability."""

    @abstractmethod
    def quantile_at(self, states: States, level: Floats) -> Floats:
        """Return the (Q,) readings below which a share `level` of all readings lies; null readings are the last."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return all numbers that, with the training readings, make this model; must fit into JSON."""

    @classmethod
    @abstractmethod
    def restore(cls, scale: Scale, settings: dict[str, Any], observations: Observations | None) -> "SensorModel":
        """Make the model again from what `settings` gave."""

    observations: Observations | None = None
    """Training readings that the model keeps; None if it needs none."""

    def density(self, states: States, reading_m: ArrayLike) -> Floats:
        """Return the density of one reading at each state.

        Args:
            states: Q of them.
            reading_m: (Q,) readings; inf is a null reading.

        Returns:
            (Q,) densities [1/m]; for null readings their probability. Integrated over the limits, both add up to 1.
        """
        reading = _readings(states, reading_m)
        seen = ~states.is_open
        out = np.where(np.isinf(reading), self.open_null, (1 - self.open_null) / self._width_m)
        if seen.any():
            out[seen] = self.density_at(states[seen], reading[seen])
        return out

    def log_density(self, states: States, reading_m: ArrayLike) -> Floats:
        """Return the (Q,) logarithms of `density`; -inf where the model says that this cannot be."""
        with np.errstate(divide="ignore"):
            return np.log(self.density(states, reading_m))

    def sample(self, states: States, seed: int = 0, pulse: ArrayLike | None = None) -> Floats:
        """Draw one reading at each state.

        Args:
            states: Q of them.
            seed: same seed, same readings.
            pulse: (Q,) identities that random numbers are keyed by. Default: 0 to Q - 1.

        Returns:
            (Q,) readings in whole steps of the sensor; inf is a null reading.
        """
        identity = np.arange(len(states)) if pulse is None else pulse
        number = arrays.as_integers("pulse", identity, (len(states),), np.int64)
        return self.quantile(states, randomness.uniform(seed, number, STREAM))

    def quantile(self, states: States, level: ArrayLike) -> Floats:
        """Return the reading of each state at a level from 0 to 1, in whole steps; null readings are the last."""
        u = arrays.as_floats("level", level, (len(states),))
        seen = ~states.is_open
        even = self.scale.low_m + u / max(1 - self.open_null, 1e-300) * (self.scale.high_m - self.scale.low_m)
        out = np.where(u < 1 - self.open_null, even, np.inf)
        if seen.any():
            out[seen] = self.quantile_at(states[seen], u[seen])
        return self.scale.round(out)

    @property
    def _width_m(self) -> float:
        return self.scale.n_bins * self.scale.step_m

    def histogram(self, states: States) -> Floats:
        """Return (B + 1, Q) probabilities of every reading, the null reading last."""
        n_bins = self.scale.n_bins
        table = np.full((n_bins + 1, len(states)), (1 - self.open_null) / n_bins)
        table[-1] = self.open_null
        seen = np.flatnonzero(~states.is_open)
        step = max(1, _BLOCK // (n_bins + 1))
        for begin in range(0, len(seen), step):
            rows = seen[begin : begin + step]
            table[:, rows] = self.histogram_at(states[rows])
        return table

    def histogram_at(self, states: States) -> Floats:
        """Return (B + 1, Q) probabilities at states that have features; kinds of models may know a quicker way."""
        readings = np.append(self.scale.values(), np.inf)
        width = np.append(np.full(self.scale.n_bins, self.scale.step_m), 1.0)
        each = np.repeat(np.arange(len(states)), len(readings))
        density = self.density_at(states[each], np.tile(readings, len(states)))
        return density.reshape(len(states), -1).T * width[:, None]

    def save(self, path: str | Path) -> None:
        """Write the model to one Parquet file.

        Raises:
            FileError: the file cannot be written.
        """
        from hedgerow.base.atomic import atomic_file

        kept = self.observations
        columns: dict[str, Any] = {}
        if kept is not None:
            rows = [row[~np.isnan(row)] for row in kept.value]
            columns = {f"feature_{i}": kept.state[:, i] for i in range(kept.state.shape[1])}
            columns |= {"group": kept.groups, "reading": pa.array(rows, pa.list_(pa.float64()))}
        said = {
            "format": _FORMAT,
            "kind": self.kind,
            "scale": self.scale.model_dump(),
            "open_null": self.open_null,
            "settings": self.settings(),
        }
        table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(said).encode()})
        with atomic_file(path) as temporary:
            pq.write_table(table, temporary)


def load_sensor_model(path: str | Path) -> SensorModel:
    """Load a model that `save` wrote.

    Raises:
        FileError: no such file, no sensor model, damaged, or of a newer version; says which.
    """
    with translate_errors(path, "a sensor model"):
        table = pq.read_table(str(path))
        metadata: dict[bytes, bytes] = table.schema.metadata or {}
        if KEY not in metadata:
            raise FileError(f"{path}: is no sensor model; write one with save()")
        said: dict[str, Any] = json.loads(metadata[KEY])
        if said["format"] > _FORMAT:
            raise FileError(f"{path}: was written by a newer version; update hedgerow to read it")
        scale = Scale.parse_from(said["scale"], path, "scale")
        model = SensorModel.kinds[said["kind"]].restore(scale, said["settings"], _observations(table))
        model.open_null = float(said["open_null"])
    return model


def _observations(table: Any) -> Observations | None:
    if "reading" not in table.column_names:
        return None
    rows: list[list[float]] = table["reading"].to_pylist()
    value = np.full((len(rows), max((len(row) for row in rows), default=0)), np.nan)
    for i, row in enumerate(rows):
        value[i, : len(row)] = row
    names = sorted(name for name in table.column_names if name.startswith("feature_"))
    state = np.column_stack([table[name].to_numpy() for name in names])
    return Observations(state, value, table["group"].to_numpy())


def _readings(states: States, reading_m: ArrayLike) -> Floats:
    require_kind("states", states, States, "States; States.of(features) makes them")
    reading = arrays.as_floats("reading_m", reading_m, (len(states),))
    if np.isnan(reading).any():
        raise InputError("reading_m", f"row {arrays.first_row(np.isnan(reading))} is NaN; use inf for a null reading")
    return reading
