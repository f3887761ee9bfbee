"""The engines that can be chosen, by name."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.active.passing import ActivePassing, active_memory
from hcnet.engine.base import Engine, FeaturePassing, PoolEngine
from hcnet.engine.beliefs.passing import BeliefPassing, belief_memory
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.engine.devices import is_deterministic, on_gpu
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import GPU_SCHEDULE, Schedule
from hcnet.engine.threads import n_threads
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of

EngineName = Literal["active", "beliefs", "dense", "reference"]
ENGINE_NAMES: tuple[str, ...] = get_args(EngineName)
DEFAULT_ENGINE: EngineName = "active"
BELIEFS: EngineName = "beliefs"

# Bytes of messages up to which "active" stores them all on the processor.
SMALL = 2**26


def updates_by(name: str) -> Engine:
    """The engine of the processor that computes messages of trees, all of which are stored."""
    return ReferenceEngine() if name == "reference" else CPUEngine()


def pools_by(name: str) -> PoolEngine:
    """The engine that computes the messages of pools and classes."""
    if on_gpu(name):
        from hcnet.engine.cuda.pools import CUDAPools  # only where there is a GPU

        return CUDAPools()
    return updates_by(name)


def preset_schedule(name: str) -> Schedule:
    """The schedule of an engine, unless another is asked for."""
    return Schedule(GPU_SCHEDULE if on_gpu(name) else Schedule().name, preset=True)


def start_passing(
    name: str,
    layer: FeatureLayer,
    observed: BoolArray,
    evidence: FloatArray,
    placement_prior: FloatArray | float,
    weight_prior: FloatArray,
    rng: np.random.Generator,
    alike: bool = False,
    ink: BoolArray | None = None,
) -> FeaturePassing:
    """A feature layer without messages.

    `observed` and `evidence` are (images, channels, height, width), `placement_prior` is one number
    or (images, features, height, width), `weight_prior` (channels, features, height, width);
    priors as log-odds.  With `alike` all images have their trees in the same order.  `ink` says
    which elements may ever hear that they are on, if that is known: "beliefs" needs it, and is
    "active" elsewhere.
    """
    if name == BELIEFS and ink is not None:
        start = evidence, placement_prior, weight_prior
        return BeliefPassing(layer, ink, *start, rng, alike)
    if keeps_active_set(name, layer, len(evidence), int(observed.sum())):
        what = observed, evidence, placement_prior, weight_prior
        if not on_gpu(name):
            return ActivePassing(layer, *what)
        from hcnet.engine.cuda.active_set import ActiveCUDAPassing

        return ActiveCUDAPassing(is_deterministic(name), layer, *what)
    return start_dense(
        name,
        layer,
        trees_of(observed, rng, alike),
        evidence,
        placement_prior,
        weight_prior,
    )


def start_dense(
    name: str,
    layer: FeatureLayer,
    elements: NDArray[np.int32],
    evidence: FloatArray,
    placement_prior: FloatArray | float,
    weight_prior: FloatArray,
    keep: bool = True,
) -> FeaturePassing:
    """A feature layer that stores all messages, on the processor."""
    start = layer, elements, evidence, placement_prior, weight_prior
    return DensePassing(updates_by(name), *start, keep)


def passing_memory(
    name: str,
    layer: FeatureLayer,
    n_images: int,
    n_trees: int,
    lanes: int = 1,
    n_ink: int | None = None,
) -> int:
    """Bytes that `start_passing` and sweeps take at their peak, known before a run starts.

    `n_ink` is the number of elements with `ink`, if that is known.
    """
    if name == BELIEFS and n_ink is not None:
        return belief_memory(layer, n_images, n_ink, lanes)
    if not keeps_active_set(name, layer, n_images, n_trees):
        return Layout(layer, n_images).memory(n_trees, lanes)
    if not on_gpu(name):
        return active_memory(layer, n_images, lanes, n_threads())
    from hcnet.engine.cuda.active_set import active_device_memory

    return active_device_memory(layer, n_images, lanes if is_deterministic(name) else 1)


def keeps_active_set(name: str, layer: FeatureLayer, n_images: int, n_trees: int) -> bool:
    """Whether a layer stores only its active placements, if it is not known where there is ink.

    On the processor a small layer stores everything: that costs little, and is the paper's
    algorithm to the letter.
    The number of threads has no say: the same seed would not give the same result.
    """
    if on_gpu(name):
        return True
    dense = Layout(layer, n_images).memory(n_trees)
    return name in ("active", BELIEFS) and dense > max(SMALL, active_memory(layer, n_images))
