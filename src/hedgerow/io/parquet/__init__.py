# SPDX-License-Identifier: Apache-2.0
"""Parquet logs: Hedgerow's own format."""
