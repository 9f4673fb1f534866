# SPDX-License-Identifier: Apache-2.0
"""Seeing logs and worlds."""
