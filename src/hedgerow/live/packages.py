# SPDX-License-Identifier: Apache-2.0
"""The packages of the extra `live`, imported when they are first needed."""

from functools import cache
from typing import Any

from hedgerow.io.formats import optional
from hedgerow.io.ros.bag import typestore
from hedgerow.io.ros.messages import POINT_CLOUD2, POSE_STAMPED, TF_MESSAGE, Messages


def live_package(name: str) -> Any:
    """Import a module of an optional package.

    Raises:
        MissingPackage: it is not installed; has the pip line.
    """
    return optional(name, "live output", "live")


@cache
def ros2_messages() -> Messages:
    """Return what makes and reads the messages of ROS 2; the first time takes 0.2 s.

    Raises:
        MissingPackage: rosbags is not installed.
    """
    live_package("rosbags")
    types = typestore(is_ros1=False)
    for kind in (POINT_CLOUD2, TF_MESSAGE, POSE_STAMPED):
        types.get_msgdef(kind)  # writes the code for it: 20 ms each, which the first sweep need not wait for
    return Messages(types, is_ros1=False)
