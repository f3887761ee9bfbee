"""The model, from its definition in the paper: plain loops, no code of the package.

An array of bits of one image is also a whole number, so that sets of them are short arrays.
"""

import math

import numpy as np

from hcnet.hierarchy.network import CheckedLayer, build_network
from hcnet.images import Images, Noise
from hcnet.layers import ClassLayer

NOISE = Noise(0.04, 0.07)


def layer(
    n_features,
    size,
    pool=(1, 1),
    pool_border="full",
    perturbation=0.0,
    p_W=0.3,
    depth=1,
    order="groups",
    prior="uniform",
):
    """Of a pool that chooses from `depth` features below; `prior` has four dimensions."""
    window = pool, pool_border, perturbation
    return CheckedLayer(n_features, size, *window, p_W, 0.5, depth, order, prior)


def network(*layers, image_size, categories, p_on=None, channels=1, noise=NOISE, seed=0):
    classes = ClassLayer(tuple(categories), p_on)
    return build_network(layers, classes, noise, channels, image_size, np.random.default_rng(seed))


def random_weights(net, rng, on):
    """Features with so many elements on, per level."""
    weights = []
    for level, k in zip(net.levels, on, strict=True):
        W = np.zeros((level.features.n_features, math.prod(level.weight_shape[1:])), bool)
        for row in W:
            row[rng.choice(W.shape[1], k, replace=False)] = True
        weights.append(W.reshape(level.weight_shape))
    return weights


def random_images(net, n, rng, on=0.4, observed=1.0):
    shape = (n, net.n_channels, *net.image_size)
    return Images(rng.random(shape) < on, rng.random(shape) < observed)


def one(images, k):
    return images.pixels[k], images.observed[k]


def pack(bits):
    return sum(1 << int(k) for k in np.flatnonzero(bits))


def unpack(masks, shape):
    """Bits of a whole number, or of many: (many, *shape)."""
    flat = np.asarray(masks)[..., None] >> np.arange(math.prod(shape)) & 1
    return flat.astype(bool).reshape(*np.shape(masks), *shape)


def placed(S, W):
    """R = bconv(S, W) of one image: the OR of all placed features."""
    _, channels, h, w = W.shape
    R = np.zeros((channels, S.shape[1] + h - 1, S.shape[2] + w - 1), bool)
    for f, i, j in np.argwhere(S):
        for a, r, c in np.argwhere(W[f]):
            R[a, i + r, j + c] = True
    return R


def features_below(pool, a):
    """The features that channel a of R can choose, and by which depth."""
    if pool.feature_order == "groups":
        return {a * pool.depth + d: d for d in range(pool.depth)}
    near = {a + d - (pool.depth - 1) // 2: d for d in range(pool.depth)}
    if pool.feature_order == "ring":
        return {b % pool.n_below: d for b, d in near.items()}
    return {b: d for b, d in near.items() if 0 <= b < pool.n_below}


def members(level, a, r, c):
    """All choices of an element of R: number, feature, row and column below, log-probability."""
    pool, (h, w), (H, W) = level.pool, level.pool.window, level.pool.below_size
    top, left = (0, 0) if pool.border == "full" else ((h - 1) // 2, (w - 1) // 2)
    window = level.window[a if len(level.window) > 1 else 0]
    inside = [
        (d * h * w + i * w + j, b, r + i - top, c + j - left, window[d, i, j])
        for b, d in features_below(pool, a).items()
        for i, j in np.ndindex(h, w)
        if 0 <= r + i - top < H and 0 <= c + j - left < W
    ]
    total = sum(p for *_, p in inside)
    return [(m, b, y, x, math.log(p / total)) for m, b, y, x, p in sorted(inside)]


def moves(level, a, r, c):
    """Where an active element of R can move to, with log-probabilities."""
    return {(b, y, x): p for _, b, y, x, p in members(level, a, r, c)}


def merge(masks, log_p, combine):
    """Every mask once; `combine` is np.maximum for the best of the ways to it, or np.logaddexp."""
    once, where = np.unique(masks, return_inverse=True)
    total = np.full(len(once), -np.inf)
    combine.at(total, where, log_p)
    return once, total


def shifted(level, R, combine):
    """All S below an R, as masks, with log p(S | R)."""
    shape = (level.pool.n_below, *level.pool.below_size)
    masks, log_p = np.zeros(1, np.int64), np.zeros(1)
    for a, r, c in np.argwhere(R):
        options = moves(level, a, r, c)
        bits = [1 << int(np.ravel_multi_index(at, shape)) for at in options]
        masks, log_p = merge(
            (masks[:, None] | np.array(bits)).ravel(),
            (log_p[:, None] + list(options.values())).ravel(),
            combine,
        )
    return masks, log_p


def top_shape(net):
    return net.classes.n_templates, *net.top_size


def tops(net, category=None):
    """All top S, as masks, with log-probabilities."""
    categories, positions = net.classes.categories, math.prod(net.top_size)
    n = len(categories) * positions
    free = [m for m in range(n) if category in (None, categories[m // positions])]
    if net.classes.p_on is not None:
        masks = np.array([m for m in range(2**n) if not m & ~sum(1 << k for k in free)])
        on = unpack(masks, (n,)).sum(axis=1)
        p = net.classes.p_on
        return masks, on * math.log(p) + (len(free) - on) * math.log1p(-p)
    K = len(set(categories)) if category is None else 1
    sizes = [categories.count(categories[m // positions]) * positions for m in free]
    return np.array([1 << m for m in free]), -np.log(np.array(sizes) * K)


def images_before_noise(net, weights, combine, masks, log_p):
    """All S⁰ below some top S, as masks, with log-probabilities."""
    shape = top_shape(net)
    for level, W in zip(reversed(net.levels), reversed(weights), strict=True):
        parts = []
        for S, above in zip(unpack(masks, shape), log_p, strict=True):
            below, cost = shifted(level, placed(S, W), combine)
            parts.append((below, above + cost))
        masks, log_p = merge(*map(np.concatenate, zip(*parts, strict=True)), combine)
        shape = (level.pool.n_below, *level.pool.below_size)
    return masks, log_p


def log_likelihood(noise, X, observed, S):
    """Log p(X | S⁰) of one image; S may have leading axes."""
    p_on = np.where(S, 1 - noise.p01, noise.p10)
    return np.where(observed, np.log(np.where(X, p_on, 1 - p_on)), 0.0).sum(axis=(-3, -2, -1))


def log_joints(net, weights, X, observed, S):
    """Log p(X, H | W) of one image with the given S⁰ … Sᴸ: one value for each possible U.

    Empty if the configuration is impossible: an S that no movement of R makes.
    """
    masks, log_p = tops(net)
    at = np.flatnonzero(masks == pack(S[-1]))
    totals = log_p[at] + log_likelihood(net.noise, X, observed, S[0])
    for k, (level, W) in enumerate(zip(net.levels, weights, strict=True)):
        ways = {(0, 0.0)}  # which S are on, log-probability
        for a, r, c in np.argwhere(placed(S[k + 1], W)):
            ways = {
                (mask | 1 << int(np.ravel_multi_index(to, S[k].shape)), round(value + p, 9))
                for mask, value in ways
                for to, p in moves(level, a, r, c).items()
                if S[k][to]
            }
        costs = np.array([value for mask, value in ways if mask == pack(S[k])])
        totals = (totals[:, None] + costs).ravel()
    return totals


CLEAR = Noise(1e-4, 1e-3)  # evidence that reaches the top
# Networks that messages are passed through.
PASSING = {
    "two levels": network(
        layer(3, (3, 3), (2, 2)),
        layer(3, (2, 2), (2, 2), perturbation=0.3),
        image_size=(6, 6),
        categories=(0, 0, 1),
        noise=CLEAR,
    ),
    "two levels, same": network(
        layer(2, (2, 2), (2, 3), "same"),
        layer(2, (2, 3), (3, 1), "same"),
        image_size=(4, 5),
        channels=2,
        categories=(0, 1),
        p_on=0.1,
        noise=CLEAR,
    ),
    "three levels": network(
        layer(3, (2, 2), (2, 2)),
        layer(2, (2, 2), (2, 1)),
        layer(3, (1, 2), (1, 2), perturbation=0.2),
        image_size=(5, 6),
        categories=(0, 1, 1),
        noise=CLEAR,
    ),
    "variants": network(
        layer(4, (2, 2), (2, 2)),
        layer(3, (2, 2), (2, 1), depth=2, prior=np.array([1, 3, 2, 2]).reshape(2, 2, 1, 1)),
        image_size=(6, 5),
        categories=(0, 1, 1),
        noise=CLEAR,
    ),
    "ring": network(
        layer(3, (2, 2), (2, 1), depth=3, order="ring", perturbation=0.4),
        layer(3, (2, 2), (1, 2), "same", depth=2, order="line"),
        image_size=(4, 4),
        channels=4,
        categories=(0, 1, 0),
        noise=CLEAR,
    ),
}
