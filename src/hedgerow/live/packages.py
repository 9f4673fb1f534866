# SPDX-License-Identifier: Apache-2.0
"""The packages of the extra `live`, imported when they are first needed."""

from importlib import import_module
from typing import Any

from hedgerow.errors import MissingPackage


def live_package(name: str) -> Any:
    """Import a module of an optional package.

    Raises:
        MissingPackage: it is not installed; has the pip line.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingPackage(
            f"live output: needs the package {package}, which is not installed; "
            "install it with: pip install 'hedgerow[live]'"
        ) from error
