"""The loops of NOCA over on pixels and their parents; the maths is derived in `noca`.

Features come last in every array and the window is flipped, so that the parents of a pixel are
h runs of memory, each w·F long: ``S[n, y:y+h, x:x+w, :]`` goes with ``theta[:, :, :]``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Share of q that is spread anew over all parents before the updates, or a parent that was once
# dropped could never come back: the updates multiply.
REVIVED = 1e-3
# A share below this is dropped: all that a parent can make of it is LEAST_SHARE·|f(θ₀)|.  Most
# parents go within the first updates, after which the others are cheap.
LEAST_SHARE = 1e-7
FIRST_UPDATES = 4
# An update that moves less than this much of q ends the loop for its pixel.
SETTLED = 1e-4

# The table covers t = θ/q from 2^-24 to 2^40 in pieces of 2^-6 octaves, read off the bits of t.
LOW_BITS, SHIFT, PIECES = 1023 - 24, 46, 64 * 64


def gain_table(leak: float) -> NDArray[np.float64]:
    """Piecewise linear B(t) = f(θ₀+t) - t·f'(θ₀+t) - f(θ₀): rows (intercept, slope).

    B decides where q goes, not what it is worth: an error of 1e-4 moves q a little, and the
    bound is computed exactly for whatever q came out.
    """
    bits = (np.arange(PIECES + 1, dtype=np.int64) + (LOW_BITS << (52 - SHIFT))) << SHIFT
    t = bits.view(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        x = leak + t
        gain = np.log(-np.expm1(-x)) - t / np.expm1(x) - np.log(-np.expm1(-leak))
    # Below t ≈ θ₀·1e-5 the differences cancel: there B is ½t²·|f''(θ₀)|.
    curvature = 1 / (4 * np.sinh(leak / 2) ** 2)
    gain = np.where(t < 1e-5 * leak, 0.5 * t**2 * curvature, np.maximum(gain, 0.0))
    slope = np.diff(gain) / np.diff(t)
    return np.ascontiguousarray(np.stack([gain[:-1] - slope * t[:-1], slope], axis=1))


@njit(cache=True, fastmath=True)
def _divide(q: Any, t: Any, theta: Any, posterior: Any, table: Any, n_updates: Any) -> Any:
    """Up to `n_updates` of q ∝ q·μ·B(θ/q), in place; `t` is scratch."""
    bits = t.view(np.int64)
    for _ in range(n_updates):
        total = 0.0
        for k in range(q.size):
            t[k] = theta[k] / q[k]
        for k in range(q.size):
            piece = (bits[k] >> SHIFT) - (LOW_BITS << (52 - SHIFT))
            piece = min(max(piece, 0), PIECES - 1)
            new = q[k] * posterior[k] * max(table[piece, 0] + table[piece, 1] * t[k], 0.0)
            t[k] = new
            total += new
        if total <= 0.0:
            return
        moved = 0.0
        for k in range(q.size):
            new = max(t[k] / total, 1e-12)
            moved += abs(new - q[k])
            q[k] = new
        if moved < SETTLED:
            return


@njit(cache=True)
def _worth(q: Any, theta: Any, posterior: Any, leak: Any, shares: Any) -> Any:
    """Sum over parents of μ·q·(f(θ₀+θ/q) - f(θ₀)); `shares` gets the terms without μ."""
    nothing = math.log(-math.expm1(-leak))
    total = 0.0
    for k in range(q.size):
        shares[k] = 0.0
        if q[k] > 0.0:
            shares[k] = q[k] * (math.log(-math.expm1(-leak - theta[k] / q[k])) - nothing)
            total += posterior[k] * shares[k]
    return total


@njit(cache=True, fastmath=True)
def _total(posterior: Any, theta: Any, n: Any, y: Any, first: Any) -> Any:
    """Σ μ·θ over all parents of a pixel."""
    h, run = theta.shape
    total = 0.0
    for i in range(h):
        for j in range(run):
            total += posterior[n, y + i, first + j] * theta[i, j]
    return total


@njit(cache=True)
def _gather(
    posterior: Any, theta: Any, n: Any, y: Any, first: Any, shares: Any, parents: Any
) -> Any:
    """Parents that have a share or start with one, in the arrays of `parents`; how many.

    The updates start from the shares of before, and a little for everybody, in proportion to
    μ·θ.  Who would get less than LEAST_SHARE of that is left out at once: almost everybody.
    """
    where, mu, strength, old, new = parents
    h, run = theta.shape
    owned = np.float64(shares.sum())
    revived = REVIVED if owned > 0.0 else 1.0
    scale = revived / max(_total(posterior, theta, n, y, first), 1e-300)
    m = 0
    for i in range(h):
        for j in range(run):
            s = posterior[n, y + i, first + j]
            begin = scale * s * theta[i, j]
            share = shares[i * run + j]
            if begin >= LEAST_SHARE or share > 0.0:
                where[m], mu[m], strength[m], old[m] = i * run + j, s, theta[i, j], share
                new[m] = max(begin, 1e-12)
                if share > 0.0:
                    new[m] += (1 - revived) * share / owned
                m += 1
    return m


@njit(cache=True)
def _swap_small_last(m: Any, where: Any, mu: Any, strength: Any, old: Any, new: Any) -> Any:
    """Move parents with next to no share behind the others; how many are left."""
    k = 0
    while k < m:
        if new[k] < LEAST_SHARE:
            m -= 1
            where[k], where[m] = where[m], where[k]
            mu[k], mu[m] = mu[m], mu[k]
            strength[k], strength[m] = strength[m], strength[k]
            old[k], old[m] = old[m], old[k]
            new[k] = new[m]
        else:
            k += 1
    return m


@njit(cache=True)
def update_q(
    pixels: Any,
    posterior: Any,
    theta: Any,
    leak: Any,
    table: Any,
    n_features: Any,
    n_updates: Any,
    q: Any,
    evidence: Any,
    values: Any,
) -> Any:
    """Share every on pixel out among its parents: their evidence, and each pixel's bound.

    Arguments: pixels (P, 3) of (image, row, column); posterior and evidence (n, HS, WS·F); theta
    (h, w·F); q float32 (P, h·w·F), changed in place unless a pixel would be worse off; values (P).
    """
    h, run = theta.shape
    most = h * run
    where = np.empty(most, np.int64)
    mu, strength = np.empty(most), np.empty(most)
    old, new, scratch = np.empty(most), np.empty(most), np.empty(most)
    nothing = math.log(-math.expm1(-leak))
    evidence[:] = 0.0
    for p in range(len(pixels)):
        n, y, first = pixels[p, 0], pixels[p, 1], pixels[p, 2] * n_features
        m = _gather(posterior, theta, n, y, first, q[p], (where, mu, strength, old, new))
        kept = m
        before = _worth(old[:m], strength[:m], mu[:m], leak, scratch[:m])
        worth = before
        if n_updates > 0 and m > 0:
            begin = min(FIRST_UPDATES, n_updates)
            _divide(new[:m], scratch, strength[:m], mu[:m], table, begin)
            kept = _swap_small_last(m, where, mu, strength, old, new)
            _divide(new[:kept], scratch, strength[:kept], mu[:kept], table, n_updates - begin)
            # Rounded to float32 the shares must not add up to more than 1, or the bound would
            # not be one.
            for k in range(kept):
                new[k] = np.float32(new[k] * (1 - 1e-6))
            worth = _worth(new[:kept], strength[:kept], mu[:kept], leak, scratch[:kept])
        if n_updates == 0 or worth < before:
            kept = m
            worth = _worth(old[:m], strength[:m], mu[:m], leak, scratch[:m])
            new[:m] = old[:m]
        values[p] = nothing + worth
        q[p] = 0.0
        for k in range(kept):
            q[p, where[k]] = new[k]
            evidence[n, y + where[k] // run, first + where[k] % run] += scratch[k]


@njit(cache=True)
def shares(pixels: Any, posterior: Any, n_features: Any, n_weights: Any, q: Any) -> Any:
    """All pairs of an on pixel and a parent with a share: the weight's number, μ, q."""
    run = n_weights[1]
    total = 0
    for p in range(len(pixels)):
        for k in range(q.shape[1]):
            total += q[p, k] > 0
    weight, mu, share = np.empty(total, np.int32), np.empty(total), np.empty(total)
    at = 0
    for p in range(len(pixels)):
        n, y, first = pixels[p, 0], pixels[p, 1], pixels[p, 2] * n_features
        for k in range(q.shape[1]):
            if q[p, k] > 0:
                weight[at], share[at] = k, q[p, k]
                mu[at] = posterior[n, y + k // run, first + k % run]
                at += 1
    return weight, mu, share


@njit(cache=True)
def _log_terms(x: Any) -> Any:
    """f(x) = log(1 - exp(-x)), f'(x) and -f''(x)."""
    slope = 1 / math.expm1(x)
    return math.log(-math.expm1(-x)), slope, slope * (1 + slope)


@njit(cache=True)
def weight_terms(weight: Any, mu: Any, share: Any, theta: Any, leak: Any) -> Any:
    """Per weight (flat) Σ μ·q·f(θ₀+θ/q), its slope and its negative curvature in θ."""
    value, slope, bend = np.zeros(theta.size), np.zeros(theta.size), np.zeros(theta.size)
    for at in range(weight.size):
        k, s, q = weight[at], mu[at], share[at]
        log, first, second = _log_terms(leak + theta[k] / q)
        value[k] += s * q * log
        slope[k] += s * first
        bend[k] += s / q * second
    return value, slope, bend


@njit(cache=True)
def leak_terms(weight: Any, mu: Any, share: Any, theta: Any, leak: Any, n_on: Any) -> Any:
    """The bound of all on pixels, its slope and its negative curvature in θ₀."""
    nobody, value, slope, bend = float(n_on), 0.0, 0.0, 0.0
    for at in range(weight.size):
        amount = mu[at] * share[at]
        log, first, second = _log_terms(leak + theta[weight[at]] / share[at])
        value += amount * log
        slope += amount * first
        bend += amount * second
        nobody -= amount
    log, first, second = _log_terms(leak)
    return value + nobody * log, slope + nobody * first, bend + nobody * second
