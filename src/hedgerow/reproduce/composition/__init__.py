# SPDX-License-Identifier: Apache-2.0
"""Experiments of Tallavajhula 2018 §4.3 and §4.4: sites composed of what was learned elsewhere."""
