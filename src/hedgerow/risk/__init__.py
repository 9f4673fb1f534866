# SPDX-License-Identifier: Apache-2.0
"""Application risk: does a robot program behave on simulated logs as it does on real ones? (Tallavajhula 2018 §2.3)."""
