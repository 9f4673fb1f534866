# SPDX-License-Identifier: Apache-2.0
"""The papers' experiments, one module each: ours beside the paper's figures."""
