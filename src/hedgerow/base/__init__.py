# SPDX-License-Identifier: Apache-2.0
"""What every other part of the package stands on; it imports nothing but itself and `errors`."""
