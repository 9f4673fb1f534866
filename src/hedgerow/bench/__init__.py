# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that users run on their own machine: what Hedgerow costs there, and how that grows."""
