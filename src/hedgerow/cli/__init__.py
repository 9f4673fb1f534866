# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per verb. Only this folder prints and exits.

`app` holds the table of verbs and how they print, `options` what several verbs share. Exit code 0: done. 2: the input
is at fault, one sentence on standard error says what and where. 130: Ctrl-C. Heavy imports happen inside the verbs, so
that help comes at once.
"""

from hedgerow.cli.app import app, load_verbs, main

__all__ = ["app", "main"]

load_verbs()
