"""Trees with evidence for their pixel."""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.engine.cpu_compilation import compiled, inlined, larger
from hcnet.engine.runs import (
    highest,
    strongest,
    take_back,
    tell,
    tell_again,
    winner_of,
)
from hcnet.engine.sparse.state import ALL, NOTHING
from hcnet.factors import HUGE

_and_up, _or_up = compiled.and_up, compiled.or_up


@inlined
def with_ink(
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
        if highest(field, f, run) > -b:
            best = strongest(field, f, messages, o, kernel, w, run)
        scratch.best[i] = best
        first = larger(first, best)
    alike = _or_up(b, np.float32(0), first)
    # The strongest leaf hears of its strongest rival; if several are as strong, they are rivals.
    up, chosen, from_s, from_w = alike, np.int64(-1), np.float32(0), np.float32(0)
    if alike < b:
        holder: Any = np.int64(0)
        holders, second = 0, np.float32(-HUGE)
        for i in range(rows):
            if scratch.best[i] == first:
                holder = i
                holders += 1
            else:
                second = larger(second, scratch.best[i])
        f, o, w = at + holder * width, own + holder * run, here + holder * run
        winner, rival = winner_of(field, f, messages, o, kernel, w, run)
        up = _or_up(b, np.float32(0), larger(second, first if holders > 1 else rival))
        if up != alike:
            chosen = holder * run + winner
            from_s, from_w = field[f + winner] - messages[o + winner], kernel[w + winner]
    m = np.int64(0)
    if alike > 0:
        for i in range(rows):
            f, o = at + i * width, own + i * run
            if highest(field, f, run) > -alike:
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
                tell_again(alike, field, f, messages, o, kernel, w, run)
            else:
                tell(alike, field, f, messages, o, kernel, w, run)
        if told > 0:
            field[at_one] = before + (messages[mine + one] - was)
        said.told[k] = ALL
    else:
        if told == ALL:
            for i in range(rows):
                take_back(field, at + i * width, messages, mine + i * run, run)
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
