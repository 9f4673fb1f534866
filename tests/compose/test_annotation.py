# SPDX-License-Identifier: Apache-2.0
"""Annotations: written and read again, patches cut into cells, and every wrong value refused with file and row."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import FileError, InputError
from hedgerow.scenes.annotation import (
    CLASSES,
    MAX_ROWS,
    Annotation,
    cell_centres,
    cell_numbers,
    contains,
    from_wkt,
    label_of,
    read_annotation,
    to_wkt,
    with_z,
    write_annotation,
)

SQUARE = np.array([[0.0, 0.0], [8.0, 0.0], [8.0, 6.0], [0.0, 6.0]])
HEAD = "class,x,y,z,yaw,length,width,height"


def example():
    return Annotation.of_boxes(
        ["small-tree", "low-shrub", "other"],
        [[1.25, -2.5, 0.1], [3.0, 4.0, np.nan], [-7.0, 1.0, 2.0]],
        [0.1, -2.0, 3.0],
        [[2, 3, 6], [8, 6, 1.1], [4, 2, 1.5]],
        object=[4, 9, 0],
        polygon_m=[None, SQUARE, None],
        cell_m=[np.nan, 2.0, np.nan],
    )


def corners(annotation, row):
    polygon = annotation.polygon_m[row]
    return None if polygon is None else polygon.tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_written_is_read_again(suffix, tmp_path):
    path = tmp_path / f"site.{suffix}"
    write_annotation(path, example())
    again = read_annotation(path)
    assert again.class_name.tolist() == example().class_name.tolist()
    for name in ("position_m", "yaw_rad", "size_m", "object", "cell_m"):
        assert np.array_equal(getattr(again, name), getattr(example(), name), equal_nan=True)
    assert again.is_patch.tolist() == [False, True, False]
    assert corners(again, 1) == SQUARE.tolist()


def test_a_table_by_hand_needs_neither_z_nor_patches(tmp_path):
    path = tmp_path / "site.csv"
    path.write_text(
        "class,x,y,yaw,length,width,height\nlarge-tree,1,2,0,4,4,13\nother,5,6,0.5,1,1,1\n", encoding="utf-8"
    )
    found = read_annotation(path)
    assert len(found) == 2
    assert np.isnan(found.position_m[:, 2]).all()
    assert found.size_m[0].tolist() == [4, 4, 13]
    assert with_z(found, np.array([7.0, 8.0])).position_m[:, 2].tolist() == [7, 8]


def test_polygons_may_be_lists_of_pairs_in_parquet(tmp_path):
    path = tmp_path / "site.parquet"
    columns = {"class": ["low-shrub"], "polygon": [SQUARE.tolist()], "cell": [2.0]}
    numbers = {name: [1.0] for name in ("x", "y", "yaw", "length", "width", "height")}
    pq.write_table(pa.table(columns | numbers), path)
    assert corners(read_annotation(path), 0) == SQUARE.tolist()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("cactus,1,2,0,0,1,1,1", "row 2: cactus is none of low-shrub"),
        (",1,2,0,0,1,1,1", "class: row 2"),
        ("other,1,2,0,0,0,1,1", "length: row 2: 0.0 is no size"),
        ("other,1,2,0,0,1,-3,1", "width: row 2: -3.0 is no size"),
        ("other,1,2,0,0,1,1,", "height: row 2: nan is no size"),
        ("other,nan,2,0,0,1,1,1", "x: row 2: nan is no coordinate"),
        ("other,1,,0,0,1,1,1", "y: row 2: nan is no coordinate"),
        ("other,1,2,inf,0,1,1,1", "z: row 2: inf is no coordinate"),
        ("other,1,2,0,nan,1,1,1", "yaw: row 2: nan is no angle"),
        ("other,1,2,0,0,1,1,one", "damaged"),
        ("other,1,2", "damaged"),
    ],
)
def test_a_wrong_value_is_refused_with_its_row(row, said, tmp_path):
    path = tmp_path / "site.csv"
    path.write_text(f"{HEAD}\nother,1,2,0,0,1,1,1\n{row}\n", encoding="utf-8")
    with pytest.raises(FileError) as refused:
        read_annotation(path)
    assert str(path) in str(refused.value)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("polygon", "cell", "said"),
    [
        ("POLYGON ((0 0, 1 0, 1 1, 0 0))", "", "cell: row 1"),
        ("POLYGON ((0 0, 1 0, 1 1, 0 0))", "-1", "cell: row 1"),
        ("POLYGON ((0 0, 1 0, 0 0))", "1", "2 corners"),
        ("POLYGON ((0 0, 1 nan, 1 1))", "1", "no pair of finite numbers"),
        ("CIRCLE (1)", "1", "is no polygon"),
        ("POLYGON ((a b))", "1", "polygon: row 1"),
    ],
)
def test_a_wrong_patch_is_refused(polygon, cell, said, tmp_path):
    path = tmp_path / "site.csv"
    path.write_text(f'{HEAD},polygon,cell\nlow-shrub,1,2,0,0,1,1,1,"{polygon}",{cell}\n', encoding="utf-8")
    with pytest.raises(FileError) as refused:
        read_annotation(path)
    assert said in str(refused.value)


def test_missing_and_unknown_columns_are_named(tmp_path):
    path = tmp_path / "site.csv"
    path.write_text("class,x,y,yaw,length,width\nother,1,2,0,1,1\n", encoding="utf-8")
    with pytest.raises(FileError, match="height: this column is missing"):
        read_annotation(path)
    path.write_text(f"{HEAD},colour\nother,1,2,0,0,1,1,1,red\n", encoding="utf-8")
    with pytest.raises(FileError, match="colour: there is no such column"):
        read_annotation(path)


def test_files_of_other_kinds_are_refused(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_annotation(tmp_path / "missing.csv")
    with pytest.raises(FileError, match=r"expected a \.csv or \.parquet"):
        read_annotation(tmp_path / "site.txt")
    with pytest.raises(FileError, match=r"\.csv or \.parquet"):
        write_annotation(tmp_path / "site.txt", example())
    (tmp_path / "site.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(FileError, match="damaged"):
        read_annotation(tmp_path / "site.parquet")


def test_too_many_rows_are_counted_and_refused_before_they_are_read(tmp_path):
    path = tmp_path / "site.csv"
    with path.open("wb") as file:
        file.write(HEAD.encode() + b"\n")
        for _ in range(MAX_ROWS // 1_000_000 + 1):
            file.write(b"\n" * 1_000_000)
    with pytest.raises(FileError, match="has 11,000,000 rows; expected at most 10,000,000"):
        read_annotation(path)
    pq.write_table(pa.table({"x": np.zeros(MAX_ROWS + 1, dtype=np.int8)}), tmp_path / "site.parquet")
    with pytest.raises(FileError, match="has 10,000,001 rows"):
        read_annotation(tmp_path / "site.parquet")


def test_a_patch_is_cut_into_cells_of_its_class():
    cells = example().expanded()
    assert len(cells) == 2 + 12  # 8 by 6 m in cells of 2 m, turned by two radians: about 12
    inner = cells[2:]
    assert set(inner.class_name.tolist()) == {"low-shrub"}
    assert set(inner.object.tolist()) == {9}
    assert np.isnan(inner.position_m[:, 2]).all()
    assert (inner.size_m == [2, 2, 1.1]).all()
    assert contains(SQUARE, inner.position_m[:, :2]).all()
    assert not cells.is_patch.any()


def test_cells_along_the_axes_fill_a_square():
    centre = cell_centres(SQUARE, 2.0)
    assert sorted(map(tuple, centre.tolist())) == [(x, y) for x in (1, 3, 5, 7) for y in (1, 3, 5)]


def test_a_patch_smaller_than_a_cell_is_one_cell_in_its_middle():
    assert cell_centres(SQUARE / 40 + 0.1, 2.0).tolist() == [[pytest.approx(0.2), pytest.approx(0.175)]]


def test_a_patch_of_too_many_cells_is_refused_with_its_row():
    wide = Annotation.of_boxes(["low-shrub"], [[0, 0]], 0.0, [[9, 9, 1]], polygon_m=[SQUARE * 1000], cell_m=[0.5])
    with pytest.raises(InputError, match=r"row 1: 0\.5 m cuts the patch into 192,000,000 cells"):
        wide.expanded()


@given(
    yaw=st.floats(-3, 3), cell_m=st.floats(0.3, 3), x=st.floats(-50, 50), y=st.floats(-50, 50), size=st.floats(4, 12)
)
def test_every_cell_has_its_own_number_and_holds_its_middle(yaw, cell_m, x, y, size):
    polygon = np.array([[x, y], [x + size, y], [x + size, y + size / 2], [x, y + size]])
    centre = cell_centres(polygon, cell_m, yaw)
    number = cell_numbers(centre, cell_m, yaw)
    assert len(np.unique(number, axis=0)) == len(centre)
    if len(centre) > 1:
        assert contains(polygon, centre).all()
        # Cells whose middle lies inside cover the polygon but for its rim, half a diagonal wide.
        area, rim = 0.75 * size**2, cell_m * 4 * size
        assert abs(len(centre) * cell_m**2 - area) <= rim


def test_polygons_survive_as_text():
    corners = np.array([[0.1, 1e7 + 1 / 3], [2.0, -5.0], [3.0, 4.0]])
    assert np.array_equal(from_wkt(to_wkt(corners)), corners)


def test_every_class_has_a_label_of_its_own():
    assert len({label_of(name) for name in CLASSES}) == len(CLASSES)


def test_rows_can_be_selected():
    assert example()[[2, 1]].class_name.tolist() == ["other", "low-shrub"]
    assert example()[example().is_patch].cell_m.tolist() == [2.0]


def test_arrays_of_unequal_length_are_refused():
    with pytest.raises(InputError, match="size_m"):
        Annotation.of_boxes(["other"], [[0, 0]], 0.0, [[1, 1, 1]]).__class__(
            np.array(["other"]),
            np.zeros((1, 3)),
            np.zeros(1),
            np.ones((2, 3)),
            np.zeros(1, np.uint32),
            (None,),
            np.ones(1),
        )
