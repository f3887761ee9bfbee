"""Learning a network of two levels without messages: parts by search, examples as templates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hcnet.checkpoint import Checkpoint
from hcnet.engine.driver import Limits, Record, Status, interruptible, run
from hcnet.hierarchy.network import Network, batch_size, explaining_memory
from hcnet.images import BoolArray, Images
from hcnet.memory import check_memory
from hcnet.progress import Progress
from hcnet.templates.examples import as_templates, choose, similarities, with_windows
from hcnet.templates.part_search import MOST_PARTS, PartSearch

# Rounds of explaining and fitting.  After ten hardly anything changes.
ROUNDS = 10
# Most images that are compared with each other; of more, some are drawn.
MOST_EXAMPLES = 2000


@dataclass(frozen=True, eq=False)
class LearnedTemplates:
    """The network with the pools that were learned, its weights, and how the search went."""

    network: Network
    weights: list[BoolArray]
    cost: float
    status: Status
    history: list[Record]


def learn_templates(
    network: Network,
    images: Images,
    allowed: BoolArray,
    limits: Limits,
    rng: np.random.Generator,
    progress: Progress | None = None,
    keeper: Checkpoint | None = None,
) -> LearnedTemplates:
    """Search for the parts, then choose the images that become templates.

    `allowed` (images, templates) leaves out the templates that contradict a label.
    """
    progress = progress or Progress()
    parts, top = network.levels
    rounds = ROUNDS if limits.max_iter is None else limits.max_iter
    try:
        with interruptible():
            progress.stage("Search for parts", rounds)
            search = PartSearch(parts, images, rng)
            outcome = run(
                search,
                replace(limits, max_iter=rounds),
                lambda k, measurement, seconds: progress.step(measurement, lambda: search.W),
                keeper,
            )
    finally:
        progress.close()
    W, found = outcome.best
    some = np.arange(images.n_images)
    if len(some) > MOST_EXAMPLES:
        some = np.sort(rng.choice(len(some), MOST_EXAMPLES, replace=False))
    maps = found.maps(len(W), parts.features.placement_size)
    templates = as_templates(top, maps[some])
    examples = images[some]
    similarity = similarities(network, W, examples, templates)
    chosen = choose(similarity, allowed[some], network, rng)
    weights = [W, templates[chosen]]
    network = with_windows(network, weights, examples, allowed[some], chosen)
    status = outcome.status
    if status is Status.ITERATION_LIMIT and limits.max_iter is None:
        status = Status.PASSES_DONE  # more rounds would hardly change anything
    return LearnedTemplates(network, weights, -outcome.objective, status, outcome.history)


def check_template_memory(network: Network, n_images: int, max_memory: int | None) -> int:
    """Bytes that learning needs; an error before it starts if that is more than allowed."""
    needed = 0
    for level in network.levels:
        below = level.pool.n_channels * int(np.prod(level.pool.below_size))
        R = level.pool.n_channels * int(np.prod(level.pool.size))
        needed += n_images * (2 * below + 2 * R + 24 * MOST_PARTS)
    examples = min(n_images, MOST_EXAMPLES)
    top = network.levels[-1].features.feature_pixels
    needed += examples * (top + 32 * examples)
    per_image = explaining_memory(network)
    needed += min(n_images, batch_size(per_image)) * per_image
    remedy = f"lower the images per fit (now {n_images})"
    return check_memory("Learning", needed, max_memory, remedy)
