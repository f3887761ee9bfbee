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

from typing import Any

import numpy as np

from hcnet.engine.cpu_compilation import entry, inlined, pointer, prefetch
from hcnet.engine.sparse.lists import change_belief, recall, remember, set_belief
from hcnet.engine.sparse.state import ALL, Lists, Said, Scratch
from hcnet.engine.sparse.with_ink import with_ink
from hcnet.engine.sparse.without_ink import without_ink


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
    m_old = recall(k, shape, said, scratch)
    for z in range(m_old):
        leaf = scratch.old_leaves[z]
        scratch.kept[z] = kernel[here + leaf]
        scratch.mark[leaf] = scratch.old_values[z]
        cavity = kernel[here + leaf] - scratch.old_values[z]
        set_belief(leaf, cavity, here, row, shape, kernel, lists)
    chosen, special = np.int64(-1), np.float32(0)
    if b > 0:
        m, chosen, special = with_ink(k, b, at, row, nothing, shape, field, kernel, said, scratch)
    else:
        m = without_ink(k, b, at, row, m_old, shape, field, kernel, said, lists, scratch)
    for z in range(m_old):
        set_belief(scratch.old_leaves[z], scratch.kept[z], here, row, shape, kernel, lists)
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
        change_belief(leaf, now, here, row, shape, kernel, lists, reach)
    for z in range(m_old):
        leaf = scratch.old_leaves[z]
        if scratch.mark[leaf] != 0:
            now = kernel[here + leaf] - scratch.mark[leaf]
            scratch.mark[leaf] = 0
            change_belief(leaf, now, here, row, shape, kernel, lists, reach)
    remember(k, m, shape, said, scratch)


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
