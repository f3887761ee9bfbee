"""The symbols of a document and which copy is an instance of which, chosen by price."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hcnet.codec.jbig2.bitmaps import Dictionary, together
from hcnet.codec.jbig2.copies import Copies
from hcnet.codec.jbig2.framing import framed
from hcnet.codec.jbig2.ordering import families_of, ordered
from hcnet.codec.jbig2.prices import Floats, Prices, Symbol
from hcnet.codec.jbig2.variants import DIRECT, VARIANT, Part
from hcnet.soft.channel import Table
from hcnet.soft.pieces import IntArray

# Bits of an instance besides its name and pixels: its step to the right and its row.
PLACE = 8.0
# Rounds of dividing parts, each with the prices of the one before, and of dropping symbols.
ROUNDS, DROPS = 2, 8
# So many copies tell the symbols of a part; this bounds memory for long documents.
MOST = 2000


@dataclass(frozen=True, eq=False)
class Chosen:
    """Symbols, and the number of the symbol of each copy (-1: its ink is coded as any other)."""

    symbols: list[Symbol]
    given: IntArray  # as in Dictionary
    owner: IntArray

    @property
    def dictionary(self) -> Dictionary:
        """The symbols as a dictionary."""
        return Dictionary(together(s.bitmap for s in self.symbols), self.given)


def choose(copies: Copies, cost_alone: Table) -> Chosen:
    """The symbols that make the bits fewest."""
    by_part = np.argsort(copies.part, kind="stable")
    _, first = np.unique(copies.part[by_part], return_index=True)
    groups = np.split(by_part, first[1:])
    parts = [Part(copies, members[:: -(-len(members) // MOST)]) for members in groups]
    prices = Prices(copies, cost_alone)
    some = [part.majority(np.arange(len(part.members))) for part in parts]
    for _ in range(ROUNDS):
        prices.learn(some)
        some = [symbol for part in parts for symbol in part.divided(prices)]
    prices.learn(some)
    some, owner = _assigned(some, copies, prices)
    if not some:
        return Chosen([], np.zeros((0, 3), np.int64), owner)
    some = framed(some, owner, copies)
    order, given = ordered(some, prices)
    number = np.full(len(some) + 1, -1)
    number[order] = np.arange(len(order))
    return Chosen([some[k] for k in order], given, number[owner])


def _assigned(some: list[Symbol], copies: Copies, prices: Prices) -> tuple[list[Symbol], IntArray]:
    """Symbols that pay, and the number of the symbol that each copy costs least with."""
    families = families_of(some)
    pairs = [np.zeros((0, 2), np.int64)]
    for family in families:
        members = np.flatnonzero(copies.part == some[family[0]].part)
        pairs.append(np.stack(np.meshgrid(members, family), axis=-1).reshape(-1, 2))
    copy, symbol = np.concatenate(pairs).T
    bits = prices.of_copies(copy, some, symbol)
    cost = _costs(some, families, prices)
    n = np.array([len(s.members) for s in some])
    alive = np.ones(len(some), bool)
    for left in reversed(range(DROPS + 1)):
        names = np.where(alive, np.log2(len(copies.page) / np.maximum(n, 1)), np.inf)
        price = bits + names[symbol] + PLACE
        owner, least = _cheapest(copy, symbol, price, copies.alone)
        n = np.bincount(owner[owner >= 0], minlength=len(some))
        # What a symbol saves is against the second choice of its copies.
        mine = owner[copy] == symbol
        second = copies.alone.copy()
        np.minimum.at(second, copy[~mine], price[~mine])
        saved = np.bincount(owner[owner >= 0], (second - least)[owner >= 0], len(some)) - cost
        worst = [family[np.argmin(np.where(alive, saved, 0)[family])] for family in families]
        gone = [k for k in worst if alive[k] and saved[k] < 0]
        if not (gone and left):
            break
        alive[gone] = False
    used, number = np.unique(owner[owner >= 0], return_inverse=True)
    owner[owner >= 0] = number
    kept = [
        replace(some[k], members=np.flatnonzero(owner == new))
        for new, k in enumerate(used.tolist())
    ]
    return kept, owner


def _cheapest(
    copy: IntArray, symbol: IntArray, price: Floats, alone: Floats
) -> tuple[IntArray, Floats]:
    """The symbol of the lowest price for each copy, or -1 if it costs less by itself; its price."""
    least, owner = alone.copy(), np.full(len(alone), -1)
    order = np.lexsort((price, copy))
    which, first = np.unique(copy[order], return_index=True)
    best = order[first]
    pays = price[best] < alone[which]
    least[which[pays]], owner[which[pays]] = price[best[pays]], symbol[best[pays]]
    return owner, least


def _costs(some: list[Symbol], families: list[IntArray], prices: Prices) -> Floats:
    """Bits of each symbol, by itself or given the cheapest other one of its part."""
    cost = prices.alone(some) + DIRECT
    for family in families:
        for k in family.tolist():
            others = [some[j] for j in family.tolist() if j != k]
            if others:
                cost[k] = min(cost[k], prices.of_symbols(some[k], others).min() + VARIANT)
    return cost
