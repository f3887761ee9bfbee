"""Many starts on the same images at once: each has messages and weights of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cuda import decoding
from hcnet.engine.cuda.arrays import fetch, hold
from hcnet.engine.cuda.engine import CUDAEngine
from hcnet.engine.cuda.passing import CUDAPassing, device_memory
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tallies:
    """What the states of all starts amount to."""

    placed: IntArray  # (starts, features): placements that are on
    weights_on: IntArray  # (starts, features)
    pixels: IntArray  # (starts, 4): hit, missed, false, empty


class Starts(CUDAPassing):
    """Message passing from many starts at once."""

    def __init__(
        self,
        engine: CUDAEngine,
        layer: FeatureLayer,
        observed: BoolArray,
        evidence: FloatArray,
        placement_priors: NDArray[np.float64],
        weight_priors: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        """Priors as log-odds, one of S and (channels, features, height, width) of W per start."""
        n, starts = len(observed), len(placement_priors)
        elements = []
        for k in range(starts):
            elements.append(trees_of(observed, rng))
            elements[-1][:, 0] += k * n
        shape = (starts * n, layer.n_features, *layer.placement_size)
        each = np.repeat(placement_priors.astype(np.float32), n)
        S = np.broadcast_to(each[:, None, None, None], shape)
        W = weight_priors.reshape(starts * layer.n_channels, *weight_priors.shape[2:])
        super().__init__(engine, layer, np.concatenate(elements), evidence, S, W, starts)
        self._starts_of = hold(self._host.images // n)

    def tallies(self) -> Tallies:
        """Counts of what is on now, of every start."""
        m = self._messages
        return Tallies(
            decoding.on_per_feature(m, weights=False),
            decoding.on_per_feature(m, weights=True),
            decoding.tally(m, self._starts_of),
        )

    def decoded(self, start: int) -> tuple[BoolArray, IntArray]:
        """Weights (features, channels, height, width) and placements of a start, as of now."""
        m, host = self._messages, self._host
        layout = Layout(host.layout.layer, self._n_images)
        f, k = m.field.size // self._n_starts, m.kernel.size // self._n_starts
        one = replace(
            host,
            layout=layout,
            field=fetch(m.field[start * f : (start + 1) * f]).reshape(layout.field_shape),
            kernel=fetch(m.kernel[start * k : (start + 1) * k]).reshape(layout.kernel_shape),
        )
        W = np.swapaxes(one.weight_beliefs(), 0, 1) > 0
        placements = np.argwhere(one.placement_beliefs() > 0).astype(np.int64)
        return np.ascontiguousarray(W), placements


def starts_memory(layer: FeatureLayer, n_images: int, n_trees: int, n: int, lanes: int) -> int:
    """Bytes that so many starts take on the GPU; `n_trees` are those of one."""
    return device_memory(Layout(layer, n_images, n), n * n_trees, lanes)
