"""The engines that can be chosen, by name."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.active.passing import ActivePassing, active_memory
from hcnet.engine.base import Engine, FeaturePassing
from hcnet.engine.beliefs.passing import BeliefPassing, belief_memory
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.engine.devices import is_dense, is_deterministic, on_gpu
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

# Bytes of messages up to which "active" stores them all; on a GPU, where many starts pass theirs at
# the same time.
SMALL, SMALL_ON_GPU = 2**26, 2**32


def updates_by(name: str) -> Engine:
    """What computes the messages of pools and classes, and of trees that are all stored."""
    if on_gpu(name):
        from hcnet.engine.cuda.engine import CUDAEngine  # only where there is one

        return CUDAEngine(is_deterministic(name))
    return ReferenceEngine() if name == "reference" else CPUEngine()


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
        from hcnet.engine.cuda.active.passing import ActiveCUDAPassing

        return ActiveCUDAPassing(updates_by(name), layer, *what)  # type: ignore[arg-type]
    return start_dense(
        updates_by(name),
        layer,
        trees_of(observed, rng, alike),
        evidence,
        placement_prior,
        weight_prior,
    )


def start_dense(
    engine: Engine,
    layer: FeatureLayer,
    elements: NDArray[np.int32],
    evidence: FloatArray,
    placement_prior: FloatArray | float,
    weight_prior: FloatArray,
    keep: bool = True,
) -> FeaturePassing:
    """A feature layer that stores all messages, where the engine works."""
    start = layer, elements, evidence, placement_prior, weight_prior
    if isinstance(engine, CPUEngine | ReferenceEngine):
        return DensePassing(engine, *start, keep)
    from hcnet.engine.cuda.passing import CUDAPassing

    return CUDAPassing(engine, *start)  # type: ignore[arg-type]


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
        return dense_memory(name, layer, n_images, n_trees, lanes)
    if not on_gpu(name):
        return active_memory(layer, n_images, lanes, n_threads())
    from hcnet.engine.cuda.active.passing import active_device_memory

    return active_device_memory(layer, n_images, lanes if is_deterministic(name) else 1)


def dense_memory(
    name: str,
    layer: FeatureLayer,
    n_images: int,
    n_trees: int,
    lanes: int = 1,
    keep: bool = True,
) -> int:
    """Bytes that `start_dense` and sweeps take at their peak."""
    layout = Layout(layer, n_images)
    if not on_gpu(name):
        return layout.memory(n_trees, lanes, keep)
    from hcnet.engine.cuda.passing import device_memory

    return device_memory(layout, n_trees, lanes if is_deterministic(name) else 1)


def keeps_active_set(name: str, layer: FeatureLayer, n_images: int, n_trees: int) -> bool:
    """Whether a layer stores only its active placements, if it is not known where there is ink.

    A small layer stores everything: that costs little, and is the paper's algorithm to the letter.
    The number of threads has no say: the same seed would not give the same result.
    """
    dense = Layout(layer, n_images).memory(n_trees)
    if on_gpu(name):
        return not is_dense(name) and dense > SMALL_ON_GPU
    return name in ("active", BELIEFS) and dense > max(SMALL, active_memory(layer, n_images))
