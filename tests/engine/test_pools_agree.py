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
    # images, channels, window, size below, border, perturbation
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
    n, channels, window, below_size, border, perturbation = SHAPES[shape]
    layer = PoolLayer(channels, window, below_size, border)
    p = perturbed_window(window, perturbation, np.random.default_rng(1))
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
    below = np.maximum(messages(rng, (n, layer.n_channels, *layer.below_size)), -20)
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


def members(layer, r, c):
    """Where an element of R can move to: positions of its window, and of the grid below."""
    top, left = (0, 0) if layer.border == "full" else ((k - 1) // 2 for k in layer.window)
    for i, j in np.ndindex(layer.window):
        y, x = r + i - top, c + j - left
        if 0 <= y < layer.below_size[0] and 0 <= x < layer.below_size[1]:
            yield i * layer.window[1] + j, (y, x)


def paper_or_up(b, t, m):
    others = [x for k, x in enumerate(t) if k != m]
    if not others:
        return b
    return min(b + sum(max(0, x) for x in others), max(0, max(others)) - max(others))


def paper_or_down(t):
    i = int(np.argmax(t))
    return t[i] + sum(max(0, x) for k, x in enumerate(t) if k != i)


def paper_step(step, pools, below, above):
    """One step on one plane: the message of every variable that it reaches."""
    layer, prior = pools.layer, pools.log_prior.astype(float)
    U = {(r, c, m): at for r, c in np.ndindex(pools.to_R.shape) for m, at in members(layer, r, c)}
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
            for at in np.ndindex(tuple(layer.below_size))
        }
    pool = {at: [u for u in U if u[:2] == at] for at in np.ndindex(pools.to_R.shape)}
    value = {u: to_U[u] + prior[u] for u in U}
    if step == "pool_to_U":
        return {
            u: min(
                float(above[u[:2]]) + prior[u],
                prior[u] - max((value[v] for v in pool[u[:2]] if v != u), default=-math.inf),
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
    for at in np.ndindex(pools.to_R.shape[:2]):
        plane = PoolMessages(
            start.layer, start.log_prior, start.to_U[at], start.from_pool[at], start.to_R[at]
        )
        # What is damped moves in whole steps.
        close = 0.51 * STEP if step == "pool_to_R, damped" else 1e-5
        for variable, wanted in paper_step(step, plane, below[at], above[at]).items():
            wanted = min(max(wanted, -HUGE), HUGE)  # infinity in single precision
            assert got[(*at, *variable)] == pytest.approx(wanted, rel=1e-5, abs=close)


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


@ANY_ENGINE
@pytest.mark.parametrize("perturbation", [0.0, 0.5])
def test_a_pooling_layer_without_loops_is_solved_exactly(engine, perturbation):
    """Two elements of R that share one element of S: a tree, where max-product is exact."""
    layer = PoolLayer(1, (1, 2), (1, 3))
    rng = np.random.default_rng(0)
    for _ in range(8):
        window = perturbed_window((1, 2), perturbation, rng)
        prior = pool_log_prior(layer, window).astype(np.float32)
        below, above = rng.normal(0, 3, 3), rng.normal(0, 3, 2)
        best = dict.fromkeys(itertools.product((0, 1), repeat=5), -math.inf)
        for choice in itertools.product((None, 0, 1), repeat=2):
            R = [int(m is not None) for m in choice]
            S = [
                int(any(m is not None and r + m == y for r, m in enumerate(choice)))
                for y in range(3)
            ]
            value = sum(prior[0, r, m] for r, m in enumerate(choice) if m is not None)
            value += np.dot(S, below) + np.dot(R, above)
            best[(*R, *S)] = max(best[(*R, *S)], value)
        wanted = [
            max(v for state, v in best.items() if state[k])
            - max(v for state, v in best.items() if not state[k])
            for k in range(5)
        ]
        pools = start_pools(layer, 1, prior)
        up = below.reshape(1, 1, 1, 3).astype(np.float32)
        down = above.reshape(1, 1, 1, 2).astype(np.float32)
        for _ in range(4):  # longer than the tree
            engine.or_to_U(pools, up)
            engine.pool_to_U(pools, down)
        engine.pool_to_R(pools, 1.0)
        beliefs = [*(pools.to_R + down).ravel(), *(engine.or_to_S(pools) + up).ravel()]
        np.testing.assert_allclose(beliefs, wanted, atol=1e-4)


def run_all_steps(shape):
    pools, below, above = make(shape)
    engine, layer = CPUEngine(), pools.layer
    engine.or_to_U(pools, below)
    engine.pool_to_R(pools, 0.6)
    engine.pool_to_U(pools, above)
    classes = ClassLayer((0,) * layer.n_channels)
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
    _, layer, log_prior = make_layer(shape)
    *_, perturbation = SHAPES[shape]
    window = perturbed_window(layer.window, perturbation, np.random.default_rng(1)).ravel()
    for r, c in np.ndindex(layer.size):
        inside = [m for m, _ in members(layer, r, c)]
        p = np.exp(log_prior[r, c].astype(float))
        assert p[inside].sum() == pytest.approx(1, rel=1e-5)
        np.testing.assert_allclose(p[inside], window[inside] / window[inside].sum(), rtol=1e-5)
        outside = np.delete(log_prior[r, c], inside)
        assert (outside <= -HUGE / 2).all()


@ANY_SHAPE
def test_the_centre_of_a_perturbed_pool_is_the_most_probable(shape):
    _, layer, _ = make_layer(shape)
    h, w = layer.window
    centre = (h - 1) // 2 * w + (w - 1) // 2
    for seed in range(5):
        p = perturbed_window(layer.window, 0.3, np.random.default_rng(seed))
        assert p.max() <= 1
        assert p.min() >= 0.7
        log_prior = pool_log_prior(layer, p)
        assert (log_prior.argmax(axis=2) == centre).all()
    if layer.border == "same":  # and it is the element itself
        for r, c in np.ndindex(layer.size):
            assert dict(members(layer, r, c))[centre] == (r, c)
