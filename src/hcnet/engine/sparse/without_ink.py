"""Trees with evidence against their pixel."""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.engine.cpu_compilation import compiled, inlined, larger
from hcnet.engine.runs import highest
from hcnet.engine.sparse.state import LANES, NEVER
from hcnet.factors import HUGE

_and_down, _and_up, _or_up = compiled.and_down, compiled.and_up, compiled.or_up
_or_cap, _or_share, _or_answers = compiled.or_cap, compiled.or_share, compiled.or_answers

# Of the listed leaves, one in so many may have changed, or all are looked at.
SEVERAL = 4


@inlined
def _tell_listed(
    first: Any,
    last: Any,
    up: Any,
    field: Any,
    at: Any,
    own: Any,
    here: Any,
    said: Any,
    lists: Any,
    scratch: Any,
) -> None:
    """Messages to the field about some listed leaves that all hear `up`."""
    for e in range(first, last):
        old, new = said.to_field[own + e], _and_up(lists.belief[here + e], up)
        said.to_field[own + e] = new
        scratch.change[e] = new - old
    for e in range(first, last):
        field[at + lists.step[here + e]] += scratch.change[e]


@inlined
def _sort(m: Any, scratch: Any) -> None:
    """Who is on, in the order of the leaves; they are few."""
    for last in range(1, m):
        leaf, s, top = scratch.leaves[last], scratch.heard[last], scratch.tops[last]
        z = last
        while z > 0 and scratch.leaves[z - 1] > leaf:
            scratch.leaves[z] = scratch.leaves[z - 1]
            scratch.heard[z], scratch.tops[z] = scratch.heard[z - 1], scratch.tops[z - 1]
            z -= 1
        scratch.leaves[z], scratch.heard[z], scratch.tops[z] = leaf, s, top


@inlined
def _sum_of_shares(m: Any, cap: Any, shape: Any, scratch: Any) -> Any:
    """Sum of `or_share` over some tops of an OR, in the order in which the dense engine has it."""
    whole = shape.leaves - shape.leaves % LANES
    for lane in range(LANES):
        scratch.lanes[lane] = 0
    for z in range(m):
        leaf = scratch.leaves[z]
        lane = leaf % LANES if leaf < whole else 0
        scratch.lanes[lane] += _or_share(scratch.tops[z], cap)
    a, b, c, d = scratch.lanes[0], scratch.lanes[1], scratch.lanes[2], scratch.lanes[3]
    e, f, g, h = scratch.lanes[4], scratch.lanes[5], scratch.lanes[6], scratch.lanes[7]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@inlined
def without_ink(
    k: Any,
    b: Any,
    at: Any,
    row: Any,
    m_old: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    said: Any,
    lists: Any,
    scratch: Any,
) -> Any:
    """A tree with evidence against its pixel; the length of the list of what it tells the kernel.

    It tells the field about listed leaves only: whoever is on in the kernel is listed.
    """
    here, own = row * shape.leaves, k * shape.leaves
    n_old, n_now = np.int64(said.told[k]), lists.n[row]
    for e in range(n_old, n_now):
        said.to_field[own + e] = 0
    said.told[k] = n_now
    # Who is on in the field?  First listed leaves, of whom the tree has said no less than b, then
    # others, of whom it has said nothing.
    likeliest: Any = np.float32(-HUGE)
    for i in range(shape.rows):
        scratch.best[i] = highest(field, at + i * shape.row, shape.run)
        likeliest = larger(likeliest, scratch.best[i])
    if likeliest > b:
        for e in range(n_now):
            scratch.cavity[e] = field[at + lists.step[here + e]] - said.to_field[own + e]
    m: Any = np.int64(0)
    first = np.float32(-HUGE)
    if likeliest > b and highest(scratch.cavity, 0, n_now) > 0:
        for e in range(n_now):
            s = scratch.cavity[e]
            if s > 0:
                leaf = np.int64(lists.leaf[here + e])
                top = _and_down(s, kernel[here + leaf])
                scratch.heard[m], scratch.leaves[m], scratch.tops[m] = s, leaf, top
                first = larger(first, top)
                m += 1
    for i in range(shape.rows):
        if scratch.best[i] > 0:
            for x in range(shape.run):
                s, leaf = field[at + i * shape.row + x], i * shape.run + x
                if s > 0 and lists.place[here + leaf] < 0:
                    scratch.heard[m], scratch.leaves[m] = s, leaf
                    scratch.tops[m] = _and_down(s, kernel[here + leaf])
                    m += 1
    alike, n_changed = b, lists.n_changed[row]
    since, stamp = n_changed - said.seen[k], n_changed
    if first > 0:
        # Who is on in both contradicts the evidence, and hears of the others that do.
        cap = _or_cap(b)
        _sort(m, scratch)
        total = _sum_of_shares(m, cap, shape, scratch)
        alike, stamp = _or_up(b, total, first), NEVER
        for z in range(m):
            place = np.int64(lists.place[here + scratch.leaves[z]])
            if place >= 0:
                scratch.before[z] = field[at + lists.step[here + place]]
                scratch.was[z] = said.to_field[own + place]
        _or_answers(b, scratch.tops, m, total, cap, first)
    said.seen[k] = stamp
    if first > 0 or since > n_now // SEVERAL:
        _tell_listed(0, n_now, alike, field, at, own, here, said, lists, scratch)
    else:
        for z in range(n_changed - since, n_changed):
            place = np.int64(lists.changed[here + z % shape.leaves])
            _tell_listed(place, place + 1, alike, field, at, own, here, said, lists, scratch)
        _tell_listed(n_old, n_now, alike, field, at, own, here, said, lists, scratch)
        for z in range(m_old):
            place = np.int64(lists.place[here + scratch.old_leaves[z]])
            if place >= 0:
                _tell_listed(place, place + 1, alike, field, at, own, here, said, lists, scratch)
    for z in range(m):
        up = b
        if first > 0:
            up = scratch.tops[z]
            place = np.int64(lists.place[here + scratch.leaves[z]])
            if place >= 0 and up != alike:
                new = _and_up(kernel[here + scratch.leaves[z]], up)
                field[at + lists.step[here + place]] = scratch.before[z] + (new - scratch.was[z])
                said.to_field[own + place] = new
        scratch.values[z] = _and_up(scratch.heard[z], up)
    return m
