"""AND, OR, POOL and AND-OR-tree message updates: the maths of hcnet, once.

Every function here is plain Python over scalars (or over a row of scalars).  The
reference engine calls them as they are; `hcnet.engine.compilation` compiles the very
same code for a CPU or a GPU.  There is no second copy of a formula.

A message is one number: log-weight of "on" minus log-weight of "off" (the paper's
Appendix B).  A message *in* is everything a variable has heard except from this factor;
a message *out* is what the factor tells the variable.  Infinities mean certainty.

Every choice between two numbers is `larger` or `smaller`.  A compiling engine may put one
machine instruction in their place.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

# The compiled engines replace these by numbers of their own float type.
ZERO = 0.0
ONE = 1.0
MINUS_INFINITY = float("-inf")
# Larger than any sum of real messages (pixels × evidence < 1e12), and still far below the
# float32 limit of 3.4e38, so that sums of thousands of them stay finite.
HUGE = 1e30
# Messages that decisions add up are rounded to this fraction: then sums are exact, and do not
# depend on their order, which changes with the number of images and threads.  Ties are common.
GRID = 2.0**16


def larger(a: float, b: float) -> float:
    """The larger of two numbers; b if a is the sum of two opposite infinities."""
    return a if a > b else b


def smaller(a: float, b: float) -> float:
    """The smaller of two numbers; b if a is the sum of two opposite infinities."""
    return a if a < b else b


def and_down(s: float, w: float) -> float:
    r"""Message from AND to its bottom variable b = s AND w.

    ::

        s   w        AND(b | s, w) = 0      if b = s·w
         \ /                       = -inf   otherwise
         AND
          |          out(b) = min(s + w, s, w)
          b
    """
    return smaller(s + w, smaller(s, w))


def and_up(other: float, b: float) -> float:
    """Message from AND to one top variable, given the other top variable and the bottom.

    ``max(0, other + b) - max(0, other)``, rearranged so that a huge ``other`` (a clamped
    weight, a decided template) passes ``b`` on exactly instead of cancelling to zero.
    """
    return larger(b + smaller(other, ZERO), -larger(other, ZERO))


def or_cap(b: float) -> float:
    """How much the top variables of an OR can matter together: the evidence against b.

    Once the others outweigh ``-b`` the answer no longer depends on by how much.  Cutting
    every term there keeps sums small, so that removing one term from the sum is exact even
    if that term was huge or infinite.
    """
    return smaller(larger(-b, ZERO), HUGE)


def or_share(t: float, cap: float) -> float:
    """What one top variable adds to the sum of an OR: its positive part, cut at the cap."""
    return smaller(larger(t, ZERO), cap)


def or_up(b: float, others: float, strongest_other: float) -> float:
    r"""Message from OR to one top variable.

    ::

        t1 … tM      OR(b | t) = 0 if b = max(t), -inf otherwise
          \|/
          OR         out(t_m) = min(b + Σ_{j≠m} max(0, t_j), max(0, -max_{j≠m} t_j))
           |
           b

    ``others`` is the sum of `or_share` over the other top variables.
    """
    return smaller(b + others, larger(-strongest_other, ZERO))


def or_message(b: float, t: float, total: float, cap: float, first: float, second: float) -> float:
    """Message from OR to the top variable whose own message in is t.

    ``total`` is the sum of `or_share` over all top variables, ``first`` and ``second`` are the
    two largest messages in: the strongest other is the second for whoever is first.
    """
    return or_up(b, total - or_share(t, cap), second if t == first else first)


def second_largest(t: Sequence[float], n: int, first: float) -> float:
    """Second-largest of t[:n], given the largest; the same number if two are tied."""
    ties = 0
    second = MINUS_INFINITY
    for j in range(n):
        x = t[j]
        ties += 1 if x == first else 0
        second = larger(second, x if x < first else MINUS_INFINITY)
    return first if ties > 1 else second


def merged_second(first_a: float, second_a: float, first_b: float, second_b: float) -> float:
    """Second-largest of two groups of numbers, given the two largest of each."""
    return larger(smaller(first_a, first_b), larger(second_a, second_b))


def or_answers(
    b: float, t: MutableSequence[float], n: int, total: float, cap: float, first: float
) -> None:
    """Replace the messages in from all tops of an OR by the messages out, given their summary.

    Two shortcuts, both exact.  If the bottom is off and no top is on, all hear ``b``.  And the
    runner-up matters only to the winner, and only if its message could be positive.
    """
    if b <= ZERO and first <= ZERO:
        for j in range(n):
            t[j] = b
        return
    second = first
    if b + (total - or_share(first, cap)) > ZERO:
        second = second_largest(t, n, first)
    for j in range(n):
        t[j] = or_message(b, t[j], total, cap, first, second)


def or_messages(b: float, t: MutableSequence[float], n: int) -> None:
    """Replace the messages in from all tops of an OR by the messages out to them."""
    cap = or_cap(b)
    total = ZERO
    first = MINUS_INFINITY
    for j in range(n):
        total += or_share(t[j], cap)
        first = larger(first, t[j])
    or_answers(b, t, n, total, cap, first)


def or_down(t: Sequence[float], n: int) -> float:
    """Message from OR to its bottom variable: ``t_i + Σ_{j≠i} max(0, t_j)``, t_i the largest."""
    total = ZERO
    first = MINUS_INFINITY
    for j in range(n):
        total += larger(t[j], ZERO)
        first = larger(first, t[j])
    return or_outcome(total, first)


def or_outcome(total: float, first: float) -> float:
    """`or_down`, given the sum of the positive messages in and the largest of all."""
    return total if first > ZERO else first


def or_merged(a: float, b: float) -> float:
    """`or_down` of all tops, given that of some and that of the others."""
    return or_outcome(larger(a, ZERO) + larger(b, ZERO), larger(a, b))


def tree_messages(
    b: float,
    s: MutableSequence[float],
    w: MutableSequence[float],
    t: MutableSequence[float],
    n: int,
) -> None:
    r"""All upward messages of one AND-OR tree, the factor of one element b of R.

    ::

        s1 w1   …   sn wn
         \ /        \ /
         AND        AND
            \      /
              OR
              |
              b

    ``s`` and ``w`` hold the messages in; they are replaced by the messages out to the same
    variables.  ``t`` is scratch space.  Exact, because the factor is a tree: `and_down`,
    then the OR as in `or_messages`, then `and_up`, in three passes over the leaves.
    """
    cap = or_cap(b)
    total = ZERO
    first = MINUS_INFINITY
    for j in range(n):
        x = and_down(s[j], w[j])
        t[j] = x
        total += or_share(x, cap)
        first = larger(first, x)
    or_answers(b, t, n, total, cap, first)
    for j in range(n):
        up = t[j]
        from_s = s[j]
        from_w = w[j]
        s[j] = and_up(from_w, up)
        w[j] = and_up(from_s, up)


def tree_down(s: Sequence[float], w: Sequence[float], t: MutableSequence[float], n: int) -> float:
    """Message from one AND-OR tree down to its bottom variable b."""
    for j in range(n):
        t[j] = and_down(s[j], w[j])
    return or_down(t, n)


def damped(old: float, new: float, damping: float, to_steps: float) -> float:
    """A message that goes only part of the way to its new value.

    What is left of the way is whole steps, so that messages on the grid stay there: `to_steps` is
    `grid.to_steps` of the precision in which `damping` comes.  Messages are finite here.
    """
    if damping == ONE:  # compilers make a loop of its own of it
        return new
    left = (ONE - damping) * (new - old)
    return new - ((left + to_steps) - to_steps)


def pool_up(b: Sequence[float], log_prior: Sequence[float], n: int) -> float:
    r"""Message from POOL to its top variable: ``max_m (b_m + θ_m)``.

    ::

          t          POOL(b | t=1) = θ_m   if exactly b_m is on  (θ_m = -log M if uniform)
          |          POOL(b | t=0) = 0     if no b is on
        POOL         -inf in any other case
         /|\
        b1 … bM
    """
    best = MINUS_INFINITY
    for j in range(n):
        best = larger(best, b[j] + log_prior[j])
    return best


def pool_down(t: float, b: MutableSequence[float], log_prior: Sequence[float], n: int) -> None:
    """Replace the messages in from the bottoms of a POOL by the messages out to them.

    ``out(b_m) = min(t + θ_m, θ_m - max_{j≠m} (b_j + θ_j))``
    """
    first = MINUS_INFINITY
    second = MINUS_INFINITY
    winner = -1
    for j in range(n):
        x = b[j] + log_prior[j]
        if x > first:
            second = first
            first = x
            winner = j
        elif x > second:
            second = x
    for j in range(n):
        rival = second if j == winner else first
        b[j] = smaller(t, -rival) + log_prior[j]
