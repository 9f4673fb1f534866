# SPDX-License-Identifier: Apache-2.0
"""A cloud in viser's scene: one node per slice, so that the level of detail is a matter of showing and hiding."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.view.web.cloud import key_of
from hedgerow.view.web.detail import Counts, octaves
from hedgerow.view.web.frame import Shown

if TYPE_CHECKING:
    from viser import SceneApi


class SlicedCloud:
    """The cloud of one layer."""

    def __init__(self, scene: "SceneApi", layer: int) -> None:
        """Start without points."""
        self._scene = scene
        self._name = f"/layers/{layer}"
        self.root: Any = scene.add_frame(self._name, show_axes=False)
        self.slices: dict[int, Any] = {}
        """viser's handle of each octave."""
        self._rows: dict[int, NDArray[np.intp]] = {}
        self._shown: Shown | None = None

    @property
    def counts(self) -> Counts:
        """Points by octave; none if it is switched off."""
        return {octave: len(rows) for octave, rows in self._rows.items()} if self.root.visible else {}

    def show(self, new: Shown, point_size_m: float) -> None:
        """Draw points and colours, sending only what has changed."""
        old, self._shown = self._shown, new
        self.root.position = tuple(new.shift_m)
        if old is None or not np.array_equal(old.cloud.point_m, new.cloud.point_m):
            self._replace(new, point_size_m)
        elif not np.array_equal(old.colour, new.colour):
            for octave, handle in self.slices.items():
                handle.colors = new.colour[self._rows[octave]]

    def detail(self, finest: int, point_size_m: float) -> None:
        """Show the slices from an octave on, the last one always, with points of this size."""
        last = max(self.slices, default=0)
        for octave, handle in self.slices.items():
            handle.visible = octave >= min(finest, last)
            if handle.point_size != point_size_m:
                handle.point_size = point_size_m

    def _replace(self, new: Shown, point_size_m: float) -> None:
        of_point = octaves(key_of(new.cloud.pulse), new.cloud.range_m)
        self._rows = {int(octave): np.flatnonzero(of_point == octave) for octave in np.unique(of_point)}
        for octave in self.slices.keys() - self._rows.keys():
            self.slices.pop(octave).remove()
        for octave in sorted(self._rows, reverse=True):  # the coarsest goes first
            rows, before = self._rows[octave], self.slices.get(octave)
            self.slices[octave] = self._scene.add_point_cloud(
                f"{self._name}/{octave}",
                new.cloud.point_m[rows],
                new.colour[rows],
                point_size=point_size_m if before is None else before.point_size,
                precision="float32",  # the default, float16, is off by 6 cm at 200 m
                point_shading="flat",
                visible=before is not None and before.visible,  # `detail` says which new ones are
            )
