"""The engines that can be chosen, and the one place where the choice is made."""

from __future__ import annotations

import sys
import warnings
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np

from hcnet.engine.active.active_layer import ActivePassing, active_memory
from hcnet.engine.base import FeaturePassing, PoolUpdater
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing, TreeEngine
from hcnet.engine.near_ink import BeliefPassing, belief_memory
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import GPU_SCHEDULE, Schedule
from hcnet.engine.threads import n_threads
from hcnet.grid import tree_share
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of
from hcnet.names import EngineName

DEFAULT_ENGINE: EngineName = "active"

# Bytes of messages up to which "active" stores them all on the processor.
SMALL = 2**26


@dataclass(frozen=True, slots=True)
class Engine:
    """How messages are stored and updated: a value of the parameter `engine` of the estimators.

    The name of an engine alone stands for the engine with everything else at its default.

    Parameters
    ----------
    name : {"active", "beliefs", "dense", "reference"}, default="active"
        "active" stores messages of undecided placements only, if all messages would take more than
        64 MiB; "dense" always stores all; "beliefs" stores those of trees near ink; "reference" is
        readable and slow, for tests.
    schedule : {"sequential", "per-image", "blocks"} or None, default=None
        Order in which trees are updated.  None: one tree after the other ("sequential"), on a GPU
        all images at the same time ("per-image").
    damping : float, default=1.0
        Share of a new message that is taken; 1 replaces messages.  Schedules that update many trees
        at once need less than 1.  `HCN` takes it from its layers instead.

    """

    name: str = DEFAULT_ENGINE
    _: KW_ONLY
    schedule: str | None = None
    damping: float = 1.0

    def on(self, device: str) -> ReadyEngine:
        """The engine on a device: "cpu", "cuda", or "auto" for a GPU if there is one."""
        gpu = device != "cpu"
        if gpu and (problem := why_not_cuda()) is not None:
            if device == "cuda":
                raise NoDeviceError(f"device='cuda' cannot be used: {problem}; pass device='cpu'.")
            warnings.warn(f"The processor is used instead of a GPU: {problem}.", stacklevel=4)
            gpu = False
        schedule = Schedule(GPU_SCHEDULE if gpu else Schedule().name, preset=True)
        if self.schedule is not None:
            schedule = Schedule(self.schedule)  # type: ignore[arg-type]
        return ReadyEngine(self.name, schedule, self.damping, gpu)


@dataclass(frozen=True, slots=True)
class ReadyEngine:
    """An engine on its device, chosen once per fit: starts layers and knows what they take."""

    name: str = DEFAULT_ENGINE
    schedule: Schedule = field(default_factory=Schedule)
    damping: float = 1.0
    gpu: bool = False

    @property
    def share(self) -> float:
        """Share of a new message that is taken: the damping, so that messages stay on the grid."""
        return tree_share(self.damping)

    @property
    def uses_ink(self) -> bool:
        """Whether a layer stores less if it is known where there is ink."""
        return self.name == "beliefs" and not self.gpu

    def keeps_active_set(self, layer: FeatureLayer, n_images: int, n_trees: int) -> bool:
        """Whether a layer stores only its active placements, if it is not known where ink is.

        On the processor a small layer stores everything: that costs little, and is the paper's
        algorithm to the letter.  The number of threads has no say: the same seed would not give
        the same result.
        """
        if self.gpu:
            return True
        if self.name in ("dense", "reference"):
            return False
        return Layout(layer, n_images).memory(n_trees) > max(SMALL, active_memory(layer, n_images))

    def explores(self, layer: FeatureLayer, n_images: int, n_trees: int) -> bool:
        """Whether learning explores first: an active set alone would not find anything."""
        return not self.uses_ink and self.keeps_active_set(layer, n_images, n_trees)

    def start(
        self,
        layer: FeatureLayer,
        observed: BoolArray,
        evidence: FloatArray,
        placement_prior: FloatArray | float,
        weight_prior: FloatArray,
        rng: np.random.Generator,
        *,
        same_order: bool = False,
        ink: BoolArray | None = None,
    ) -> FeaturePassing:
        """A feature layer without messages.

        `observed` and `evidence` are (images, channels, height, width), `placement_prior` is one
        number or (images, features, height, width), `weight_prior` (channels, features, height,
        width); priors as log-odds.  With `same_order` all images have their trees in the same
        order.  `ink` says which elements may ever get evidence that they are on, if that is known:
        "beliefs" needs it, and is "active" elsewhere.
        """
        priors = placement_prior, weight_prior
        if self.uses_ink and ink is not None:
            return BeliefPassing(layer, ink, evidence, *priors, rng, same_order)
        if not self.keeps_active_set(layer, len(evidence), int(observed.sum())):
            trees = trees_of(observed, rng, same_order)
            return DensePassing(self.trees(), layer, trees, evidence, *priors)
        if not self.gpu:
            return ActivePassing(layer, observed, evidence, *priors)
        from hcnet.engine.cuda.active_set import ActiveCUDAPassing  # only where there is a GPU

        return ActiveCUDAPassing(layer, observed, evidence, *priors)

    def trees(self) -> TreeEngine:
        """The functions that update messages of trees, where all are stored: on the processor."""
        return ReferenceEngine() if self.name == "reference" else CPUEngine()

    def memory(
        self, layer: FeatureLayer, n_images: int, n_trees: int, n_ink: int | None = None
    ) -> int:
        """Bytes that `start` and sweeps take at their peak, known before a run starts.

        `n_ink` is the number of elements with `ink`, if that is known.
        """
        lanes = self.schedule.lanes(n_images)
        if self.uses_ink and n_ink is not None:
            return belief_memory(layer, n_images, n_ink, lanes)
        if not self.keeps_active_set(layer, n_images, n_trees):
            return Layout(layer, n_images).memory(n_trees, lanes)
        if not self.gpu:
            return active_memory(layer, n_images, lanes, n_threads())
        from hcnet.engine.cuda.active_set import active_device_memory

        return active_device_memory(layer, n_images, lanes)

    def pools(self) -> PoolUpdater:
        """The functions that update messages of pools and classes."""
        if self.gpu:
            from hcnet.engine.cuda.pools import CUDAPools

            return CUDAPools()
        return self.trees()

    def in_stored_order(self) -> ReadyEngine:
        """The same, undamped, with trees in the order in which they are stored."""
        return replace(self, schedule=replace(self.schedule, shuffle=False), damping=1.0)

    def free_memory(self) -> int | None:
        """Bytes that are free on the GPU; None on the processor."""
        if not self.gpu:
            return None
        from numba import cuda

        return int(min(cuda.current_context().get_memory_info().free, sys.maxsize))


class NoDeviceError(ValueError):
    """There is no graphics card that could be used."""


def why_not_cuda() -> str | None:
    """What is missing for the CUDA engine, if anything."""
    try:
        from numba import cuda
    except ImportError as error:
        return f"numba-cuda is not installed ({error}): pip install 'hcnet[cuda]'"
    if not hasattr(cuda, "current_context"):
        return "this Numba has no CUDA target: pip install 'hcnet[cuda]'"
    try:
        cuda.current_context()
    except Exception as error:  # drivers fail in many ways, each with a class of its own
        lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
        return f"there is no NVIDIA GPU with a working driver ({' '.join(lines[:2])})"
    return None
