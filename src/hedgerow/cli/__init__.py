# SPDX-License-Identifier: Apache-2.0
"""The command line: one short function per verb. Only this folder prints and exits.

Exit code 0: done. 2: the input is at fault, one sentence on standard error says what and where. 130: Ctrl-C.
Heavy imports happen inside the commands, so that help comes at once.
"""

import sys

from cyclopts import CycloptsError

from hedgerow.cli import calibrate, compare, convert, demo, fire, info, learn, reproduce, scenes, serve, view
from hedgerow.cli.app import app, group_commands
from hedgerow.errors import HedgerowError

__all__ = [
    "app",
    "calibrate",
    "compare",
    "convert",
    "demo",
    "fire",
    "info",
    "learn",
    "main",
    "reproduce",
    "scenes",
    "serve",
    "view",
]

group_commands()


def main() -> None:
    """Run the command line."""
    try:
        app(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _fail(str(error), "hedgerow --help shows how it is called")
    except HedgerowError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print("hedgerow: interrupted", file=sys.stderr)
        sys.exit(130)


def _fail(message: str, hint: str = "") -> None:
    print(f"hedgerow: {message}" + (f" ({hint})" if hint else ""), file=sys.stderr)
    sys.exit(2)
