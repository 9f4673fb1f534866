# SPDX-License-Identifier: Apache-2.0
"""The packages of the extra `live`, imported when they are first needed."""

from typing import Any

from hedgerow.io.formats import optional


def live_package(name: str) -> Any:
    """Import a module of an optional package.

    Raises:
        MissingPackage: it is not installed; has the pip line.
    """
    return optional(name, "live output", "live")
