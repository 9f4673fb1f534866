# SPDX-License-Identifier: Apache-2.0
"""Where the simulations of a report come from: what each is, and the command that learns it again."""

import json
import shlex
from typing import Any

from hedgerow.world.header import WorldHeader, plain


def what_it_is(source: Any) -> str:
    """Say in a few words what a simulation is.

    Args:
        source: a world or a log, in memory or on the disk.
    """
    header = getattr(source, "header", None)
    if not isinstance(header, WorldHeader):
        return "a world made in Python" if hasattr(source, "fire") else "a simulated log"
    come = header.provenance
    if not come.n_beams:
        return f"a {header.kind} world, made by hedgerow {come.hedgerow}"
    sensor = f" of {come.sensor}" if come.sensor else ""
    return (
        f"a {header.kind} world, learned from {come.log or 'a log in memory'} ({come.n_beams:,} beams{sensor}) by "
        f"hedgerow {come.hedgerow}"
    )


def learn_command(name: str, source: Any) -> str | None:
    """Return the command that learns a world again; None if it was not learned from a file by a known model.

    Args:
        name: what to call the world.
        source: a world or a log.
    """
    from hedgerow.learners.models import MODELS

    header = getattr(source, "header", None)
    if not isinstance(header, WorldHeader) or not header.provenance.log or header.kind not in MODELS:
        return None
    usual = plain("parameters", MODELS[header.kind].parameters().model_dump(mode="json"))
    words = ["hedgerow", "learn", header.provenance.log, "-o", f"{name.removesuffix('.world')}.world"]
    words += ["--model", header.kind]
    for key, value in header.parameters.items():
        if value != usual.get(key):
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)
