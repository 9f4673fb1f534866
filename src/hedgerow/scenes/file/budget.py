# SPDX-License-Identifier: Apache-2.0
"""Budget: how large a scene may become, counted before anything is made, so that a slip of a digit is a sentence.

A scene costs memory by its different triangles, by its copies, and by the squares of dense cover. All three are known,
or nearly, from the figures of the file.
"""

from hedgerow.errors import InputError
from hedgerow.scenes.file.schema import MAX_COPIES

MAX_TRIANGLES = 50_000_000
"""Most different triangles of a scene, copies not counted; with their search trees they take about 10 GB."""
MAX_SQUARES = 2_000_000
"""Most squares of cover that one rule looks at at a time; of the largest ones they are 200 km²."""


class Budget:
    """What a scene has spent so far."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._triangles = 0.0
        self._copies = 0.0

    def take_triangles(self, n: float, field: str) -> None:
        """Count triangles that are about to be made.

        Raises:
            InputError: they would be too many; names the field that asks for them.
        """
        self._triangles = _added(self._triangles, n, MAX_TRIANGLES, field, "different triangles")

    def take_copies(self, n: float, field: str) -> None:
        """Count copies that are about to be placed; errors as in `take_triangles`."""
        self._copies = _added(self._copies, n, MAX_COPIES, field, "copies")


def _added(so_far: float, n: float, most: int, field: str, what: str) -> float:
    if so_far + n > most:
        raise InputError(field, f"the scene would have {so_far + n:.3g} {what}; at most {most:,} may be: ask for fewer")
    return so_far + n


def require_few_squares(n: float) -> None:
    """Refuse to look at too many squares of cover.

    Raises:
        InputError: there are too many.
    """
    if n > MAX_SQUARES:
        said = f"the rule covers {n:.3g} squares of ground; at most {MAX_SQUARES:,} may be: give it a smaller box_m"
        raise InputError("box_m", said)
