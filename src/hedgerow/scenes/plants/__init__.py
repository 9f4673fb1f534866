# SPDX-License-Identifier: Apache-2.0
"""Procedural plants: the same parameters and seed always give the same plant, down to the leaf.

    parts = PLANTS["broadleaf"].grow(seed=7, height_m=9)

A kind of plant is one file plus one row: the file beside this one has its parameters and the function that makes it
(grass.py has two kinds of grass, blades.py the tussock), the row of the table PLANTS below makes it known to scene
files and `hedgerow plants`.

Triangles: a stem of cylinder-grass has 2 `sides`, a blade 2 `segments` (4 if folded), a leaf `leaf_triangles`, a bundle
of needles 1. `detail` scales the leaves and twigs of shrubs and trees; the leaf area stays. With the default sizes and
details of 0.1, 1 and 3 a shrub has about 6, 52 and 147 thousand triangles, a broadleaf 14, 112 and 303 thousand, a
conifer 53, 291 and 710 thousand.
"""

from hedgerow.scenes.plants.blades import TussockParameters, make_tussock
from hedgerow.scenes.plants.broadleaf import BroadleafParameters, make_broadleaf
from hedgerow.scenes.plants.cereal import CerealParameters, make_cereal
from hedgerow.scenes.plants.conifer import ConiferParameters, make_conifer
from hedgerow.scenes.plants.fern import FernParameters, make_fern
from hedgerow.scenes.plants.grass import (
    BladeGrassParameters,
    CylinderGrassParameters,
    make_blade_grass,
    make_cylinder_grass,
)
from hedgerow.scenes.plants.plant import Plant
from hedgerow.scenes.plants.root import RootParameters, make_root
from hedgerow.scenes.plants.shrub import ShrubParameters, make_shrub

__all__ = ["PLANTS", "Plant"]

PLANTS: dict[str, Plant] = {
    plant.name: plant
    for plant in (
        Plant(
            "cylinder-grass",
            "a patch of upright cylinders, as in Goodin 2018 §3.4.1",
            CylinderGrassParameters,
            make_cylinder_grass,
        ),
        Plant("blade-grass", "a patch of bent blades in tufts", BladeGrassParameters, make_blade_grass),
        Plant("tussock", "a clump of bent blades on one foot, placed one by one", TussockParameters, make_tussock),
        Plant("cereal", "a patch of oats or reed: stems, long leaves and ears", CerealParameters, make_cereal),
        Plant("fern", "fronds that arch out of one root", FernParameters, make_fern),
        Plant("shrub", "stems and leaves, half an ellipsoid or round", ShrubParameters, make_shrub),
        Plant("broadleaf", "a broad-leaved tree, leaf by leaf", BroadleafParameters, make_broadleaf),
        Plant("conifer", "a spruce or fir: whorls, shoots and needles", ConiferParameters, make_conifer),
        Plant("root", "a step in a trail, held by roots, as in Goodin 2018 §3.6", RootParameters, make_root),
    )
}
