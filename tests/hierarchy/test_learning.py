"""Learning all levels at once: the weights that made the data come out."""

import math
import re
import time
import warnings
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from definition import layer, network, random_images
from scipy.optimize import linear_sum_assignment
from scipy.special import expit

from hcnet import HCN, Layer
from hcnet.datasets import shapes
from hcnet.engine.driver import Limits, Measurement, Status, look, run
from hcnet.engine.engines import ReadyEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.hierarchy.decoding import weight_log_prior
from hcnet.hierarchy.explaining import explain, host_joint, joint_of_nothing
from hcnet.hierarchy.network import sample, sample_templates
from hcnet.hierarchy.network_learning import (
    PASSES,
    NetworkLearning,
    NetworkOptions,
    _Race,
    check_passing_memory,
    dead_start,
    learn_network,
    reassign_templates,
)
from hcnet.hierarchy.network_messages import NetworkPassing, passing_memory
from hcnet.images import Images, Noise
from hcnet.memory import NotEnoughMemoryError
from hcnet.metrics import part_iou
from tests.memory_peak import memory_peak

SIZE = 21
CLEAR = Noise(1e-3, 1e-3)
# A start ends beside the solution now and then: so many seeds have a try.
SEEDS = range(3)


@pytest.fixture(autouse=True)
def one_thread():
    """Many short steps: on a busy machine threads would only wait for each other."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(threads)


def shapes_network(categories, noise=CLEAR):
    """The network that makes the shapes: four features, four templates, 3×3 pools."""
    return network(
        layer(4, (SIZE, SIZE), (3, 3), p_W=0.2),
        layer(4, (1, 1), (3, 3), p_W=0.5),
        image_size=(SIZE + 4, SIZE + 4),
        categories=categories,
        noise=noise,
    )


def allowed_by(labels, net):
    """Templates that agree with the label of every image, all where it is -1."""
    labels = np.asarray(labels)[:, None]
    return (labels < 0) | (labels == np.array(net.classes.categories))


def learn(net, images, allowed=None, seed=0, **options):
    if allowed is None:
        allowed = np.ones((images.n_images, net.classes.n_templates), bool)
    given = {"damping": (0.1,) * len(net.levels), "n_init": 1, "max_iter": 40, **options}
    rng = np.random.default_rng(seed)
    outcome, memory = learn_network(net, images, allowed, NetworkOptions(**given), rng)
    return SimpleNamespace(memory=memory, **vars(outcome), **vars(outcome.best))


def matched(learned, true):
    """The true feature that every learned one stands for, and the mean overlap."""
    iou = np.array([[part_iou(a, b) for b in true] for a in learned])
    rows, columns = linear_sum_assignment(-iou)
    return dict(zip(rows.tolist(), columns.tolist(), strict=True)), iou[rows, columns].mean()


def patterns(weights, stands_for=None):
    """The features that every template is made of."""
    rows = weights.reshape(len(weights), -1)
    return [frozenset((stands_for or range(99))[f] for f in np.flatnonzero(row)) for row in rows]


# Share of images with a label (None: no classes), noise, share of missing pixels, least overlap.
CASES = {
    "without labels": (None, CLEAR, 0.0, 0.5),
    "with labels": (1.0, CLEAR, 0.0, 0.5),
    "with few labels": (0.2, CLEAR, 0.0, 0.5),
    "with missing pixels": (None, CLEAR, 0.2, 0.35),
    "with unequal noise": (None, Noise(2e-3, 5e-4), 0.0, 0.5),
}


@pytest.mark.parametrize("case", CASES)
def test_templates_are_found(case):
    """For one of some seeds, the second layer is exactly right and the first one similar."""
    label, noise, missing, least_iou = CASES[case]
    for seed in SEEDS:
        data = shapes(n_images=40, feature_size=SIZE, random_state=seed)
        rng = np.random.default_rng(seed)
        net = shapes_network((0, 0, 1, 1) if label else (0, 1, 2, 3), noise)
        labels = np.where(rng.random(40) < label, data.labels, -1) if label else [-1] * 40
        pixels = data.images.copy()
        observed = rng.random(pixels.shape) >= missing
        pixels[~observed] ^= rng.random((~observed).sum()) < 0.5  # nobody may look there
        images = Images(pixels, observed)
        W1, W2 = learn(net, images, allowed_by(labels, net), seed, max_iter=30).weights
        stands_for, iou = matched(W1, data.features)
        true, found = patterns(data.template_weights), patterns(W2, stands_for)
        right = set(found) == set(true)
        if label:  # the two templates of every class
            right = right and set(found[:2]) == set(true[:2])
        if right and iou >= least_iou:
            return
    pytest.fail("no seed learned the templates")


def drawn(net, weights, n, seed):
    """Images of a network, and their templates."""
    rng = np.random.default_rng(seed)
    top = sample_templates(net, n, rng)
    X, _ = sample(net, weights, top, rng)
    return Images(X, np.ones_like(X)), top.any(axis=(2, 3)).argmax(axis=1)


def same_partition(a, b):
    """Whether two labellings differ by their names only."""
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


def log_joint(net, weights, images, allowed=None):
    """What learning climbs: images with their explanations by the forward pass, and weights."""
    found = explain(net, weights, images, allowed, candidates=1)
    return found.log_joint.sum() + weight_log_prior(net, weights)


def strokes(k):
    """Four strokes in a window: level, upright, and the two diagonals."""
    W = np.zeros((4, 1, k, k), bool)
    W[0, 0, k // 2] = W[1, 0, :, k // 2] = True
    W[2, 0], W[3, 0] = np.eye(k), np.eye(k)[::-1]
    return W


def test_three_levels_are_learned():
    """Strokes, pairs of strokes side by side, and two pairs above each other."""
    W2, W3 = np.zeros((4, 4, 1, 5), bool), np.zeros((4, 4, 6, 1), bool)
    for row, (a, b) in zip(W2, [(0, 1), (1, 2), (2, 3), (3, 0)], strict=True):
        row[a, 0, 0] = row[b, 0, 4] = True
    for row, (a, b) in zip(W3, [(0, 1), (2, 3), (1, 3), (0, 2)], strict=True):
        row[a, 0, 0] = row[b, 5, 0] = True
    true = [strokes(5), W2, W3]
    net = network(
        layer(4, (5, 5), (2, 2), p_W=0.2),
        layer(4, (1, 5), (2, 2), p_W=0.2),
        layer(4, (6, 1), (1, 1), p_W=0.2),
        image_size=(12, 11),
        categories=(0, 1, 2, 3),
        noise=CLEAR,
    )

    for seed in SEEDS:
        images, templates = drawn(net, true, 60, seed)
        learned = learn(net, images, seed=seed)
        assert learned.log_joint == pytest.approx(log_joint(net, learned.weights, images))
        empty = log_joint(net, [np.zeros_like(W) for W in true], images)
        best = log_joint(net, true, images)
        found = explain(net, learned.weights, images).S[-1].any(axis=(2, 3)).argmax(axis=1)
        learned_most = learned.log_joint > empty + 0.75 * (best - empty)
        if learned_most and same_partition(found, templates):
            return
    pytest.fail("no seed learned the templates")


# How learning runs.

SMALL = network(
    layer(4, (5, 5), (2, 2), p_W=0.2),
    layer(3, (3, 3), (2, 2), p_W=0.5),
    image_size=(9, 9),
    categories=(0, 1, 2),
    noise=CLEAR,
)


def small_images(n=12, seed=0):
    rng = np.random.default_rng(seed)
    weights = [strokes(5), rng.random((3, 4, 3, 3)) < 0.1]
    return drawn(SMALL, weights, n, seed)[0]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.weights, b.weights, strict=True))


@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_the_same_seed_gives_the_same_weights_with_any_number_of_threads(schedule):
    few = {"max_iter": 3, "n_init": 1, "engine": ReadyEngine(schedule=Schedule(schedule, rounds=3))}
    options = {"max_iter": 20, "n_init": 2} if schedule == "sequential" else few
    images = small_images()
    alone, other = (learn(SMALL, images, seed=seed, **options) for seed in (0, 1))
    numba.set_num_threads(2)
    together = learn(SMALL, images, **options)
    assert same(alone, together)
    assert measured(alone) == measured(together)
    assert measured(alone) != measured(other)
    if schedule == "sequential":
        assert sum(W.sum() for W in alone.weights) >= 10


def measured(learned):
    return [(record.objective, record.belief_change) for record in learned.history]


@pytest.mark.parametrize("n_init", [1, 2])
def test_without_a_vote_the_best_pass_is_kept(n_init):
    """Also where several starts are run half-way, and one of them to the end."""
    images = small_images()
    in_first_half = 0
    for seed in range(4):
        learned = learn(SMALL, images, seed=seed, vote=False, max_iter=40, n_init=n_init)
        values = [record.objective for record in learned.history]
        assert learned.log_joint == max(values)
        assert log_joint(SMALL, learned.weights, images) == pytest.approx(learned.log_joint)
        assert learned.n_iter == len(values) == 40
        assert [record.iteration for record in learned.history] == list(range(1, 41))
        assert learned.status is Status.ITERATION_LIMIT
        in_first_half += int(np.argmax(values)) < 19  # before what the second half starts from
    assert in_first_half > 0


def test_a_run_that_nothing_cut_short_says_so():
    learned = learn(SMALL, small_images(), max_iter=None)
    assert (learned.status, learned.n_iter) == (Status.PASSES_DONE, PASSES)
    assert learned.status.converged


def test_a_vote_decides_every_weight_by_the_best_passes():
    images = small_images()
    options = NetworkOptions(damping=(0.1, 0.1), max_iter=40)
    allowed = np.ones((images.n_images, 3), bool)
    process = NetworkLearning(SMALL, images, allowed, options, np.random.default_rng(0))
    passes = []
    for _ in range(40):
        process.step()
        passes.append(process.state())
    passes.sort(key=lambda decided: -decided.log_joint)
    votes = [sum(decided.weights[k].astype(int) for decided in passes[:15]) for k in (0, 1)]
    voted = process.vote()
    for W, count in zip(voted.weights, votes, strict=True):
        np.testing.assert_array_equal(W, count >= 8)
    assert any(((count > 0) & (count < 15)).any() for count in votes)  # they do not all agree


def test_time_is_limited():
    learned = learn(SMALL, small_images(), max_iter=100_000, max_seconds=0.3, n_init=3)
    assert learned.status is Status.TIME_LIMIT
    assert 1 <= len(learned.history) < 100_000
    assert learned.seconds < 5


def test_what_takes_too_long_to_set_up_has_learned_nothing():
    """Its score is that of the images without any weight; 1e5 starts need no time for that."""
    images = small_images()
    allowed = allowed_by(np.random.default_rng(0).integers(-1, 3, size=12), SMALL)
    race = _Race(lambda: busy(), 10**5, 60, deadline=time.perf_counter() + 0.1)
    assert list(race.runs()) == []
    assert (race.leader, race.status) == (None, Status.TIME_LIMIT)
    nothing = [np.zeros(level.weight_shape, bool) for level in SMALL.levels]
    score = joint_of_nothing(SMALL, images, allowed)
    assert score == pytest.approx(host_joint(SMALL, images, allowed, nothing), rel=1e-12)


def busy():
    while True:
        look()


def test_labels_count_in_what_is_reported():
    """With wrong labels the images are explained worse than without any."""
    images = small_images()
    allowed = allowed_by(np.random.default_rng(0).integers(3, size=12), SMALL)
    worse = []
    for seed in range(4):
        learned = learn(SMALL, images, allowed, seed, max_iter=20)
        value = log_joint(SMALL, learned.weights, images, allowed)
        assert learned.log_joint == pytest.approx(value)
        worse.append(log_joint(SMALL, learned.weights, images) - value)
    assert min(worse) >= 0
    assert max(worse) > 1  # by the others little was learned, of which a label could be wrong


class Scripted:
    """A start whose joint log-probabilities are known."""

    def __init__(self, values):
        self.values, self.at = values, 0

    def step(self):
        self.at += 1
        return True

    def measure(self):
        return Measurement(self.values[self.at])

    def state(self):
        return self.at


@pytest.mark.parametrize("stuck", [True, False])
def test_a_leader_that_is_stuck_has_not_won(stuck):
    """A start beside the solution leads half-way, and the other arrives later."""
    first = [-33.0 if k > 12 else -60.0 + k for k in range(61)]
    if not stuck:
        first[28:] = [-32.0] * 33
    second = [-27.0 if k > 40 else -40.0 for k in range(61)]
    scripts = map(Scripted, (first, second))
    race = _Race(lambda: next(scripts), n_init=2, passes=60)
    for start, passes, _, _ in race.runs():
        limits = Limits(max_iter=passes)
        start.outcome = run(start.process, limits, earlier=start.outcome)
    process, outcome = race.leader.process, race.leader.outcome
    assert outcome.n_iter == len(outcome.history) == 60
    assert process.values is (second if stuck else first)
    assert outcome.best == outcome.best_at == (41 if stuck else 28)
    assert [record.objective for record in outcome.history] == process.values[1:]
    assert [record.iteration for record in outcome.history] == list(range(1, 61))


# How much memory it takes.

MEMORY = {
    "shapes": (shapes_network((0, 1, 2, 3)), 60),
    "one level": (
        network(layer(10, (26, 26), (3, 3)), image_size=(28, 28), categories=range(10)),
        20,
    ),
    "small features": (
        network(
            layer(6, (5, 5), (3, 3)),
            layer(8, (20, 20), (3, 3)),
            image_size=(28, 28),
            categories=range(8),
        ),
        8,
    ),
}


def run_a_pass(net, n):
    rng = np.random.default_rng(0)
    evidence = random_images(net, n, rng).evidence(net.noise)
    priors = [np.zeros(level.weight_shape, np.float32) for level in net.levels]
    allowed = np.ones((n, net.classes.n_templates), bool)
    passing = NetworkPassing(net, evidence, priors, allowed, ReadyEngine("dense"), rng)
    passing.forward([0.5] * len(net.levels))
    passing.backward()
    return passing


@pytest.mark.parametrize("name", MEMORY)
def test_the_memory_estimate_is_the_peak(name):
    net, n = MEMORY[name]
    peak = memory_peak(lambda: run_a_pass(net, n))
    assert 0.9 * peak <= passing_memory(ReadyEngine("dense"), net, n) <= 1.1 * peak


def test_too_little_memory_is_said_before_anything_runs():
    images = small_images()
    options = NetworkOptions(damping=(0.1, 0.1), n_init=1)
    needed = check_passing_memory(SMALL, images.n_images, options)
    assert learn(SMALL, images, max_iter=1, max_memory=needed).memory == needed
    with pytest.raises(NotEnoughMemoryError) as caught:
        learn(SMALL, images, max_memory=needed - 1)
    message = r"would take [\d,]+ bytes, and max_memory allows [\d,]+ bytes: lower .*\(now 12\)"
    assert re.search(message, str(caught.value))


# Parameters with which nothing can be learned.

POOL = math.log(9)  # what a choice within a pool costs
WEAK = Noise(0.01, 0.01)
EVIDENCE = WEAK.k1 - POOL  # that an on pixel gives to R


def chance(log_odds):
    return float(expit(log_odds))


def levels_for_shapes(*p_W, noise=WEAK):
    """A network over shapes of 9×9 with the given probabilities of weights, per level."""
    first = layer(4, (9, 9) if len(p_W) > 1 else (11, 11), (3, 3), p_W=p_W[0])
    rest = [layer(4, (1, 1), (3, 3) if k == 0 else (1, 1), p_W=p) for k, p in enumerate(p_W[1:])]
    return network(first, *rest, image_size=(13, 13), categories=(0, 1, 2, 3), noise=noise)


def needs(margin):
    """Noise with which an element of R gets this evidence."""
    return Noise(0.1, 0.9 / math.exp(margin + POOL))


# By how much the evidence outweighs what it must: of a weight (that a placement hears of it), or of
# a placement (that a weight hears of it).
ROUTES = {
    "weight, two levels": lambda m: levels_for_shapes(chance(m - EVIDENCE), 0.02),
    "placement, one level": lambda m: levels_for_shapes(0.1, noise=needs(m)),
    "placement, three levels": lambda m: levels_for_shapes(
        1e-3, 0.48, chance(m - EVIDENCE + POOL - math.log(0.48 / 0.52))
    ),
}


def most_weights(net, data):
    """How many weights were ever on, in many passes."""
    options = NetworkOptions(damping=(0.5,) * len(net.levels))
    images = Images(data.images, np.ones_like(data.images))
    allowed = np.ones((images.n_images, net.classes.n_templates), bool)
    process = NetworkLearning(net, images, allowed, options, np.random.default_rng(0))
    most = 0
    for _ in range(15):
        process.step()
        most = max(most, sum(int(W.sum()) for W in process.state().weights))
    return most


@pytest.fixture(scope="module")
def small_shapes():
    return shapes(n_images=30, feature_size=9, random_state=0)


@pytest.mark.parametrize("route", ROUTES)
def test_no_weight_ever_turns_on_after_a_dead_start(route, small_shapes):
    for margin in (-1.5, -0.02):
        net = ROUTES[route](margin)
        assert dead_start(net) is not None
        assert most_weights(net, small_shapes) == 0


@pytest.mark.parametrize("route", ROUTES)
def test_weights_turn_on_just_beyond_a_dead_start(route, small_shapes):
    net = ROUTES[route](0.25)
    assert dead_start(net) is None
    assert most_weights(net, small_shapes) > 20


def test_a_dead_start_warns_in_one_sentence(small_shapes):
    images = Images(small_shapes.images, np.ones_like(small_shapes.images))
    net = levels_for_shapes(0.01, 0.02)
    with pytest.warns(UserWarning, match="nothing can be learned") as caught:
        learn(net, images, max_iter=1)
    message = str(caught[0].message)
    assert message == dead_start(net)
    assert "An on pixel gives evidence of 4.6 less 2.2 for the choice within its pool" in message
    assert "log-odds -4.6 of a weight" in message
    assert "lower p01 and p10, or raise the p_W" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(levels_for_shapes(0.2, 0.5), images, max_iter=1)


def test_labels_choose_among_finished_templates():
    """Templates in the wrong class go to the class of the images that they explain."""
    data = shapes(n_images=40, feature_size=21, random_state=2)
    model = HCN([Layer(4, size=21), Layer()], templates_per_class=2)
    swapped = data.template_weights[[2, 3, 0, 1]]
    network = model.set_weights([data.features, swapped], 25)._model.network
    images = Images(data.images, np.ones_like(data.images))
    codes = np.full(40, -1)
    codes[:8] = data.labels[:8]
    allowed = (codes[:, None] < 0) | (codes[:, None] == np.array(network.classes.categories))
    features, templates = reassign_templates(network, [data.features, swapped], images, allowed)
    assert (features == data.features).all()
    for k, true in ((0, data.template_weights[:2]), (1, data.template_weights[2:])):
        got = templates[2 * k : 2 * k + 2].reshape(2, 4)
        assert {tuple(row) for row in got} == {tuple(row) for row in true.reshape(2, 4)}
    nobody = np.ones_like(allowed)
    assert (
        reassign_templates(network, [data.features, swapped], images, nobody)[1] == swapped
    ).all()
