# SPDX-License-Identifier: Apache-2.0
"""Mesh files in scenes: formats, units, axes, materials and labels by name, and instances that stay instances."""

from typing import Any

import numpy as np
import pytest
import trimesh
from numpy.testing import assert_allclose
from scene_texts import write_scene

from hedgerow.errors import FileError
from hedgerow.log import Beams
from hedgerow.scenes.file.mesh_file import read_mesh
from hedgerow.scenes.file.schema import MeshSpec, PartSpec
from hedgerow.scenes.site import load_site

AT = [trimesh.transformations.translation_matrix([4.0 * i, 0, 0]) for i in range(5)]
SCENE = """
terrain = { size_m = [60, 60] }
[meshes.car]
file = "parts/car.glb"
up = "z"
material = "paint"
label = "car"
by_name = { wheel = { material = "rubber", label = "other-vehicle" } }
[objects.car]
what = "car"
at_m = [10, 0]
"""


def glb(folder):
    """A body and one wheel that is placed five times."""
    scene = trimesh.Scene()
    body, wheel = trimesh.creation.box((2, 2, 1)), trimesh.creation.icosphere(subdivisions=2, radius=0.5)
    scene.add_geometry(body, geom_name="body", node_name="body", transform=np.diag([1.0, 1, 1, 1]))
    scene.add_geometry(wheel, geom_name="wheel", node_name="wheel0", transform=AT[0])
    for i in range(1, 5):
        scene.graph.update(frame_to=f"wheel{i}", geometry="wheel", matrix=AT[i])
    (folder / "parts").mkdir(exist_ok=True)
    path = folder / "parts" / "car.glb"
    scene.export(path)
    return path


def test_a_glb_keeps_its_instances(tmp_path):
    parts = {placed.part.label: placed for placed in read_mesh(glb(tmp_path), _spec())}
    assert {name: len(placed.places) for name, placed in parts.items()} == {"car": 1, "other-vehicle": 5}
    assert len(parts["other-vehicle"].part.mesh.triangles) == 320  # an icosphere divided twice: 20 x 4 x 4
    assert_allclose(sorted(parts["other-vehicle"].places[:, 0, 3]), [0, 4, 8, 12, 16], atol=1e-6)
    assert parts["other-vehicle"].part.material == "rubber"


def _spec(**fields: Any):
    named = {"wheel": PartSpec(material="rubber", label="other-vehicle")}
    fields = {"up": "z"} | fields
    return MeshSpec(file="car.glb", material="paint", label="car", by_name=named, **fields)


def test_instances_of_a_mesh_file_are_hit_where_they_stand(tmp_path):
    glb(tmp_path)
    site = load_site(write_scene(tmp_path, SCENE))
    assert site.n_triangles == 2 + 12 + 5 * 320
    # straight down on the third wheel, at x = 10 + 8, and on the body beside the first
    beams = Beams.from_arrays(origins=[[18, 0, 9], [10.9, 0.9, 9]], directions=[[0, 0, -1]] * 2)
    hits = site.scene.fire(beams)
    assert_allclose(hits.range_m, [8.5, 8.5], atol=0.03)  # noise of paint and rubber: 3 mm; facets: below 1 mm
    assert hits.label.tolist() == [site.labels["other-vehicle"], site.labels["car"]]
    assert_allclose(hits.intensity, [0.06, 0.8], atol=0.01)


def test_units_and_axes_of_a_file_are_turned_into_metres_and_z_up(tmp_path):
    path = glb(tmp_path)
    placed = next(placed for placed in read_mesh(path, _spec(scale=0.01, up="y")) if placed.part.label == "car")
    corners = placed.part.mesh.vertices_m @ placed.places[0, :3, :3].T
    assert_allclose(np.ptp(corners, axis=0), [0.02, 0.01, 0.02], atol=1e-9)  # 1 along the file's z is now along -y


@pytest.mark.parametrize("kind", ["obj", "ply", "stl"])
def test_other_formats_read_alike(tmp_path, kind):
    path = tmp_path / f"box.{kind}"
    trimesh.creation.box((1, 2, 3)).export(path)
    (placed,) = read_mesh(path, MeshSpec(file=path.name))
    assert len(placed.part.mesh.triangles) == 12
    assert_allclose(np.ptp(placed.part.mesh.vertices_m, axis=0), [1, 2, 3], atol=1e-6)


def test_materials_of_an_obj_are_told_apart_by_their_names(tmp_path):
    (tmp_path / "a.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n")
    lines = ["mtllib a.mtl", "v 0 0 0", "v 1 0 0", "v 0 1 0", "usemtl red", "f 1 2 3", "usemtl blue", "f 1 3 2"]
    (tmp_path / "a.obj").write_text("\n".join(lines))
    spec = MeshSpec(file="a.obj", by_name={"red": PartSpec(material="brick"), "blue": PartSpec(label="pole")})
    found = {(placed.part.material, placed.part.label) for placed in read_mesh(tmp_path / "a.obj", spec)}
    assert found == {("brick", "other-object"), ("plain", "pole")}


def test_what_is_no_mesh_is_refused(tmp_path):
    (tmp_path / "bad.ply").write_text("hello")
    with pytest.raises(FileError, match=r"bad.ply: cannot be read as a mesh"):
        read_mesh(tmp_path / "bad.ply", MeshSpec(file="bad.ply"))
    (tmp_path / "empty.obj").write_text("v 0 0 0\n")
    with pytest.raises(FileError, match=r"empty.obj: "):
        read_mesh(tmp_path / "empty.obj", MeshSpec(file="empty.obj"))
    with pytest.raises(FileError, match=r"by_name: no mesh or material 'door'; it has .*body, wheel"):
        read_mesh(glb(tmp_path), MeshSpec(file="car.glb", by_name={"door": PartSpec()}))
