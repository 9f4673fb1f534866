# SPDX-License-Identifier: Apache-2.0
"""Files for libraries that believe them: a read never makes room for more bytes than the file has left."""

import io
from pathlib import Path
from typing import Any

_LARGE = 1 << 16  # below, room is made without a look at the file


class BoundedPath(type(Path())):
    """A path whose files never ask for more memory than they have bytes."""

    def open(self, mode: str = "r", *args: Any, **named: Any) -> Any:
        """Open the file; to be read as bytes, with bounded reads."""
        if mode != "rb":
            return super().open(mode, *args, **named)
        return _BoundedReader(io.FileIO(self, "rb"), self.stat().st_size)


class _BoundedReader(io.BufferedReader):
    def __init__(self, raw: io.FileIO, size: int) -> None:
        super().__init__(raw)
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        """Read, without making room for bytes that the file does not have."""
        if size is not None and size > _LARGE:
            size = min(size, max(self._size - self.tell(), 0))
        return super().read(size)
