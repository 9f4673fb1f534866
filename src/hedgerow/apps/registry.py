# SPDX-License-Identifier: Apache-2.0
"""The programs that come with Hedgerow, and how any other is opened: `module:name`, or an app.toml."""

import difflib
import sys
from pathlib import Path
from pkgutil import resolve_name

from hedgerow.apps.app import App
from hedgerow.errors import FileError, InputError

APPS: dict[str, str] = {
    "segmentation": "hedgerow.apps.segmentation:Segmentation",
    "cost-map": "hedgerow.apps.cost_map:CostMap",
    "odometry": "hedgerow.apps.odometry:Odometry",
    "scan-matching": "hedgerow.apps.scan_matching:ScanMatching",
}
"""Where each program is. Those that run on scenes of a drive; see drive.py."""


def open_app(given: str) -> App:
    """Open a program by its name, as `module:name`, or from an app.toml.

    Raises:
        InputError: no such program, or the object has no space, objectives and run.
        FileError: the app.toml is wrong.
    """
    if given.lower().endswith(".toml"):
        from hedgerow.apps.command import open_command

        return open_command(given)
    if given in APPS:
        return resolve_name(APPS[given])()
    if ":" in given:
        return _imported(given)
    near = difflib.get_close_matches(given, APPS, n=1)
    guess = f"did you mean {near[0]}? There" if near else "there"
    raise InputError(given, f"no such program; {guess} are {', '.join(APPS)}, module:name, or an app.toml")


def _imported(given: str) -> App:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as python -m does
    try:
        found: object = resolve_name(given)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(given, f"cannot be imported: {error}") from None
    except SyntaxError as error:
        raise FileError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
    made = found() if isinstance(found, type) else found
    if not isinstance(made, App):
        raise InputError(given, "has no space, objectives and run; decorate the function with hedgerow.apps.program")
    return made
