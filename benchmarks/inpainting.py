"""Filling in a quarter of every test image: a block, or pixels at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.ndimage import maximum_filter

from benchmarks.harness import Benchmark, Row, spread, start, table
from benchmarks.shape_models import network, test_set, true_network
from hcnet import HCN
from hcnet.datasets import shapes
from hcnet.images import BoolArray

SIZE = 21
METHODS = (
    "explained",
    "explained, true W",
    "forward-backward",
    "forward-backward, true W",
    "nearest neighbour",
    "prior",
)


def masks(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> BoolArray:
    """A quarter of the pixels of every image is missing."""
    n, _, H, W = shape
    if kind == "random":
        order = rng.random((n, 1, H * W)).argsort(axis=2)
        return (order < H * W // 4).reshape(shape)
    hidden = np.zeros(shape, bool)
    h, w = H // 2, W // 2
    corners = np.stack([rng.integers(H - h + 1, size=n), rng.integers(W - w + 1, size=n)], axis=1)
    for k, (r, c) in enumerate(corners):
        hidden[k, :, r : r + h, c : c + w] = True
    return hidden


def nearest(train: BoolArray, images: BoolArray, mask: BoolArray) -> BoolArray:
    """The training image that agrees best with the pixels that are seen."""
    flat, known = train.reshape(len(train), -1), ~mask.reshape(len(mask), -1)
    X = images.reshape(len(images), -1)
    wrong = (X & known).astype(np.float32) @ (~flat).T.astype(np.float32)
    wrong += (~X & known).astype(np.float32) @ flat.T.astype(np.float32)
    return train[wrong.argmin(axis=1)]


def fills(model: HCN, truth: HCN, train: BoolArray, images: BoolArray) -> dict[str, Callable]:
    """What every method makes of images and mask."""

    def by(network: HCN, inference: str) -> Callable:
        return lambda mask: network.set_params(inference=inference).inpaint(images, mask)

    mean = train.mean(axis=0) > 0.5
    return {
        "explained": by(model, "explain"),
        "explained, true W": by(truth, "explain"),
        "forward-backward": by(model, "passing"),
        "forward-backward, true W": by(truth, "passing"),
        "nearest neighbour": lambda mask: nearest(train, images, mask),
        "prior": lambda mask: np.broadcast_to(mean, images.shape),
    }


def judge(filled: BoolArray, clean: BoolArray, mask: BoolArray) -> dict[str, float]:
    """Under the mask: wrong pixels, and on pixels with no counterpart within one pixel."""
    near = (1, 1, 3, 3)
    on, true = filled & mask, clean & mask
    missed = true & ~maximum_filter(np.where(mask, filled, clean), size=near)
    made_up = on & ~maximum_filter(clean, size=near)
    return {
        "wrong": float((filled != clean)[mask].mean()),
        "missed": float(missed.sum() / true.sum()),
        "made_up": float(made_up.sum() / max(on.sum(), 1)),
        "on": float(on.sum() / true.sum()),
    }


def report(rows: list[Row]) -> str:
    """The table: a row per kind of mask and method."""
    lines = []
    for kind in ("block", "random"):
        for method in METHODS:
            mine = [r for r in rows if r["mask"] == kind and r["method"] == method]
            if mine:
                lines.append(
                    [
                        kind,
                        method,
                        spread([100 * r["wrong"] for r in mine], 1),
                        spread([100 * r["on"] for r in mine], 0),
                        spread([100 * r["missed"] for r in mine], 1),
                        spread([100 * r["made_up"] for r in mine], 1),
                    ]
                )
    return table(
        [
            "missing quarter",
            "filled in by",
            "wrong pixels %",
            "on pixels, % of the true",
            "missed by more than a pixel %",
            "made up %",
        ],
        lines,
    )


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("inpainting", "a quarter of every test image is missing", arguments)
    n = options.seeds or (1 if options.quick else 10)
    test = test_set(SIZE, 200 if options.quick else 1000, options.first_seed)
    truth = true_network(test, supervised=False)
    for seed in range(options.first_seed, options.first_seed + n):
        train = shapes(feature_size=SIZE, random_state=seed)
        model = network(SIZE, supervised=False, random_state=seed).fit(train.images)
        methods = fills(model, truth, train.images, test.images)
        for kind in ("block", "random"):
            mask = masks(kind, test.images.shape, np.random.default_rng(seed))
            for method in METHODS:
                filled = methods[method](mask)
                bench.add(mask=kind, method=method, seed=seed, **judge(filled, test.clean, mask))
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
