"""Messages of the AND-OR trees on a GPU: a block of threads for each lane.

A block works through the trees of its lane one after the other, its threads share out the leaves
of a tree.  Each message is read once and written once, 16 bytes an AND: the floor that this engine
is measured against.  While one tree waits for the sums over its leaves the messages of the next are
on their way.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
from numba import cuda

from hcnet.engine.cuda.compilation import (
    SIMULATED,
    WARP,
    Number,
    compiled,
    inlined,
    kernel,
    kernel_for,
)
from hcnet.factors import HUGE

_and_down, _and_up = compiled.and_down, compiled.and_up
_or_cap, _or_share, _or_message = compiled.or_cap, compiled.or_share, compiled.or_message
_or_outcome, _larger, _smaller = compiled.or_outcome, compiled.larger, compiled.smaller
_merged_second, _damped = compiled.merged_second, compiled.damped
_TO_STEPS = compiled.TO_STEPS

# What becomes of a change of a belief: written, as nobody else has it; added while others add,
# too, in the order of chance; or held back.
Change = Literal["own", "shared", "held"]

# Threads of a block, at most and at least; the simulator starts a real one for each.
MOST_THREADS = 2 if SIMULATED else 512
LEAST_THREADS = 2 if SIMULATED else WARP
# Leaves that a thread holds at most.  With fewer, more threads wait for each other; trees with more
# leaves than all threads together can hold are gone through twice.
MOST_LEAVES = 6
# Threads of the blocks of a sweep in which everybody waits for everybody.
BLOCK_THREADS = 2 if SIMULATED else 256
_PARTIAL = MOST_THREADS if SIMULATED else MOST_THREADS // WARP
_ALL = 0xFFFFFFFF


def threads_for(leaves: int) -> tuple[int, int]:
    """Threads of a block, and leaves that each of them holds; 0 if there are too many to hold.

    As few threads as possible have nothing to do.
    """
    enough = [
        (threads, max(-(-leaves // threads), 1))
        for threads in range(LEAST_THREADS, MOST_THREADS + 1, LEAST_THREADS)
        if threads * MOST_LEAVES >= leaves
    ]
    return min(enough, key=lambda pair: (pair[0] * pair[1], pair[0]), default=(MOST_THREADS, 0))


if SIMULATED:

    @inlined
    def block_sums(total: Any, first: Any, second: Any, sums: Any) -> Any:
        """Over all threads of a block: the sum, and the two largest numbers."""
        here = cuda.threadIdx.x
        sums[here, 0], sums[here, 1], sums[here, 2] = total, first, second
        cuda.syncthreads()
        total, first, second = sums[0, 0], sums[0, 1], sums[0, 2]
        for other in range(1, cuda.blockDim.x):
            total += sums[other, 0]
            second = _merged_second(first, second, sums[other, 1], sums[other, 2])
            first = _larger(first, sums[other, 1])
        return total, first, second

else:

    @inlined
    def block_sums(total: Any, first: Any, second: Any, sums: Any) -> Any:
        """Over all threads of a block: the sum, and the two largest numbers."""
        apart = WARP // 2
        while apart:
            other_first = cuda.shfl_xor_sync(_ALL, first, apart)
            other_second = cuda.shfl_xor_sync(_ALL, second, apart)
            total += cuda.shfl_xor_sync(_ALL, total, apart)
            second = _merged_second(first, second, other_first, other_second)
            first = _larger(first, other_first)
            apart //= 2
        here = cuda.threadIdx.x // WARP
        if cuda.threadIdx.x % WARP == 0:
            sums[here, 0], sums[here, 1], sums[here, 2] = total, first, second
        cuda.syncthreads()
        total, first, second = sums[0, 0], sums[0, 1], sums[0, 2]
        for other in range(1, cuda.blockDim.x // WARP):
            total += sums[other, 0]
            second = _merged_second(first, second, sums[other, 1], sums[other, 2])
            first = _larger(first, sums[other, 1])
        return total, first, second


# Positions in memory are unsigned: Numba would check signed ones for being negative each time.


@inlined
def field_at(trees: Any, k: Any, shape: Any) -> Any:
    """Offset of the first leaf of a tree in a flat field of (height, width, features)."""
    row = np.uint64(trees[k, 0]) * np.uint64(shape[0]) + np.uint64(trees[k, 2])
    return (row * np.uint64(shape[1]) + np.uint64(trees[k, 3])) * np.uint64(shape[2])


@inlined
def kernel_at(trees: Any, k: Any, n: Any) -> Any:
    """The same in the kernel, of which a tree has a whole row."""
    return np.uint64(trees[k, 1]) * n


# `shape`: height, width and features of the field, height and run length of the kernel.


@functools.cache
def _commit(change: Change) -> Any:
    """What to do with a change of a belief."""
    own, shared = change == "own", change == "shared"

    @inlined
    def commit(beliefs: Any, at: Any, seen: Any, change: Any, held: Any, held_at: Any) -> None:
        if own:
            beliefs[at] = seen + change
        elif shared:
            if change != np.float32(0):
                cuda.atomic.add(beliefs, at, change)
        else:
            held[held_at] = change

    return commit


@functools.cache
def lane_kernel(
    threads: int, leaves: int, even: bool, field_change: Change, kernel_change: Change
) -> Any:
    """New messages of all trees of all lanes; `leaves` is how many a thread has of a tree.

    It is `even` if all threads have as many.

    Trees ``order[begin[lane] : end[lane]]`` make a lane.  Its beliefs begin at an offset of its
    own, where it has copies.
    """
    if leaves == 0:
        return _long_kernel(field_change, kernel_change)
    commit_field, commit_kernel = _commit(field_change), _commit(kernel_change)

    @kernel_for(threads)
    def run(
        order: Any,
        begin: Any,
        end: Any,
        trees: Any,
        evidence: Any,
        shape: Any,
        field: Any,
        field_from: Any,
        weights: Any,
        weights_from: Any,
        to_field: Any,
        to_kernel: Any,
        held_field: Any,
        held_kernel: Any,
        damping: Any,
    ) -> None:
        sums = cuda.shared.array((_PARTIAL, 3), Number)
        place = cuda.local.array(leaves, np.uint64)
        old_field = cuda.local.array(leaves, Number)
        old_kernel = cuda.local.array(leaves, Number)
        next_field = cuda.local.array(leaves, Number)
        next_kernel = cuda.local.array(leaves, Number)
        seen_field = cuda.local.array(leaves, Number)
        seen_kernel = cuda.local.array(leaves, Number)
        lane = cuda.blockIdx.x
        here, apart = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x)
        width, row = np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
        n = np.uint64(shape[3]) * width
        begins, ends = np.int64(begin[lane]), np.int64(end[lane])
        field_start, kernel_start = np.uint64(field_from[lane]), np.uint64(weights_from[lane])
        held_at = np.uint64(lane) * n
        if begins >= ends:
            return
        # Three trees are under way: of one the answers are worked out, the messages of the next are
        # on their way from memory, and so is the number of the one after it.
        k = following = np.uint64(order[begins])
        next_number = np.uint64(order[min(begins + 1, ends - 1)])
        next_b = evidence[k]
        next_at, next_row_at = field_at(trees, k, shape), kernel_at(trees, k, n)
        for i in range(leaves):
            j = here + np.uint64(i) * apart
            place[i] = field_start + j // width * row + j % width
            if even or j < n:
                next_field[i], next_kernel[i] = to_field[k * n + j], to_kernel[k * n + j]
        for q in range(begins, ends):
            k, b, at, row_at = following, next_b, next_at, kernel_start + next_row_at
            for i in range(leaves):
                j = here + np.uint64(i) * apart
                old_field[i], old_kernel[i] = next_field[i], next_kernel[i]
                if even or j < n:
                    seen_field[i], seen_kernel[i] = field[at + place[i]], weights[row_at + j]
            following = next_number
            next_number = np.uint64(order[min(q + 2, ends - 1)])
            next_b, next_at = evidence[following], field_at(trees, following, shape)
            next_row_at = kernel_at(trees, following, n)
            for i in range(leaves):
                j = here + np.uint64(i) * apart
                if even or j < n:
                    next_field[i] = to_field[following * n + j]
                    next_kernel[i] = to_kernel[following * n + j]
            cap = _or_cap(b)
            total = np.float32(0)
            first, second = np.float32(-HUGE), np.float32(-HUGE)
            for i in range(leaves):
                if even or here + np.uint64(i) * apart < n:
                    x = _and_down(seen_field[i] - old_field[i], seen_kernel[i] - old_kernel[i])
                    total += _or_share(x, cap)
                    second = _larger(second, _smaller(first, x))
                    first = _larger(first, x)
            total, first, second = block_sums(total, first, second, sums)
            for i in range(leaves):
                j = here + np.uint64(i) * apart
                if even or j < n:
                    s, w = seen_field[i] - old_field[i], seen_kernel[i] - old_kernel[i]
                    up = _or_message(b, _and_down(s, w), total, cap, first, second)
                    new_field = _damped(old_field[i], _and_up(w, up), damping, _TO_STEPS)
                    new_kernel = _damped(old_kernel[i], _and_up(s, up), damping, _TO_STEPS)
                    to_field[k * n + j], to_kernel[k * n + j] = new_field, new_kernel
                    d_field, d_kernel = new_field - old_field[i], new_kernel - old_kernel[i]
                    commit_field(
                        field, at + place[i], seen_field[i], d_field, held_field, held_at + j
                    )
                    commit_kernel(
                        weights, row_at + j, seen_kernel[i], d_kernel, held_kernel, held_at + j
                    )
            cuda.syncthreads()

    return run


@functools.cache
def _visit(field_change: Change, kernel_change: Change) -> Any:
    """New messages of one tree, whose leaves are gone through twice instead of being held."""
    commit_field, commit_kernel = _commit(field_change), _commit(kernel_change)

    @inlined
    def visit(
        k: Any,
        b: Any,
        at: Any,
        row_at: Any,
        shape: Any,
        field: Any,
        weights: Any,
        to_field: Any,
        to_kernel: Any,
        held_field: Any,
        held_kernel: Any,
        held_at: Any,
        damping: Any,
        sums: Any,
    ) -> None:
        width, row = np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
        n = np.uint64(shape[3]) * width
        cap = _or_cap(b)
        total = np.float32(0)
        first, second = np.float32(-HUGE), np.float32(-HUGE)
        for leaf in range(cuda.threadIdx.x, shape[3] * shape[4], cuda.blockDim.x):
            j = np.uint64(leaf)
            s = field[at + j // width * row + j % width] - to_field[k * n + j]
            x = _and_down(s, weights[row_at + j] - to_kernel[k * n + j])
            total += _or_share(x, cap)
            second = _larger(second, _smaller(first, x))
            first = _larger(first, x)
        total, first, second = block_sums(total, first, second, sums)
        for leaf in range(cuda.threadIdx.x, shape[3] * shape[4], cuda.blockDim.x):
            j = np.uint64(leaf)
            place = at + j // width * row + j % width
            seen_field, seen_kernel = field[place], weights[row_at + j]
            old_field, old_kernel = to_field[k * n + j], to_kernel[k * n + j]
            s, w = seen_field - old_field, seen_kernel - old_kernel
            up = _or_message(b, _and_down(s, w), total, cap, first, second)
            new_field = _damped(old_field, _and_up(w, up), damping, _TO_STEPS)
            new_kernel = _damped(old_kernel, _and_up(s, up), damping, _TO_STEPS)
            to_field[k * n + j], to_kernel[k * n + j] = new_field, new_kernel
            commit_field(field, place, seen_field, new_field - old_field, held_field, held_at + j)
            commit_kernel(
                weights, row_at + j, seen_kernel, new_kernel - old_kernel, held_kernel, held_at + j
            )
        cuda.syncthreads()

    return visit


@functools.cache
def _long_kernel(field_change: Change, kernel_change: Change) -> Any:
    """`lane_kernel` for trees with more leaves than threads can hold."""
    visit = _visit(field_change, kernel_change)

    @kernel_for(MOST_THREADS)
    def run(
        order: Any,
        begin: Any,
        end: Any,
        trees: Any,
        evidence: Any,
        shape: Any,
        field: Any,
        field_from: Any,
        weights: Any,
        weights_from: Any,
        to_field: Any,
        to_kernel: Any,
        held_field: Any,
        held_kernel: Any,
        damping: Any,
    ) -> None:
        sums = cuda.shared.array((_PARTIAL, 3), Number)
        lane = cuda.blockIdx.x
        n = np.uint64(shape[3] * shape[4])
        for q in range(begin[lane], end[lane]):
            k = np.uint64(order[q])
            at = np.uint64(field_from[lane]) + field_at(trees, k, shape)
            row_at = np.uint64(weights_from[lane]) + kernel_at(trees, k, n)
            beliefs = field, weights, to_field, to_kernel, held_field, held_kernel
            visit(k, evidence[k], at, row_at, shape, *beliefs, np.uint64(lane) * n, damping, sums)

    return run


@functools.cache
def blocks_kernel() -> Any:
    """A whole sweep of blocks of trees that share no placement and have one row of the kernel.

    Trees ``order[first[c] : first[c + 1]]`` are block c, and `sequence` says which comes when.
    Everybody waits after each: changes of the kernel are held back, and added up in the order of
    the trees.
    """
    visit = _visit("own", "held")

    @kernel_for(BLOCK_THREADS)
    def run(
        sequence: Any,
        first: Any,
        order: Any,
        trees: Any,
        evidence: Any,
        shape: Any,
        field: Any,
        weights: Any,
        to_field: Any,
        to_kernel: Any,
        held: Any,
        damping: Any,
    ) -> None:
        sums = cuda.shared.array((_PARTIAL, 3), Number)
        everybody = cuda.cg.this_grid()
        n = np.uint64(shape[3] * shape[4])
        for c in range(sequence.size):
            begin, end = first[sequence[c]], first[sequence[c] + 1]
            row_at = kernel_at(trees, np.uint64(order[begin]), n)
            for q in range(begin + cuda.blockIdx.x, end, cuda.gridDim.x):
                k = np.uint64(order[q])
                beliefs = field, weights, to_field, to_kernel, held, held
                held_at = np.uint64(q - begin) * n
                at = field_at(trees, k, shape)
                visit(k, evidence[k], at, row_at, shape, *beliefs, held_at, damping, sums)
            everybody.sync()
            for leaf in range(cuda.grid(1), shape[3] * shape[4], cuda.gridsize(1)):
                j = np.uint64(leaf)
                total = np.float32(0)
                for q in range(end - begin):
                    total += held[np.uint64(q) * n + j]
                weights[row_at + j] += total
            everybody.sync()

    return run


@kernel
def add_held_kernel(order: Any, trees: Any, held: Any, n: Any, weights: Any) -> None:
    """Changes of the kernel that were held back: each belief adds up in the order of the trees."""
    for z in range(cuda.grid(1), weights.size, cuda.gridsize(1)):
        row, leaf = z // n, z % n
        total = weights[z]
        for q in range(order.size):
            if trees[order[q], 1] == row:
                total += held[q * n + leaf]
        weights[z] = total


@kernel
def add_held_field(order: Any, trees: Any, held: Any, shape: Any, field: Any) -> None:
    """The same of the field."""
    features, height, run = shape[2], shape[3], shape[4]
    width = shape[1] * features
    for z in range(cuda.grid(1), field.size, cuda.gridsize(1)):
        x, line = z % width, z // width
        y, row = line % shape[0], line // shape[0]
        total = field[z]
        for q in range(order.size):
            k = order[q]
            i, j = y - trees[k, 2], x - trees[k, 3] * features
            if trees[k, 0] == row and 0 <= i < height and 0 <= j < run:
                total += held[(q * height + i) * run + j]
        field[z] = total


@kernel
def add_messages(
    order: Any,
    begin: Any,
    end: Any,
    trees: Any,
    shape: Any,
    field: Any,
    field_from: Any,
    weights: Any,
    weights_from: Any,
    to_field: Any,
    to_kernel: Any,
) -> None:
    """Add all messages of a lane to its beliefs."""
    lane = cuda.blockIdx.x
    width, row = np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
    n = np.uint64(shape[3]) * width
    for q in range(begin[lane], end[lane]):
        k = np.uint64(order[q])
        at = np.uint64(field_from[lane]) + field_at(trees, k, shape)
        row_at = np.uint64(weights_from[lane]) + kernel_at(trees, k, n)
        for leaf in range(cuda.threadIdx.x, shape[3] * shape[4], cuda.blockDim.x):
            j = np.uint64(leaf)
            field[at + j // width * row + j % width] += to_field[k * n + j]
            weights[row_at + j] += to_kernel[k * n + j]
        cuda.syncthreads()


@kernel
def trees_to_R(
    trees: Any, shape: Any, field: Any, weights: Any, to_field: Any, to_kernel: Any, out: Any
) -> None:
    """Messages down from the trees (`tree_down`), a block for each."""
    sums = cuda.shared.array((_PARTIAL, 3), Number)
    width, row = np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
    n = np.uint64(shape[3]) * width
    for number in range(cuda.blockIdx.x, out.size, cuda.gridDim.x):
        k = np.uint64(number)
        at, row_at = field_at(trees, k, shape), kernel_at(trees, k, n)
        total = np.float32(0)
        first, second = np.float32(-HUGE), np.float32(-HUGE)
        for leaf in range(cuda.threadIdx.x, shape[3] * shape[4], cuda.blockDim.x):
            j = np.uint64(leaf)
            s = field[at + j // width * row + j % width] - to_field[k * n + j]
            w = weights[row_at + j] - to_kernel[k * n + j]
            x = _and_down(s, w)
            total += _larger(x, np.float32(0))
            first = _larger(first, x)
        total, first, second = block_sums(total, first, second, sums)
        if cuda.threadIdx.x == 0:
            down = _or_outcome(total, first)
            out[k] = _smaller(_larger(down, np.float32(-HUGE)), np.float32(HUGE))
        cuda.syncthreads()


@kernel
def spread(whole: Any, lanes: Any, size: Any, copies: Any) -> None:
    """A copy for each lane of the beliefs, `size` of them, that the lanes of a start share."""
    for z in range(cuda.grid(1), copies.size, cuda.gridsize(1)):
        copies[z] = whole[z // size // lanes * size + z % size]


@kernel
def merge(copies: Any, lanes: Any, size: Any, whole: Any, again: Any) -> None:
    """Add to the beliefs what the lanes have changed in their copies, in the order of the lanes.

    The copies are made anew if they are needed `again`.
    """
    for z in range(cuda.grid(1), whole.size, cuda.gridsize(1)):
        first, before = z // size * lanes * size + z % size, whole[z]
        total = np.float32(0)
        for lane in range(lanes):
            total += copies[first + lane * size] - before
        whole[z] = before + total
        if again:
            for lane in range(lanes):
                copies[first + lane * size] = before + total
