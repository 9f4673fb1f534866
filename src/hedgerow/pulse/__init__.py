# SPDX-License-Identifier: Apache-2.0
"""Pulses with width: how a beam is sampled, and what a receiver makes of the light that comes back."""
