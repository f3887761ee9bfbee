"""Parts of an explanation find better places; pixels are left open in what is compared."""

import math

import numpy as np
import pytest
from definition import layer, members, network, one, placed, random_images, random_weights

from hcnet.datasets import shapes
from hcnet.engine.planes import OFF
from hcnet.estimators.hcn import HCN
from hcnet.hierarchy import explaining
from hcnet.hierarchy.decoding import Scene, decode, forward
from hcnet.hierarchy.explaining import improve_positions
from hcnet.hierarchy.network import Layer


def scene_of(net, weights, images):
    return Scene(net, weights, images, forward(net, weights, images.evidence(net.noise)))


def make(seed, n=12):
    """Two levels whose parts lie on each other, and images that have little to do with them.

    Odd seeds have parts in two forms each.
    """
    rng = np.random.default_rng(seed)
    depth = 1 + seed % 2
    first = layer(3 * depth, (3, 3), (3, 3), perturbation=0.5)
    layers = first, layer(3, (2, 2), (3, 3), "same", 0.3, depth=depth)
    net = network(*layers, image_size=(7, 7), categories=(0, 1, 2))
    weights = random_weights(net, rng, (4, 3))
    weights[1][0][tuple(np.argwhere(weights[1][0])[0])] = False  # one has a part less
    scene = scene_of(net, weights, random_images(net, n, rng, observed=0.8))
    top = np.zeros((n, 3, *net.top_size), bool)
    top[np.arange(n), rng.integers(3, size=n), 0, 0] = True
    return scene, decode(scene, top)


def position(level, a, r, c, member):
    return next(at for m, *at, _ in members(level, a, r, c) if m == member)


def log_p(scene, k, choice):
    """Log-probability of where pixels move to and of image k given that, by definition."""
    level, noise = scene.network.levels[0], scene.network.noise
    S = np.zeros(scene.images.pixels.shape[1:], bool)
    total = 0.0
    for a, r, c in np.argwhere(choice != OFF):
        total += float(level.log_prior[0, r, c, choice[a, r, c]])
        S[tuple(position(level, a, r, c, choice[a, r, c]))] = True
    X, observed = one(scene.images, k)
    for on, x in zip(S[observed], X[observed], strict=True):
        wrong = noise.p01 if on else noise.p10
        total += math.log(wrong if on != x else 1 - wrong)
    return total


def test_the_evidence_lets_every_pixel_move_by_itself():
    for seed in range(3):
        scene, found = make(seed)
        level = scene.network.levels[0]
        for k in range(scene.images.n_images):
            choice = found.choices[0][k]
            now = log_p(scene, k, choice)
            freedom = 0.0
            for a, r, c in np.argwhere(choice != OFF):
                values = []
                for member in range(level.pool.n_members):
                    if level.log_prior[0, r, c, member] > -100:
                        other = choice.copy()
                        other[a, r, c] = member
                        values.append(log_p(scene, k, other) - now)
                freedom += math.log(sum(math.exp(value) for value in values))
            gap = found.log_evidence[k] - found.log_joint[k]
            assert gap == pytest.approx(freedom, abs=1e-3)


def test_choices_make_the_placements():
    scene, found = make(0)
    for level, R, choice, S in zip(
        scene.network.levels, found.R, found.choices, found.S, strict=False
    ):
        np.testing.assert_array_equal(choice != OFF, R)
        wanted = np.zeros_like(S)
        for n, a, r, c in np.argwhere(R):
            wanted[(n, *position(level, a, r, c, choice[n, a, r, c]))] = True
        np.testing.assert_array_equal(S, wanted)


def test_decoding_again_with_the_same_choices_changes_nothing():
    scene, found = make(1)
    for known in (1, 2):
        again = decode(scene, found.S[-1], found.choices[-known:])
        for x, y in zip(found.S + found.R, again.S + again.R, strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(again.log_joint, found.log_joint)


def test_no_single_part_could_have_been_put_better_in_its_turn():
    """The last part that moves has seen all others in place: every other position is worse."""
    gained = 0
    for seed in range(3):
        scene, before = make(seed)
        after = improve_positions(scene, before)
        np.testing.assert_array_equal(after.S[-1], before.S[-1])
        assert (after.log_evidence >= before.log_evidence).all()
        gained += (after.log_evidence > before.log_evidence + 1e-6).sum()
        level = scene.network.levels[1]
        for k in range(scene.images.n_images):
            np.testing.assert_array_equal(after.R[0][k], placed(after.S[1][k], scene.weights[0]))
            a, r, c = np.argwhere(after.R[1][k])[-1]
            for member in range(level.pool.n_members):
                if level.log_prior[0, r, c, member] > -100:
                    choice = after.choices[1][[k]].copy()
                    choice[0, a, r, c] = member
                    tried = decode(scene.of(np.array([k])), after.S[-1][[k]], [choice])
                    assert tried.log_evidence[0] <= after.log_evidence[k] + 1e-6
    assert gained > 10


def test_images_with_too_many_parts_stay_as_they_are(monkeypatch):
    scene, before = make(0)
    parts = before.R[1].sum(axis=(1, 2, 3))
    assert len(set(parts.tolist())) > 1
    monkeypatch.setattr(explaining, "MOST_TRIALS", 9 * int(parts.min()))
    after = improve_positions(scene, before)
    many = parts > parts.min()
    np.testing.assert_array_equal(after.log_evidence[many], before.log_evidence[many])
    assert (after.log_evidence[~many] > before.log_evidence[~many]).any()


def test_half_of_an_image_is_enough(monkeypatch):
    """Templates are told apart although half of each part is hidden, if parts are moved."""
    data = shapes(n_images=200, feature_size=15, random_state=5)
    model = HCN([Layer(4, size=15), Layer()], n_classes=4)
    model.set_weights([data.features, data.template_weights], data.images.shape[2:])
    mask = np.zeros(data.images.shape, bool)
    mask[..., mask.shape[-1] // 2 :] = True
    wrong = [np.mean(model.predict(data.images, mask) != data.templates)]
    monkeypatch.setattr(explaining, "MARGIN", -1)
    wrong.append(np.mean(model.predict(data.images, mask) != data.templates))
    assert wrong[0] <= 0.02
    assert wrong[1] >= 0.06
