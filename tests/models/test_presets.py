# SPDX-License-Identifier: Apache-2.0
"""Presets: every value is a parameter of its model, what is set beside them wins, and errors say what there is."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.models.presets import PRESETS, with_preset
from hedgerow.models.registry import MODELS

EVERY = [(preset, model) for preset, row in PRESETS.items() for model in row.values]


@pytest.mark.parametrize(("preset", "model"), EVERY)
def test_every_value_is_a_parameter_of_its_model_and_differs_from_the_default(preset, model):
    values = with_preset(model, preset, {})
    with_values = MODELS[model].parse(values).model_dump()
    default = MODELS[model].parse({}).model_dump()
    for dotted in values:
        name, _, field = dotted.partition(".")
        mine, theirs = (table[name][field] if field else table[name] for table in (with_values, default))
        assert mine != theirs, dotted


def test_what_is_set_beside_a_preset_wins():
    assert with_preset("voxel", "deschaud-2012", {"tau": 3.0})["tau"] == 3.0
    hybrid = with_preset("hybrid", "browning-2012", {"surface.voxel_m": 0.1})
    assert hybrid["surface.voxel_m"] == 0.1 and hybrid["surface.min_close"] == 8
    whole = with_preset("hybrid", "browning-2012", {"surface": {"node_m": 0.2}})
    assert not [name for name in whole if name.startswith("surface.")]
    assert with_preset("voxel", None, {"tau": 1.0}) == {"tau": 1.0}


def test_unknown_presets_and_models_that_a_preset_does_not_know_are_refused():
    with pytest.raises(hr.InputError, match=r"preset: there is no 'newton-1687'; there are browning-2012"):
        with_preset("voxel", "newton-1687", {})
    with pytest.raises(hr.InputError, match="preset: deschaud-2012 has no model refined; it has surface, voxel"):
        with_preset("refined", "deschaud-2012", {})


def test_a_world_learned_with_a_preset_says_its_values():
    rng = np.random.default_rng(0)
    directions = np.c_[np.ones(500), rng.normal(0, 0.02, (500, 2))]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    log = hr.Log.from_arrays(origins=(0, 0, 0), directions=directions, ranges=rng.normal(8, 0.02, 500), max_range_m=50)
    world = hr.learn(log, "voxel", preset="deschaud-2012")
    assert world.header.parameters["tau"] == 2.0 and world.header.parameters["through_voxel"] is True
