# SPDX-License-Identifier: Apache-2.0
"""Presets: the parameter values of a paper, by model, where they differ from the defaults.

`hedgerow learn --preset NAME`, or `learn(..., preset=NAME)`. What is set beside a preset wins over it. A value in a
group of parameters has a dotted name. What a paper does that no parameter restores is in docs/models.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hedgerow.errors import InputError, shown

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preset:
    """A row of PRESETS."""

    about: str
    values: Mapping[str, Values]
    """Parameters of each model that it knows; none where the defaults are the paper's own values."""


def _in_group(group: str, values: Values) -> dict[str, Any]:
    return {f"{group}.{name}": value for name, value in values.items()}


# Browning 2012 §3.3.2: nodes with three points within the kernel, marching cubes, every triangle kept, no thinning.
# 0.8 m is farther than any triangle can be from its points; a millimetre joins no two points of a drive.
_BROWNING_MESH = {"reach_m": 0.4, "min_close": 8, "max_gap_m": 0.8, "voxel_m": 0.001, "upward": 0.0}
_BROWNING_TOPDOWN = {"split_points": 121}  # §6.5: at most 120 points in each
_BROWNING_NOISE = {"sigma0_m": 0.015, "sigma_a_m": 0.0014}  # §6.2.1
_ALL_TRIANGLES = {"keep_unhit": "all"}  # Tables 8 and 9: as many triangles with permeability as without

# Deschaud 2012 §III.C and §IV.
_DESCHAUD_GAUSSIANS = {"tau": 2.0}
_DESCHAUD_TOPDOWN = {"clusters": 2, "start": "axis", "tolerance": 0.0} | _DESCHAUD_GAUSSIANS
_DESCHAUD_VOXEL = {"through_voxel": True} | _DESCHAUD_GAUSSIANS
_DESCHAUD_NOISE = {"sigma0_m": 0.005, "sigma_a_m": 0.0}  # §V.C

# Tallavajhula 2018 Table 4.1 and §4.3.1. Where it gives the defaults (clusters per point, least points, tau, radius,
# regularisation, longest side) nothing is said here. The table has no smoothing of phi: a point alone smooths nothing.
# It does not say how points were thinned for phi; at 0.25 m a ball of 5 m holds some thousand of them.
_TALLAVAJHULA = {
    "told_by": "shape",
    "classifier.voxel_m": 0.25,
    "classifier.radius_m": 5.0,
    "classifier.min_neighbours": 10,
    "classifier.default_score": 0.01,
    "classifier.volume_score": 0.09,
    "classifier.smooth_neighbours": 1,
    "ground.refinements": 0,
    "plants.branching": 32,
    "unbiased": True,
    "window_m": 0.75,
    "triangle_prior_hits": 1.0,
    "triangle_prior_passes": 2.0,
    "gaussian_prior_passes": 1.0,
    "keep_unhit": "none",
    "sigma0_m": 0.2646,  # 0.07 m²
    "sigma_a_m": 0.0,
}

PRESETS: Mapping[str, Preset] = {
    "browning-2012": Preset(
        "Browning 2012, drives (Table 12)",
        {
            "points": _BROWNING_NOISE,
            "surface": {"max_passed": 1.0} | _BROWNING_MESH | _BROWNING_NOISE,
            "permeable-surface": _BROWNING_MESH | _BROWNING_NOISE | _ALL_TRIANGLES,
            "voxel": {},
            "topdown": _BROWNING_TOPDOWN,
            "hybrid": _in_group("surface", _BROWNING_MESH | _BROWNING_NOISE)
            | _in_group("topdown", _BROWNING_TOPDOWN)
            | _ALL_TRIANGLES,
        },
    ),
    "deschaud-2012": Preset(
        "Deschaud 2012, drives",
        {
            "surface": {"max_passed": 1.0} | _BROWNING_MESH | _DESCHAUD_NOISE,
            "voxel": _DESCHAUD_VOXEL,
            "topdown": _DESCHAUD_TOPDOWN,
            "bottomup": _DESCHAUD_GAUSSIANS,
        },
    ),
    "deschaud-2012-static": Preset(
        "Deschaud 2012 and Browning 2012, targets 8 m from a standing sensor",
        {
            "surface": {
                "max_passed": 1.0,
                "node_m": 0.01,
                "kernel_m": 0.04,
                "reach_m": 0.04,
                "min_close": 8,
                "max_gap_m": 0.08,
                "voxel_m": 0.001,
                "upward": 0.0,
            }
            | _DESCHAUD_NOISE,
            "voxel": {"side_m": 0.05} | _DESCHAUD_VOXEL,
            "topdown": _DESCHAUD_TOPDOWN,
        },
    ),
    "tallavajhula-2018": Preset("Tallavajhula 2018, off-road drives (Table 4.1)", {"terrain": _TALLAVAJHULA}),
}


def with_preset(model: str, preset: str | None, parameters: Values) -> dict[str, Any]:
    """Return the parameters of a model with those of a preset beside them; what is given wins.

    Raises:
        InputError: there is no such preset, or it says nothing about the model.
    """
    if preset is None:
        return dict(parameters)
    if preset not in PRESETS:
        raise InputError("preset", f"there is no {shown(preset)}; there are {', '.join(PRESETS)}")
    known = PRESETS[preset].values
    if model not in known:
        raise InputError("preset", f"{preset} has no model {model}; it has {', '.join(known)}")
    # A group that is given as a whole replaces all of it.
    left = {name: value for name, value in known[model].items() if name.partition(".")[0] not in parameters}
    return left | dict(parameters)
