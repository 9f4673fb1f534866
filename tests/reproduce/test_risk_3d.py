# SPDX-License-Identifier: Apache-2.0
"""Risk of all models on a drive, on one that is made here."""

import numpy as np
import pytest
from small_scenes import small_scene

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.inputs import open_place
from hedgerow.reproduce import risk_3d


def test_a_drive_that_is_missing_or_too_short_is_refused(tmp_path):
    for data in (None, tmp_path):
        with pytest.raises(HedgerowError, match="risk-3d needs a folder with drive"):
            risk_3d.run(tmp_path, data=data)
    log = hr.Log.from_arrays(origins=[0, 0, 0], directions=[[1, 0, 0]], ranges=[1.0], max_range_m=5)
    hr.write_log(log, tmp_path / "drive.parquet")
    with pytest.raises(HedgerowError, match="1 sweeps are too few; two scenes take 8"):
        risk_3d.run(tmp_path, data=tmp_path)


@pytest.mark.slow
def test_all_models_are_measured_with_three_programs(tmp_path, monkeypatch):
    place = open_place(small_scene(tmp_path / "yard.toml"), "fire")
    sensor = place.sensor(None)
    world, _, _ = place.open(sensor)
    drive = hr.Trajectory.line([-5, 0, 1.5], [5, 0, 1.5], speed_mps=8)
    sweeps = list(hr.simulate(world, sensor, drive, sweeps=12))
    hr.write_log(hr.Log.concatenate(sweeps), tmp_path / "drive.parquet")
    monkeypatch.setattr(risk_3d, "_JOBS", 1)
    monkeypatch.setattr(risk_3d, "MODELS", {name: risk_3d.MODELS[name] for name in ("voxel", "refined")})
    said: list[str] = []
    found = risk_3d.run(tmp_path, 12, 1, said.append, data=tmp_path)
    assert "learning refined" in said
    rows = [line for line in found.text.splitlines() if line.startswith(("| voxel", "| refined"))]
    assert len(rows) == 2
    numbers = [float(cell.split()[0]) for cell in rows[0].split("|")[2:-1] if cell.strip() != "-"]
    assert np.isfinite(numbers).all()
    for program in risk_3d.PROGRAMS:
        assert f"- {program}: " in found.text
