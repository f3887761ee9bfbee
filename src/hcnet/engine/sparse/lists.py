"""Lists: which leaves of the kernel are looked at, and what trees have told it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.engine.cpu_compilation import compiled, entry, inlined, larger
from hcnet.engine.sparse.state import ALL

_smaller = compiled.smaller


@inlined
def set_belief(
    leaf: Any, now: Any, here: Any, row: Any, shape: Any, kernel: Any, lists: Any
) -> Any:
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
def change_belief(
    leaf: Any, now: Any, here: Any, row: Any, shape: Any, kernel: Any, lists: Any, reach: Any
) -> None:
    """The same, written down if it can matter to trees without ink.

    They pass on no more than `reach` of it.
    """
    before = _smaller(larger(kernel[here + leaf], np.float32(0)), reach)
    e = set_belief(leaf, now, here, row, shape, kernel, lists)
    if e >= 0 and before != _smaller(larger(now, np.float32(0)), reach):
        n = lists.n_changed[row]
        lists.changed[here + n % shape.leaves] = e
        lists.n_changed[row] = n + 1


@inlined
def recall(k: Any, shape: Any, said: Any, scratch: Any) -> Any:
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
def remember(k: Any, m: Any, shape: Any, said: Any, scratch: Any) -> None:
    """Inverse of `recall`, for new messages.  What is no short list is stored whole."""
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


@entry
def enlist_all(shape: Any, kernel: Any, lists: Any) -> None:
    """Begin the lists with what is on."""
    for row in range(lists.n.size):
        for leaf in range(shape.leaves):
            here = row * shape.leaves
            set_belief(leaf, kernel[here + leaf], here, row, shape, kernel, lists)
