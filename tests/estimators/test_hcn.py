"""HCN learns from labels or without, and uses its weights: recognises, completes, generates."""

from functools import partial

import numpy as np
import pytest
from scipy.special import softmax
from small_networks import features_on, log_joints

from hcnet import HCN, Inference, Layer
from hcnet.datasets import shapes
from hcnet.hierarchy import inference, network
from hcnet.hierarchy.explaining import explain
from hcnet.images import Images
from hcnet.memory import NotEnoughMemoryError

METHODS = ("explain", "forward", "passing")
NAMES = np.array(["alike", "unlike"])


def two_layers(**options):
    return HCN([Layer(4, size=21), Layer()], **{"random_state": 0, **options})


def known(data, **options):
    """The network that made the data; two templates per class."""
    options = {"templates_per_class": 2, **options}
    return two_layers(**options).set_weights([data.features, data.template_weights], 25)


def tiny(**options):
    """One layer over small images whose pixels stay where they are: fitted in milliseconds."""
    return HCN([Layer(pool=1)], **{"random_state": 0, "n_init": 1, "max_iter": 20, **options})


def purity(found, truth):
    """Share of images that are in the most frequent true group of their cluster."""
    return sum(np.bincount(truth[found == k]).max() for k in np.unique(found)) / len(truth)


@pytest.fixture(scope="module")
def data():
    return shapes(feature_size=21, n_images=60, random_state=0)


@pytest.fixture(scope="module")
def fresh():
    """Images that nothing was learned from."""
    return shapes(feature_size=21, n_images=40, random_state=1)


@pytest.fixture(scope="module")
def supervised(data):
    model = two_layers(templates_per_class=2, n_init=2, max_iter=40)
    return model.fit(data.images, NAMES[data.labels])


@pytest.fixture(scope="module")
def unsupervised(data):
    return two_layers(n_classes=4, n_init=1, max_iter=40).fit(data.images)


@pytest.fixture(params=METHODS)
def truth(request, data):
    return known(data, inference=request.param)


# --- learning -------------------------------------------------------------------------------


def test_classes_are_learned_from_labels(supervised, fresh):
    assert supervised.score(fresh.images, NAMES[fresh.labels]) > 0.95
    assert set(supervised.predict(fresh.images)) == set(NAMES)


def test_templates_are_learned_without_labels(unsupervised, fresh):
    np.testing.assert_array_equal(unsupervised.classes_, range(4))
    assert purity(unsupervised.cluster(fresh.images), fresh.templates) > 0.8


def test_what_fit_leaves_behind(supervised, unsupervised, data):
    assert [W.shape for W in supervised.weights_] == [(4, 1, 21, 21), (4, 4, 1, 1)]
    assert all(W.dtype == bool for W in supervised.weights_)
    np.testing.assert_array_equal(supervised.classes_, NAMES)
    np.testing.assert_array_equal(supervised.template_classes_, NAMES.repeat(2))
    for model in (supervised, unsupervised):
        assert len(model.history_) == model.n_iter_
        assert model.log_joint_ < 0 < model.memory_
        assert model.status_.endswith(".")


def test_labels_of_a_few_images_are_enough():
    data = shapes(feature_size=9, jitter=1, n_images=40, random_state=0)
    few = np.where(np.arange(40) < 8, data.labels, -1)
    model = tiny(templates_per_class=2, max_iter=40).fit(data.images, few)
    assert model.score(data.images, data.labels) > 0.9
    np.testing.assert_array_equal(model.classes_, [0, 1])


@pytest.mark.parametrize("hide", ["mask", "NaN"])
def test_missing_pixels_are_not_learned_from(hide):
    data = shapes(feature_size=9, jitter=1, n_images=40, random_state=0)
    mask = np.random.default_rng(0).random(data.images.shape) < 0.1
    # What is hidden is wrong on purpose: only a method that looks under the mask would fail.
    wrong = np.where(mask, ~data.images, data.images)
    model = tiny(templates_per_class=2)
    if hide == "mask":
        model.fit(wrong, data.labels, mask)
    else:
        with pytest.warns(UserWarning, match="NaN is taken as missing"):
            model.fit(np.where(mask, np.nan, data.images), data.labels)
    assert model.score(wrong, data.labels, mask) > 0.95
    assert model.score(data.images, data.labels) > 0.95
    filled = model.inpaint(wrong, mask)
    assert np.mean(filled[mask] == data.clean[mask]) > 0.98


def test_limits_are_kept_and_told(data):
    with pytest.raises(NotEnoughMemoryError, match=r"n_features.*raise max_memory"):
        two_layers(max_memory=10_000).fit(data.images)
    assert "iteration limit" in tiny(max_iter=1).fit(data.images).status_
    assert "time limit" in tiny(max_seconds=1e-3, max_iter=9999).fit(data.images).status_


def test_verbose_shows_progress(capfd, data):
    tiny(verbose=True, max_iter=2).fit(data.images)
    assert "Start 1 of 1" in capfd.readouterr().err
    tiny(max_iter=2).fit(data.images)
    assert capfd.readouterr() == ("", "")


# --- recognising ----------------------------------------------------------------------------


def test_true_weights_recognise_all(truth, fresh):
    assert truth.score(fresh.images, fresh.labels) == 1
    np.testing.assert_array_equal(truth.cluster(fresh.images), fresh.templates)


def test_probabilities_sum_to_one_and_agree_with_predict(truth):
    noisy = shapes(feature_size=21, n_images=40, noise=0.1, random_state=2)
    truth.set_params(p01=0.1, p10=0.1)
    truth.set_weights(truth.weights_, 25, NAMES)
    P = truth.predict_proba(noisy.images)
    assert P.shape == (40, 2)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(NAMES[P.argmax(axis=1)], truth.predict(noisy.images))
    images = truth._check(noisy.images, None).images
    scores = inference.class_scores(truth._model, images, truth._inference())
    np.testing.assert_allclose(P, softmax(scores, axis=1))


def test_a_class_is_as_probable_as_its_best_explanation(data):
    model = known(data, p01=0.2, p10=0.2)
    X = shapes(feature_size=21, n_images=30, noise=0.3, random_state=3).images
    images = Images(X, np.ones_like(X))
    network, weights = model._model.network, model.weights_
    best = []
    for k in (0, 1):
        allowed = np.tile(np.array(network.classes.categories) == k, (30, 1))
        best.append(explain(network, weights, images, allowed).log_evidence)
    wanted = softmax(np.stack(best, axis=1), axis=1)
    assert ((wanted > 0.01) & (wanted < 0.99)).any()
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-12)


def test_the_right_class_explains_an_image_better(truth, fresh):
    right = log_joints(truth, fresh.images, fresh.labels)
    wrong = log_joints(truth, fresh.images, 1 - fresh.labels)
    # Few decode worse than the other class, by bad luck in where their parts are put.
    assert np.mean(right > wrong) > 0.95
    free = log_joints(truth, fresh.images)
    some = log_joints(truth, fresh.images, np.where(fresh.labels == 0, 0, -1))
    np.testing.assert_array_equal(some[fresh.labels == 1], free[fresh.labels == 1])
    np.testing.assert_array_equal(some[fresh.labels == 0], right[fresh.labels == 0])


def test_score_without_labels_is_the_mean_joint_log_probability(truth, fresh):
    value = truth.score(fresh.images)
    assert value == pytest.approx(log_joints(truth, fresh.images).mean())
    shuffled = np.random.default_rng(0).permutation(fresh.images.ravel())
    assert truth.score(shuffled.reshape(fresh.images.shape)) < value - 100


def test_score_leaves_out_unlabelled_images(data, fresh):
    model = known(data)
    y = np.where(np.arange(40) < 30, 1 - fresh.labels, fresh.labels)
    some = np.where(np.arange(40) < 20, -1, y)
    assert model.score(fresh.images, y) == pytest.approx(1 / 4)
    assert model.score(fresh.images, some) == pytest.approx(1 / 2)
    named = model.set_weights(model.weights_, 25, NAMES)
    words = [None if k < 0 else NAMES[k] for k in some]
    assert named.score(fresh.images, words) == pytest.approx(1 / 2)
    # A label that was never seen is a miss, not an error: a fold may hold one.
    assert named.score(fresh.images[:2], ["new", named.predict(fresh.images[1])[0]]) == 0.5


def test_more_passes_change_messages(data):
    noisy = shapes(feature_size=21, n_images=12, noise=0.1, random_state=3).images
    ways = (Inference("passing", n_passes=n) for n in (1, 3))
    one, three = (known(data, inference=way, p01=0.1, p10=0.1).denoise(noisy) for way in ways)
    assert (one != three).any()


def test_where_features_are(truth, fresh):
    S = features_on(truth, fresh.images)
    assert [level.shape for level in S] == [(40, 4, 3, 3), (40, 4, 1, 1)]
    assert all(level.dtype == bool for level in S)
    np.testing.assert_array_equal(S[1][:, :, 0, 0].argmax(axis=1), fresh.templates)
    assert (S[1].sum(axis=(1, 2, 3)) == 1).all()
    assert (S[0].sum(axis=(1, 2, 3)) == 2).all()  # two parts in every image
    present = known(fresh).weights_[1][fresh.templates, :, 0, 0]
    np.testing.assert_array_equal(S[0].any(axis=(2, 3)), present)
    rows = truth.placements(fresh.images)
    assert (rows[np.unique(rows[:, 0], return_index=True)[1], 1] == 2).all()  # templates first
    for k, level in enumerate(S, 1):
        own = rows[rows[:, 1] == k]
        np.testing.assert_array_equal(own[:, [0, 2, 3, 4]], np.argwhere(level))


@pytest.mark.parametrize("method", METHODS)
def test_answers_do_not_depend_on_the_images_beside(monkeypatch, data, method):
    """Messages are passed in the same order always, and the sums of the forward pass are exact."""
    monkeypatch.setattr(network, "BATCH", 16)
    way = Inference(method, n_passes=3) if method == "passing" else method
    model = known(data, inference=way, p01=0.1, p10=0.1)
    X = shapes(feature_size=21, n_images=24, noise=0.1, random_state=3).images
    pieces = np.split(X, [1, 2, 9])
    P, joint, clean = (
        (f(X), np.concatenate([f(piece) for piece in pieces]))
        for f in (model.predict_proba, partial(log_joints, model), model.denoise)
    )
    np.testing.assert_allclose(*P, atol=1e-6)
    np.testing.assert_array_equal(*joint)
    np.testing.assert_array_equal(*clean)


def test_large_networks_are_used_in_small_batches(monkeypatch, data, fresh):
    model = known(data)
    wanted = model.predict_proba(fresh.images)
    sizes = []
    counted = inference.explain_classes

    def count(network, weights, images, candidates):
        sizes.append(images.n_images)
        return counted(network, weights, images, candidates)

    monkeypatch.setattr(inference, "explain_classes", count)
    monkeypatch.setattr(network, "BATCH_BYTES", 20 * network.explaining_memory(network_of(model)))
    np.testing.assert_allclose(model.predict_proba(fresh.images), wanted, atol=1e-6)
    assert sizes == [20, 20]


def network_of(model):
    return model._model.network


# --- completing -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_denoising_comes_closer_to_the_clean_images(data, method):
    noisy = shapes(feature_size=21, n_images=40, noise=0.03, random_state=5)
    model = known(data, inference=method, p01=0.03, p10=0.03)
    clean = model.denoise(noisy.images)
    assert (clean != noisy.clean).sum() < (noisy.images != noisy.clean).sum()
    assert clean.dtype == bool


@pytest.mark.parametrize("method", METHODS)
def test_inpainting_fills_in_what_explains_the_rest(data, fresh, method):
    model = known(data, inference=method)
    mask = np.zeros(fresh.images.shape, bool)
    mask[..., 8:17] = True
    filled = model.inpaint(np.where(mask, ~fresh.images, fresh.images), mask)
    np.testing.assert_array_equal(filled[~mask], fresh.images[~mask])
    nothing = np.where(mask, False, fresh.images)
    assert model.score(filled) > model.score(nothing) + 30
    assert model.score(filled, fresh.labels) > 0.9
    # Where a pixel went to within its pool nobody can know: one next to it will do.
    near = [np.roll(filled, (i, j), (2, 3)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    assert np.mean(np.any(near, axis=0)[mask & fresh.clean]) > 0.85
    assert filled[mask].mean() < 1.5 * fresh.clean[mask].mean()


@pytest.mark.parametrize("method", METHODS)
def test_what_is_filled_in_is_of_the_class_that_is_given(data, fresh, method):
    """Of an image with hardly a pixel left, the label says what it becomes."""
    model = known(data, inference=method).set_weights(known(data).weights_, 25, NAMES)
    mask = np.ones(fresh.images.shape, bool)
    mask[..., 12:14, 12:14] = False
    for name in NAMES:
        filled = model.inpaint(fresh.images, mask, np.full(40, name))
        assert np.mean(model.predict(filled) == name) > 0.9
        cleaned = model.denoise(fresh.images, np.full(40, name), mask)
        np.testing.assert_array_equal(cleaned[mask], filled[mask])
    free = model.inpaint(fresh.images, mask)
    some = [None if k % 2 else "alike" for k in range(40)]
    partly = model.inpaint(fresh.images, mask, some)
    np.testing.assert_array_equal(partly[1::2], free[1::2])


# --- generating -----------------------------------------------------------------------------


def test_samples_are_of_the_class_that_is_said(data):
    model = known(data)
    X, y = model.sample(40, random_state=0)
    assert X.shape == (40, 1, 25, 25)
    assert X.dtype == bool
    assert set(y) == {0, 1}
    assert model.score(X, y) > 0.95
    for label in (0, np.int64(1), 1.0):
        X, y = model.sample(10, label, random_state=1)
        assert (y == label).all()
        assert model.score(X, y) > 0.9


def test_the_same_seed_gives_the_same_samples(data):
    model = known(data)
    one, again, other = (model.sample(5, random_state=seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(model.sample(5, random_state=generator)[0], one)
    assert (model.sample(5, random_state=generator)[0] != one).any()
    assert model.sample()[0].shape == (1, 1, 25, 25)


# --- another class layer --------------------------------------------------------------------


def test_clusters_are_named_by_a_few_labelled_images(unsupervised, data, fresh):
    found, labels = unsupervised.cluster(data.images[:20]), data.labels[:20]
    votes = [np.bincount(labels[found == k], minlength=2) for k in range(4)]
    named = unsupervised.with_class_layer(np.argmax(votes, axis=1), classes=NAMES)
    np.testing.assert_array_equal(named.classes_, NAMES)
    assert named.score(fresh.images, NAMES[fresh.labels]) > 0.8
    np.testing.assert_array_equal(named.cluster(fresh.images), unsupervised.cluster(fresh.images))
    np.testing.assert_array_equal(unsupervised.classes_, range(4))  # the old one stays as it is
    X, y = named.sample(6, "unlike", random_state=0)
    assert (y == "unlike").all()
    assert X.shape == (6, 1, 25, 25)


def test_templates_are_regrouped(data, fresh):
    model = known(data)
    each = model.with_class_layer(np.arange(4))
    assert each.score(fresh.images, fresh.templates) == 1
    assert each.predict_proba(fresh.images).shape == (40, 4)
    square = model.with_class_layer([0, 1, 0, 1], ["square", "circle"])
    wanted = np.where(fresh.templates % 2, "circle", "square")
    assert square.score(fresh.images, wanted) == 1
    renamed = model.with_class_layer(classes=NAMES)
    assert renamed.score(fresh.images, NAMES[fresh.labels]) == 1
    # Groups of different sizes; the class has half of the prior, whatever its size.
    uneven = model.with_class_layer([0, 1, 1, 1])
    assert uneven.score(fresh.images, np.minimum(fresh.templates, 1)) == 1
    assert 0.3 < uneven.sample(200, random_state=0)[1].mean() < 0.7


@pytest.fixture(scope="module")
def pairs(data):
    """Two objects side by side, and which classes they are of."""
    made = shapes(feature_size=21, n_images=80, random_state=6)
    images = np.concatenate([made.images[:40], made.images[40:]], axis=3)
    present = np.zeros((40, 2), bool)
    present[np.arange(40), made.labels[:40]] = True
    present[np.arange(40), made.labels[40:]] = True
    return images, present


@pytest.mark.parametrize("method", ["explain", "forward"])
def test_several_objects_side_by_side_are_recognised(data, pairs, method):
    images, present = pairs
    both = known(data, inference=method).with_class_layer(p_on=1e-3, image_size=(25, 50))
    found = both.predict(images)
    assert found.shape == (40, 2)
    assert (found == present).all(axis=1).mean() > 0.9
    assert both.score(images, present) == (found == present).all(axis=1).mean()
    objects = features_on(both, images)[-1].sum(axis=(1, 2, 3))
    assert np.mean(objects == 2) > 0.9
    assert not both.predict(np.zeros((1, 25, 50))).any()
    assert (both.denoise(images) != images).mean() < 0.05
    assert np.isfinite(both.score(images))


def test_several_objects_are_sampled(data):
    both = known(data).with_class_layer(p_on=0.01, image_size=(25, 50))
    X, present = both.sample(30, random_state=0)
    assert X.shape == (30, 1, 25, 50)
    assert present.shape == (30, 2)
    assert present.any()
    assert not present.all()
    assert (X.sum(axis=(1, 2, 3)) > 40).sum() == present.any(axis=1).sum()
    _, only = both.sample(30, 1, random_state=0)
    assert only[:, 1].any()
    assert not only[:, 0].any()


def test_one_object_is_found_anywhere_in_a_larger_image(data, fresh):
    larger = known(data).with_class_layer(image_size=(31, 40))
    corners = np.random.default_rng(0).integers((7, 16), size=(20, 2))
    X = np.zeros((20, 1, 31, 40), bool)
    for image, (r, c), one in zip(X, corners, fresh.images, strict=False):
        image[:, r : r + 25, c : c + 25] = one
    assert larger.score(X, fresh.labels[:20]) > 0.9
    found = np.argwhere(features_on(larger, X)[-1])[:, 2:]
    assert np.abs(found - corners).max() <= 4  # the parts of a template move, too
    assert larger.sample(2)[0].shape == (2, 1, 31, 40)


# --- shapes ---------------------------------------------------------------------------------


def test_an_image_of_another_height_and_width_is_learned():
    rng = np.random.default_rng(0)
    patterns = rng.random((2, 2, 6, 9)) < 0.4
    y = rng.integers(2, size=30)
    X = patterns[y] ^ (rng.random((30, 2, 6, 9)) < 0.01)
    model = tiny().fit(X, y)
    assert model.score(X, y) == 1
    np.testing.assert_array_equal(model.weights_[0][model.predict(X)], patterns[y])
    assert model.sample(3)[0].shape == (3, 2, 6, 9)
    assert model.denoise(X).shape == X.shape
    mask = np.zeros(X.shape, bool)
    mask[:, 1] = True  # a whole channel
    np.testing.assert_array_equal(model.inpaint(X, mask)[:, 1], patterns[y][:, 1])


def test_three_layers_and_pools_that_keep_the_size():
    data = shapes(feature_size=9, jitter=1, n_images=20, random_state=0)
    layers = [Layer(6, size=3, pool=1), Layer(4, (3, 4), pool=3, pool_border="same"), Layer(pool=2)]
    model = HCN(layers, n_classes=2, max_iter=2, n_init=1, random_state=0).fit(data.images)
    assert [W.shape for W in model.weights_] == [(6, 1, 3, 3), (4, 6, 3, 4), (2, 4, 4, 3)]
    shapes_ = [S.shape for S in features_on(model, data.images)]
    assert shapes_ == [(20, 6, 7, 7), (20, 4, 5, 4), (20, 2, 1, 1)]
    assert model.denoise(data.images).shape == data.images.shape


def test_images_that_no_machine_has_room_for_are_refused():
    weights = [np.ones((2, 1, 3, 3), bool), np.ones((4, 2, 1, 1), bool)]
    model = HCN([Layer(2, size=3), Layer(size=1)], templates_per_class=2)
    with pytest.raises(NotEnoughMemoryError, match=r"^One image of .* lower image_size\.$"):
        model.set_weights(weights, 10**7)
    known = model.set_weights(weights, 20)
    with pytest.raises(NotEnoughMemoryError, match=r"lower image_size\.$"):
        known.with_class_layer(p_on=0.1, image_size=10**7)
