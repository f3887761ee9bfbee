"""The moves: each proposes solutions that coordinate-wise improvement cannot reach.

A move is a function of the current explanation that yields proposals (features, placements).
The search improves each proposal and keeps it only if the code gets shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from hcnet.engine.driver import look
from hcnet.engine.placements import infer_placements
from hcnet.objective import estimate
from hcnet.solutions import kernels
from hcnet.solutions.explanation import NOWHERE, Canvas, Explanation, Feature, IntArray
from hcnet.solutions.improver import Improver

Weights = NDArray[np.int8]

# `complete` gives a feature the pixels that are on below more than such a share of its placements.
MOST = (0.75, 0.7, 0.65, 0.6)
# One window must hold this share of two features' pixels for them to be merged.
HELD = 0.9
# Merges that are tried as a second step after a deletion that costs little.
SECOND_MERGES = 4


@dataclass(frozen=True, eq=False)
class Proposal:
    """A starting point, and the most rounds of improvement for it."""

    features: Sequence[Feature]
    placements: IntArray
    rounds: int = 3


Move = Callable[[Explanation, Improver, np.random.Generator], Iterator[Proposal]]


def polish(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Only work out what is there."""
    yield Proposal(list(now.features), now.placements)


def scratch(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Place everything anew."""
    yield Proposal(list(now.features), NOWHERE)


def merge(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Join two features that often stand at the same offset (a letter that was split)."""
    for _, f, g, dr, dc in merge_candidates(now, improver.canvas):
        union, held, (top, left) = _union(now.features[f].weights, now.features[g].weights, dr, dc)
        if held < HELD:
            continue
        pairs, rest = _pairs(now.placements, f, g, dr, dc)
        joined = _joined(pairs, top, left, len(now.features), improver.canvas)
        features = [*now.features, improver.feature(union)]
        yield Proposal(features, np.concatenate([rest, joined]))
        # Second try: features that were mostly used in the pair go.
        times = len(pairs) * (2 if f == g else 1)
        gone = [k for k in {f, g} if times >= 0.5 * now.usage[k]]
        if gone:
            others = rest[(rest[:, 1] != f) & (rest[:, 1] != g)]
            yield _without(features, np.concatenate([others, joined]), gone)


def birth(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """A new feature from a window with many unexplained pixels."""
    canvas = improver.canvas
    bare = kernels.bare_windows(canvas.sign.reshape(-1), now.cover, canvas.geometry)
    boxes = bare.reshape(-1, *canvas.layer.placement_size).astype(np.float32)
    lottery = boxes + rng.random(boxes.shape) * (0.3 * boxes.max())
    n, r, c = (int(k) for k in np.unravel_index(int(lottery.argmax()), boxes.shape))
    if boxes[n, r, c] >= 3:
        yield _with_feature(now, improver, canvas.crop(_unexplained(now, canvas), n, r, c))


def split(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Give the worst-fitting placement a feature of its own."""
    if not len(now.placements):
        return
    canvas = improver.canvas
    cover, errors = _cover_and_errors(now, canvas)
    misfit = _windows(errors, now.placements, canvas).sum(axis=(1, 2, 3))
    lottery = misfit + rng.random(len(misfit)) * max(1.0, 0.5 * float(misfit.max()))
    i, f0, r0, c0 = (int(k) for k in now.placements[lottery.argmax()])
    others = canvas.crop(cover, i, r0, c0) - now.features[f0].weights
    seen = canvas.crop(canvas.sign, i, r0, c0) > 0
    kept = now.placements[now.placements[:, 1] != f0]
    yield _with_feature(now, improver, (seen & (others <= 0)).astype(np.int8), kept)


def divide(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Two parts share one feature if many of its placements err at the same pixel: part them."""
    canvas = improver.canvas
    cover, errors = _cover_and_errors(now, canvas)
    found = []
    for f in range(len(now.features)):
        mine = np.flatnonzero(now.placements[:, 1] == f)
        wrong = _windows(errors, now.placements[mine], canvas)
        times = wrong.sum(axis=0)
        a, i, j = np.unravel_index(int(times.argmax()), times.shape)
        if times[a, i, j] >= 2:
            found.append((int(times[a, i, j]), f, mine[wrong[:, a, i, j]]))
    for _, f, group in sorted(found, key=lambda item: -item[0]):
        placements = now.placements.copy()
        others = _windows(cover, placements[group], canvas) - now.features[f].weights
        seen = _windows(canvas.sign, placements[group], canvas) > 0
        placements[group, 1] = len(now.features)
        weights = (seen & (others <= 0)).mean(axis=0) > 0.5
        yield Proposal([*now.features, improver.feature(weights)], placements)


def subtract(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Take a feature out of another that contains it, and place it there in its own right."""
    canvas = improver.canvas
    h, w = canvas.layer.feature_size
    found = []
    for f, g in np.ndindex(len(now.features), len(now.features)):
        large, small = now.features[f].weights, now.features[g].weights
        if f == g or not 3 <= small.sum() < large.sum():
            continue
        look()  # there are many pairs
        overlap, dr, dc = _best_overlap(large, small)
        if overlap >= 0.9 * small.sum():
            found.append((float(small.sum() / large.sum()), f, g, dr, dc))
    for _, f, g, dr, dc in sorted(found, reverse=True):
        board = np.zeros((canvas.layer.n_channels, 3 * h, 3 * w), bool)
        board[:, h + dr : 2 * h + dr, w + dc : 2 * w + dc] = now.features[g].weights
        features = list(now.features)
        features[f] = improver.feature(now.features[f].weights & ~board[:, h : 2 * h, w : 2 * w])
        extra = now.placements[now.placements[:, 1] == f] + [0, 0, dr, dc]
        extra[:, 1] = g
        placements = np.concatenate([now.placements, extra[canvas.inside(extra)]])
        yield Proposal(features, placements)


def complete(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Give all features the pixels that are on below most of their placements.

    A pixel that others cover gains nothing by itself, and the others cannot give it up as long
    as no feature has it that could replace them.
    """
    canvas = improver.canvas
    on, off = [], []
    for f in range(len(now.features)):
        below = _windows(canvas.sign, now.placements[now.placements[:, 1] == f], canvas)
        on.append((below > 0).sum(axis=0))
        off.append((below < 0).sum(axis=0))
    for most in MOST:
        wanted = [a > most * (a + b) for a, b in zip(on, off, strict=True)]
        features = [
            improver.feature(feature.weights | more) if (more & ~feature.weights).any() else feature
            for feature, more in zip(now.features, wanted, strict=True)
        ]
        yield Proposal(features, now.placements)


def crop(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """A new feature cut straight from an image: around a placement, or a random box."""
    canvas = improver.canvas
    seen = (canvas.sign > 0).astype(np.int8)
    h, w = canvas.layer.feature_size
    if len(now.placements) and rng.random() < 0.5:
        n, f, r, c = (int(k) for k in now.placements[rng.integers(len(now.placements))])
        kept: IntArray | None = now.placements[now.placements[:, 1] != f]
        if rng.random() < 0.5:
            r += int(rng.integers(-(h // 2), h // 2 + 1))
            c += int(rng.integers(-(w // 2), w // 2 + 1))
            kept = None
        cut = canvas.crop(seen, n, r, c)
        if cut.sum() >= 3:
            yield _with_feature(now, improver, cut, kept)
        return
    on = np.argwhere(seen)
    if not len(on):
        return
    n, _, y, x = (int(k) for k in on[rng.integers(len(on))])
    box_h, box_w = int(rng.integers(h // 2, h)) + 1, int(rng.integers(w // 2, w)) + 1
    top, left = y - int(rng.integers(box_h)), x - int(rng.integers(box_w))
    cut = canvas.crop(seen, n, top, left)
    cut[:, box_h:] = 0
    cut[:, :, box_w:] = 0
    if cut.sum() >= 4:
        yield _with_feature(now, improver, cut)


def delete(
    now: Explanation, improver: Improver, rng: np.random.Generator, f: int
) -> Iterator[Proposal]:
    """Take feature f away."""
    if f < len(now.features):
        yield _without(now.features, now.placements, [f])


def absorb(
    now: Explanation, improver: Improver, rng: np.random.Generator, f: int
) -> Iterator[Proposal]:
    """Take feature f away after the others have taken over the pixels that they can."""
    if f < len(now.features) > 1:
        # Improvement begins with placements, so the weights must change before.
        start = _without(now.features, now.placements, [f])
        features = improver.fit_weights(start.features, start.placements, improver.tolerant(now))
        if features != start.features:
            yield Proposal(features, start.placements)


def dissolve(
    now: Explanation, improver: Improver, rng: np.random.Generator, f: int
) -> Iterator[Proposal]:
    """Take feature f away and merge it with every feature that it often stands beside.

    A fragment that several parts share pays as long as one of them still needs it: merged with
    one partner alone, it stays, and the union does not pay.
    """
    if f >= len(now.features):
        return
    features, placements, unions = list(now.features), now.placements, 0
    for _, a, b, dr, dc in merge_candidates(now, improver.canvas):
        if f not in (a, b) or a == b:
            continue
        union, held, (top, left) = _union(now.features[a].weights, now.features[b].weights, dr, dc)
        pairs, rest = _pairs(placements, a, b, dr, dc)
        if held >= HELD and len(pairs) >= 2:
            joined = _joined(pairs, top, left, len(features), improver.canvas)
            features.append(improver.feature(union))
            placements = np.concatenate([rest, joined])
            unions += 1
    if unions > 1:  # `merge` has tried the union with a single partner
        yield _without(features, placements, [f])


def second_step(
    now: Explanation, improver: Improver, rng: np.random.Generator
) -> Iterator[Proposal]:
    """A second step after a deletion that costs little.

    Features that take the place of the deleted one may stand in pairs that are worth a feature of
    their own, or fit badly where it had hidden a part.
    """
    yield from islice(merge(now, improver, rng), SECOND_MERGES)
    yield from birth(now, improver, rng)
    yield from split(now, improver, rng)


def place_by_messages(
    now: Explanation, improver: Improver, rng: np.random.Generator
) -> Iterator[Proposal]:
    """Place all features anew by message passing: removes wrong pixels that no exchange can."""
    if now.features:
        priors = estimate(now.counts, improver.priors)
        found = infer_placements(now.features, improver, priors, rng).best
        yield Proposal(found.features, found.placements)


def tidy(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Remove loose pixels that other features can take over at no cost.

    A pixel that some neighbour happens to cover at every placement costs no error, so the
    code length alone cannot tell whose it is; a part in one piece is the simpler answer.
    """
    for f, feature in enumerate(now.features):
        pieces, n = _pieces(feature)
        sizes = np.bincount(pieces.ravel())[1:]
        for k in np.argsort(sizes, kind="stable")[: n - 1]:
            features = list(now.features)
            features[f] = improver.feature(feature.weights & (pieces != k + 1))
            priors = improver.tolerant(now)
            yield Proposal(
                improver.fit_weights(features, now.placements, priors, frozen=f), now.placements
            )


def shift(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Move the window of a feature to where the weights that pay gain most.

    A part is smaller than its window, or has pixels that hardly pay, and what it lacks may lie
    anywhere around it: with the window moved, it can have that instead.
    """
    canvas = improver.canvas
    h, w = canvas.layer.feature_size
    for f in range(len(now.features)):
        gains = improver.weight_gains(now, f)
        values = np.maximum(gains, 0).sum(axis=0)
        windows = np.lib.stride_tricks.sliding_window_view(values, (h, w)).sum(axis=(2, 3))
        top, left = (int(k) for k in np.unravel_index(int(windows.argmax()), windows.shape))
        if windows[top, left] < windows[h - 1, w - 1] + 1e-6:
            continue
        features, placements = list(now.features), now.placements.copy()
        features[f] = improver.feature(gains[:, top : top + h, left : left + w] > 0)
        placements[placements[:, 1] == f] += [0, 0, top - h + 1, left - w + 1]
        placements = placements[canvas.inside(placements)]
        # Gains do not add up where placements of the same feature overlap.
        if improver.evaluate(features, placements).bits < now.bits - 1e-6:
            yield Proposal(features, placements)


def trim(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Take the weights away that a single pixel has brought about, all those of a feature at once.

    Each of them may pay where the feature stands, only because it stands there for the others'
    sake.
    """
    h, w = improver.canvas.layer.feature_size
    pixel = estimate(now.counts, improver.priors).noise.k1
    found = []
    for f, feature in enumerate(now.features):
        gains = improver.weight_gains(now, f)[:, h - 1 : 2 * h - 1, w - 1 : 2 * w - 1]
        doubtful = feature.weights & (gains < pixel)
        if doubtful.any() and (feature.weights & ~doubtful).any():
            found.append((-float(gains[doubtful].sum()), f, doubtful))
    for _, f, doubtful in sorted(found, key=lambda item: item[:2], reverse=True):
        features = list(now.features)
        features[f] = improver.feature(features[f].weights & ~doubtful)
        yield Proposal(features, now.placements)


def grow(now: Explanation, improver: Improver, rng: np.random.Generator) -> Iterator[Proposal]:
    """Thicken a feature by one pixel in one direction, and place it anew.

    A bar learned one pixel too short fits every true bar in two places, so that its placements
    disagree on which end the missing pixel is at, and no weight can change alone.
    """
    canvas = improver.canvas
    h, w = canvas.layer.feature_size
    bare = _unexplained(now, canvas)
    for f, feature in enumerate(now.features):
        top, bottom, left, right = feature.box
        mine = now.placements[:, 1] == f
        below = _windows(bare, now.placements[mine], canvas)
        for dr, dc in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if top + dr < 0 or bottom + dr >= h or left + dc < 0 or right + dc >= w:
                continue
            thick = feature.weights | np.roll(feature.weights, (dr, dc), (1, 2))
            # Only where some of the placements have something there to explain.
            if below[:, thick].sum() < max(2, 0.1 * mine.sum()):
                continue
            features = list(now.features)
            features[f] = improver.feature(thick)
            yield Proposal(features, now.placements[~mine])


def merge_candidates(now: Explanation, canvas: Canvas) -> list[tuple[float, int, int, int, int]]:
    """Pairs of features by how constantly they stand together, best first."""
    # Counted from the first pixel of each feature on: where in its window a feature lies must
    # not decide whether another is in reach.
    corners = np.array([f.box[::2] for f in now.features], np.int64).reshape(-1, 2)
    p = now.placements.copy()
    p[:, 2:] += corners[p[:, 1]]
    order = np.lexsort((p[:, 3], p[:, 2], p[:, 0]))
    rows = kernels.neighbours(p[order], canvas.geometry, len(now.features))
    f, g, times = rows[:, 0], rows[:, 1], rows[:, 4]
    rows[:, 2:4] -= corners[g] - corners[f]
    score = times * times / np.minimum(now.usage[f], now.usage[g])
    apart = (f != g) | rows[:, 2:4].any(axis=1)
    found = zip(score[apart].tolist(), *rows[apart, :4].T.tolist(), strict=True)
    return sorted(found, reverse=True)


def count_pieces(explanation: Explanation) -> int:
    """Connected pieces of all features together."""
    return sum(_pieces(feature)[1] for feature in explanation.features)


def _pieces(feature: Feature) -> tuple[NDArray[np.int32], int]:
    """Connected pieces (height, width), numbered from 1, of all channels together; how many."""
    pieces, n = ndimage.label(feature.weights.any(axis=0), structure=np.ones((3, 3)))
    return pieces, int(n)


def _union(
    first: NDArray[np.bool_], second: NDArray[np.bool_], dr: int, dc: int
) -> tuple[NDArray[np.bool_], float, tuple[int, int]]:
    """Both features in one window, the share of them that it holds, and where it starts.

    The window is the middle one of those that hold most; its start counts from the first one's.
    """
    _, h, w = first.shape
    board = np.zeros((first.shape[0], 5 * h, 5 * w), bool)
    board[:, 2 * h : 3 * h, 2 * w : 3 * w] |= first
    board[:, 2 * h + dr : 3 * h + dr, 2 * w + dc : 3 * w + dc] |= second
    total = np.zeros((5 * h + 1, 5 * w + 1), np.int64)
    total[1:, 1:] = board.sum(axis=0).cumsum(axis=0).cumsum(axis=1)
    holds = total[h:, w:] - total[:-h, w:] - total[h:, :-w] + total[:-h, :-w]
    rows, columns = np.nonzero(holds == holds.max())
    top = int(rows[len(rows) // 2])
    columns = columns[rows == top]
    left = int(columns[len(columns) // 2])
    union = board[:, top : top + h, left : left + w]
    return union, float(holds.max() / total[-1, -1]), (top - 2 * h, left - 2 * w)


def _pairs(placements: IntArray, f: int, g: int, dr: int, dc: int) -> tuple[IntArray, IntArray]:
    """Placements of f with a g at the offset, and the placements outside all such pairs."""
    at: dict[int, dict[tuple[int, int, int], int]] = {f: {}, g: {}}
    for z in np.flatnonzero((placements[:, 1] == f) | (placements[:, 1] == g)).tolist():
        n, k, r, c = placements[z].tolist()
        at[k][n, r, c] = z
    taken = np.zeros(len(placements), bool)
    firsts = []
    for (n, r, c), z in at[f].items():
        other = at[g].get((n, r + dr, c + dc))
        if other is not None and other != z and not (taken[z] or taken[other]):
            taken[z] = taken[other] = True
            firsts.append(z)
    return placements[firsts], placements[~taken]


def _joined(pairs: IntArray, top: int, left: int, f: int, canvas: Canvas) -> IntArray:
    joined = pairs + np.array([0, 0, top, left])
    joined[:, 1] = f
    return np.asarray(joined[canvas.inside(joined)])


def _without(features: Sequence[Feature], placements: IntArray, gone: list[int]) -> Proposal:
    kept = [k for k in range(len(features)) if k not in gone]
    names = np.full(len(features), -1)
    names[kept] = np.arange(len(kept))
    placements = placements[names[placements[:, 1]] >= 0].copy()
    placements[:, 1] = names[placements[:, 1]]
    return Proposal([features[k] for k in kept], placements)


def _with_feature(
    now: Explanation, improver: Improver, weights: Weights, kept: IntArray | None = None
) -> Proposal:
    """One more feature; everything is placed anew, unless some placements are to stay."""
    features, placements = improver.recentre(
        [*now.features, improver.feature(weights > 0)], NOWHERE if kept is None else kept
    )
    return Proposal(features, placements, rounds=4)


def _windows(values: NDArray[np.generic], placements: IntArray, canvas: Canvas) -> NDArray[Any]:
    """What lies below each placement: (placements, channels, height, width)."""
    h, w = canvas.layer.feature_size
    n, _, r, c = placements.T
    rows = r[:, None, None, None] + np.arange(h)[:, None]
    cols = c[:, None, None, None] + np.arange(w)
    channels = np.arange(canvas.layer.n_channels)[:, None, None]
    return np.asarray(values[n[:, None, None, None], channels, rows, cols])


def _unexplained(now: Explanation, canvas: Canvas) -> Weights:
    """On pixels that no placement covers."""
    bare = (canvas.sign > 0) & (now.cover.reshape(canvas.sign.shape) == 0)
    return np.asarray(bare, np.int8)


def _cover_and_errors(
    now: Explanation, canvas: Canvas
) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """How often each padded pixel is covered, and where the reconstruction is wrong."""
    cover = now.cover.reshape(canvas.sign.shape)
    return cover, ((cover > 0) != (canvas.sign > 0)) & (canvas.sign != 0)


def _best_overlap(large: NDArray[np.bool_], small: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Most pixels that two features share at any offset of the second, and that offset."""
    _, h, w = large.shape
    board = np.zeros((large.shape[0], 3 * h, 3 * w), np.float32)
    board[:, h : 2 * h, w : 2 * w] = large
    views = np.lib.stride_tricks.sliding_window_view(board, small.shape)[0]
    shared = np.einsum("ijahw,ahw->ij", views, small.astype(np.float32))
    i, j = (int(k) for k in np.unravel_index(int(shared.argmax()), shared.shape))
    return int(shared[i, j]), i - h, j - w
