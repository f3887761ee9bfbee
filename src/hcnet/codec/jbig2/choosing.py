"""The symbols of a dictionary, chosen by price."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.jbig2 import pricing, regions, symbols
from hcnet.codec.jbig2.bitmaps import Bitmaps, Dictionary, together
from hcnet.codec.jbig2.copies import Copies
from hcnet.images import BoolArray
from hcnet.soft import coding
from hcnet.soft.channel import Table
from hcnet.soft.pieces import IntArray, smallest_box

OPTIONS = [dict(margin=0, split=False), dict(margin=1, split=False), dict(margin=0), dict(margin=1)]
FLOATS = NDArray[np.float64]
# Bits of an instance besides its name and pixels: its step to the right and its row.
PLACE = 9.0
# Bits of a symbol besides its pixels: steps of height and width; of a variant also its reference.
DIRECT, VARIANT = 10.0, 22.0


@dataclass(eq=False)
class Symbol:
    bitmap: NDArray[np.uint8]
    origin: IntArray  # its corner on the canvas of the part
    part: int
    members: IntArray  # copies


class Prices:
    def __init__(self, copies: Copies, cost_alone: Table, template: int = 0) -> None:
        self.copies, self.cost_alone = copies, cost_alone
        self.own = regions.as_array(regions.OWN[template])
        self.others = regions.as_array(regions.REFERENCE[template])
        n = 1 << (len(self.own) + len(self.others))
        self.cost = np.ones((n, 2))

    def refined(self, some: list[Symbol], pairs: IntArray, learn: bool = False) -> FLOATS:
        """pairs of copy, symbol"""
        place = self.copies.place[pairs[:, 0]] - np.array([s.origin for s in some])[pairs[:, 1]]
        return self._bits(some, self.copies.bitmaps, np.column_stack([pairs, place]), learn)

    def variants(self, some: list[Symbol], others: list[Symbol], pairs: IntArray) -> FLOATS:
        a, b = np.array([s.origin for s in some]), np.array([s.origin for s in others])
        place = a[pairs[:, 0]] - b[pairs[:, 1]]
        return self._bits(
            others, together(s.bitmap for s in some), np.column_stack([pairs, place]), False
        )

    def _bits(self, some: list[Symbol], copies: Bitmaps, pairs: IntArray, learn: bool) -> FLOATS:
        bitmaps = together(s.bitmap for s in some)
        most = [
            int(a.max(initial=0) + b.max(initial=0))
            for a, b in ((bitmaps.height, copies.height), (bitmaps.width, copies.width))
        ]
        boards = np.zeros((2, symbols.room(*most)), np.uint8)
        counts = np.zeros((len(self.cost) if learn else 0, 2))
        bits = pricing.refined_bits(
            pairs, bitmaps.arrays, copies.arrays, self.own, self.others, self.cost, counts, boards
        )
        if learn:
            p = (counts[:, 1] + 0.4) / (counts.sum(axis=1) + 0.8)
            p = np.clip(p, 2e-4, 1 - 2e-4)
            self.cost = -np.log2(np.stack([1 - p, p], axis=1))
        return np.asarray(bits)

    def alone(self, some: list[Symbol]) -> FLOATS:
        b = together(s.bitmap for s in some)
        return np.asarray(
            coding.template_bits((*b.arrays, np.zeros((len(b), 2), np.int64)), self.cost_alone)
        )


class Part:
    """copies of a part on a common board"""

    def __init__(self, copies: Copies, part: int, members: IntArray, margin: int) -> None:
        self.part, self.members, self.margin = part, members, margin
        b = copies.bitmaps
        low = copies.place[members]
        high = low + np.stack([b.height, b.width], axis=1)[members]
        self.low = low.min(axis=0) - margin
        H, W = high.max(axis=0) - self.low + margin
        self.stack = np.zeros((len(members), H, W), np.uint8)
        for j, (i, (y, x)) in enumerate(zip(members.tolist(), (low - self.low).tolist())):
            own = b[i]
            self.stack[j, y : y + own.shape[0], x : x + own.shape[1]] = own

    def symbol(self, rows: IntArray, pixels: NDArray) -> Symbol:
        top, bottom, left, right = smallest_box(pixels)
        m = self.margin
        H, W = pixels.shape
        top, left, bottom, right = max(top - m, 0), max(left - m, 0), min(bottom + m, H), min(right + m, W)
        return Symbol(
            pixels[top:bottom, left:right].astype(np.uint8),
            self.low + (top, left),
            self.part,
            self.members[rows],
        )

    def majority(self, rows: IntArray) -> Symbol:
        return self.symbol(rows, 2 * self.stack[rows].sum(axis=0, dtype=np.int64) > len(rows))

    def halves(self, rows: IntArray) -> list[tuple[IntArray, IntArray]]:
        flat = self.stack[rows].reshape(len(rows), -1).astype(np.float32)
        centre = (flat.mean(axis=0) > 0.5).astype(np.float32)
        starts = []
        away = np.abs(flat - centre).sum(axis=1)
        starts.append(np.abs(flat - flat[np.argmax(away)]).sum(axis=1) < away)
        d = flat - flat.mean(axis=0)
        gram = d @ d.T
        v = np.linalg.eigh(gram)[1][:, -1]
        starts.append(v > 0)
        out = []
        for which in starts:
            for _ in range(8):
                if which.all() or not which.any():
                    break
                a = (flat[which].mean(axis=0) > 0.5).astype(np.float32)
                b = (flat[~which].mean(axis=0) > 0.5).astype(np.float32)
                new = np.abs(flat - a).sum(axis=1) < np.abs(flat - b).sum(axis=1)
                if (new == which).all():
                    break
                which = new
            if not which.all() and which.any():
                out.append((rows[which], rows[~which]))
        return out


@dataclass(eq=False)
class Chosen:
    dictionary: Dictionary
    symbols: list[Symbol]
    copies: Copies
    owner: IntArray  # number of symbol of each copy, -1 none
    sizes: list[tuple[int, int]]

    def instances(self, page: int) -> tuple[IntArray, Bitmaps]:
        rows, bitmaps = [], []
        c = self.copies
        H, W = self.sizes[page]
        for i in np.flatnonzero((c.page == page) & (self.owner >= 0)).tolist():
            k = int(self.owner[i])
            s = self.symbols[k]
            own = c.bitmaps[i]
            y, x = (c.corner[i] - c.place[i] + s.origin).tolist()  # of the symbol on the page
            h, w = s.bitmap.shape
            v, u = c.corner[i].tolist()
            top, left = max(min(y, v), 0), max(min(x, u), 0)
            bottom = min(max(y + h, v + own.shape[0]), H)
            right = min(max(x + w, u + own.shape[1]), W)
            canvas = np.zeros((bottom - top, right - left), np.uint8)
            canvas[v - top : v - top + own.shape[0], u - left : u - left + own.shape[1]] = own
            exact = canvas.shape == s.bitmap.shape and (canvas == s.bitmap).all()
            rows.append((bottom - 1, left, k, -1 if exact else len(bitmaps), y - top, x - left))
            if not exact:
                bitmaps.append(canvas)
        return np.array(rows, np.int64).reshape(-1, 6), together(bitmaps)

    def drawn(self, page: int, shape: tuple[int, int]) -> BoolArray:
        board = np.zeros(shape, bool)
        c = self.copies
        for i in np.flatnonzero((c.page == page) & (self.owner >= 0)).tolist():
            own = c.bitmaps[i]
            y, x = c.corner[i].tolist()
            board[y : y + own.shape[0], x : x + own.shape[1]] |= own > 0
        return board


def choose(copies, cost_alone, sizes, margin=1, split=True, template=0, best=True, rounds=2, PL=PLACE, slack=0.0):
    prices = Prices(copies, cost_alone, template)
    members = [np.flatnonzero(copies.part == k) for k in np.unique(copies.part)]
    parts = [Part(copies, int(copies.part[m[0]]), m, margin) for m in members]
    some = [p.majority(np.arange(len(p.members))) for p in parts]
    prices.refined(some, _pairs(some), learn=True)
    N = len(copies.page)
    if split:
        for _ in range(rounds):
            some = []
            for p in parts:
                some += _split(p, prices, slack)
            prices.refined(some, _pairs(some), learn=True)
    if best:
        some = [_best(p, s, prices) for s in some for p in [parts_of(parts, s)]]
    # who
    some, owner = _assign(some, copies, prices, N, PL)
    some, owner, given = _order(some, owner, prices)
    dictionary = Dictionary(together(s.bitmap for s in some), given)
    return Chosen(dictionary, some, copies, owner, sizes)


def parts_of(parts, s):
    return next(p for p in parts if p.part == s.part)


def _pairs(some):
    return np.concatenate(
        [np.zeros((0, 2), np.int64)] + [np.column_stack([s.members, np.full(len(s.members), k)]) for k, s in enumerate(some)]
    )


def _own(prices, s):
    return float(prices.refined([s], np.column_stack([s.members, np.zeros(len(s.members), np.int64)])).sum())


def _nlogn(n):
    return n * math.log2(n) if n > 1 else 0.0


def _split(p, prices, slack=0.0):
    todo = [p.majority(np.arange(len(p.members)))]
    rows = [np.arange(len(p.members))]
    done = []
    while todo:
        s, r = todo.pop(), rows.pop()
        if len(r) < 2:
            done.append(s)
            continue
        now = _own(prices, s)
        options = []
        for a, b in p.halves(r):
            sa, sb = p.majority(a), p.majority(b)
            then = _own(prices, sa) + _own(prices, sb) + VARIANT
            then += float(prices.variants([sb], [sa], np.zeros((1, 2), np.int64))[0])
            then += _nlogn(len(r)) - _nlogn(len(a)) - _nlogn(len(b))
            options.append((then, a, b, sa, sb))
        if options:
            then, a, b, sa, sb = min(options, key=lambda o: o[0])
            if then < now - slack:
                todo += [sa, sb]
                rows += [a, b]
                continue
        done.append(s)
    return done


def _best(p, s, prices):
    """majority or one of the copies"""
    rows = np.searchsorted(p.members, s.members)
    base = _own(prices, s)
    best, value = s, base + prices.alone([s])[0] * 0.5
    d = (p.stack[rows] != (2 * p.stack[rows].sum(axis=0, dtype=np.int64) > len(rows))).sum(axis=(1, 2))
    for j in np.argsort(d, kind="stable")[:3]:
        t = p.symbol(rows, p.stack[rows[j]])
        each = prices.refined([t], np.column_stack([t.members, np.zeros(len(t.members), np.int64)]))
        then = each.sum() - each[j] + prices.alone([t])[0] * 0.5
        if then < value:
            best, value = t, then
    return best


def _assign(some, copies, prices, N, PL):
    family = {}
    for k, s in enumerate(some):
        family.setdefault(s.part, []).append(k)
    pairs = np.concatenate(
        [np.column_stack([np.repeat(np.flatnonzero(copies.part == part), len(ks)), np.tile(ks, (copies.part == part).sum())]) for part, ks in family.items()]
    )
    bits = prices.refined(some, pairs)
    alive = np.ones(len(some), bool)
    n = np.array([max(len(s.members), 1) for s in some], float)
    symcost = np.minimum(prices.alone(some) + DIRECT, 1e9)
    for k, s in enumerate(some):
        others = [j for j in family[s.part] if j != k]
        if others:
            v = prices.variants([s], [some[j] for j in others], np.column_stack([np.zeros(len(others), np.int64), np.arange(len(others))]))
            symcost[k] = min(symcost[k], v.min() + VARIANT)
    for _ in range(4):
        price = bits + np.log2(N / n)[pairs[:, 1]] + PL
        price[~alive[pairs[:, 1]]] = np.inf
        best = copies.alone.copy()
        owner = np.full(N, -1)
        order = np.lexsort((price, pairs[:, 0]))
        first = order[np.unique(pairs[order, 0], return_index=True)[1]]
        i = pairs[first, 0]
        better = price[first] < best[i]
        owner[i[better]] = pairs[first, 1][better]
        n = np.bincount(owner[owner >= 0], minlength=len(some)).astype(float)
        # what each symbol saves against the second choice
        second = copies.alone.copy()
        is_own = owner[pairs[:, 0]] == pairs[:, 1]
        np.minimum.at(second, pairs[~is_own, 0], price[~is_own])
        mine = np.flatnonzero(is_own)
        saved = np.bincount(pairs[mine, 1], (second[pairs[mine, 0]] - price[mine]), len(some))
        bad = alive & (saved < symcost)
        # at most one of a family at a time
        drop = []
        for part, ks in family.items():
            w = [k for k in ks if bad[k]]
            if w:
                drop.append(min(w, key=lambda k: saved[k] - symcost[k]))
        alive[drop] = False
        n = np.maximum(n, 1)
        if not drop:
            break
    price = bits + np.log2(N / n)[pairs[:, 1]] + PL
    price[~alive[pairs[:, 1]]] = np.inf
    order = np.lexsort((price, pairs[:, 0]))
    first = order[np.unique(pairs[order, 0], return_index=True)[1]]
    owner = np.full(N, -1)
    i = pairs[first, 0]
    better = price[first] < copies.alone[i]
    owner[i[better]] = pairs[first, 1][better]
    used = np.unique(owner[owner >= 0])
    number = np.full(len(some) + 1, -1)
    number[used] = np.arange(len(used))
    owner = number[owner]
    out = [some[k] for k in used]
    for k, s in enumerate(out):
        s.members = np.flatnonzero(owner == k)
    return out, owner


def _order(some, owner, prices):
    """Which symbols are coded by themselves, and given which others."""
    family = {}
    for k, s in enumerate(some):
        family.setdefault(s.part, []).append(k)
    alone = prices.alone(some) + DIRECT
    direct, variants, given = [], [], {}
    for part, ks in family.items():
        m = len(ks)
        grid = np.stack(np.meshgrid(np.arange(m), np.arange(m), indexing="ij"), -1).reshape(-1, 2)
        fam = [some[k] for k in ks]
        cost = prices.variants(fam, fam, grid).reshape(m, m) + VARIANT
        np.fill_diagonal(cost, np.inf)
        # root: that with the smallest sum
        root = int(np.argmin([alone[ks[r]] + np.sort(cost[:, r])[: m - 1].sum() for r in range(m)]))
        inside = [root]
        direct.append(ks[root])
        left = [j for j in range(m) if j != root]
        while left:
            sub = cost[np.ix_(left, inside)]
            a, b = np.unravel_index(np.argmin(sub), sub.shape)
            j = left.pop(a)
            variants.append(ks[j])
            given[ks[j]] = ks[inside[b]]
            inside.append(j)
    key = lambda k: (some[k].bitmap.shape, )
    direct.sort(key=key)
    # depth first: sorted by height, references must come earlier
    number = {}
    ordered = list(direct)
    for q, k in enumerate(direct):
        number[k] = q
    rest = sorted(variants, key=key)
    # a variant whose reference comes later in the order is given the root instead
    root_of = {some[k].part: k for k in direct}
    rows = []
    for k in rest:
        ref = given[k]
        if ref not in number:
            ref = root_of[some[k].part]
        place = some[ref].origin - some[k].origin
        rows.append((number[ref], *place.tolist()))
        number[k] = len(ordered)
        ordered.append(k)
    owner2 = np.full(len(some) + 1, -1)
    for k, q in number.items():
        owner2[k] = q
    return [some[k] for k in ordered], owner2[owner], np.array(rows, np.int64).reshape(-1, 3)
