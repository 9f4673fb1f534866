# SPDX-License-Identifier: Apache-2.0
"""Label histograms of elements: the value class, and the labels that returns draw from them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chi2_contingency, chisquare
from small_worlds import gaussians, mixtures, rays, same, triangles, world

from hedgerow import Beams, InputError, _core
from hedgerow.world import LabelCounts, Scene, SurfaceNoise
from hedgerow.world.elements import Gaussians, Triangles

FALSE_ALARM = 1e-6  # per test; every seed below is fixed, so a pass stays a pass
SQUARE = [[-9.0, -9, 0], [9, -9, 0], [9, 9, 0], [-9, 9, 0]]


def counts_of(rows):
    """LabelCounts of dictionaries from label to count."""
    entries = [(label, row[label]) for row in rows for label in sorted(row)]
    label, count = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    return LabelCounts.from_rows(np.array([len(row) for row in rows], int), label.astype(np.uint16), count.copy())


def rows_of(counts):
    pairs = list(zip(counts.label.tolist(), counts.count.tolist(), strict=True))
    return [dict(pairs[a:b]) for a, b in zip(counts.first[:-1], counts.first[1:], strict=True)]


def ahead(n, x=0.0):
    """The same beam along x, again and again."""
    return Beams.from_arrays(origins=(x, 0, 0), directions=np.broadcast_to([1.0, 0, 0], (n, 3)))


def blob(scene, x, label, **settings):
    scene.add_gaussians([[x, 0.0, 0]], [np.eye(3) * 0.04], label=label, **settings)


# the value class

ROWS = st.lists(st.dictionaries(st.integers(1, 65535), st.integers(1, 2**40), max_size=4), max_size=8)


@given(ROWS, ROWS, st.randoms())
def test_rows_are_selected_joined_and_counted_as_dictionaries_are(a, b, random):
    counts = LabelCounts.concatenate([counts_of(a), counts_of(b)])
    rows = a + b
    assert rows_of(counts) == rows
    assert len(counts) == len(rows)
    chosen = random.choices(range(len(rows)), k=5) if rows else []
    assert rows_of(counts[chosen]) == [rows[i] for i in chosen]
    assert rows_of(counts[1:-1]) == rows[1:-1]
    mask = np.array([random.random() < 0.5 for _ in rows], dtype=bool)
    assert rows_of(counts[mask]) == [row for row, keep in zip(rows, mask, strict=True) if keep]
    assert counts.mixed().tolist() == [len(row) > 1 for row in rows]
    modes = [max(row, key=lambda label: (row[label], -label)) if row else 0 for row in rows]
    assert counts.most_common().tolist() == modes
    assert counts.equal(counts_of(rows))


def test_one_label_each_is_its_own_mode_and_0_is_unknown():
    counts = LabelCounts.from_modes(np.array([7, 0, 65535], np.uint16))
    assert rows_of(counts) == [{7: 1}, {}, {65535: 1}]
    assert counts.most_common().tolist() == [7, 0, 65535]
    assert rows_of(LabelCounts.of(9, 2)) == [{9: 1}, {9: 1}]
    assert counts.nbytes == 4 * 8 + 2 * 2 + 2 * 8


@pytest.mark.parametrize(
    ("first", "label", "count", "message"),
    [
        ([0, 2], [3, 2], [1, 1], r"labels: row 0 has labels \[3, 2\] .*; expected ascending labels"),
        ([0, 0, 2], [3, 3], [1, 1], r"labels: row 1 has labels \[3, 3\]"),
        ([0, 1, 2], [3, 0], [1, 1], r"labels: row 1 has labels \[0\]"),
        ([0, 1, 2], [3, 3], [1, 0], r"labels: row 1 .* with counts \[0\]"),
        ([1, 2], [3, 4], [1, 1], "labels.first: expected numbers that rise from 0 to 2"),
        ([0, 2, 1], [3], [1], "labels.first: expected numbers that rise"),
        ([], [], [], "labels.first: expected numbers that rise from 0 to 0"),
        ([0, 1], [3], [1, 2], r"labels.count: expected shape \(1,\), found \(2,\)"),
    ],
)
def test_what_is_no_histogram_is_refused(first, label, count, message):
    with pytest.raises(InputError, match=message):
        LabelCounts(np.array(first, np.int64), np.array(label, np.uint16), np.array(count, np.int64))


def test_wrong_types_and_lengths_are_refused():
    with pytest.raises(InputError, match=r"labels.label: expected type uint16, found int64"):
        LabelCounts(np.array([0, 1]), np.array([3]), np.array([1]))
    with pytest.raises(InputError, match="label: has 3 rows, expected 1"):
        blob(Scene(), 5.0, mixtures(3))
    with pytest.raises(InputError, match="label: has 3 rows, expected 2"):
        Scene().add_mesh(SQUARE, [[0, 1, 2], [0, 2, 3]], label=mixtures(3))


def test_the_engine_refuses_arrays_that_do_not_fit():
    scene = Scene()
    one = np.ones(1, np.float32)
    elements = {
        "mean_m": np.zeros((1, 3), np.float32),
        "whitening": np.ones((1, 6), np.float32),
        "stop": np.zeros(1, np.float32),
        "label": np.zeros(1, np.uint16),
        "intensity": one,
        "intensity_sigma": one,
    }
    for first, count in (([0, 3], [1, 1]), ([0, 2, 2], [1, 1]), ([1, 2], [1, 1]), ([0, 2], [1, 0])):
        labels = _core.LabelArrays(first=np.array(first), label=np.array([1, 2], np.uint16), count=np.array(count))
        with pytest.raises(ValueError, match=r"labels\.(first|count)"):
            scene._core.add_gaussians(
                **elements, law=_core.StopLaw.permeability, tau=3.0, answer=_core.Answer.pulse, labels=labels
            )


# what returns draw


@pytest.mark.parametrize("kind", ["gaussian", "triangles", "placed"])
def test_labels_of_returns_come_by_their_shares(kind):
    scene, shares = Scene(), {4: 1, 9: 2, 70: 7}
    if kind == "triangles":
        corners = np.array(SQUARE)[:, [2, 0, 1]] + [5.0, 0, 0]
        scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], label=counts_of([shares, shares]))
    else:
        inner = Scene()
        blob(inner, 5.0, counts_of([shares]))
        if kind == "placed":
            blob(scene, 50.0, 3)
            scene.place(inner, np.eye(4))
        scene = scene if kind == "placed" else inner
    hits = scene.fire(ahead(100_000), seed=1)
    found = Counter(hits.label.tolist())
    assert found.keys() == shares.keys()
    assert chisquare([found[label] for label in shares], [1e4, 2e4, 7e4]).pvalue > FALSE_ALARM


def test_triangles_that_differ_in_nothing_but_their_shares_draw_their_own():
    scene = Scene()
    corners = np.array(SQUARE)[:, [2, 0, 1]] + [5.0, 0, 0]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], label=counts_of([{1: 9, 2: 1}, {1: 9, 3: 1}]))
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.repeat([[0.8, 0.6, 0], [0.8, -0.6, 0]], 500, axis=0))
    hits = scene.fire(beams)
    assert {(e, *np.unique(hits.label[hits.element == e]).tolist()) for e in (0, 1)} == {(0, 1, 2), (1, 1, 3)}


def test_every_element_of_a_world_draws_its_own_labels():
    tables = triangles(60, label=mixtures(60, seed=1), extent=9.0), gaussians(90, label=mixtures(90), extent=9.0)
    made = world(*tables)
    log = made.fire(rays(200_000), seed=6)
    label = LabelCounts.concatenate(
        [table.label for table in made.tables.values() if isinstance(table, Triangles | Gaussians)]
    )
    assert log.returns.label is not None
    statistic, freedom = 0.0, 0
    for element, row in enumerate(rows_of(label)):
        mine = Counter(log.returns.label[log.returns.element == element].tolist())
        n = sum(mine.values())
        assert mine.keys() <= (row.keys() or {0})
        # Only where every label is expected five times or more: below, chi-square does not hold.
        if len(row) > 1 and n * min(row.values()) / sum(row.values()) >= 5:
            expected = [n * count / sum(row.values()) for count in row.values()]
            statistic += chisquare([mine[each] for each in row], expected).statistic
            freedom += len(row) - 1
    assert freedom > 60
    assert FALSE_ALARM < chi2.sf(statistic, freedom) < 1 - FALSE_ALARM


def test_labels_do_not_depend_on_who_passed_or_on_range_or_intensity():
    scene = Scene()
    half = {5: 1, 6: 1}
    for x in (5.0, 7.0, 9.0):
        blob(scene, x, counts_of([half]), permeability=0.5, intensity=0.5, intensity_sigma=0.05)
    hits = scene.fire(ahead(200_000), seed=2)
    stopped = hits.element >= 0
    sixes = hits.label[stopped] == 6
    assert chisquare(np.bincount(sixes)).pvalue > FALSE_ALARM
    off_m = hits.range_m[stopped] - np.array([5.0, 7, 9])[hits.element[stopped]]
    for other in (hits.element[stopped], off_m, hits.intensity[stopped]):
        bins = np.searchsorted(np.quantile(other, [0.25, 0.5, 0.75]), other) if other.dtype.kind == "f" else other
        assert chi2_contingency(np.histogram2d(sixes, bins, (2, len(np.unique(bins))))[0]).pvalue > FALSE_ALARM


def test_a_mixed_element_stops_and_measures_as_one_with_a_single_label():
    plain, mixed = Scene(), Scene()
    for scene, label in ((plain, 7), (mixed, counts_of([{7: 1, 8: 1}]))):
        blob(scene, 5.0, label, permeability=0.4, intensity_sigma=0.1)
    a, b = plain.fire(ahead(5000), seed=3), mixed.fire(ahead(5000), seed=3)
    for name in ("range_m", "intensity", "element"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
    assert set(b.label[b.element >= 0].tolist()) == {7, 8}


def test_counts_of_one_label_give_the_bytes_of_the_plain_label():
    label = np.random.default_rng(0).integers(0, 9, 400).astype(np.uint16)
    often = LabelCounts.from_modes(label)
    often = LabelCounts(often.first, often.label, often.count * 1000)
    tables = [gaussians(400, label=each) for each in (label, often)]
    plain, counted = Scene(), Scene()
    table = tables[0]
    plain.add_gaussians(table.mean_m, table.covariance_m2, permeability=table.stop, label=label)
    counted.add_gaussians(table.mean_m, table.covariance_m2, permeability=table.stop, label=often)
    a, b = plain.fire(rays(20_000), seed=5), counted.fire(rays(20_000), seed=5)
    assert (a.element >= 0).mean() > 0.2
    for name in ("range_m", "intensity", "label", "element"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
    assert world(tables[0]).fire(rays(5000)).equal(world(tables[1]).fire(rays(5000)))


def test_threads_and_slices_do_not_change_labels():
    made = world(triangles(300, label=mixtures(300)), gaussians(400, label=mixtures(400)))
    beams = rays(30_000)
    one, two = (made.fire(beams, seed=8, threads=threads).returns.label for threads in (1, 2))
    assert one is not None and two is not None
    assert one.tobytes() == two.tobytes()
    part = made.fire(beams[7_000:9_000], seed=8).returns.label
    other = made.fire(beams, seed=9).returns.label
    assert part is not None and other is not None
    assert part.tobytes() == one[7_000:9_000].tobytes()
    assert other.tobytes() != one.tobytes()


def test_a_placement_with_a_label_of_its_own_overrides_the_mixture():
    child, scene = Scene(), Scene()
    blob(child, 0.0, counts_of([{1: 1, 2: 1}]))
    left, right = np.eye(4), np.eye(4)
    left[:3, 3], right[:3, 3] = (5, 0, 0), (-5, 0, 0)
    scene.place(child, [left, right], label=[-1, 40])
    directions = np.repeat([[1.0, 0, 0], [-1, 0, 0]], 500, axis=0)
    hits = scene.fire(Beams.from_arrays(origins=(0, 0, 0), directions=directions))
    assert set(hits.label[:500].tolist()) == {1, 2}
    assert set(hits.label[500:].tolist()) == {40}


def test_tables_keep_their_labels_when_rows_are_chosen_and_joined():
    table = triangles(50, label=mixtures(50), noise=SurfaceNoise(0.1))
    cut = [table[:20], table[20:21], table[21:]]
    joined = type(table).join(cut)
    assert same(joined, table)
    assert rows_of(table[::-1].label) == rows_of(table.label)[::-1]
