# SPDX-License-Identifier: Apache-2.0
"""New sites from what was learned in others: segments, primitives, annotations (Tallavajhula 2018 §4)."""
