"""Compiled search for factors with the fewest wrong entries; tables and factors are bits.

All kernels treat rows and columns alike: they improve the bits of one side, `given` the other
side's.  `on` and `off` hold the entries of a row (rows, planes, words), where plane p counts 2^p.
"""

from __future__ import annotations

import math

import numpy as np

from hcnet.engine.cpu_compilation import called, entry, inlined, n_bits

ZERO, ONE = np.uint64(0), np.uint64(1)
# A component is improved for at most so many rounds, and the factors for so many sweeps.
ROUNDS, SWEEPS = 20, 12
# Probability that a move removes one more component, of at most `MOST_REMOVED`.
ONE_MORE, MOST_REMOVED = 0.4, 3
# In so many first sweeps a bit that makes no difference is drawn.
LOOSE = 3
# Most seeds of a new component.
SEEDS = 3
FAR = 1 << 62


@inlined
def draw(state):
    """A number from 0 to 1 (xorshift)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return ((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@called
def shuffle(order, state):
    """A random order in place."""
    for i in range(len(order) - 1, 0, -1):
        j = int(draw(state) * (i + 1))
        order[i], order[j] = order[j], order[i]


@called
def pack(bits, words):
    """Bits (n, components) as words (components, words)."""
    words[:] = ZERO
    for i in range(bits.shape[0]):
        for f in range(bits.shape[1]):
            if bits[i, f]:
                words[f, i >> 6] |= ONE << np.uint64(i & 63)


@called
def _sweep(on, off, bits, given, state, loose):
    """Set each bit to its better value, given all others; how many improved."""
    n_rows, planes, n_words = on.shape
    rank = given.shape[0]
    after = np.zeros((rank + 1, n_words), np.uint64)
    before = np.zeros(n_words, np.uint64)
    order = np.arange(rank)
    shuffle(order, state)
    improved = 0
    for n in range(n_rows):
        for i in range(rank - 1, -1, -1):
            f = order[i]
            for w in range(n_words):
                after[i, w] = after[i + 1, w] | (given[f, w] if bits[n, f] else ZERO)
        before[:] = ZERO
        for i in range(rank):
            f = order[i]
            gain = 0
            for w in range(n_words):
                own = given[f, w] & ~(before[w] | after[i + 1, w])
                for p in range(planes):
                    gain += (n_bits(own & on[n, p, w]) - n_bits(own & off[n, p, w])) << p
            bit = 1 if gain > 0 else 0
            if gain == 0 and loose:
                bit = 1 if draw(state) < 0.5 else 0
            if bit != bits[n, f]:
                bits[n, f] = bit
                improved += gain != 0
            if bit:
                for w in range(n_words):
                    before[w] |= given[f, w]
    return improved


@called
def _covered(bits, given, n, w):
    """The entries of a word of a row that its components cover."""
    covered = ZERO
    for f in range(given.shape[0]):
        if bits[n, f]:
            covered |= given[f, w]
    return covered


@called
def count_errors(on, off, bits, given):
    """Weight of the ones that are not covered, and of the zeros that are."""
    n_rows, planes, n_words = on.shape
    missed, false = 0, 0
    for n in range(n_rows):
        for w in range(n_words):
            covered = _covered(bits, given, n, w)
            for p in range(planes):
                missed += n_bits(~covered & on[n, p, w]) << p
                false += n_bits(covered & off[n, p, w]) << p
    return missed, false


@called
def _descend(on, off, on_T, off_T, S, W, S_words, W_words, state):
    """Sweeps over both factors until none improves; weight of the wrong entries."""
    pack(W, W_words)
    for k in range(SWEEPS):
        improved = _sweep(on, off, S, W_words, state, k < LOOSE)
        pack(S, S_words)
        improved += _sweep(on_T, off_T, W, S_words, state, k < LOOSE)
        pack(W, W_words)
        if improved == 0:
            break
    missed, false = count_errors(on, off, S, W_words)
    return missed + false


@called
def uncovered(on, off, bits, given, on_left, off_left):
    """The entries that no component covers."""
    n_rows, planes, n_words = on.shape
    for n in range(n_rows):
        for w in range(n_words):
            covered = _covered(bits, given, n, w)
            for p in range(planes):
                on_left[n, p, w] = on[n, p, w] & ~covered
                off_left[n, p, w] = off[n, p, w] & ~covered


@called
def _respond(component, on, off, bits, words):
    """Rows that gain by a component, as bits and as words; the sum of what they gain."""
    n_rows, planes, n_words = on.shape
    words[:] = ZERO
    total = 0
    for n in range(n_rows):
        gain = 0
        for w in range(n_words):
            for p in range(planes):
                gain += (
                    n_bits(component[w] & on[n, p, w]) - n_bits(component[w] & off[n, p, w])
                ) << p
        bits[n] = 1 if gain > 0 else 0
        if gain > 0:
            total += gain
            words[n >> 6] |= ONE << np.uint64(n & 63)
    return total


@called
def seed(on, state, words):
    """The ones of a row, or those that two rows have in common."""
    n_rows, planes, n_words = on.shape
    n = 0
    for _ in range(20):  # rows without ones are no seeds
        n = int(draw(state) * n_rows)
        some = ZERO
        for w in range(n_words):
            words[w] = ZERO
            for p in range(planes):
                words[w] |= on[n, p, w]
            some |= words[w]
        if some != ZERO:
            break
    if draw(state) < 0.5:
        n = int(draw(state) * n_rows)
        common = ZERO
        for w in range(n_words):
            for p in range(planes):
                common |= words[w] & on[n, p, w]
        if common != ZERO:
            for w in range(n_words):
                both = ZERO
                for p in range(planes):
                    both |= words[w] & on[n, p, w]
                words[w] = both


@called
def _new_component(on, off, on_T, off_T, seeds, state, s, w):
    """A component for uncovered entries: the best from a few seeds, by turns of both sides."""
    s_words = np.zeros(on_T.shape[2], np.uint64)
    w_words = np.zeros(on.shape[2], np.uint64)
    s_now, w_now = np.zeros(len(s), np.int8), np.zeros(len(w), np.int8)
    best = 0
    s[:], w[:] = 0, 0
    for _ in range(seeds):
        if draw(state) < 0.5:
            seed(on, state, w_words)
        else:
            seed(on_T, state, s_words)
            _respond(s_words, on_T, off_T, w_now, w_words)
        last = 0
        for _ in range(ROUNDS):
            _respond(w_words, on, off, s_now, s_words)
            gain = _respond(s_words, on_T, off_T, w_now, w_words)
            if gain <= last:
                break
            last = gain
        if last > best:
            best = last
            s[:] = s_now
            w[:] = w_now


@entry
def search(on, off, on_T, off_T, now, best, errors, span, heat, state):
    """Moves from `now`: remove some components, put new ones in their place, and descend.

    A worse solution is taken with a probability that falls with the temperature: from `heat[0]` at
    the first move of `span[2]` to `heat[1]` at the last; this call makes those from `span[0]` to
    `span[1]`.  `errors` are those of `now` and `best`, pairs of factors, in place.
    """
    S, W = now
    rank = S.shape[1]
    S_words = np.zeros((rank, on_T.shape[2]), np.uint64)
    W_words = np.zeros((rank, on.shape[2]), np.uint64)
    left = np.zeros_like(on), np.zeros_like(off), np.zeros_like(on_T), np.zeros_like(off_T)
    s, w = np.zeros(len(S), np.int8), np.zeros(len(W), np.int8)
    S_new, W_new = S.copy(), W.copy()
    empty = np.zeros(rank, np.int8)
    for move in range(span[0], span[1]):
        temperature = heat[0] * (heat[1] / heat[0]) ** (move / span[2])
        S_new[:] = S
        W_new[:] = W
        empty[:] = 0
        removed = 1
        while removed < min(MOST_REMOVED, rank) and draw(state) < ONE_MORE:
            removed += 1
        for _ in range(removed):
            f = int(draw(state) * rank)
            S_new[:, f] = 0
            W_new[:, f] = 0
        for f in range(rank):
            if not (S_new[:, f].any() and W_new[:, f].any()):
                pack(S_new, S_words)
                pack(W_new, W_words)
                uncovered(on, off, S_new, W_words, left[0], left[1])
                uncovered(on_T, off_T, W_new, S_words, left[2], left[3])
                seeds = 1 + int(draw(state) * SEEDS)
                _new_component(left[0], left[1], left[2], left[3], seeds, state, s, w)
                S_new[:, f] = s
                W_new[:, f] = w
        found = _descend(on, off, on_T, off_T, S_new, W_new, S_words, W_words, state)
        if found <= errors[0] or draw(state) < math.exp((errors[0] - found) / temperature):
            errors[0] = found
            S[:] = S_new
            W[:] = W_new
            if found < errors[1]:
                errors[1] = found
                best[0][:] = S
                best[1][:] = W


@entry
def mix(on, off, S, given, skip, state, chosen):
    """Choose some of many components, one after the other: each time the one that gains most.

    Each is passed over with the probability `skip`, so that every call chooses others.
    """
    n_rows, planes, n_words = on.shape
    covered = np.zeros((n_rows, n_words), np.uint64)
    used = np.zeros(given.shape[0], np.int8)
    for k in range(len(chosen)):
        best, most = -1, -FAR
        for f in range(given.shape[0]):
            if used[f] or (best >= 0 and draw(state) < skip):
                continue
            gain = 0
            for n in range(n_rows):
                if S[n, f]:
                    for w in range(n_words):
                        own = given[f, w] & ~covered[n, w]
                        for p in range(planes):
                            gain += (n_bits(own & on[n, p, w]) - n_bits(own & off[n, p, w])) << p
            if gain > most:
                best, most = f, gain
        used[best] = 1
        chosen[k] = best
        for n in range(n_rows):
            if S[n, best]:
                for w in range(n_words):
                    covered[n, w] |= given[best, w]


@entry
def best_codes(on, off, bits, given, first, last):
    """The best of all combinations of components, for each row from `first` to `last`.

    Of equally good ones the present one stays, or the first.  The weight of what is wrong.
    """
    _, planes, n_words = on.shape
    rank = given.shape[0]
    covers = np.zeros((1 << rank, n_words), np.uint64)
    for code in range(1, 1 << rank):
        f = 0
        while not (code >> f) & 1:
            f += 1
        for w in range(n_words):
            covers[code, w] = covers[code & (code - 1), w] | given[f, w]
    total = np.int64(0)
    for n in range(first, last):
        present = 0
        for f in range(rank):
            present |= int(bits[n, f]) << f
        best, least = present, FAR
        for k in range(-1, 1 << rank):
            code = present if k < 0 else k
            wrong = 0
            for w in range(n_words):
                covered = covers[code, w]
                for p in range(planes):
                    wrong += (n_bits(~covered & on[n, p, w]) + n_bits(covered & off[n, p, w])) << p
            if wrong < least:
                best, least = code, wrong
        total += least
        for f in range(rank):
            bits[n, f] = (best >> f) & 1
    return total


@entry
def count(on, off, bits, given):
    """As `count_errors`."""
    return count_errors(on, off, bits, given)


@entry
def climb(on, off, bits, given, sweeps, state):
    """Sweeps over the bits of one side until none improves; weights as `count_errors`."""
    for _ in range(sweeps):
        if _sweep(on, off, bits, given, state, False) == 0:
            break
    return count_errors(on, off, bits, given)


@called
def _least_of(errors, codes, n, least):
    """The fewest errors of each row by the first n of some codes; four at a time, in registers."""
    least[:] = ~np.zeros_like(least[:1])[0]
    i = 0
    while i + 4 <= n:
        a, b = errors[codes[i]], errors[codes[i + 1]]
        c, d = errors[codes[i + 2]], errors[codes[i + 3]]
        for r in range(len(least)):
            x, y, z, w, now = a[r], b[r], c[r], d[r], least[r]
            if y < x:
                x = y
            if w < z:
                z = w
            if z < x:
                x = z
            if x < now:
                now = x
            least[r] = now
        i += 4
    while i < n:
        a = errors[codes[i]]
        for r in range(len(least)):
            x, now = a[r], least[r]
            if x < now:
                now = x
            least[r] = now
        i += 1


@called
def _add(errors, change, on):
    """Cover a column in all rows, or uncover it; numbers without sign wrap around as they must."""
    for r in range(len(errors)):
        errors[r] = errors[r] + change[r] if on else errors[r] - change[r]


@entry
def anneal(change, base, times, now, best, values, span, heat, state):
    """Sweeps over the bits of the columns, where every row always has the best of all codes.

    `base` are the errors of each row (which stands for so many `times`) with nothing covered, and
    `change` is what covering a column adds (columns, rows), wrapped around if it is negative.
    `now` and `best` are the codes of the columns: bit f is on if component f has the column.
    `values` are the errors of both.  A worse state is taken with a probability that falls with the
    temperature, as in `search`; `span` counts sweeps, and `span[3]` is the number of components.
    """
    n_columns, n_rows = change.shape
    rank = span[3]
    half = 1 << (rank - 1)
    errors = np.zeros((1 << rank, n_rows), base.dtype)  # of each row by each code
    errors[0] = base
    for code in range(1, 1 << rank):
        others = code & (code - 1)
        errors[code] = errors[others]
        for j in range(n_columns):
            if now[j] & (code ^ others) and not now[j] & others:
                _add(errors[code], change[j], True)
    without, having = np.zeros(half, np.int64), np.zeros(half, np.int64)
    changed, same = np.zeros(half, np.int64), np.zeros(half, np.int64)
    least, least_changed, least_same = np.zeros_like(base), np.zeros_like(base), np.zeros_like(base)
    components, columns = np.arange(rank), np.arange(n_columns)
    for sweep in range(span[0], span[1]):
        temperature = heat[0] * (heat[1] / heat[0]) ** (sweep / span[2])
        shuffle(components, state)
        for f in components:
            bit = 1 << f
            i = 0
            for code in range(1 << rank):
                if not code & bit:
                    without[i], having[i] = code, code | bit
                    i += 1
            _least_of(errors, without, half, least)
            shuffle(columns, state)
            for j in columns:
                others = now[j] & ~bit
                on = now[j] == others
                # Codes with this component change, unless another one covers the column anyway.
                n_changed, n_same = 0, 0
                for i in range(half):
                    code = having[i]
                    changed[n_changed], same[n_same] = code, code
                    open_to_change = (code & others) == 0
                    n_changed += open_to_change
                    n_same += not open_to_change
                _least_of(errors, changed, n_changed, least_changed)
                _least_of(errors, same, n_same, least_same)
                _add(least_changed, change[j], on)
                found = np.int64(0)
                for r in range(n_rows):
                    x, y, z = least[r], least_same[r], least_changed[r]
                    if y < x:
                        x = y
                    if z < x:
                        x = z
                    found += np.int64(x) * times[r]
                if found <= values[0] or draw(state) < math.exp((values[0] - found) / temperature):
                    values[0] = found
                    now[j] ^= bit
                    for i in range(n_changed):
                        _add(errors[changed[i]], change[j], on)
                    if found < values[1]:
                        values[1] = found
                        best[:] = now
