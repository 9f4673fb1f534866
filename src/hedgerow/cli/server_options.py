# SPDX-License-Identifier: Apache-2.0
"""Options of the verbs that listen: `serve`, `view` and `fire --live`."""

import os
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from hedgerow.live.publisher import Address

TOKEN_VARIABLE = "HEDGEROW_TOKEN"
Token = Annotated[
    str | None,
    Parameter(
        help="what clients have to know, 16 or more letters and digits; better given as HEDGEROW_TOKEN, since others "
        "can see command lines; default: none on this machine, a new one in the printed address beyond it"
    ),
]
AllowOrigin = Annotated[
    list[str] | None,
    Parameter(
        negative=(),
        help="let a web page connect, for example https://app.example.org; may be repeated; pages of this machine may, "
        "and the Foxglove app may connect to live output",
    ),
]


def token_of_environment() -> str | None:
    """Return the token of the environment, None if there is none."""
    return os.environ.get(TOKEN_VARIABLE) or None


def make_address(host: str, port: int, token: str | None, allow_origin: list[str] | None) -> "Address":
    """Return where live output shall listen.

    Raises:
        InputError: a port, a token or an origin that cannot be.
    """
    from hedgerow.live.publisher import Address

    return Address(host, port, token or token_of_environment(), tuple(allow_origin or ()))
