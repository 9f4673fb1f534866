# SPDX-License-Identifier: Apache-2.0
"""The refined world: Gaussians fitted to the beams themselves by expectation maximisation (ours; MODELS §3).

The other volume learners fit Gaussians to points and count afterwards who stopped which beam. Here both come from one
likelihood, that of the measured ranges and of the returns that are missing. Sweeps that are held out decide when to
stop, and how much stopping power is right; the best world on them is kept, so the start is never made worse.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from hedgerow.errors import InputError
from hedgerow.learners.held_out import HeldOut
from hedgerow.learners.maximise import maximised, with_extinction
from hedgerow.learners.neighbourhood import pooled_covariance
from hedgerow.learners.ray_sums import RayCounter, RayModel, RaySums
from hedgerow.learners.reshape import merged, pruned, split
from hedgerow.learners.topdown import TopdownParameters
from hedgerow.learners.voxel import VoxelParameters
from hedgerow.world.elements import Gaussians
