"""Updates of trees most of whose messages are zero, compiled: the dense engine's, to the bit.

The OR of a pixel without ink tells its ANDs to stay off.  Then only a weight that is on passes
anything on to its placement, and only a placement that is on to its weight: such a tree looks at
the weights that have ever been on, which are *listed*, and at the placements that are on.

The OR of a pixel with ink that something explains has something to say to whoever explains it, and
nothing to all others.  Only ink that nothing explains talks to many.

Kernel, field and the leaves of a tree are those of `messages.Layout`.  S and W play the same part:
what is said of weights here goes for the kernel, what is said of placements for the field.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hcnet.engine.cpu_compilation import compiled, entry, inlined, larger, pointer, prefetch
from hcnet.factors import HUGE

_and_down, _and_up, _or_up = compiled.and_down, compiled.and_up, compiled.or_up
_or_cap, _or_share, _or_answers = compiled.or_cap, compiled.or_share, compiled.or_answers
_smaller = compiled.smaller

# What a tree with ink has told the field: nothing, something to all leaves, or to one of them, and
# then it is the number of that leaf, plus one.  One without ink has told so many of the listed
# leaves something, or nothing.
NOTHING, ALL = 0, -1
# When a tree has last looked that must look at everything.
NEVER = -(2**62)
# Of the listed leaves, one in so many may have changed, or all are looked at.
SEVERAL = 4
# Sums that the dense engine has side by side, to be added up in its order.
LANES = 8


class Shape(NamedTuple):
    """Sizes that are the same for all trees: of the field, and of the leaves of a tree."""

    height: int
    row: int  # numbers in a row of the field
    features: int
    rows: int
    run: int  # leaves in a row
    leaves: int
    short: int  # of what is told to the kernel, the longest list


class Said(NamedTuple):
    """What every tree has said; in compiled code pointers instead of arrays."""

    to_field: Any  # float32 (trees + 1, leaves): the last row is 0
    told: Any  # int32 (trees,): to whom in the field
    seen: Any  # int64 (trees,): how many had changed in the row of the kernel
    counts: Any  # int32 (trees,): to how many in the kernel, or `ALL`
    whom: Any  # int32 (trees, short): to whom
    what: Any  # float32 (trees, short): and what
    to_kernel: Any  # float32 (trees, leaves): the same where it is no short list


class Lists(NamedTuple):
    """For each row of the kernel the leaves that have ever been on, and those that change."""

    leaf: Any  # uint32 (rows, leaves): which are listed
    step: Any  # uint32 (rows, leaves): from a tree's first leaf in the field to each of them
    place: Any  # int32 (rows, leaves): where each leaf is on the list, or -1
    belief: Any  # float32 (rows, leaves): of each of them, beside that in the kernel
    n: Any  # int64 (rows,)
    changed: Any  # uint32 (rows, leaves): places of the last that changed, in turns
    n_changed: Any  # int64 (rows,): how many ever have


class Scratch(NamedTuple):
    """Space for the work on a tree."""

    lanes: Any  # float32 (8,)
    best: Any  # float32 (rows,)
    heard: Any  # float32 (leaves,), as all below
    cavity: Any
    change: Any
    tops: Any
    before: Any
    was: Any
    old_values: Any
    values: Any
    kept: Any
    mark: Any
    old_leaves: Any  # int64
    leaves: Any  # int64


@inlined
def _set(leaf: Any, now: Any, here: Any, row: Any, shape: Any, kernel: Any, lists: Any) -> Any:
    """Another belief for a leaf of the kernel; where it is on the list, or -1.

    Whoever is on is put on the list of its row, for good.
    """
    kernel[here + leaf] = now
    e = np.int64(lists.place[here + leaf])
    if e < 0 and now > 0:
        e = lists.n[row]
        lists.leaf[here + e] = leaf
        lists.step[here + e] = leaf // shape.run * shape.row + leaf % shape.run
        lists.place[here + leaf] = e
        lists.n[row] = e + 1
    if e >= 0:
        lists.belief[here + e] = now
    return e


@inlined
def _change(
    leaf: Any, now: Any, here: Any, row: Any, shape: Any, kernel: Any, lists: Any, reach: Any
) -> None:
    """The same, written down if it can matter to trees without ink.

    They pass on no more than `reach` of it.
    """
    before = _smaller(larger(kernel[here + leaf], np.float32(0)), reach)
    e = _set(leaf, now, here, row, shape, kernel, lists)
    if e >= 0 and before != _smaller(larger(now, np.float32(0)), reach):
        n = lists.n_changed[row]
        lists.changed[here + n % shape.leaves] = e
        lists.n_changed[row] = n + 1


@inlined
def _recall(k: Any, shape: Any, said: Any, scratch: Any) -> Any:
    """What a tree has told the kernel, as a list; its length."""
    own, m = k * shape.leaves, np.int64(0)
    if said.counts[k] == ALL:
        for leaf in range(shape.leaves):
            if said.to_kernel[own + leaf] != 0:
                scratch.old_leaves[m] = leaf
                scratch.old_values[m] = said.to_kernel[own + leaf]
                m += 1
    else:
        m = np.int64(said.counts[k])
        for z in range(m):
            scratch.old_leaves[z] = said.whom[k * shape.short + z]
            scratch.old_values[z] = said.what[k * shape.short + z]
    return m


@inlined
def _remember(k: Any, m: Any, shape: Any, said: Any, scratch: Any) -> None:
    """Inverse of `_recall`, for new messages.  What is no short list is stored whole."""
    own = k * shape.leaves
    if m <= shape.short:
        for z in range(m):
            said.whom[k * shape.short + z] = scratch.leaves[z]
            said.what[k * shape.short + z] = scratch.values[z]
        said.counts[k] = m
    else:
        for leaf in range(shape.leaves):
            said.to_kernel[own + leaf] = 0
        for z in range(m):
            said.to_kernel[own + scratch.leaves[z]] = scratch.values[z]
        said.counts[k] = ALL


# Loops over a run of leaves.


@inlined
def _highest(field: Any, at: Any, n: Any) -> Any:
    """The largest belief of a run of the field."""
    first = np.float32(-HUGE)
    for j in range(n):
        first = larger(first, field[at + j])
    return first


@inlined
def _strongest(field: Any, at: Any, own: Any, own_at: Any, kernel: Any, w_at: Any, n: Any) -> Any:
    """The largest message from the ANDs of a run down to their OR."""
    first = np.float32(-HUGE)
    for j in range(n):
        first = larger(first, _and_down(field[at + j] - own[own_at + j], kernel[w_at + j]))
    return first


@inlined
def _winner(field: Any, at: Any, own: Any, own_at: Any, kernel: Any, w_at: Any, n: Any) -> Any:
    """Which leaf of a run sends the largest message, and the largest of the others."""
    winner = np.int64(0)
    first, second = np.float32(-2 * HUGE), np.float32(-2 * HUGE)
    for j in range(n):
        x = _and_down(field[at + j] - own[own_at + j], kernel[w_at + j])
        if x > first:
            first, second, winner = x, first, j
        else:
            second = larger(second, x)
    return winner, second


@inlined
def _tell(
    up: Any, field: Any, at: Any, own: Any, own_at: Any, kernel: Any, w_at: Any, n: Any
) -> None:
    """Messages to a run of the field whose leaves all hear `up` and were told nothing before."""
    for j in range(n):
        new = _and_up(kernel[w_at + j], up)
        own[own_at + j] = new
        field[at + j] += new


@inlined
def _tell_again(
    up: Any, field: Any, at: Any, own: Any, own_at: Any, kernel: Any, w_at: Any, n: Any
) -> None:
    """The same, where they were told something before."""
    for j in range(n):
        old = own[own_at + j]
        new = _and_up(kernel[w_at + j], up)
        own[own_at + j] = new
        field[at + j] += new - old


@inlined
def _take_back(field: Any, at: Any, own: Any, own_at: Any, n: Any) -> None:
    """Nothing is told to a run of the field any more."""
    for j in range(n):
        field[at + j] -= own[own_at + j]


@inlined
def _tell_listed(
    first: Any, last: Any, up: Any, field: Any, at: Any, own: Any, here: Any, said: Any, lists: Any, scratch: Any
) -> None:
    """Messages to the field about some listed leaves that all hear `up`."""
    for e in range(first, last):
        old, new = said.to_field[own + e], _and_up(lists.belief[here + e], up)
        said.to_field[own + e] = new
        scratch.change[e] = new - old
    for e in range(first, last):
        field[at + lists.step[here + e]] += scratch.change[e]


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
def _without_ink(
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
    highest = np.float32(-HUGE)
    for i in range(shape.rows):
        scratch.best[i] = _highest(field, at + i * shape.row, shape.run)
        highest = larger(highest, scratch.best[i])
    if highest > b:
        for e in range(n_now):
            scratch.cavity[e] = field[at + lists.step[here + e]] - said.to_field[own + e]
    m, first = np.int64(0), np.float32(-HUGE)
    if highest > b and _highest(scratch.cavity, 0, n_now) > 0:
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
        total = _sum_of_shares(m, cap, shape, scratch)
        alike, stamp = _or_up(b, total, first), NEVER
        for z in range(m):
            e = lists.place[here + scratch.leaves[z]]
            if e >= 0:
                scratch.before[z] = field[at + lists.step[here + e]]
                scratch.was[z] = said.to_field[own + e]
        _or_answers(b, scratch.tops, m, total, cap, first)
    said.seen[k] = stamp
    if first > 0 or since > n_now // SEVERAL:
        _tell_listed(0, n_now, alike, field, at, own, here, said, lists, scratch)
    else:
        for z in range(n_changed - since, n_changed):
            e = np.int64(lists.changed[here + z % shape.leaves])
            _tell_listed(e, e + 1, alike, field, at, own, here, said, lists, scratch)
        _tell_listed(n_old, n_now, alike, field, at, own, here, said, lists, scratch)
        for z in range(m_old):
            e = np.int64(lists.place[here + scratch.old_leaves[z]])
            if e >= 0:
                _tell_listed(e, e + 1, alike, field, at, own, here, said, lists, scratch)
    for z in range(m):
        up = b
        if first > 0:
            up = scratch.tops[z]
            e = lists.place[here + scratch.leaves[z]]
            if e >= 0 and up != alike:
                new = _and_up(kernel[here + scratch.leaves[z]], up)
                field[at + lists.step[here + e]] = scratch.before[z] + (new - scratch.was[z])
                said.to_field[own + e] = new
        scratch.values[z] = _and_up(scratch.heard[z], up)
    return m


@inlined
def _with_ink(
    k: Any,
    b: Any,
    at: Any,
    row: Any,
    nothing: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    said: Any,
    scratch: Any,
) -> Any:
    """A tree with evidence for its pixel; the length of the list of what it tells the kernel.

    And what it has to tell one leaf of the kernel after that: which, and what; -1 if there is none.
    `nothing` is a row of messages that are 0.
    """
    rows, run, width, messages = shape.rows, shape.run, shape.row, said.to_field
    here, mine, told = row * shape.leaves, k * shape.leaves, np.int64(said.told[k])
    own = mine if told == ALL else nothing
    one, at_one, was = told - 1, np.int64(0), np.float32(0)
    if told > 0:
        at_one, was = at + one // run * width + one % run, messages[mine]
        messages[nothing + one] = was
    # What the tree has said is never less than 0, and whoever is below -b is no rival.
    first = np.float32(-HUGE)
    for i in range(rows):
        best = np.float32(-HUGE)
        f, o, w = at + i * width, own + i * run, here + i * run
        if _highest(field, f, run) > -b:
            best = _strongest(field, f, messages, o, kernel, w, run)
        scratch.best[i] = best
        first = larger(first, best)
    alike = _or_up(b, np.float32(0), first)
    # The strongest leaf hears of its strongest rival; if several are as strong, they are rivals.
    up, chosen, from_s, from_w = alike, np.int64(-1), np.float32(0), np.float32(0)
    if alike < b:
        holder, holders, second = np.int64(0), 0, np.float32(-HUGE)
        for i in range(rows):
            if scratch.best[i] == first:
                holder = i
                holders += 1
            else:
                second = larger(second, scratch.best[i])
        f, o, w = at + holder * width, own + holder * run, here + holder * run
        winner, rival = _winner(field, f, messages, o, kernel, w, run)
        up = _or_up(b, np.float32(0), larger(second, first if holders > 1 else rival))
        if up != alike:
            chosen = holder * run + winner
            from_s, from_w = field[f + winner] - messages[o + winner], kernel[w + winner]
    m = np.int64(0)
    if alike > 0:
        for i in range(rows):
            f, o = at + i * width, own + i * run
            if _highest(field, f, run) > -alike:
                for x in range(run):
                    s = field[f + x] - messages[o + x]
                    if s > -alike:
                        scratch.leaves[m], scratch.values[m] = i * run + x, _and_up(s, alike)
                        m += 1
    if told > 0:
        messages[nothing + one] = 0
    if alike > 0:
        before = field[at_one]
        for i in range(rows):
            f, o, w = at + i * width, mine + i * run, here + i * run
            if told == ALL:
                _tell_again(alike, field, f, messages, o, kernel, w, run)
            else:
                _tell(alike, field, f, messages, o, kernel, w, run)
        if told > 0:
            field[at_one] = before + (messages[mine + one] - was)
        said.told[k] = ALL
    else:
        if told == ALL:
            for i in range(rows):
                _take_back(field, at + i * width, messages, mine + i * run, run)
        elif told > 0:
            field[at_one] -= was
        said.told[k] = NOTHING
    if chosen >= 0:
        new = _and_up(from_w, up)
        now = messages[mine + chosen] if alike > 0 else np.float32(0)
        field[at + chosen // run * width + chosen % run] += new - now
        if alike > 0:
            messages[mine + chosen] = new
        elif new != 0:
            said.told[k], messages[mine] = chosen + 1, new
    return m, chosen, _and_up(from_s, up)


@inlined
def _update(
    k: Any,
    b: Any,
    at: Any,
    row: Any,
    nothing: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    said: Any,
    lists: Any,
    scratch: Any,
    reach: Any,
) -> None:
    """One tree."""
    here = row * shape.leaves
    # What the kernel has heard from others takes the place of its beliefs for a while.
    m_old = _recall(k, shape, said, scratch)
    for z in range(m_old):
        leaf = scratch.old_leaves[z]
        scratch.kept[z] = kernel[here + leaf]
        scratch.mark[leaf] = scratch.old_values[z]
        cavity = kernel[here + leaf] - scratch.old_values[z]
        _set(leaf, cavity, here, row, shape, kernel, lists)
    chosen, special = np.int64(-1), np.float32(0)
    if b > 0:
        m, chosen, special = _with_ink(k, b, at, row, nothing, shape, field, kernel, said, scratch)
    else:
        m = _without_ink(k, b, at, row, m_old, shape, field, kernel, said, lists, scratch)
    for z in range(m_old):
        _set(scratch.old_leaves[z], scratch.kept[z], here, row, shape, kernel, lists)
    if chosen >= 0:
        z = 0
        while z < m and scratch.leaves[z] != chosen:
            z += 1
        if z == m:
            scratch.leaves[m], scratch.values[m] = chosen, 0
            m += 1
    for z in range(m):
        leaf, value = scratch.leaves[z], scratch.values[z]
        now = kernel[here + leaf] + (value - scratch.mark[leaf])
        if leaf == chosen:
            now += special - value
            scratch.values[z] = special
        scratch.mark[leaf] = 0
        _change(leaf, now, here, row, shape, kernel, lists, reach)
    for z in range(m_old):
        leaf = scratch.old_leaves[z]
        if scratch.mark[leaf] != 0:
            now = kernel[here + leaf] - scratch.mark[leaf]
            scratch.mark[leaf] = 0
            _change(leaf, now, here, row, shape, kernel, lists, reach)
    _remember(k, m, shape, said, scratch)


@entry
def enlist_all(shape: Any, kernel: Any, lists: Any) -> None:
    """Begin the lists with what is on."""
    for row in range(lists.n.size):
        for leaf in range(shape.leaves):
            here = row * shape.leaves
            _set(leaf, kernel[here + leaf], here, row, shape, kernel, lists)


@entry
def run_trees(
    order: Any,
    trees: Any,
    evidence: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    said: Any,
    lists: Any,
    scratch: Any,
    reach: Any,
) -> None:
    """Trees one after the other, each seeing all changes before it.

    `reach` is the largest evidence against a pixel.
    """
    said_at = Said(
        pointer(said.to_field),
        pointer(said.told),
        pointer(said.seen),
        pointer(said.counts),
        pointer(said.whom),
        pointer(said.what),
        pointer(said.to_kernel),
    )
    lists_at = Lists(
        pointer(lists.leaf),
        pointer(lists.step),
        pointer(lists.place),
        pointer(lists.belief),
        pointer(lists.n),
        pointer(lists.changed),
        pointer(lists.n_changed),
    )
    scratch_at = Scratch(
        pointer(scratch.lanes),
        pointer(scratch.best),
        pointer(scratch.heard),
        pointer(scratch.cavity),
        pointer(scratch.change),
        pointer(scratch.tops),
        pointer(scratch.before),
        pointer(scratch.was),
        pointer(scratch.old_values),
        pointer(scratch.values),
        pointer(scratch.kept),
        pointer(scratch.mark),
        pointer(scratch.old_leaves),
        pointer(scratch.leaves),
    )
    field_at, kernel_at = pointer(field), pointer(kernel)
    nothing = evidence.size * shape.leaves
    for q in range(order.size):
        k = order[q]
        line = np.int64(trees[k, 0]) * shape.height + trees[k, 2]
        at, row = line * shape.row + trees[k, 3] * shape.features, np.int64(trees[k, 1])
        # What the next tree has said is fetched from memory meanwhile.
        soon = order[min(q + 1, order.size - 1)]
        told = said_at.told[soon]
        n_soon = shape.leaves if told == ALL else told if evidence[soon] <= 0 else 1
        prefetch(said_at.to_field, np.uint64(soon * shape.leaves), np.uint64(n_soon))
        prefetch(said_at.what, np.uint64(soon * shape.short), np.uint64(1))
        prefetch(said_at.whom, np.uint64(soon * shape.short), np.uint64(1))
        beliefs = field_at, kernel_at
        rest = said_at, lists_at, scratch_at, reach
        _update(k, evidence[k], at, row, nothing, shape, *beliefs, *rest)
