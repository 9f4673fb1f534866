# SPDX-License-Identifier: Apache-2.0
"""Worlds on the disk."""
