# SPDX-License-Identifier: Apache-2.0
"""Logs and worlds in the browser.

What to show is worked out by plain functions on arrays: `session` opens what the paths hold and caches it, `frame`
makes the coloured clouds of one moment, `beam` the density along one beam, `shapes` the shapes of a world. Only
`server`, `panel`, `drawing` and `viewer` know viser, the package that talks to the browser (extra `view`).
"""
