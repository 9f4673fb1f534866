# SPDX-License-Identifier: Apache-2.0
"""docs/commands.md names every command and option that there is, and no other."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_reference_of_commands_is_current():
    spec = importlib.util.spec_from_file_location("command_reference", ROOT / "tools" / "command_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def names(text):  # not the whole text: another release of the command line library may lay it out otherwise
        return set(re.findall(r"^#+ (hedgerow[\w -]*)$|(--[a-z-]+)", text, flags=re.M))

    assert names((ROOT / "docs" / "commands.md").read_text(encoding="utf-8")) == names(module.reference()), (
        "run python tools/command_reference.py"
    )
