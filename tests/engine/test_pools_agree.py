"""Pooling and class layers: both engines send the messages that the paper defines."""

import copy
import itertools
import math

import numpy as np
import pytest

from hcnet.engine.cpu import CPUEngine, max_pool
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import Schedule
from hcnet.factors import HUGE
from hcnet.grid import STEP
from hcnet.hierarchy.network import perturbed_window
from hcnet.layers import ClassLayer, FeatureLayer, PoolLayer, equal_classes
from hcnet.messages import (
    PoolMessages,
    class_log_prior,
    pool_log_prior,
    start_messages,
    start_pools,
    trees_of,
)
from tests.engine.random_images import with_one_thread_and_several

SHAPES = {
    # images, features below, window, size below, border, perturbation, depth, order of features
    "no pooling": (2, 1, (1, 1), (3, 4), "full", 0.0),
    "no pooling, same": (2, 2, (1, 1), (3, 4), "same", 0.0),
    "3x3": (2, 1, (3, 3), (6, 5), "full", 0.0),
    "3x3 same": (2, 1, (3, 3), (5, 4), "same", 0.0),
    "2x3": (2, 3, (2, 3), (4, 6), "full", 0.3),
    "2x3 same": (2, 3, (2, 3), (4, 5), "same", 0.3),
    "even": (3, 2, (4, 2), (6, 4), "full", 0.2),
    "even same": (3, 2, (4, 2), (6, 4), "same", 0.2),
    "one element": (2, 2, (3, 4), (3, 4), "full", 0.5),
    "window larger than the grid": (2, 1, (5, 4), (3, 2), "same", 0.5),
    "variants": (2, 6, (2, 3), (4, 5), "full", 0.3, 3),
    "variants same": (2, 4, (3, 2), (3, 3), "same", 0.3, 2),
    "variants without positions": (2, 4, (1, 1), (2, 3), "full", 0.3, 4),
    "line": (2, 4, (2, 2), (3, 4), "full", 0.3, 3, "line"),
    "even line same": (2, 3, (2, 1), (3, 2), "same", 0.3, 2, "line"),
    "line as long as the window": (2, 3, (1, 2), (2, 3), "full", 0.3, 3, "line"),
    "ring": (2, 5, (2, 2), (4, 3), "full", 0.3, 3, "ring"),
    "even ring same": (2, 4, (3, 1), (3, 2), "same", 0.3, 2, "ring"),
    "ring as long as the window": (2, 3, (1, 2), (2, 3), "full", 0.3, 3, "ring"),
}
ENGINES = [ReferenceEngine(), CPUEngine()]
ANY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
ANY_ENGINE = pytest.mark.parametrize("engine", ENGINES, ids=["reference", "cpu"])


def messages(rng, shape):
    """Real numbers, whole ones (ties), and what is certain."""
    real, whole = rng.normal(0, 3, shape), rng.integers(-2, 3, shape)
    x = np.where(rng.random(shape) < 0.5, real, whole)
    return np.where(rng.random(shape) < 0.2, -HUGE, x).astype(np.float32)


def make_layer(shape):
    n, below, window, size, border, perturbation, *across = SHAPES[shape]
    layer = PoolLayer(below, window, size, border, *across)
    p = perturbed_window(layer, perturbation, np.random.default_rng(1))
    if len(across) == 1:  # a prior of its own for every group
        p = p * np.random.default_rng(2).uniform(0.5, 1, (layer.n_channels, 1, 1, 1))
        p[:, 1:] *= 0.7
    return n, layer, pool_log_prior(layer, p).astype(np.float32)


def make(shape, seed=0):
    """A pooling layer in the middle of a run: its messages, those from below and from above."""
    n, layer, log_prior = make_layer(shape)
    rng = np.random.default_rng(seed)
    pools = start_pools(layer, n, log_prior)
    pools.from_pool[:] = messages(rng, pools.from_pool.shape)
    pools.from_pool[rng.random(pools.from_pool.shape) < 0.1] = HUGE
    pools.to_U[:] = np.maximum(messages(rng, pools.to_U.shape), -20)
    pools.to_R[:] = rng.normal(0, 3, pools.to_R.shape)
    below = np.maximum(messages(rng, (n, layer.n_below, *layer.below_size)), -20)
    above = messages(rng, pools.to_R.shape)
    above[rng.random(above.shape) < 0.1] = HUGE  # a decided weight and template
    return pools, below.astype(np.float32), above


STEPS = {
    "or_to_U": lambda engine, pools, below, above: engine.or_to_U(pools, below),
    "pool_to_R": lambda engine, pools, below, above: engine.pool_to_R(pools, 1.0),
    "pool_to_R, damped": lambda engine, pools, below, above: engine.pool_to_R(pools, 0.3),
    "pool_to_U": lambda engine, pools, below, above: engine.pool_to_U(pools, above),
    "or_to_S": lambda engine, pools, below, above: engine.or_to_S(pools),
}


# The paper's Appendix B over a dictionary of the variables U.


def features_below(layer, a):
    """The features that a channel of R can choose, and by which depth."""
    if layer.feature_order == "groups":
        return {d: a * layer.depth + d for d in range(layer.depth)}
    near = {d: a + d - (layer.depth - 1) // 2 for d in range(layer.depth)}
    if layer.feature_order == "ring":
        return {d: b % layer.n_below for d, b in near.items()}
    return {d: b for d, b in near.items() if 0 <= b < layer.n_below}


def members(layer, a, r, c):
    """What an element of R can choose: members of its window, and elements of the S below."""
    top, left = (0, 0) if layer.border == "full" else ((k - 1) // 2 for k in layer.window)
    positions = math.prod(layer.window)
    for d, b in features_below(layer, a).items():
        for i, j in np.ndindex(layer.window):
            y, x = r + i - top, c + j - left
            if 0 <= y < layer.below_size[0] and 0 <= x < layer.below_size[1]:
                yield d * positions + i * layer.window[1] + j, (b, y, x)


def paper_or_up(b, t, m):
    others = [x for k, x in enumerate(t) if k != m]
    if not others:
        return b
    return min(b + sum(max(0, x) for x in others), max(0, max(others)) - max(others))


def paper_or_down(t):
    i = int(np.argmax(t))
    return t[i] + sum(max(0, x) for k, x in enumerate(t) if k != i)


def paper_step(step, pools, below, above):
    """One step on one image: the message of every variable that it reaches."""
    layer, given = pools.layer, pools.log_prior.astype(float)
    U = {(*at, m): to for at in np.ndindex(pools.to_R.shape) for m, to in members(layer, *at)}
    prior = {u: given[(u[0] if len(given) > 1 else 0, *u[1:])] for u in U}
    to_U = {u: float(pools.to_U[u]) for u in U}
    from_pool = {u: float(pools.from_pool[u]) for u in U}
    if step == "or_to_U":
        tops = {at: [u for u in U if U[u] == at] for at in np.ndindex(below.shape)}
        return {
            u: paper_or_up(float(below[at]), [from_pool[v] for v in tops[at]], tops[at].index(u))
            for u, at in U.items()
        }
    if step == "or_to_S":
        return {
            at: paper_or_down([from_pool[u] for u in U if U[u] == at])
            for at in np.ndindex(below.shape)
        }
    pool = {at: [u for u in U if u[:3] == at] for at in np.ndindex(pools.to_R.shape)}
    value = {u: to_U[u] + prior[u] for u in U}
    if step == "pool_to_U":
        return {
            u: min(
                float(above[u[:3]]) + prior[u],
                prior[u] - max((value[v] for v in pool[u[:3]] if v != u), default=-math.inf),
            )
            for u in U
        }
    damping = 0.3 if step == "pool_to_R, damped" else 1.0
    return {
        at: (1 - damping) * pools.to_R[at] + damping * max(value[u] for u in pool[at])
        for at in pool
    }


@ANY_SHAPE
@ANY_ENGINE
@pytest.mark.parametrize("step", STEPS)
def test_messages_are_those_of_the_paper(shape, engine, step):
    pools, below, above = make(shape)
    start = copy.deepcopy(pools)
    down = STEPS[step](engine, pools, below, above)
    which = {"or_to_U": "to_U", "pool_to_U": "from_pool", "or_to_S": None}.get(step, "to_R")
    got = down if which is None else getattr(pools, which)
    for k in range(len(pools.to_R)):
        image = PoolMessages(
            start.layer, start.log_prior, start.to_U[k], start.from_pool[k], start.to_R[k]
        )
        # What is damped moves in whole steps.
        close = 0.51 * STEP if step == "pool_to_R, damped" else 1e-5
        for variable, wanted in paper_step(step, image, below[k], above[k]).items():
            wanted = min(max(wanted, -HUGE), HUGE)  # infinity in single precision
            assert got[(k, *variable)] == pytest.approx(wanted, rel=1e-5, abs=close)


@ANY_SHAPE
def test_max_pool_is_the_first_two_steps_of_the_first_pass(shape):
    n, layer, log_prior = make_layer(shape)
    below = make(shape)[1]
    pools = start_pools(layer, n, log_prior)
    ReferenceEngine().or_to_U(pools, below)
    ReferenceEngine().pool_to_R(pools, 1.0)
    got = max_pool(layer, log_prior, below)
    np.testing.assert_allclose(got, pools.to_R, rtol=1e-6)
    assert np.abs(got).max() > 0.1


TREES = {
    "positions": PoolLayer(1, (1, 2), (1, 3)),  # two elements of R share one of S
    "variants": PoolLayer(4, (1, 1), (1, 1), depth=2),
    "variants and positions": PoolLayer(3, (1, 2), (1, 2), depth=3),
    "line": PoolLayer(3, (1, 1), (1, 1), depth=2, feature_order="line"),
}


@ANY_ENGINE
@pytest.mark.parametrize("perturbation", [0.0, 0.5])
@pytest.mark.parametrize("name", TREES)
def test_a_pooling_layer_without_loops_is_solved_exactly(engine, perturbation, name):
    """Max-product is exact on a tree: beliefs are those of an enumeration of all states."""
    layer, rng = TREES[name], np.random.default_rng(0)
    places = [*np.ndindex(layer.n_channels, *layer.size)]
    elements = [*np.ndindex(layer.n_below, *layer.below_size)]
    for _ in range(8):
        prior = pool_log_prior(layer, perturbed_window(layer, perturbation, rng))
        prior = prior.astype(np.float32)
        below, above = rng.normal(0, 3, len(elements)), rng.normal(0, 3, len(places))
        best = np.full((len(places) + len(elements), 2), -math.inf)
        for choice in itertools.product(*[[None, *members(layer, *at)] for at in places]):
            state = [int(member is not None) for member in choice]
            moved = [member[1] for member in choice if member]
            state += [int(at in moved) for at in elements]
            value = np.dot(state, [*above, *below])
            for (a, r, c), member in zip(places, choice, strict=True):
                value += prior[a % len(prior), r, c, member[0]] if member else 0
            for k, on in enumerate(state):
                best[k, on] = max(best[k, on], value)
        pools = start_pools(layer, 1, prior)
        up = below.reshape(1, layer.n_below, *layer.below_size).astype(np.float32)
        down = above.reshape(pools.to_R.shape).astype(np.float32)
        for _ in range(6):  # longer than the tree
            engine.or_to_U(pools, up)
            engine.pool_to_U(pools, down)
        engine.pool_to_R(pools, 1.0)
        beliefs = [*(pools.to_R + down).ravel(), *(engine.or_to_S(pools) + up).ravel()]
        np.testing.assert_allclose(beliefs, best[:, 1] - best[:, 0], atol=1e-4)


def run_all_steps(shape):
    pools, below, above = make(shape)
    engine, layer = CPUEngine(), pools.layer
    engine.or_to_U(pools, below)
    engine.pool_to_R(pools, 0.6)
    engine.pool_to_U(pools, above)
    classes = ClassLayer((0,) * layer.n_below)
    prior = class_log_prior(classes, below.shape, allow_all(below)).astype(np.float32)
    top = engine.class_to_S(prior, below, True)
    pooled = max_pool(layer, pools.log_prior, below)
    return pools.to_U, pools.to_R, pools.from_pool, engine.or_to_S(pools), top, pooled


@pytest.mark.parametrize("shape", ["2x3", "2x3 same"])
def test_result_does_not_depend_on_the_number_of_threads(shape):
    got, wanted = with_one_thread_and_several(lambda: run_all_steps(shape))
    for x, y in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(x, y)


FEATURES = {
    # images, channels, size of R, features, feature size
    "small features": (2, 2, (5, 6), 3, (2, 3)),
    "few placements": (2, 2, (6, 6), 3, (5, 4)),
    "as large as the grid": (3, 2, (4, 3), 2, (4, 3)),
    "one element": (3, 4, (1, 1), 2, (1, 1)),
    "many images": (20, 1, (4, 4), 2, (4, 4)),
}


def make_trees(name, priors, seed=0):
    n, channels, size, n_features, feature_size = FEATURES[name]
    rng = np.random.default_rng(seed)
    layer = FeatureLayer(n_features, channels, feature_size, size, "valid")
    elements = trees_of(np.ones((n, channels, *size), bool), rng)
    evidence = rng.normal(0, 3, (n, channels, *size)).astype(np.float32)
    S, W = priors(
        rng, (n, n_features, *layer.placement_size), (channels, n_features, *feature_size)
    )
    return elements, start_messages(layer, elements, evidence, S, W), S, W


def open_priors(rng, S, W):
    return messages(rng, S), rng.normal(-0.5, 1, W).astype(np.float32)


def decided(rng, S, W):
    return tuple(
        np.where(rng.random(shape) < 0.4, HUGE, -HUGE).astype(np.float32) for shape in (S, W)
    )


@pytest.mark.parametrize("name", FEATURES)
def test_messages_from_trees_to_R_are_those_of_the_reference(name):
    _, trees, *_ = make_trees(name, open_priors)
    for batch in Schedule().batches(trees.images, np.random.default_rng(1)):
        CPUEngine().update(trees, batch, 1.0)
    got, wanted = (engine.trees_to_R(trees) for engine in (CPUEngine(), ReferenceEngine()))
    assert (np.abs(wanted) < 100).any()
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", FEATURES)
def test_sums_of_messages_are_those_of_the_reference(name):
    _, trees, *_ = make_trees(name, open_priors)
    rng = np.random.default_rng(1)
    trees.to_field[:] = rng.normal(0, 3, trees.to_field.shape)
    trees.to_kernel[:] = rng.normal(0, 3, trees.to_kernel.shape)
    sums = []
    for engine in (CPUEngine(), ReferenceEngine()):
        engine.collect(trees)
        sums.append((trees.field.copy(), trees.kernel.copy()))
    for got, wanted in zip(*sums, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FEATURES)
@ANY_ENGINE
def test_decided_placements_and_weights_decide_R(name, engine):
    """R = bconv(S, W): the leaves of a tree are where the definition says."""
    elements, trees, S, W = make_trees(name, decided)
    got = engine.trees_to_R(trees)
    for (n, a, r, c), value in zip(elements, got, strict=True):
        on = any(
            W[a, f, r - i, c - j] > 0
            for m, f, i, j in np.argwhere(S > 0)
            if m == n and 0 <= r - i < W.shape[2] and 0 <= c - j < W.shape[3]
        )
        assert value == np.float32(HUGE if on else -HUGE)


def allow_all(up):
    return np.ones(up.shape[:2], bool)


def class_layer_by_enumeration(categories, up, label):
    """Messages to the templates from the two levels of POOLs that the paper defines.

    The pool over the categories is certainly on; that over the templates of a category (at any
    position) is on where the category is.  A label is a category that is certainly on.
    """
    owner = np.repeat(categories, up[0].size)
    messages_in, n, K = up.ravel(), up.size, max(categories) + 1
    best = np.full((n, 2), -math.inf)
    for s in itertools.product((0, 1), repeat=n):
        for c in itertools.product((0, 1), repeat=K):
            value = pool(c, 1) + sum(
                pool([s[m] for m in range(n) if owner[m] == k], c[k]) for k in range(K)
            )
            if label is not None and not c[label]:
                value = -math.inf
            if value > -math.inf:
                value += sum(messages_in[m] for m in range(n) if s[m])
                for m in range(n):  # its own message does not count
                    own = messages_in[m] * s[m]
                    best[m, s[m]] = max(best[m, s[m]], value - own)
    return np.clip(best[:, 1] - best[:, 0], -HUGE, HUGE).reshape(up.shape)


def pool(bottoms, top):
    """Log of the paper's POOL with a uniform prior."""
    if not top:
        return 0.0 if sum(bottoms) == 0 else -math.inf
    return -math.log(len(bottoms)) if sum(bottoms) == 1 else -math.inf


CLASSES = {
    # category of every template, positions
    "3 x 2": ((0, 0, 1, 1, 2, 2), (1, 1)),
    "2 x 3": ((0, 0, 0, 1, 1, 1), (1, 1)),
    "one template each": ((0, 1, 2, 3), (1, 1)),
    "one category": ((0, 0, 0), (1, 1)),
    "one template": ((0,), (1, 1)),
    "mixed order": ((1, 0, 1, 2, 1), (1, 1)),
    "positions": ((0, 1, 1), (1, 2)),
}


@ANY_ENGINE
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("labelled", [False, True])
def test_class_messages_are_exact(engine, name, labelled):
    categories, size = CLASSES[name]
    layer = ClassLayer(categories)
    rng = np.random.default_rng(0)
    shape = (12, layer.n_templates, *size)
    up = np.where(
        np.arange(12)[:, None, None, None] % 2, rng.normal(0, 5, shape), rng.integers(-1, 2, shape)
    ).astype(np.float32)
    allowed, labels = np.ones(shape[:2], bool), [None] * 12
    if labelled:
        labels = rng.integers(layer.n_classes, size=12).tolist()
        allowed = np.array(categories) == np.array(labels)[:, None]
    log_prior = class_log_prior(layer, up.shape, allowed).astype(np.float32)
    got = engine.class_to_S(log_prior, up, layer.p_on is None)
    for k, label in enumerate(labels):
        wanted = class_layer_by_enumeration(categories, up[k].astype(float), label)
        np.testing.assert_allclose(got[k], wanted, rtol=1e-4, atol=1e-4)


@ANY_ENGINE
def test_templates_that_are_on_by_themselves_hear_their_prior(engine):
    layer = ClassLayer((0, 1, 1), p_on=0.2)
    up = messages(np.random.default_rng(0), (3, 3, 2, 2))
    allowed = np.array([[True, True, True], [True, False, False], [False, True, True]])
    log_prior = class_log_prior(layer, up.shape, allowed).astype(np.float32)
    got = engine.class_to_S(log_prior, up, layer.p_on is None)
    expected = np.where(allowed, math.log(0.2 / 0.8), -HUGE)[:, :, None, None]
    np.testing.assert_allclose(got, np.broadcast_to(expected, up.shape), rtol=1e-6)


@pytest.mark.parametrize("layer", [equal_classes(3, 2), ClassLayer((0, 1, 1, 1))])
def test_template_priors_are_those_of_both_levels_of_pools(layer):
    """Categories are equally probable, however many templates they have."""
    allowed = np.ones((1, layer.n_templates), bool)
    p = np.exp(class_log_prior(layer, (1, layer.n_templates, 2, 3), allowed))
    per_template = p.reshape(layer.n_templates, 6).sum(axis=1)
    np.testing.assert_allclose(
        np.bincount(layer.categories, per_template), 1 / layer.n_classes, rtol=1e-5
    )


@ANY_SHAPE
def test_a_pool_shares_its_probability_among_the_members_inside(shape):
    _, layer, _ = make_layer(shape)
    rng = np.random.default_rng(3)
    windows = rng.uniform(0.2, 3, (rng.choice([1, layer.n_channels]), layer.n_members))
    shaped = windows.reshape(-1, layer.depth, *layer.window)
    log_prior = pool_log_prior(layer, shaped)
    for a, r, c in np.ndindex(layer.n_channels, *layer.size):
        inside = [m for m, _ in members(layer, a, r, c)]
        own, window = log_prior[a % len(log_prior), r, c], windows[a % len(windows)]
        assert np.exp(own[inside]).sum() == pytest.approx(1, rel=1e-9)
        np.testing.assert_allclose(np.exp(own[inside]), window[inside] / window[inside].sum())
        outside = np.delete(own, inside)
        assert (outside <= -HUGE / 2).all()


@ANY_SHAPE
def test_the_centre_of_a_perturbed_pool_is_the_most_probable(shape):
    _, layer, _ = make_layer(shape)
    h, w = layer.window
    for seed in range(5):
        p = perturbed_window(layer, 0.3, np.random.default_rng(seed))
        assert p.max() <= 1
        assert p.min() >= 0.7
        log_prior = pool_log_prior(layer, p)
        assert (log_prior.argmax(axis=3) == layer.centre).all()
        if layer.feature_order == "groups":  # as probable for every variant
            variants = log_prior[..., layer.centre :: h * w]
            np.testing.assert_array_equal(variants, variants[..., :1].repeat(layer.depth, -1))
    if layer.border == "same":  # and it is the element itself, or its first variant
        step = layer.depth if layer.feature_order == "groups" else 1
        for a, r, c in np.ndindex(layer.n_channels, *layer.size):
            assert dict(members(layer, a, r, c))[layer.centre] == (a * step, r, c)
