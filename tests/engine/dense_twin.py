"""The dense engine in the state of an active set: every message that the set stands for."""

from __future__ import annotations

import numpy as np

from hcnet.engine.active.geometry import from_board, from_placements, from_weights
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.factors import and_up
from hcnet.messages import trees_of


def dense_twin(passing):
    """A `DensePassing` whose messages are those of an `ActivePassing`: stored, or closed form."""
    layer, g, n = passing._layer, passing._g, passing._n_images
    E, U = (from_board(layer, board, n) for board in (passing._E, passing._U))
    prior = np.broadcast_to(passing._prior, (n * g.positions * g.features,))
    observed = from_board(layer, passing._observed, n)
    beliefs, weight_prior = passing.weight_beliefs(), passing._weight_prior + passing._carried
    weight_prior = from_weights(layer, weight_prior)
    trees = trees_of(observed, np.random.default_rng(0))
    S_prior = from_placements(layer, prior.astype(np.float32))
    twin = DensePassing(CPUEngine(), layer, trees, E, S_prior, weight_prior)
    m = twin._messages
    layout = m.layout
    numbers = from_placements(layer, np.arange(prior.size, dtype=np.float32) + 1)
    of_weights = np.arange(beliefs.size, dtype=np.float32).reshape(beliefs.shape) + 1
    pair = (numbers, of_weights) if layout.kernel_is_weights else (of_weights, numbers)
    field, kernel = layout.to_field(pair[0], fill=0), layout.to_kernel(pair[1])
    (kh, kw), F = layout.kernel_size, layer.n_features
    stored = stored_messages(passing)
    board = passing._U.reshape(n, g.channels, g.board_height, g.board_width)
    oh, ow = layer.overhang
    flat = beliefs.reshape(-1)
    for k, (row, other, r, c) in enumerate(m.trees):
        a, b = field[row, r : r + kh, c * F : (c + kw) * F].reshape(-1), kernel[other]
        S, W = (a, b) if layout.kernel_is_weights else (b, a)
        i, ch = m.images[k], trees[k, 1]
        element = np.ravel_multi_index((i, ch, r + oh, c + ow), board.shape)
        to_S, to_W = np.zeros(len(S)), np.zeros(len(S))
        for j, (s, w) in enumerate(zip(S.astype(int) - 1, W.astype(int) - 1, strict=True)):
            if s < 0 or w < 0:
                continue  # beyond the grid
            if (s, element) in stored:
                to_S[j], to_W[j] = stored[s, element]
            else:
                to_S[j] = and_up(float(flat[w]), float(U[i, ch, r, c]))
        first, second = (to_S, to_W) if layout.kernel_is_weights else (to_W, to_S)
        m.to_field[k], m.to_kernel[k] = first, second
    m.quiet[:] = 0
    CPUEngine().collect(m)
    m.add_priors()
    return twin


def stored_messages(passing):
    """(placement, element of the board): messages to S and W."""
    e = passing._edges
    return {
        (e.where[e.who[x]], e.trees[k]): (e.to_S[x], e.to_W[x])
        for k in range(len(e.trees))
        for x in range(e.begin[k], e.begin[k + 1])
    }
