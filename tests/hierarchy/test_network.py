"""Whole tiny networks against the definition of the model: every configuration, one by one."""

import itertools
import math

import numpy as np
import pytest
from definition import (
    PASSING,
    images_before_noise,
    layer,
    log_joints,
    log_likelihood,
    network,
    one,
    pack,
    placed,
    random_images,
    random_weights,
    top_shape,
    tops,
    unpack,
)
from scipy.stats import chi2

from hcnet.engine.engines import ReadyEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.factors import HUGE
from hcnet.hierarchy.decoding import Scene, decode, forward, weight_log_prior
from hcnet.hierarchy.explaining import explain, explain_classes
from hcnet.hierarchy.network import sample, sample_templates
from hcnet.hierarchy.network_messages import NetworkPassing
from hcnet.images import Images, Noise
from hcnet.learning.message_passing import weight_prior

# Layers, size of the images, categories, elements per feature of every level, further options;
# and the share of images whose most probable configuration `explain` must find (it finds more:
# see the test).
SPECIFICATIONS = {
    "one level": ([layer(3, (4, 4), (2, 2))], (5, 5), (0, 1, 2), (6,), {}, 0.85),
    "two levels, parts apart": (
        [layer(3, (2, 3), (2, 1)), layer(3, (1, 5), (2, 2))],
        (4, 8),
        (0, 1, 2),
        (4, 2),
        {},
        0.9,
    ),
    "three levels, parts apart": (
        [layer(2, (2, 2), (2, 1)), layer(2, (1, 2), (1, 2)), layer(3, (1, 5), (1, 2))],
        (3, 9),
        (0, 1, 2),
        (2, 2, 2),
        {},
        0.65,
    ),
    "two levels, parts on each other": (
        [layer(3, (2, 2), (2, 2)), layer(3, (2, 2), (2, 2))],
        (5, 5),
        (0, 1, 2),
        (2, 3),
        {},
        0.5,
    ),
    "same": (
        [layer(2, (2, 2), (3, 2), "same", 0.4), layer(3, (3, 2), (2, 3), "same", 0.4)],
        (4, 3),
        (0, 0, 1),
        (2, 3),
        {},
        0.1,
    ),
    "channels": (
        [layer(2, (2, 2), (2, 1)), layer(2, (2, 2), (2, 2), "full", 0.3)],
        (5, 4),
        (0, 1),
        (3, 2),
        {"channels": 2},
        0.8,
    ),
    "positions": (
        [layer(2, (2, 2), (2, 1)), layer(3, (2, 1), (2, 2))],
        (5, 5),
        (0, 1, 1),
        (3, 2),
        {},
        0.8,
    ),
    "three levels": (
        [
            layer(2, (2, 2), (1, 3), "same"),
            layer(2, (2, 2), (1, 2)),
            layer(3, (2, 1), (2, 1), "same", 0.3),
        ],
        (4, 4),
        (0, 1, 1),
        (2, 2, 2),
        {},
        0.6,
    ),
    "variants, parts apart": (
        [layer(4, (2, 3), (2, 1)), layer(3, (1, 5), (1, 2), depth=2, perturbation=0.3)],
        (3, 8),
        (0, 1, 2),
        (4, 2),
        {},
        0.7,
    ),
    "ring": (
        [layer(2, (2, 2), (1, 2), depth=2, order="ring"), layer(2, (2, 1), (1, 2))],
        (3, 4),
        (0, 1),
        (2, 2),
        {"channels": 3},
        0.6,
    ),
    "line": (
        [layer(3, (2, 2)), layer(2, (2, 1), (1, 2), depth=3, order="line", perturbation=0.4)],
        (3, 4),
        (0, 1),
        (3, 2),
        {},
        0.8,
    ),
    "several objects": (
        [layer(2, (2, 2), (1, 2)), layer(2, (2, 1), (1, 2))],
        (3, 5),
        (0, 1),
        (2, 2),
        {"p_on": 0.2},
        0.75,
    ),
}
ANY_NETWORK = pytest.mark.parametrize("name", SPECIFICATIONS)
N_NETWORKS, N_IMAGES = 3, 20
EVERYTHING = 1000  # candidates: more than there are templates and positions


def make(name, seed, n=N_IMAGES):
    """A network with random weights, and images from it, a few of their pixels missing."""
    layers, image_size, categories, on, options, _ = SPECIFICATIONS[name]
    rng = np.random.default_rng(seed)
    net = network(*layers, image_size=image_size, categories=categories, seed=seed, **options)
    weights = random_weights(net, rng, on)
    if "apart" in name:
        weights[-1][:] = False
        for template in weights[-1]:
            for column in (0, -1):
                template[rng.integers(len(template)), 0, column] = True
    X, _ = sample(net, weights, sample_templates(net, n, rng), rng)
    return net, weights, Images(X, rng.random(X.shape) < 0.95)


def check_configuration(net, weights, images, found):
    """It is possible, and its log-probability is that of the definition."""
    assert len(found.S) == len(net.levels) + 1
    assert len(found.R) == len(net.levels)
    for k in range(images.n_images):
        S = [level[k] for level in found.S]
        for above, W, R in zip(S[1:], weights, found.R, strict=True):
            np.testing.assert_array_equal(R[k], placed(above, W))
        values = log_joints(net, weights, *one(images, k), S)
        assert len(values) > 0, "no movement of R makes this S"
        # Several movements can make the same S; `decode` means one of them.
        assert np.abs(values - found.log_joint[k]).min() < 1e-4


@ANY_NETWORK
def test_an_explanation_is_possible_and_as_probable_as_it_says(name):
    for seed in range(N_NETWORKS):
        net, weights, images = make(name, seed, n=5)
        check_configuration(net, weights, images, explain(net, weights, images))


@pytest.mark.parametrize("name", ["same", "channels", "three levels", "several objects"])
def test_what_any_template_decodes_to_is_possible_and_as_probable_as_it_says(name):
    """Also for images that have nothing to do with the network."""
    rng = np.random.default_rng(0)
    net, weights, _ = make(name, 0)
    images = random_images(net, 10, rng, observed=0.8)
    masks, _ = tops(net)
    top = unpack(rng.choice(masks, 10), top_shape(net))
    up = forward(net, weights, images.evidence(net.noise))
    found = decode(Scene(net, weights, images, up), top)
    np.testing.assert_array_equal(found.S[-1], top)
    check_configuration(net, weights, images, found)


def best_joints(net, weights, images, states):
    """The largest log p(X, H | W) over all H, per image."""
    masks, log_p = images_before_noise(net, weights, np.maximum, *states)
    S = unpack(masks, images.pixels.shape[1:])
    return np.array(
        [
            (log_p + log_likelihood(net.noise, *one(images, k), S)).max()
            for k in range(images.n_images)
        ]
    )


@ANY_NETWORK
def test_explaining_never_beats_the_optimum_and_often_reaches_it(name):
    """Explanations are compared with the positions of pixels left open, so that the most probable
    one with all decided is not always found.

    Measured shares, in order: 0.93, 1, 0.77, 0.62, 0.2, 0.9, 0.9, 0.73, 0.87.
    """
    share = SPECIFICATIONS[name][-1]
    reached = 0
    for seed in range(N_NETWORKS):
        net, weights, images = make(name, seed)
        best = best_joints(net, weights, images, tops(net))
        found = explain(net, weights, images, candidates=EVERYTHING).log_joint
        assert (found <= best + 1e-4).all()
        reached += (found >= best - 1e-4).sum()
    print(name, reached / (N_NETWORKS * N_IMAGES))
    assert reached >= share * N_NETWORKS * N_IMAGES


@pytest.mark.parametrize("name", ["one level", "two levels, parts apart", "same", "positions"])
def test_the_score_of_a_class_is_that_of_its_best_template(name):
    """And images of a known class are explained by it alone."""
    net, weights, images = make(name, 0)
    scores = explain_classes(net, weights, images, candidates=EVERYTHING)
    for k in range(net.classes.n_classes):
        allowed = np.tile(np.array(net.classes.categories) == k, (N_IMAGES, 1))
        found = explain(net, weights, images, allowed, candidates=EVERYTHING)
        own = found.S[-1].any(axis=(2, 3))
        assert (own.sum(axis=1) == 1).all()
        assert (own <= allowed).all()
        np.testing.assert_allclose(scores[:, k], found.log_evidence)
        joint = found.log_joint
        assert (joint <= best_joints(net, weights, images, of_class(net, k)) + 1e-4).all()
    best = explain(net, weights, images, candidates=EVERYTHING).log_evidence
    np.testing.assert_allclose(scores.max(axis=1), best)


def of_class(net, k):
    """Top S of one class, with their prior among all classes."""
    masks, log_p = tops(net, k)
    return masks, log_p - math.log(net.classes.n_classes)


def test_more_candidates_never_explain_worse():
    net, weights, images = make("positions", 1)
    found = [
        explain(net, weights, images, candidates=n).log_evidence for n in (2, 3, 4, EVERYTHING)
    ]
    for few, more in itertools.pairwise(found):
        assert (more >= few).all()
    assert (found[-1] > found[0] + 1e-4).any()


def test_objects_are_explained_one_after_the_other_until_no_other_helps():
    """Those that lie on each other, too: pixels that are explained count for no one else."""
    W = np.array([[[[1, 1, 1], [1, 0, 1]]], [[[1, 1, 1], [0, 0, 0]]]], bool)
    net = network(layer(2, (2, 3)), image_size=(4, 9), categories=(0, 1), p_on=0.01)
    top = np.zeros((4, 2, 3, 7), bool)
    top[1, 0, 1, 2] = True
    top[2, 0, 0, 0] = top[2, 1, 2, 5] = top[2, 0, 0, 4] = True
    top[3, 0, 1, 2] = top[3, 0, 1, 4] = True  # they share two pixels
    X = np.stack([placed(S, W) for S in top])
    for candidates in (1, 8):
        found = explain(net, [W], Images(X, np.ones_like(X)), candidates=candidates)
        np.testing.assert_array_equal(found.S[-1], top)
        np.testing.assert_array_equal(found.S[0], X)


def test_weights_have_their_own_prior():
    net, weights, _ = make("three levels", 0)
    wanted = sum(
        math.log(0.3) if on else math.log(0.7) for W in weights for on in W.ravel().tolist()
    )
    assert weight_log_prior(net, weights) == pytest.approx(wanted)


# Drawing images.

SAMPLED = {
    "one object": {"categories": (0, 0, 1)},
    "a class": {"categories": (0, 0, 1)},
    "several objects": {"categories": (0, 0, 1), "p_on": 0.3},
    "a class of several objects": {"categories": (0, 0, 1), "p_on": 0.3},
    "variants": {"categories": (0, 0, 1), "depth": 2},
    "line": {"categories": (0, 0, 1), "depth": 2, "order": "line"},
}
N_DRAWS = 20_000


def sampled_network(name):
    about = dict(SAMPLED[name])
    depth, order = about.pop("depth", 1), about.pop("order", "groups")
    forms = depth if order == "groups" else 1
    net = network(
        layer(2 * forms, (2, 2), (1, 2)),
        layer(3, (1, 1), (1, 2), "same", 0.5, depth=depth, order=order),
        image_size=(2, 4),
        noise=Noise(0.2, 0.1),
        seed=3,
        **about,
    )
    W1 = np.array([[[[1, 0], [1, 1]]], [[[0, 1], [0, 0]]]], bool)
    W1 = np.concatenate([W1, ~W1])[: 2 * forms]
    W2 = np.array([[1, 0], [0, 1], [1, 1]], bool).reshape(3, 2, 1, 1)
    return net, [W1, W2], 0 if name.startswith("a class") else None


def check_frequencies(drawn, p):
    """Chi-square of what was drawn; what is rare counts as one outcome."""
    assert sum(p.values()) == pytest.approx(1, abs=1e-6)
    found = dict.fromkeys(p, 0)
    for outcome in drawn:
        assert outcome in p, f"impossible: {outcome}"
        found[outcome] += 1
    common = [k for k in p if p[k] * len(drawn) >= 5]
    expected = np.array([p[k] for k in common]) * len(drawn)
    seen = np.array([found[k] for k in common])
    rest = len(drawn) - expected.sum(), len(drawn) - seen.sum()
    statistic = ((seen - expected) ** 2 / expected).sum()
    if rest[0] >= 5:
        statistic += (rest[1] - rest[0]) ** 2 / rest[0]
    assert len(common) > 10
    assert chi2.sf(statistic, len(common)) > 1e-3


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_have_the_distribution_of_the_model(name):
    net, weights, category = sampled_network(name)
    assert net.top_size == (1, 2)
    rng = np.random.default_rng(0)
    top = sample_templates(net, N_DRAWS, rng, category)
    X, _ = sample(net, weights, top, rng)
    masks, log_p = images_before_noise(net, weights, np.logaddexp, *tops(net, category))
    shape = (1, *net.image_size)
    clean = unpack(masks, shape)
    images = {
        mask: float(
            np.exp(log_p + log_likelihood(net.noise, unpack(mask, shape), True, clean)).sum()
        )
        for mask in range(2**8)
    }
    check_frequencies([pack(x) for x in X], images)


# Message passing through the whole network.


def pass_twice(name, engine, schedule, damping=0.6, explain_away=1):
    net, rng = PASSING[name], np.random.default_rng(0)
    images = random_images(net, 3, rng, observed=0.9)
    priors = [weight_prior(level.p_W, level.weight_shape, rng) for level in net.levels]
    allowed = np.array([[True] * net.classes.n_templates] * 3)
    allowed[0] = np.array(net.classes.categories) == 1  # one image has a label
    evidence = images.evidence(net.noise)
    how = ReadyEngine(engine, Schedule(schedule, rounds=3, block_size=20))
    passing = NetworkPassing(net, evidence, priors, allowed, how, rng)
    for _ in range(2):
        passing.forward([damping] * len(net.levels))
        passing.backward(explain_away)
    return passing


@pytest.mark.parametrize(
    ("name", "schedule", "damping", "explain_away"),
    [
        *((name, "sequential", 0.6, 1) for name in PASSING),
        *((name, "sequential", 1.0, 3) for name in PASSING),
        *(
            ("two levels", schedule, 0.6, 1)
            for schedule in SCHEDULE_NAMES
            if schedule != "sequential"
        ),
    ],
)
def test_messages_through_the_network_are_those_of_the_reference(
    name, schedule, damping, explain_away
):
    got, wanted = (
        pass_twice(name, engine, schedule, damping, explain_away)
        for engine in ("dense", "reference")
    )
    assert got.change == pytest.approx(wanted.change, rel=1e-4)
    assert got.change > 0.1
    for what in ("weight_beliefs", "placement_beliefs"):
        for x, y in zip(getattr(got, what)(), getattr(wanted, what)(), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-3, err_msg=what)
    for x, y in zip(got.up, wanted.up, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-3)
    beliefs = got.pixel_beliefs()
    np.testing.assert_allclose(beliefs, wanted.pixel_beliefs(), rtol=1e-4, atol=1e-3)
    assert (np.abs(beliefs - got._evidence) < 100).any()


@pytest.mark.parametrize("perturbation", [0.0, 0.3])
def test_explaining_away_gives_exact_beliefs_of_a_chain(perturbation):
    """A template that is certain, and pools that overlap in a row: no loops, if weights are known.

    ORs and pools then need as many turns as the chain is long; the paper takes several, too.
    """
    net = network(
        layer(1, (1, 4), (1, 2), perturbation=perturbation), image_size=(1, 5), categories=(0,)
    )
    W = np.ones((1, 1, 1, 4), bool)
    images = random_images(net, 20, np.random.default_rng(0), on=0.5)
    evidence = images.evidence(net.noise)
    evidence += np.random.default_rng(1).normal(0, 1, evidence.shape).astype(np.float32)  # no ties
    clamped, allowed = [np.full(W.shape, HUGE, np.float32)], np.ones((20, 1), bool)
    rng = np.random.default_rng(2)
    passing = NetworkPassing(net, evidence, clamped, allowed, ReadyEngine("dense"), rng)
    passing.forward([1.0])
    passing.backward(explain_away=8)
    masks, log_p = images_before_noise(net, [W], np.maximum, *tops(net))
    S = unpack(masks, (5,))
    for k in range(20):
        value = log_p + S @ evidence[k].ravel()
        wanted = [value[S[:, j]].max() - value[~S[:, j]].max() for j in range(5)]
        np.testing.assert_allclose(passing.pixel_beliefs()[k].ravel(), wanted, atol=1e-4)
