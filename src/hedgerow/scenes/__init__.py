# SPDX-License-Identifier: Apache-2.0
"""Worlds built from geometry: shapes, and later terrain, plants and receivers."""
