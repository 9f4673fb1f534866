# SPDX-License-Identifier: Apache-2.0
"""Ways to sample and receive a pulse that experiments of Goodin 2018 are repeated with: ours, and the paper's own.

The paper's stencil is the circle that its §3.2.1 prints, its processing what the text of its §3.2.3 says.
"""

from collections.abc import Mapping

from hedgerow.pulse.receiver import BeamSettings

OURS = "ours, fixed"
WAYS: Mapping[str, BeamSettings] = {
    OURS: BeamSettings(),
    "the paper's stencil": BeamSettings(sampling="paper"),
    "the paper's stencil and processing": BeamSettings(sampling="paper", processing="paper"),
}
