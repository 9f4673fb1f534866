# SPDX-License-Identifier: Apache-2.0
"""Firing at triangles: against a raw Embree packet loop on the same rays, and against trimesh with embreex."""

import hedgerow_raw  # pyright: ignore[reportMissingImports]  # built by run.py
import numpy as np
import sites
from measure import at_least, best_seconds

from hedgerow import Scene

FAR_M = 120.0


def raw_rays():
    beams = sites.drive()
    order = sites.ring_order(beams)
    return (
        np.ascontiguousarray(beams.origin_m[order], dtype=np.float32),
        np.ascontiguousarray(beams.direction[order]),
        np.empty(len(order), dtype=np.float32),
    )


def against_raw(name, scene, raw, threads=2):
    """Ratio of fire's speed to the raw loop's, the ranges of both checked against each other."""
    beams, (origin, direction, out) = sites.drive(), raw_rays()
    raw.build()
    order = sites.ring_order(beams)
    ours = scene.fire(beams, max_range_m=FAR_M, threads=threads)
    hedgerow_raw.trace8(raw, origin, direction, FAR_M, threads, out)
    theirs = np.minimum(out, FAR_M)
    close = np.abs(np.minimum(ours.range_m[order], FAR_M) - theirs) < 1.0  # ours has noise, large at grazing incidence
    agree = np.mean(close)
    if agree < 0.99:
        raise SystemExit(f"{name}: only {agree:.1%} of the ranges agree with the raw loop")
    fire_s, raw_s = best_seconds(
        lambda: scene.fire(beams, max_range_m=FAR_M, threads=threads),
        lambda: hedgerow_raw.trace8(raw, origin, direction, FAR_M, threads, out),
    )
    detail = f"{len(beams) / fire_s / 1e6:.1f} of {len(beams) / raw_s / 1e6:.1f} M rays/s"
    return at_least(f"fire / raw Embree packets, {name}", raw_s / fire_s, 0.85, detail)


def mesh():
    vertices, triangles = sites.terrain()
    scene, raw = Scene(), hedgerow_raw.Raw()
    scene.add_mesh(vertices, triangles, noise=sites.NOISE)
    raw.mesh(vertices, triangles)
    return against_raw(f"{len(triangles) / 1e6:.0f} M triangles", scene, raw)


def instances():
    vertices, triangles = sites.terrain(301, 160)
    blades, blade_triangles = sites.grass_patch()
    places = sites.patch_places()
    ground, patch, scene, raw = Scene(), Scene(), Scene(), hedgerow_raw.Raw()
    ground.add_mesh(vertices, triangles, noise=sites.NOISE)
    patch.add_mesh(blades, blade_triangles, noise=sites.NOISE)
    scene.place(ground, np.eye(4))
    scene.place(patch, places)
    raw.mesh(vertices, triangles)
    raw.mesh(blades, blade_triangles)
    raw.instance(0, np.eye(4, dtype=np.float32)[None, :3].reshape(1, 12))
    raw.instance(1, np.ascontiguousarray(places[:, :3].reshape(-1, 12), dtype=np.float32))
    return against_raw(f"{scene.n_elements / 1e6:.0f} M instanced triangles", scene, raw)


def peer():
    import trimesh
    from trimesh.ray.ray_pyembree import RayMeshIntersector

    vertices, triangles = sites.terrain()
    beams = sites.drive(1)
    scene = Scene()
    scene.add_mesh(vertices, triangles, noise=sites.NOISE)
    theirs = RayMeshIntersector(trimesh.Trimesh(vertices, triangles, process=False))
    origin, direction = np.asarray(beams.origin_m), beams.direction.astype(np.float64)
    fire_s, peer_s = best_seconds(
        lambda: scene.fire(beams, max_range_m=FAR_M),
        lambda: theirs.intersects_location(origin, direction, multiple_hits=False),
        rounds=3,
    )
    return at_least("fire / trimesh with embreex, 2 M triangles", peer_s / fire_s, 3)


def results():
    yield mesh()
    yield instances()
    yield peer()
