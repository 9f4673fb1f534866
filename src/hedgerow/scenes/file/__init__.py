# SPDX-License-Identifier: Apache-2.0
"""Scene files: what may stand in one (schema), how it is read and checked (references), and built into a scene."""
