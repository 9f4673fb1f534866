# SPDX-License-Identifier: Apache-2.0
import tomllib
from importlib import resources

import numpy as np
import pytest

from hedgerow.errors import InputError
from hedgerow.log import Log, Returns
from hedgerow.models.steps.classifier import ClassifierParameters, classify
from hedgerow.models.steps.classifier_training import _sampled, _site, score_classifier, tune_classifier
from hedgerow.reproduce.recording import SceneDrive
from hedgerow.scenes.site import load_site

GROUND, LEAVES, UNKNOWN = 72, 70, 0
GRASS, SHRUB, ROCK = 101, 102, 112


def labelled_site(seed, n_unlabelled=0):
    """Ground with a bush above it, seen from above; the first returns of the ground may be without a label."""
    rng = np.random.default_rng(seed)
    ground = np.c_[rng.uniform(0, 4, (1600, 2)), 0.015 * rng.normal(size=1600)]
    way = rng.normal(size=(600, 3))
    bush = [2, 2, 1.5] + 0.7 * way * rng.random((600, 1)) ** (1 / 3) / np.linalg.norm(way, axis=1, keepdims=True)
    points = np.concatenate([ground, bush])
    label = np.repeat([GROUND, LEAVES], [1600, 600]).astype(np.uint16)
    label[:n_unlabelled] = UNKNOWN
    along = points - [2.0, 2.0, 20.0]
    range_m = np.linalg.norm(along, axis=1)
    origins = np.tile([2.0, 2.0, 20.0], (len(points), 1))
    return Log.from_arrays(origins=origins, directions=along / range_m[:, None], ranges=range_m, labels=label)


def wide_site():
    """Four copies of a site, 16 m apart, so that each lies around the corner of four blocks."""
    log = labelled_site(0)
    moved = [log.beams.origin_m + np.array([16.0 * x - 2, 16.0 * y - 2, 0]) for x in (0, 1) for y in (0, 1)]
    assert log.returns.label is not None
    return Log.from_arrays(
        origins=np.concatenate(moved),
        directions=np.tile(log.beams.direction, (4, 1)),
        ranges=np.tile(log.returns.range_m, 4),
        labels=np.tile(log.returns.label, 4),
    )


BAD = ClassifierParameters(radius_m=0.2, min_neighbours=30, default_score=0.0, volume_score=0.05)


def test_tuning_separates_ground_and_bush_of_a_site_not_seen_before():
    found, score = tune_classifier(labelled_site(0), {LEAVES}, max_rounds=2)
    assert score > 0.97
    assert score_classifier(labelled_site(1), {LEAVES}, found)[0] > 0.95


def test_tuning_improves_on_bad_parameters():
    log = labelled_site(0)
    found, score = tune_classifier(log, {LEAVES}, max_rounds=1)
    # All ground, no leaf: the surface's share alone, a third of the weight.
    assert score_classifier(log, {LEAVES}, BAD) == pytest.approx((1 / 3, 0, 1, 600, 1600))
    assert score > 0.9
    assert found.volume_score != BAD.volume_score


def test_more_rounds_do_not_make_it_worse():
    log = labelled_site(0)
    scores = [tune_classifier(log, {LEAVES}, max_rounds=rounds)[1] for rounds in (0, 2)]
    assert scores[1] >= scores[0]


def test_returned_score_is_that_of_the_returned_parameters():
    log = labelled_site(3)
    found, score = tune_classifier(log, {LEAVES}, max_rounds=1)
    is_volume = classify(log.points(), found)
    is_leaf = log.returns.label == LEAVES
    volume, surface = is_volume[is_leaf].mean(), (~is_volume[~is_leaf]).mean()
    # Scores within float32 rounding of the threshold may be counted on its other side: some of 2200 returns.
    assert score == pytest.approx((2 * volume + surface) / 3, abs=2e-3)
    assert score_classifier(log, {LEAVES}, found)[1:3] == pytest.approx((volume, surface))


def test_same_seed_gives_the_same_parameters():
    log = labelled_site(0)
    first, second, other = (tune_classifier(log, {LEAVES}, seed=seed, max_rounds=1) for seed in (4, 4, 5))
    assert first == second
    assert first[0] != other[0]


def test_unlabelled_returns_do_not_count():
    chosen = ClassifierParameters()
    # The unlabelled are all ground: the leaves' share stays as it is, and the ground's is that of the rest.
    log = labelled_site(0, n_unlabelled=1200)
    is_volume = classify(log.points(), chosen)
    score = score_classifier(log, {LEAVES, UNKNOWN}, chosen)
    assert score.volume_recall == pytest.approx(is_volume[1600:].mean())
    assert score.surface_recall == pytest.approx((~is_volume[1200:1600]).mean())
    assert (score.n_volume, score.n_surface) == (600, 400)


def with_finer_labels(log):
    """Split the leaves into grass, shrub and vegetation, the ground into rock and terrain."""
    label = log.returns.label.copy()
    label[1600::3], label[1601::3], label[:1600:2] = GRASS, SHRUB, ROCK
    return log.with_returns(Returns(log.returns.range_m, label=label))


def test_finer_labels_fold_into_the_one_that_is_named():
    plain, finer = labelled_site(0), with_finer_labels(labelled_site(0))
    chosen = ClassifierParameters()
    assert score_classifier(finer, {LEAVES}, chosen) == score_classifier(plain, {LEAVES}, chosen)
    assert tune_classifier(finer, {LEAVES}, max_rounds=0) == tune_classifier(plain, {LEAVES}, max_rounds=0)
    # A finer label stands for itself alone.
    assert score_classifier(finer, {GRASS}, chosen).n_volume == 200


def test_sites_count_the_same():
    small = labelled_site(1)
    large = labelled_site(2)
    found, score = tune_classifier([small[::2], large], {LEAVES}, max_rounds=0)
    each = [score_classifier(log, {LEAVES}, found)[0] for log in (small[::2], large)]
    assert score == pytest.approx(np.mean(each), abs=2e-3)


def test_sampled_blocks_keep_their_scores_and_both_classes():
    site = _site(wide_site(), {LEAVES}, 0.1)
    part = _sampled(site, 600, seed=1)
    chosen = ClassifierParameters(radius_m=0.8, smooth_radius_m=0.6)
    scored = part.n_volume + part.n_surface > 0
    assert 600 <= scored.sum() < len(part.position_m) < len(site.position_m)
    assert part.n_volume.any()
    assert part.n_surface.any()
    whole = dict(zip(map(tuple, site.position_m.tolist()), site.scores(chosen).tolist(), strict=True))
    expected = [whole[tuple(place)] for place in part.position_m[scored].tolist()]
    assert part.scores(chosen)[scored].tolist() == expected


def test_progress_counts_the_rounds():
    calls = []
    tune_classifier(labelled_site(0), {LEAVES}, max_rounds=2, progress=calls.append)
    assert calls == list(range(1, len(calls) + 1))
    assert 1 <= len(calls) <= 2


def test_log_without_labels_is_refused():
    log = Log.from_arrays(origins=np.zeros((3, 3)), directions=np.eye(3), ranges=[1.0, 2, 3])
    with pytest.raises(InputError, match="log: has no labels"):
        tune_classifier(log, {LEAVES})


@pytest.mark.parametrize(("labels", "missing"), [({1}, "volume"), ({GROUND, LEAVES}, "surface"), (set(), "volume")])
def test_log_with_one_class_only_is_refused(labels, missing):
    with pytest.raises(InputError, match=f"label of a {missing}; found labels 70, 72"):
        tune_classifier(labelled_site(0), labels)


def test_log_without_a_return_is_refused():
    log = labelled_site(0)[:0]
    with pytest.raises(InputError, match="found labels none"):
        tune_classifier(log, {LEAVES})


def test_no_log_is_refused():
    with pytest.raises(InputError, match="log: there is none"):
        tune_classifier([], {LEAVES})


def read_shipped():
    path = resources.files("hedgerow.models.steps") / "classifier_defaults.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_the_shipped_parameters_were_judged_on_drives_they_were_not_trained_on():
    shipped = read_shipped()
    assert ClassifierParameters.model_validate(shipped["parameters"]) == ClassifierParameters()
    said = shipped["provenance"]
    training, held_out = ([(row["scene"], row["sensor"]) for row in said[part]] for part in ("training", "held_out"))
    assert training == held_out and {scene for scene, _ in training} == {"trail", "street"}
    for trained, judged in zip(said["training"], said["held_out"], strict=True):
        for name in ("scene_seed", "trajectory", "seed"):
            assert trained[name] != judged[name], name


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 3])
def test_the_shipped_parameters_reach_what_their_file_says(number):
    """The drives of an HDL-64E that were held out, recorded anew: trail and street."""
    row = read_shipped()["provenance"]["held_out"][number]
    drive = SceneDrive(load_site(row["scene"], seed=row["scene_seed"]), tuple(row["span_s"]))
    log = drive.record(row["trajectory"], row["sweeps"], row["seed"], row["sensor"])
    score = score_classifier(log, {LEAVES}, ClassifierParameters())
    for name, value in score._asdict().items():
        assert value == pytest.approx(row[name], abs=5e-4), name  # three decimals are written
