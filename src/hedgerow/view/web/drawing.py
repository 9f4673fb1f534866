# SPDX-License-Identifier: Apache-2.0
"""Drawing: puts frames, worlds, the sensor's path and a beam into viser's scene, sending only what has changed.

Level of detail: a cloud is cut into slices, each spread over the whole, of which fewer are drawn while the camera
moves. Slices are octaves: octave 0 has half of the points, octave 1 a quarter, and so on. Leaving out the first few
halves the cloud that often. Which points stay longest is drawn at random, weighted by their squared range: beams
diverge, and so what is left is spread evenly over the ground instead of crowding around the sensor.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.view.web.beam import BeamView
from hedgerow.view.web.colours import Limits, Quantity
from hedgerow.view.web.frame import Frame, ShownLayer, hash_pulses
from hedgerow.view.web.session import Session, WorldLayer
from hedgerow.view.web.shapes import MOST_ELEMENTS, Dots, Ellipsoids, Mesh, Shape, make_shapes

if TYPE_CHECKING:
    from viser import SceneApi, ViserServer


GaussiansAs = Literal["splats", "ellipsoids"]
MOST_GAUSSIANS: dict[GaussiansAs, int] = {"splats": MOST_ELEMENTS, "ellipsoids": 50_000}
"""Gaussians that are drawn; more are thinned evenly."""
_WHITE, _PATH_COLOUR = (255, 255, 255), (255, 90, 90)
_FAR_M = 60.0
COARSEST_POINTS = 8192
"""The last slice of a cloud holds at least so many points, if the cloud does."""
_WEIGHED_M = 1.0, 60.0
"""Ranges beyond these count as these."""
MAX_POINT_SCALE = 3.0
"""Points of a thinned cloud are drawn at most so many times as large."""

OctaveCounts = dict[int, int]
"""Points of a cloud by octave."""


class CloudNodes:
    """The cloud of one layer in viser's scene: a node per slice, so that detail is a matter of showing and hiding."""

    def __init__(self, scene: "SceneApi", layer: int) -> None:
        """Start without points."""
        self._scene = scene
        self._name = f"/layers/{layer}"
        self.root: Any = scene.add_frame(self._name, show_axes=False)
        self.slices: dict[int, Any] = {}
        """viser's handle of each octave."""
        self._rows: dict[int, NDArray[np.intp]] = {}
        self._shown: ShownLayer | None = None

    @property
    def counts(self) -> OctaveCounts:
        """Points by octave; none if it is switched off."""
        return {octave: len(rows) for octave, rows in self._rows.items()} if self.root.visible else {}

    def show(self, new: ShownLayer, point_size_m: float) -> None:
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

    def _replace(self, new: ShownLayer, point_size_m: float) -> None:
        of_point = assign_octaves(hash_pulses(new.cloud.pulse), new.cloud.range_m)
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


class Drawing:
    """What is in viser's scene now."""

    def __init__(self, server: "ViserServer", session: Session, position: int = 0, spacing_m: float = 0.0) -> None:
        """Start with the sensor's path, and a camera that looks along it; farther off if the layers are apart."""
        self._server = server
        self._scene = server.scene
        self._atomic = server.atomic
        self._session = session
        self._clouds: dict[int, CloudNodes] = {}
        self._worlds: dict[str, list[Any]] = {}
        self._beam: list[Any] = []
        self.path = self._lines("/path", _segments(session.path_m - session.centre_m), _PATH_COLOUR, 3.0)
        heading = session.heading(position)
        self.aside = np.array([heading[1], -heading[0], 0.0])
        """(3,) to the right of where the sensor goes: the direction in which layers are moved apart."""
        self._sensor_m = session.sensor_m(position)
        self._place_camera(heading, spacing_m * max(len(session.layers) - 1, 0))

    def show(self, frame: Frame, point_size_m: float) -> None:
        """Put the clouds of a frame into the scene and hide those that it lacks; `detail` says how much is drawn."""
        with self._atomic():
            for each in frame.shown:
                if each.layer not in self._clouds:
                    self._clouds[each.layer] = CloudNodes(self._scene, each.layer)
                self._clouds[each.layer].show(each, point_size_m)
            there = {each.layer for each in frame.shown}
            for layer, cloud in self._clouds.items():
                cloud.root.visible = layer in there

    def detail(self, point_size_m: float, budget: int) -> int:
        """Show as many points as the budget allows, the larger the fewer they are; return how many that are."""
        counts = [cloud.counts for cloud in self._clouds.values()]
        finest = choose_octave(counts, budget)
        n_drawn, n_points = count_drawn(counts, finest), count_drawn(counts, 0)
        with self._atomic():
            for cloud in self._clouds.values():
                cloud.detail(finest, point_size_m * choose_point_scale(n_drawn, n_points))
        return n_drawn

    def cloud(self, layer: int) -> CloudNodes:
        """Return the cloud of a layer."""
        return self._clouds[layer]

    def show_world(
        self,
        layer: WorldLayer,
        quantity: Quantity,
        limits: Limits | None,
        gaussians_as: GaussiansAs,
        point_size_m: float,
    ) -> None:
        """Draw the elements of a world."""
        self.hide_world(layer)
        centre = self._session.centre_m - self._session.shift_m(np.array(layer.world.header.map_origin_m))
        shapes = make_shapes(layer.world, centre, quantity, limits, MOST_GAUSSIANS[gaussians_as])
        self._worlds[layer.name] = [
            self._add_shape(f"/worlds/{layer.name}/{table}", shape, gaussians_as, point_size_m)
            for table, shape in shapes.items()
        ]

    def hide_world(self, layer: WorldLayer) -> None:
        """Remove the elements of a world."""
        for handle in self._worlds.pop(layer.name, []):
            handle.remove()

    def show_beam(self, view: BeamView | None, shifts_m: dict[str, NDArray[np.float64]]) -> None:
        """Draw a beam with a ball at each layer's return; None removes it."""
        for handle in self._beam:
            handle.remove()
        self._beam = []
        if view is None:
            return
        start = view.origin_m - self._session.centre_m
        ranges = [r for r in view.measured_m.values() if np.isfinite(r)]
        end = start + (1.05 * max(ranges) if ranges else _FAR_M) * view.direction
        self._beam.append(self._lines("/beam/line", np.stack([start, end])[None], _WHITE, 2.5))
        for name, range_m in view.measured_m.items():
            if np.isfinite(range_m):
                end_m = start + range_m * view.direction + shifts_m.get(name, np.zeros(3))
                ball = self._scene.add_icosphere(f"/beam/{name}", radius=0.08, color=view.colour[name], position=end_m)
                self._beam.append(ball)

    def _add_shape(self, name: str, shape: Shape, gaussians_as: GaussiansAs, point_size_m: float) -> Any:
        if isinstance(shape, Dots):
            return self._scene.add_point_cloud(
                name, shape.point_m, shape.colour, point_size=point_size_m, precision="float32", point_shading="flat"
            )
        if isinstance(shape, Mesh):
            return self._add_mesh(name, shape)
        if gaussians_as == "splats":
            return self._scene.add_gaussian_splats(
                name, shape.centre_m, shape.covariance_m2, shape.colour / 255.0, shape.opacity[:, None]
            )
        return self._add_ellipsoids(name, shape)

    def _add_mesh(self, name: str, shape: Mesh) -> Any:
        import trimesh  # comes with viser

        # Both sides, each with corners of its own: the browser draws fronts only.
        both = np.concatenate([shape.corner_m, shape.corner_m[:, ::-1]])
        mesh: Any = trimesh.Trimesh(
            both.reshape(-1, 3),
            np.arange(3 * len(both)).reshape(-1, 3),
            vertex_colors=np.repeat(_linear(np.tile(shape.colour, (2, 1))), 3, axis=0),
            process=False,
        )
        return self._scene.add_mesh_trimesh(name, mesh, cast_shadow=False, receive_shadow=False)

    def _add_ellipsoids(self, name: str, shape: Ellipsoids) -> Any:
        from trimesh.creation import icosphere  # pyright: ignore[reportUnknownVariableType]  # its **kwargs

        ball = icosphere(subdivisions=1)
        return self._scene.add_batched_meshes_simple(
            name, ball.vertices, ball.faces, shape.wxyz, shape.centre_m, batched_scales=shape.half_m,
            batched_colors=_linear(shape.colour), lod="off", cast_shadow=False, receive_shadow=False,
        )  # fmt: skip

    def _lines(self, name: str, pairs_m: NDArray[np.float64], colour: tuple[int, int, int], width: float) -> Any:
        return self._scene.add_line_segments(
            name, pairs_m.astype(np.float32), colour, thickness=width, thickness_units="screen"
        )

    def go_to(self, position: int, *, follow: bool) -> None:
        """Take note where the sensor is at a position of the slider; let all cameras follow it there if asked to."""
        before_m, self._sensor_m = self._sensor_m, self._session.sensor_m(position)
        moved_m = self._sensor_m - before_m
        for client in self._server.get_clients().values() if follow else ():
            client.camera.position = client.camera.position + moved_m  # what it looks at moves along

    def look_at_all(self, spacing_m: float) -> None:
        """Place every camera so that layers that are so far apart are seen together."""
        heading = np.array([-self.aside[1], self.aside[0], 0.0])
        self._place_camera(heading, spacing_m * max(len(self._session.layers) - 1, 0))
        first = self._server.initial_camera
        for client in self._server.get_clients().values():
            client.camera.position, client.camera.look_at = first.position, first.look_at

    def _place_camera(self, heading: NDArray[np.float64], width_m: float) -> None:
        target = self._sensor_m - self._session.centre_m + width_m / 2 * self.aside
        back_m = 26 + 0.6 * width_m
        camera = self._server.initial_camera
        camera.look_at = target
        camera.position = target - back_m * heading + np.array([0, 0, 0.65 * back_m])
        camera.far = 4000.0


def _linear(colour: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return colours as linear light, which the browser takes those of meshes for."""
    return np.rint(255 * (colour / 255) ** 2.2).astype(np.uint8)


def _segments(points_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (K - 1, 2, 3) segments of a line."""
    return np.stack([points_m[:-1], points_m[1:]], axis=1)


def assign_octaves(key: NDArray[np.uint64], range_m: NDArray[np.float32]) -> NDArray[np.intp]:
    """Sort points into slices.

    Args:
        key: (M,) random numbers of 64 bits.
        range_m: (M,) how far each point was from the sensor.

    Returns:
        (M,) octave of each point; the last one has COARSEST_POINTS points or a few more, or all.
    """
    n = len(key)
    share = key.astype(np.float64) / 2.0**64 * (1 - 2.0**-53)  # below 1
    # Efraimidis and Spirakis: the smallest of these are a sample without replacement with these weights. They grow with
    # the key: `thin` leaves small keys, and none may be missing at the end that stays longest.
    order = -np.log1p(-share) / np.clip(range_m, *_WEIGHED_M) ** 2
    halvings = max(int(np.log2(n / COARSEST_POINTS)), 0) if n else 0
    ends = [n >> octave for octave in range(halvings, 0, -1)]  # how many points the later octaves have together
    if not ends:
        return np.zeros(n, dtype=np.intp)
    bounds = np.partition(order, ends)[ends]
    return halvings - np.searchsorted(bounds, order, side="right")


def choose_octave(clouds: Iterable[OctaveCounts], budget: int) -> int:
    """Return the first octave to draw so that all clouds together have no more points than the budget allows.

    The last slice of each cloud is always drawn.
    """
    counts = list(clouds)
    last = max((max(each, default=0) for each in counts), default=0)
    for octave in range(last):
        if count_drawn(counts, octave) <= budget:
            return octave
    return last


def count_drawn(clouds: Iterable[OctaveCounts], finest: int) -> int:
    """Count the points that are drawn from an octave on."""
    return sum(n for each in clouds for octave, n in each.items() if octave >= min(finest, max(each, default=0)))


def choose_point_scale(n_drawn: int, n_points: int) -> float:
    """Return how much larger to draw the points that are left, so that they cover as much as all would."""
    return min(float(np.sqrt(n_points / max(n_drawn, 1))), MAX_POINT_SCALE)
