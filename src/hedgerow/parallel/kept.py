# SPDX-License-Identifier: Apache-2.0
"""What a process builds once and keeps while it works on many parts: an opened world, a grown scene, a log's footers.

Only the last few are kept: the stages of a job come one after the other, and each needs one or two.
"""

import atexit
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar, cast

_T = TypeVar("_T")
_MOST = 4
_kept: OrderedDict[tuple[str, str], Any] = OrderedDict()


def keep(what: str, key: str, make: Callable[[], _T]) -> _T:
    """Return what `make` makes, made only if it is not kept under this name and key."""
    place = (what, key)
    if place not in _kept:
        # Room first: what is dropped may be as large as what is to be made.
        while len(_kept) >= _MOST:
            _kept.popitem(last=False)
        _kept[place] = make()
    _kept.move_to_end(place)
    return cast("_T", _kept[place])


@atexit.register
def forget() -> None:
    """Drop everything that is kept; at the end of the program, too, while the core can still let go of its scenes."""
    _kept.clear()
