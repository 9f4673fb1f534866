# SPDX-License-Identifier: Apache-2.0
"""Logs and worlds in the browser.

What to show is worked out by plain functions on arrays: `opening` finds what the paths hold, `stage` keeps it, `frame`
makes the coloured clouds of one moment, `beam` the density along one beam, `solids` the shapes of a world, `detail` and
`pace` say how many points are drawn. Only `server`, `browsers`, `panel`, `drawing` and `sliced` know viser, the package
that talks to the browser (extra `view`).
"""
