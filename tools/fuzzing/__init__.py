# SPDX-License-Identifier: Apache-2.0
"""The fuzzer behind `make fuzz`: every reader against damaged input, each input in isolation.

seeds.py makes small good inputs, kinds.py says how each kind is read, change.py and its helpers damage them,
verdict.py judges one input, isolate.py runs many in forked processes, guided.py lets Atheris choose by coverage,
reproducers.py shrinks and keeps what was found. docs/robustness.md says what is checked.
"""
