# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests."""

import signal

from hypothesis import settings

# No test may fail because the machine is busy.
settings.register_profile("hedgerow", deadline=None)
settings.load_profile("hedgerow")

# A shell starts what runs in the background with Ctrl-C ignored, and children inherit that; tests of Ctrl-C would hang.
signal.signal(signal.SIGINT, signal.default_int_handler)
