# SPDX-License-Identifier: Apache-2.0
"""Piece: a mesh of one material and one label. A plant, a terrain or a thing is a tuple of pieces.

Materials and labels are names here; a scene turns them into reflectances and numbers when it is loaded.
"""

from collections.abc import Iterable
from typing import NamedTuple

from hedgerow.physics.shapes import Mesh


class Piece(NamedTuple):
    """One mesh, what it is made of and what it is."""

    mesh: Mesh
    material: str
    """Name in the table of materials, for example "leaf"."""
    label: str
    """Name of the semantic class, for example "leaves"."""


def n_triangles(pieces: Iterable[Piece]) -> int:
    """Count the triangles of some pieces."""
    return sum(len(piece.mesh.triangles) for piece in pieces)
