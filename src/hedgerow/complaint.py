# SPDX-License-Identifier: Apache-2.0
"""One sentence out of pydantic's complaint about a file: it starts with the field and says what was found."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

Location = Sequence[int | str]
"""Where in a file: names of tables and fields, numbers of list entries."""


def dotted(location: Location) -> str:
    """Write a place as `table.field[2]`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def sentence(
    error: "ValidationError", field: Callable[[Location], str] = dotted, doc: Callable[[Location], str] = lambda _: ""
) -> str:
    """Turn the first of pydantic's complaints into one sentence that starts with the field.

    Args:
        error: what pydantic raised.
        field: how to write a place.
        doc: what to add when the field at a place is missing.
    """
    errors = error.errors(include_url=False)
    first = errors[0]
    name = field(first["loc"])
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    match first["type"]:
        case "missing":
            said = f"{name}: missing{doc(first['loc'])}"
        case "extra_forbidden":
            said = f"{name}: unknown field; leave it out or mend its name"
        case "value_error":
            # Raised by the models themselves: the message already starts with the field, seen from its own table.
            own = str(first["ctx"]["error"]) if "ctx" in first else first["msg"]
            said = f"{name}.{own}" if name else own
        case "union_tag_invalid" if "ctx" in first:
            expected, found = first["ctx"]["expected_tags"], first["ctx"]["tag"]
            said = f"{name}.{first['ctx']['discriminator'].strip(chr(39))}: expected one of {expected}, found '{found}'"
        case _:
            message = first["msg"][0].lower() + first["msg"][1:]
            said = f"{name}: {message}, found {shortened(first['input'])}"
    return said + more


def shortened(value: object) -> str:
    """Show a value in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
