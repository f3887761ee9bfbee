"""Pools across features: parts with variants, and neighbours on a line or ring."""

import numpy as np
import pytest

import hcnet
from hcnet import HCN, Layer
from hcnet.datasets import shapes
from hcnet.export import from_dict, to_dict
from hcnet.metrics import groups_found

FORMS = 2
# Relative probabilities of the forms in data that prefers some, a row per group.
UNEVEN = np.array([[3, 1], [1, 1], [1, 4], [2, 1]]).reshape(4, 2, 1, 1)


def network(data, pool_prior="uniform", variants=FORMS, **options):
    """The network that made the data."""
    layers = [Layer(4 * variants, size=21, variants=variants), Layer(pool_prior=pool_prior)]
    known = HCN(layers, n_classes=4, random_state=0, **options)
    return known.set_weights([data.features, data.template_weights], data.images.shape[2:])


def forms_of(rows, n):
    """The features of the first layer in an image."""
    return {int(f) for image, layer, f, *_ in rows if image == n and layer == 1}


def wanted_forms(data, n, variants=FORMS):
    on = np.flatnonzero(data.template_weights[data.templates[n], :, 0, 0])
    return {int(f) for f in on * variants + data.forms[n]}


@pytest.mark.parametrize("variants", [2, 3])
def test_the_form_of_every_part_is_found(variants):
    data = shapes(variants=variants, n_images=40, random_state=0)
    model = network(data, variants=variants)
    assert (model.cluster(data.images) == data.templates).mean() > 0.95
    rows = model.placements(data.images)
    right = [forms_of(rows, n) == wanted_forms(data, n, variants) for n in range(40)]
    assert np.mean(right) > 0.95


def test_half_of_an_image_shows_the_form():
    data = shapes(variants=2, n_images=40, random_state=1)
    mask = np.zeros(data.images.shape, bool)
    mask[..., 13:] = True
    rows = network(data).placements(data.images, mask)
    right = [forms_of(rows, n) == wanted_forms(data, n) for n in range(40)]
    assert np.mean(right) > 0.8


def test_samples_show_every_form_as_often_as_the_prior_says():
    data = shapes(variants=2, n_images=1, random_state=0)
    model = network(data, pool_prior=UNEVEN)
    X, _ = model.sample(400, random_state=0, clean=True)
    assert X.shape == (400, 1, 25, 25)
    rows = network(data).placements(X)
    counts = np.bincount(rows[rows[:, 1] == 1, 2], minlength=8).reshape(4, 2)
    share = counts[:, 0] / counts.sum(axis=1)
    wanted = UNEVEN[:, 0, 0, 0] / UNEVEN.sum(axis=(1, 2, 3))
    np.testing.assert_allclose(share, wanted, atol=0.12)


def test_a_given_prior_decides_between_equal_forms():
    """An image that both variants explain equally well gets the one that is more probable."""
    W1 = np.zeros((2, 1, 1, 2), bool)
    W1[0, 0, 0, 0] = W1[1, 0, 0, 1] = True
    W2 = np.ones((1, 1, 1, 1), bool)
    for prior, chosen in (([3, 1], 0), ([1, 3], 1)):
        layers = [Layer(2, size=(1, 2), pool=1, variants=2)]
        layers += [Layer(pool=1, pool_prior=np.reshape(prior, (2, 1, 1)))]
        model = HCN(layers, p01=0.1, p10=0.1).set_weights([W1, W2], (1, 2))
        rows = model.placements([[[1, 1]], [[1, 0]], [[0, 1]]])
        assert rows[rows[:, 1] == 1, 2].tolist() == [chosen, 0, 1]


def test_learned_priors_are_the_frequencies_of_the_choices():
    rng = np.random.default_rng(0)
    W1 = np.zeros((2, 1, 3, 3), bool)
    W1[0, 0, 1], W1[1, 0, :, 1] = True, True  # a dash and a bar
    form = (rng.random(60) < 0.8).astype(int)
    X = W1[form, 0]
    layers = [Layer(2, size=3, pool=1, variants=2), Layer(pool=1, pool_prior="learned")]
    options = {"max_iter": 30, "random_state": 0, "n_init": 2}
    model = HCN(layers, **options).fit(X)
    even = HCN([layers[0], Layer(pool=1)], **options).fit(X)
    found = model._model.network.levels[1].window.ravel()
    flipped = bool(model.weights_[0][0, 0, :, 1].all())  # the bar is the first feature
    share = form.mean() if not flipped else 1 - form.mean()
    assert found[1] / found.sum() == pytest.approx(share, abs=0.03)
    assert model.log_joint_ > even.log_joint_ + 5
    assert (model.predict(X) == 0).all()


def test_neighbours_on_a_ring_stand_for_each_other():
    """A feature of one channel also finds the channels beside it, and the last beside the first."""
    X = np.zeros((4, 4, 1, 1), bool)
    X[range(4), range(4)] = True
    W = np.zeros((1, 4, 1, 1), bool)
    W[0, 0] = True
    for order, seen in (("ring", [1, 1, 0, 1]), ("line", [1, 1, 0, 0])):
        layers = [Layer(1, size=1, pool=1, pool_features=3, feature_order=order), Layer(pool=1)]
        model = HCN(layers, n_classes=1).set_weights([W, np.ones((1, 1, 1, 1), bool)], (1, 1))
        kept = model.denoise(X).reshape(4, 4).diagonal()
        np.testing.assert_array_equal(kept, np.array(seen, bool))


def test_a_network_with_variants_comes_back_from_files(tmp_path):
    data = shapes(variants=2, n_images=20, random_state=3)
    model = network(data, pool_prior=UNEVEN)
    model.save(tmp_path / "a.hcn")
    for back in (hcnet.load(tmp_path / "a.hcn"), from_dict(to_dict(model))):
        assert back.layers == model.layers
        for ours, theirs in zip(
            model._model.network.levels, back._model.network.levels, strict=True
        ):
            assert ours.pool == theirs.pool
            np.testing.assert_array_equal(ours.window, theirs.window)
        np.testing.assert_array_equal(back.placements(data.images), model.placements(data.images))


def test_streams_cannot_learn_priors():
    layers = [Layer(2, size=3, variants=2), Layer(pool_prior="learned")]
    with pytest.raises(
        ValueError, match=r"layers\[1\]\.pool_prior must be 'uniform' or numbers in"
    ):
        HCN(layers).partial_fit(np.zeros((3, 7, 7)))


@pytest.mark.parametrize("engine", ["dense", "active", "beliefs"])
def test_groups_are_learned_by_every_engine(engine):
    """Words of two letters in two forms each: only the words say which forms belong together."""
    rng = np.random.default_rng(0)
    parts = rng.random((3, 2, 5, 5)) < 0.35  # three letters in two forms
    words = np.array([(0, 1), (1, 2), (2, 0)])
    label = rng.integers(3, size=60)
    forms = rng.integers(2, size=(60, 2))
    X = np.zeros((60, 5, 10), bool)
    for n in range(60):
        first, second = words[label[n]]
        X[n, :, :5], X[n, :, 5:] = parts[first, forms[n, 0]], parts[second, forms[n, 1]]
    layers = [Layer(6, size=5, pool=1, variants=2, damping=0.05), Layer(pool=1, damping=0.05)]
    model = HCN(layers, n_classes=3, engine=engine, max_iter=100, n_init=3, random_state=0)
    model.fit(X)
    assert groups_found(model.weights_[0], parts.reshape(6, 1, 5, 5), 2) == 3
