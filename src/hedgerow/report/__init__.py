# SPDX-License-Identifier: Apache-2.0
"""What a person reads: plots of a comparison, and one HTML file with everything."""

from hedgerow.report.page import write_report

__all__ = ["write_report"]
