# SPDX-License-Identifier: Apache-2.0
"""Scenes built from geometry: terrain, plants, meshes and trails, described by a scene file and fired at as a world.

`site.load_site` is the way in; `plants` grows plants, `file` reads scene files and builds what they say.
"""
