# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests."""

from hypothesis import settings

# No test may fail because the machine is busy.
settings.register_profile("hedgerow", deadline=None)
settings.load_profile("hedgerow")
