# SPDX-License-Identifier: Apache-2.0
"""Learning worlds from logs.

    world = hr.learn(log, model="voxel", side_m=0.2)

registry.py lists the models; each has a file of its own. steps/ holds what several of them share.
"""

from hedgerow.models.registry import learn

__all__ = ["learn"]
