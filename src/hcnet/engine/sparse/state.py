"""What is kept about a layer and its trees: arrays, in compiled code pointers to them."""

from __future__ import annotations

from typing import Any, NamedTuple

# What a tree with ink has told the field: nothing, something to all leaves, or to one of them, and
# then it is the number of that leaf, plus one.  One without ink has told so many of the listed
# leaves something, or nothing.
NOTHING, ALL = 0, -1
# When a tree has last looked that must look at everything.
NEVER = -(2**62)
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
