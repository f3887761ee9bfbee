"""Coordinate-wise improvement of a solution: placements given features, and the reverse."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from hcnet.archive import kinds
from hcnet.archive.kinds import Kind
from hcnet.engine.driver import look
from hcnet.images import BoolArray
from hcnet.objective import Counts, Priors, code_length, estimate
from hcnet.solutions import kernels
from hcnet.solutions.explanation import (
    NOWHERE,
    Canvas,
    Explanation,
    Feature,
    IntArray,
    concatenate_candidates,
    concatenate_offsets,
)

# While a proposal is worked out, errors must stay affordable, or nothing could ever change.
LEAST_NOISE = 0.01
# Share of a feature's pixels that must fit where it is to take the place of several others.
WELL = 0.7


class Improver:
    """Works proposals out: placements given features, features given placements, in turn."""

    def __init__(self, canvas: Canvas, priors: Priors) -> None:
        self.canvas = canvas
        self.priors = priors
        self.ratio = 1.0
        if priors.p01 is not None and priors.p10 is not None:
            noise = priors.noise
            self.ratio = -noise.k0 / noise.k1
        self._sign = canvas.sign.reshape(-1)

    def feature(self, weights: NDArray[np.generic]) -> Feature:
        """A feature with these weights (channels, height, width), on this canvas."""
        return Feature(self.canvas, np.ascontiguousarray(weights, dtype=np.bool_), self.ratio)

    def evaluate(
        self, features: Sequence[Feature], placements: IntArray, prune: bool = True
    ) -> Explanation:
        """Count the cost; features that are not used are dropped first, unless told not to."""
        look()
        used = np.full(len(features), not prune)
        used[placements[:, 1]] = True
        if prune:
            used &= np.array([feature.offsets.size > 0 for feature in features], dtype=bool)
        kept = tuple(f for f, u in zip(features, used, strict=True) if u)
        placements = placements[used[placements[:, 1]]].copy()
        placements[:, 1] = (np.cumsum(used) - 1)[placements[:, 1]]
        cover = kernels.make_cover(
            placements, *concatenate_offsets(kept), self.canvas.geometry, self._sign.size
        )
        layer, covered = self.canvas.layer, cover > 0
        hit, missed, false, empty = (
            int(np.count_nonzero(pixels & side))
            for pixels in (self._sign > 0, self._sign < 0)
            for side in (covered, ~covered)
        )
        counts = Counts(
            placed=len(placements),
            positions=len(kept) * layer.n_positions * self.canvas.n_images,
            weights_on=sum(feature.offsets.size for feature in kept),
            weights=len(kept) * layer.feature_pixels,
            hit=hit,
            missed=missed,
            false=false,
            empty=empty,
        )
        return Explanation(kept, placements, cover, counts, code_length(counts, self.priors))

    def tolerant(self, now: Explanation) -> Priors:
        """The priors that fit a solution, with errors cheap enough for it to change."""
        return estimate(now.counts, self.priors, LEAST_NOISE)

    def improve(
        self,
        features: Sequence[Feature],
        placements: IntArray,
        now: Explanation,
        rng: np.random.Generator,
        rounds: int = 3,
    ) -> Explanation:
        """Alternate placements and weights; return the best of all rounds.

        The first round assumes the error rate and the densities of the present solution `now`.
        The placements given stay unless others do better (none: from scratch).  Features that
        `now` does not have may take the place of several placements at a time.  No more rounds
        follow where they cannot be expected to lead to a shorter code than that of `now`.
        """
        priors = self.tolerant(now)
        best: Explanation | None = None
        # A round gains less than the one before.  The first of a new feature is not known; few that
        # lack more than its weights cost twice come to anything.
        gained = now.feature_bits if len(features) > len(now.features) else math.inf
        for _ in range(rounds):
            placements = self.place(features, placements, priors, rng, now=now, near=best is None)
            fitted = self.fit_weights(features, placements, priors)
            found = self.evaluate(fitted, placements)
            if best is not None:
                gained = best.bits - found.bits
                if gained < 1e-6:
                    break
            best = found
            lacking = best.bits - now.bits
            if abs(lacking) < 1e-6 or lacking > 2 * gained:
                break
            features, placements = self.recentre(found.features, found.placements)
            priors = estimate(found.counts, self.priors)
        assert best is not None
        return best

    def place(
        self,
        features: Sequence[Feature],
        placements: IntArray,
        priors: Priors,
        rng: np.random.Generator,
        exchanges: int = 2,
        now: Explanation | None = None,
        near: bool = False,
    ) -> IntArray:
        """Placements given the features: add greedily, then exchange one at a time.

        With a present solution `now`, features that it does not have take the places of others in
        between, where one does for several.  With `near`, placements are exchanged only near
        those that differ from `now`, if features do.
        """
        if not features:
            return NOWHERE
        assert priors.p_S is not None
        k1, k0 = priors.noise.k1, -priors.noise.k0
        cost = -float(logit(priors.p_S))
        geometry = self.canvas.geometry
        offsets, starts = concatenate_offsets(features)
        model = offsets, starts, geometry, k1, k0, cost
        cover = kernels.make_cover(placements, offsets, starts, geometry, self._sign.size)
        positions, fits, owned, begin, best = concatenate_candidates(features)
        added = kernels.place_greedily(self._sign, cover, positions, fits, owned, model)
        placements = np.concatenate([placements, added])
        changed, last_turn = np.zeros(len(best), np.int64), 0
        if now is not None and len(placements):
            fresh = [f for f, feature in enumerate(features) if feature not in now.features]
            good = _promising(features, fresh, owned, 2 * cost / k1)
            owners = np.searchsorted(owned, good, side="right") - 1
            placements = kernels.supplant(
                self._sign, cover, placements, positions[good], owners, model
            )
            if near and tuple(features) != now.features:
                last_turn = 1
                i, r, c = kernels.locate.py_func(positions[good], geometry)
                corners = i * geometry[0] + r * geometry[1] + c
                changed[self.canvas.tiles(corners)] = 1
                changed[self.canvas.tiles(np.flatnonzero(cover != now.cover))] = 1
        visited = np.full(len(placements), last_turn)
        tiled = positions, fits, begin, best
        for _ in range(exchanges):
            turn = rng.permutation(len(placements))
            keep, changes = kernels.exchange(
                self._sign, cover, placements, turn, tiled, visited, changed, model
            )
            placements, visited = placements[keep], visited[keep]
            if not changes:
                break
        return placements

    def weight_gains(self, now: Explanation, f: int) -> NDArray[np.float64]:
        """What each weight of a feature gains by being on, given all else.

        (channels, 3 h - 2, 3 w - 2): those of its window are in the middle, the others are those
        that it could have instead if its window lay elsewhere.
        """
        priors = estimate(now.counts, self.priors)
        assert priors.p_W is not None
        mine = now.placements[now.placements[:, 1] == f]
        W = now.features[f].weights.astype(np.int8)
        on, off = kernels.count_votes(self._sign, now.cover, W, mine, self.canvas.geometry)
        noise = priors.noise
        return np.asarray(noise.k1 * on + noise.k0 * off + float(logit(priors.p_W)))

    def fit_weights(
        self,
        features: Sequence[Feature],
        placements: IntArray,
        priors: Priors,
        frozen: int | None = None,
    ) -> list[Feature]:
        """Weights given the placements; the weights of feature `frozen` stay as they are."""
        if not features:
            return []
        assert priors.p_W is not None
        W = np.stack([feature.weights for feature in features]).astype(np.int8)
        cover = kernels.make_cover(
            placements, *concatenate_offsets(features), self.canvas.geometry, self._sign.size
        )
        if frozen is not None:
            # A feature without placements keeps its weights; what it covers still counts.
            placements = placements[placements[:, 1] != frozen]
        evidence = priors.noise.k1, -priors.noise.k0, float(logit(priors.p_W))
        touched = kernels.fit_weights(
            self._sign, cover, W, placements, self.canvas.geometry, *evidence, 3
        )
        return [self.feature(W[f]) if touched[f] else feature for f, feature in enumerate(features)]

    def centred(self, found: Explanation) -> Explanation:
        """The same with all features in the middle of their windows.

        Where a part lies in its window changes nothing else, and would be a matter of chance.
        """
        return self.evaluate(*self.recentre(found.features, found.placements))

    def recentre(
        self, features: Sequence[Feature], placements: IntArray
    ) -> tuple[list[Feature], IntArray]:
        """Move features to the middle of their windows, so that they can grow on all sides."""
        centred = list(features)
        placements = placements.copy()
        h, w = self.canvas.layer.feature_size
        inside = np.ones(len(placements), bool)
        for f, feature in enumerate(features):
            top, bottom, left, right = feature.box
            dr = (h - (bottom - top + 1)) // 2 - top
            dc = (w - (right - left + 1)) // 2 - left
            if dr or dc:
                mine = placements[:, 1] == f
                moved = placements[mine] - [0, 0, dr, dc]
                fits = self.canvas.inside(moved)
                if not fits.all() and self.canvas.layer.border == "valid":
                    continue
                placements[mine], inside[mine] = moved, fits
                centred[f] = self.feature(np.roll(feature.weights, (dr, dc), (1, 2)))
        return centred, placements[inside]

    @property
    def explanation_kind(self) -> Kind:
        """Explanations in files: features and placements; their cost follows from these."""
        layer = self.canvas.layer
        shape = layer.n_channels, *layer.feature_size

        def to_file(found: Explanation) -> tuple[BoolArray, IntArray]:
            W = found.weights() if found.features else np.zeros((0, *shape), bool)
            return W, found.placements

        def from_file(stored: tuple[BoolArray, IntArray]) -> Explanation:
            W, placements = stored
            ends = (self.canvas.n_images, len(W), *layer.placement_size)
            if (placements >= ends).any():
                raise ValueError("its placements lie outside the images")
            return self.evaluate([self.feature(w) for w in W], placements, prune=False)

        placements = kinds.array(np.int64, (None, 4), least=0)
        pair = kinds.each_of([kinds.binary_array((None, *shape)), placements])
        return kinds.converted(pair, to_file, from_file)


def _promising(
    features: Sequence[Feature], which: Sequence[int], owned: IntArray, least: float
) -> IntArray:
    """Candidates of some features that fit well, and better than `least`, the best first.

    Candidates are counted through all features; those of feature f begin at ``owned[f]``.
    """
    good, how_well = [np.empty(0, np.int64)], [np.empty(0)]
    for f in which:
        fits = features[f].candidates.fits
        mine = np.flatnonzero(fits > max(least, WELL * features[f].offsets.size))
        good.append(mine + owned[f])
        how_well.append(fits[mine])
    order = np.argsort(-np.concatenate(how_well), kind="stable")
    return np.asarray(np.concatenate(good)[order])
