# SPDX-License-Identifier: Apache-2.0
"""Write docs/commands.md, the reference of every command and option, from the code; a test keeps it current.

python tools/command_reference.py
"""

import re
from pathlib import Path

from hedgerow.cli import app

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"


def reference() -> str:
    """Return the page as Markdown."""
    text = app.generate_docs(output_format="markdown", heading_level=1)
    note = "Made by `python tools/command_reference.py` from the code; `hedgerow COMMAND --help` shows the same."
    # The generator puts the command in front of a usage line of our own, which has it already.
    text = re.sub(r"^hedgerow (\w+) \1 ", r"hedgerow \1 ", text, flags=re.MULTILINE)
    title, rest = text.split("\n", 1)
    return "\n".join(line.rstrip() for line in f"{title}\n\n{note}\n{rest}".splitlines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
