"""Learning both levels from the image upwards: parts, and examples made of them as templates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from hcnet.checkpoint import Checkpoint
from hcnet.engine.driver import Limits, Measurement, Outcome, Record, Status, interruptible, run
from hcnet.hierarchy.batches import batch_size, explaining_memory
from hcnet.hierarchy.bottom_up.parts import MOST_PARTS, Found, PartLearning
from hcnet.hierarchy.bottom_up.templates import as_templates, choose, similarities, with_windows
from hcnet.hierarchy.joint import HostJoint
from hcnet.hierarchy.learn import Decided, LearnedNetwork, NetworkOptions
from hcnet.hierarchy.network import Level, Network
from hcnet.images import BoolArray, Images
from hcnet.memory import check_memory
from hcnet.progress import Progress

# Rounds of explaining and fitting per level.  After ten hardly anything changes.
ROUNDS = 10
# Most images of which each is compared with each; of more, some are drawn.
MOST_EXAMPLES = 2000

Parts = tuple[BoolArray, Found]


def learn_bottom_up(
    network: Network,
    images: Images,
    allowed: BoolArray,
    options: NetworkOptions,
    rng: np.random.Generator,
    progress: Progress | None = None,
    keeper: Checkpoint | None = None,
) -> LearnedNetwork:
    """Learn all weights; arguments and result are those of `learn_network`."""
    began = time.perf_counter()
    # What a layer in between leaves unexplained would be lost to those above it.
    if len(network.levels) > 2:
        raise ValueError(
            f"algorithm='bottom-up' learns networks of one or two layers, got "
            f"{len(network.levels)}; leave layers out, or use algorithm='mpmp'."
        )
    if network.top_size != (1, 1):
        raise ValueError(
            f"With algorithm='bottom-up' a template must fill the image, but the last layer leaves "
            f"it {network.top_size[0]}×{network.top_size[1]} positions; leave its size None."
        )
    memory = check_learning_memory(network, images.n_images, options)
    progress = progress or Progress()
    parts: list[BoolArray] = []
    outcomes: list[Outcome[Parts]] = []
    maps = images
    try:
        with interruptible():
            for k, level in enumerate(network.levels[:-1]):
                progress.stage(f"Layer {k + 1} of {len(network.levels)}", _rounds(options))
                process = PartLearning(level, maps, rng)
                so_far = partial(_so_far, network, list(parts), process)
                watched = partial(progress.step, state=so_far)
                outcomes.append(_learn_parts(process, options, watched, began, keeper))
                W, found = outcomes[-1].best
                parts.append(W)
                maps = _placed(level, found)
    finally:
        progress.close()
    some = np.arange(images.n_images)
    if len(some) > MOST_EXAMPLES:
        some = np.sort(rng.choice(len(some), MOST_EXAMPLES, replace=False))
    templates = as_templates(network.levels[-1], maps.pixels[some])
    examples = Images(images.pixels[some], images.observed[some])
    similarity = similarities(network, parts, examples, templates)
    chosen = choose(similarity, allowed[some], network, rng)
    weights = [*parts, templates[chosen]]
    network = with_windows(network, weights, examples, allowed[some], chosen)
    return LearnedNetwork(
        network=network,
        weights=weights,
        log_joint=HostJoint(network, images, allowed).of(weights),
        status=outcomes[-1].status if outcomes else Status.FINISHED,
        n_iter=sum(outcome.n_iter for outcome in outcomes),
        seconds=time.perf_counter() - began,
        memory=memory,
        history=_history(outcomes),
    )


def check_learning_memory(network: Network, n_images: int, options: NetworkOptions) -> int:
    """Bytes that a run needs; an error before it starts if that is more than allowed."""
    needed = 0
    for level in network.levels:
        below = level.pool.n_channels * int(np.prod(level.pool.below_size))
        R = level.pool.n_channels * int(np.prod(level.pool.size))
        needed += n_images * (2 * below + 2 * R + 24 * MOST_PARTS)
    examples = min(n_images, MOST_EXAMPLES)
    top = network.levels[-1].features.feature_pixels
    needed += examples * (top + 32 * examples)
    each = explaining_memory(network)
    needed += min(n_images, batch_size(each)) * each
    remedy = f"lower the images per fit (now {n_images})"
    return check_memory("Learning", needed, options.max_memory, remedy)


def _so_far(network: Network, below: list[BoolArray], process: PartLearning) -> Decided:
    """The levels that are learned by now; those above have no weights yet."""
    weights = [*below, process.state()[0]]
    above = network.levels[len(weights) :]
    weights += [np.zeros(level.weight_shape, bool) for level in above]
    return Decided(weights, process.measure().objective)


def _learn_parts(
    process: PartLearning,
    options: NetworkOptions,
    watched: Callable[[Measurement], None],
    began: float,
    keeper: Checkpoint | None,
) -> Outcome[Parts]:
    left = None
    if options.max_seconds is not None:  # a run always makes one step
        left = max(began + options.max_seconds - time.perf_counter(), 1e-3)
    return run(
        process,
        Limits(max_iter=_rounds(options), max_seconds=left),
        lambda k, measurement, seconds: watched(measurement),
        keeper,
    )


def _rounds(options: NetworkOptions) -> int:
    return ROUNDS if options.max_iter is None else options.max_iter


def _placed(level: Level, found: Found) -> Images:
    """The placements as the maps that the next level explains."""
    shape = (len(found.places), level.features.n_features, *level.features.placement_size)
    S = np.zeros(shape, bool)
    for n, places in enumerate(found.places):
        S[n, places[:, 0], places[:, 1], places[:, 2]] = True
    return Images(S, np.ones_like(S))


def _history(outcomes: list[Outcome[Parts]]) -> list[Record]:
    """The rounds of all levels as one history."""
    history: list[Record] = []
    for outcome in outcomes:
        n, seconds = len(history), history[-1].seconds if history else 0.0
        history += [
            replace(record, iteration=record.iteration + n, seconds=record.seconds + seconds)
            for record in outcome.history
        ]
    return history
