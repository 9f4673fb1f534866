# SPDX-License-Identifier: Apache-2.0
"""Scene files: what may stand in one (schema), how it is read and checked, and how a scene is built from it."""
