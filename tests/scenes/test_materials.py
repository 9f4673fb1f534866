# SPDX-License-Identifier: Apache-2.0
"""Materials at wavelengths, and labels: names to numbers and back to SemanticKITTI's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError

from hedgerow.base.labels import LABELS, Label, numbers_of, to_semantic_kitti, vegetation_of
from hedgerow.scenes.materials import Material, materials

TWO = Material(wavelength_nm=[900, 1500], reflectance=[0.5, 0.2], sigma0_m=0.01, sigma_a_m=0.002)


def test_reflectance_is_interpolated_between_and_nearest_outside():
    found = [TWO.at(nm).reflectance for nm in (532, 900, 1050, 1500, 1550)]
    assert_allclose(found, [0.5, 0.5, 0.425, 0.2, 0.2], atol=1e-12)


def test_a_surface_keeps_kind_and_roughness():
    surface = TWO.at(905)
    assert (surface.lambertian, surface.noise.sigma0_m, surface.noise.sigma_a_m) == (True, 0.01, 0.002)
    assert not Material(kind="retro", wavelength_nm=[905], reflectance=[8]).at(905).lambertian


def test_green_plants_are_bright_at_905_and_dark_at_1550_nm():
    # JHU's figures as the table quotes them: 0.9 and 0.92 µm 50.79 and 51.061 %, 1.54 and 1.56 µm 23.15 and 25.381 %
    grass = materials()["grass"]
    assert_allclose(grass.at(905).reflectance, 0.5079 + 0.25 * 0.00271, atol=5e-4)  # given to three digits
    assert_allclose(grass.at(1550).reflectance, (0.2315 + 0.25381) / 2, atol=5e-4)


def test_every_material_says_what_it_is_and_where_its_figures_come_from():
    for name, material in materials().items():
        assert material.about, name
        assert material.source, name
        assert 0 < material.at(905).reflectance <= (1 if material.kind == "lambertian" else 100), name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reflectance": [0.5]}, "reflectance: 1 figures for 2 wavelengths"),
        ({"wavelength_nm": [1500, 900]}, "wavelength_nm: .* does not rise"),
        ({"reflectance": [0.5, 1.5]}, "reflectance: 1.5 is above 1; only a retro"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_material_is_refused(change, words):
    with pytest.raises(ValidationError, match=words):
        Material.model_validate({"wavelength_nm": [900, 1500], "reflectance": [0.5, 0.2]} | change)


def test_labels_are_semantic_kitti_s_where_it_has_them():
    kitti = {"road": 40, "building": 50, "fence": 51, "vegetation": 70, "trunk": 71, "terrain": 72, "pole": 80}
    assert {name: LABELS[name].number for name in kitti} == kitti
    assert all(label.number == label.semantic_kitti for label in LABELS.values() if label.number <= 100)
    own = [label.number for label in LABELS.values() if label.number > 100]
    assert len(own) == len(set(own))


def test_finer_labels_fold_into_semantic_kitti_s():
    finer = np.array([LABELS[name].number for name in ("grass", "leaves", "trunk", "rock")] + [777], dtype=np.uint16)
    assert_array_equal(to_semantic_kitti(finer), [70, 70, 71, 72, 777])


def test_foliage_is_vegetation_and_trunks_are_not():
    found = vegetation_of(LABELS.values())
    assert {numbers_of(LABELS)[name] for name in ("grass", "shrub", "leaves", "needles", "vegetation")} <= found
    assert not {numbers_of(LABELS)[name] for name in ("trunk", "ground", "rock", "building")} & found
    assert vegetation_of([Label(5, 5, True), Label(6, 6, False)]) == {5}
