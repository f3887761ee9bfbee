"""A feature layer on a GPU, all of whose messages are stored there."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.archive.contents import Contents
from hcnet.archive.fields import flag, number, whole
from hcnet.archive.reading import Section
from hcnet.engine.base import restore_arrays
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, fetch, hold
from hcnet.engine.cuda.engine import CUDAEngine, on_device
from hcnet.engine.cuda.orders import IN_LANES, Blocks, Order, colours, order_of
from hcnet.engine.dense import LARGEST_EXACT, REBUILD_EVERY
from hcnet.engine.schedules import Schedule
from hcnet.factors import HUGE
from hcnet.images import FloatArray
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, Messages, start_messages


class CUDAPassing:
    """Messages of one feature layer (`engine.base.FeaturePassing`), for one start or many."""

    def __init__(
        self,
        engine: CUDAEngine,
        layer: FeatureLayer,
        elements: NDArray[np.int32],
        evidence: FloatArray,
        placement_prior: FloatArray | float,
        weight_prior: FloatArray,
        n_starts: int = 1,
    ) -> None:
        """All messages are 0; the arguments are those of `messages.start_messages`."""
        elements = elements[np.argsort(elements[:, 0], kind="stable")]
        host = start_messages(
            layer, elements, evidence, placement_prior, weight_prior, False, n_starts
        )
        self._engine = engine
        self._shape = (n_starts * len(evidence), *evidence.shape[1:])
        self._n_images, self._n_starts = len(evidence), n_starts
        self._host = host  # what does not change: layout, images and trees
        self._messages = on_device(host)
        self._trees = elements
        self._largest_weight = float(np.abs(weight_prior).max(initial=0.0))
        self._largest_placement = float(np.abs(placement_prior).max())
        self._orders: dict[Schedule, Order] = {}
        self._colours: dict[int, Blocks] = {}
        self._sweeps = 0
        self._fresh = True  # the beliefs have been added up since the last sweep
        self._sums = tuple(arrays.zeros(x.shape) for x in self._beliefs())

    # Only a layer between others hears, expects and tells: a page alone need not know this.
    @cached_property
    def _elements(self) -> DeviceArray:
        """Where the element of each tree lies in R."""
        return hold(np.ravel_multi_index(tuple(self._trees.T), self._shape))

    @cached_property
    def _placed(self) -> DeviceArray:
        """Where the elements of S lie in the field or kernel."""
        return hold(where_placements_are(self._host))

    @property
    def leaves(self) -> int:
        """ANDs of a tree."""
        return self._host.layout.leaves

    def contents(self) -> Contents:
        """All messages and beliefs."""
        header = {"sweeps": self._sweeps, "fresh": self._fresh, "prior": self._largest_placement}
        return Contents(header, {name: fetch(x) for name, x in self._state().items()})

    def restore(self, file: Section) -> None:
        """Become what `contents` were of."""
        self._sweeps = whole("sweeps", file.header["sweeps"])
        self._fresh = flag("fresh", file.header["fresh"])
        self._largest_placement = number("prior", file.header["prior"])
        restore_arrays(self._engine, self._state(), file)

    def _state(self) -> dict[str, DeviceArray]:
        field, kernel = self._sums
        return self._messages.state() | {"field-sums": field, "kernel-sums": kernel}

    def _beliefs(self) -> tuple[DeviceArray, DeviceArray]:
        return self._messages.field, self._messages.kernel

    def hear(self, evidence: DeviceArray) -> None:
        """New evidence for R."""
        arrays.take(evidence, self._elements, self._messages.evidence)

    def expect(self, placement_prior: DeviceArray) -> None:
        """Another prior of S."""
        m = self._messages
        prior = m.field_prior if m.layout.kernel_is_weights else m.kernel_prior
        arrays.put(placement_prior, self._placed, prior)
        self._largest_placement = arrays.largest(placement_prior)
        for sums, belief in zip(self._sums, self._beliefs(), strict=True):
            arrays.copy(sums, belief)
        self._add_priors()

    def sweep(self, schedule: Schedule, rng: np.random.Generator, damping: float = 1.0) -> float:
        """Update every tree once; the largest change of a belief."""
        m = self._messages
        if self._sweeps and self._sweeps % REBUILD_EVERY == 0 and not self._fresh:
            self._collect()
            self._add_priors()
        before = [arrays.copied(belief) for belief in self._beliefs()]
        if schedule.name == "blocks" and self._in_colours:
            self._sweep_colours(schedule, rng, damping)
        elif schedule.name in IN_LANES:
            rounds = self._order(schedule).rounds_of(rng if schedule.shuffle else None)
            self._engine.lanes(m, rounds, damping)
        else:
            for batch in schedule.batches(self._host.images, rng):
                self._engine.update(m, batch, damping)
        self._sweeps += 1
        self._fresh = False
        return max(arrays.largest(*pair) for pair in zip(self._beliefs(), before, strict=True))

    def up(self) -> DeviceArray:
        """Sums of the messages to S: (images, features, height, width).

        Beliefs minus priors, unless a prior is so large that it has swallowed messages; and added
        up anew every so often, against the drift of float32.
        """
        m = self._messages
        small = max(self._largest_weight, self._largest_placement) < LARGEST_EXACT
        if small and self._sweeps % REBUILD_EVERY:
            self._add_priors(-1.0)
        else:
            self._collect()
            self._fresh = True
        layer = m.layout.layer
        sums = arrays.empty((self._shape[0], layer.n_features, *layer.placement_size))
        arrays.take(self._of_placements(), self._placed, sums)
        for kept, belief in zip(self._sums, self._beliefs(), strict=True):
            arrays.copy(belief, kept)
        self._add_priors()
        return sums

    def down(self, least: float = -HUGE) -> DeviceArray:
        """Messages to R: (images, channels, height, width); every element must have a tree."""
        out = arrays.empty(self._shape)
        arrays.put(self._engine.trees_to_R(self._messages), self._elements, out)
        return out

    def placement_beliefs(self) -> FloatArray:
        """Max-marginal differences of S: (images, features, height, width)."""
        return self._on_host().placement_beliefs()

    def weight_beliefs(self) -> FloatArray:
        """Max-marginal differences of W: (channels, features, height, width)."""
        return self._on_host().weight_beliefs()

    def placements(self) -> NDArray[np.int64]:
        """(placements, 4): image, feature, row and column of the S that are on."""
        return np.argwhere(self.placement_beliefs() > 0).astype(np.int64)

    def _on_host(self) -> Messages:
        m, layout = self._messages, self._host.layout
        field, kernel = fetch(m.field), fetch(m.kernel)
        return replace(
            self._host,
            field=field.reshape(layout.field_shape),
            kernel=kernel.reshape(layout.kernel_shape),
        )

    def _of_placements(self) -> DeviceArray:
        m = self._messages
        return m.field if m.layout.kernel_is_weights else m.kernel

    def _add_priors(self, sign: float = 1.0) -> None:
        m = self._messages
        arrays.add(m.field_prior, m.field, sign)
        arrays.add(m.kernel_prior, m.kernel, sign)

    def _collect(self) -> None:
        lanes = self._order(Schedule("per-image")).whole()
        self._engine.collect(self._messages, lanes)

    def _order(self, schedule: Schedule) -> Order:
        if schedule not in self._orders:
            size = self._n_images, self._n_starts
            images = self._host.images
            self._orders[schedule] = order_of(schedule, images, *size, self._engine.deterministic)
        return self._orders[schedule]

    @property
    def _in_colours(self) -> bool:
        """Whether trees can be updated at the same time without sharing placements."""
        return self._host.layout.kernel_is_weights and self._n_starts == 1

    def _sweep_colours(self, schedule: Schedule, rng: np.random.Generator, damping: float) -> None:
        most = schedule.block_size
        if most not in self._colours:
            self._colours[most] = colours(self._host, most, rng)
        blocks = self._colours[most]
        sequence = rng.permutation(blocks.n) if schedule.shuffle else np.arange(blocks.n)
        self._engine.blocks(self._messages, blocks, hold(sequence), damping)


def device_memory(layout: Layout, n_trees: int, lanes: int) -> int:
    """Bytes that a layer takes on the GPU; `lanes` of a start have copies of the weights.

    Beside the messages and beliefs: sums, beliefs before a sweep, and where elements lie.
    """
    beliefs = 4 * (int(np.prod(layout.field_shape)) + int(np.prod(layout.kernel_shape)))
    placements = layout.n_starts * layout.n_images * layout.layer.n_positions
    copies = layout.memory(0, lanes) - layout.memory(0)
    edges = 2 * 4 * n_trees * layout.leaves
    places = 8 * layout.layer.n_features * placements + 36 * n_trees
    return edges + 8 * beliefs + copies + places


def where_placements_are(m: Messages) -> NDArray[np.int64]:
    """Where the elements of S, in their order, lie in the field or kernel that holds them."""
    layout = m.layout
    shape = layout.field_shape if layout.kernel_is_weights else layout.kernel_shape
    numbers: Any = np.arange(int(np.prod(shape))).reshape(shape)
    found = layout.from_field(numbers) if layout.kernel_is_weights else layout.from_kernel(numbers)
    return np.ascontiguousarray(found, dtype=np.int64)
