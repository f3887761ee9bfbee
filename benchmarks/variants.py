"""Whether the groups of parts with variants are found, and what they are worth.

Shapes whose parts have two or three forms, with labels; words of letters in two fonts, without; and
digits.  Each beside the same network whose pools have no third dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import rotate
from scipy.optimize import linear_sum_assignment

from benchmarks.harness import Benchmark, Row, measure, selected, spread, start, table
from benchmarks.mnist_digits import Split
from benchmarks.mnist_models import LEARNING, for_new_digits
from hcnet import HCN, Layer
from hcnet.datasets import mnist, shapes, words
from hcnet.hierarchy.explaining import all_allowed, host_joint
from hcnet.images import Images
from hcnet.metrics import groups_found, matched_iou
from hcnet.preprocessing import OrientedEdges

# Four letters in two fonts: in this ring of words no letter has a place of its own.
WORDS = ("AC", "CH", "HT", "TA")
N_TEST = 1000
# Seeds for which the network without the third dimension is learned, too.
N_WITHOUT = 5
BITS = np.log(2)


@dataclass(frozen=True)
class Task:
    """Data with known groups, and a network for them."""

    data: Any
    test: Any
    layers: list[Layer]
    options: dict[str, Any]
    weights: list[NDArray[np.bool_]]  # that made the data
    variants: int
    y: NDArray[np.int64] | None = None

    @property
    def truth(self) -> NDArray[np.int64]:
        """The template of every test image."""
        return self.test.templates if hasattr(self.test, "templates") else self.test.labels


def shapes_task(variants: int, seed: int) -> Task:
    """Shapes: an image is a square or circle and a diagonal, each in one of its forms."""
    data = shapes(variants=variants, n_images=100 * variants, random_state=seed)
    test = shapes(variants=variants, n_images=N_TEST, random_state=seed + 1_000_000)
    how = {"damping": 0.05}
    layers = [Layer(4 * variants, size=21, variants=variants, **how)]
    layers += [Layer(perturbation=0.3, **how)]
    options = {"templates_per_class": 2, "max_iter": 160, "n_init": 2}
    known = [data.features, data.template_weights]
    return Task(data, test, layers, options, known, variants, data.labels)


def words_task(seed: int) -> Task:
    """Words of two letters, each in one of two fonts; nothing has a label."""
    data = words(WORDS, n_images=150, random_state=seed)
    test = words(WORDS, n_images=N_TEST, random_state=seed + 1_000_000)
    (height, width), how = data.features.shape[2:], {"damping": 0.05}
    layers = [Layer(2 * len(data.letters), size=(height, width), pool=1, variants=2, **how)]
    layers += [Layer(perturbation=0.3, p_W=0.05, **how)]
    columns = data.images.shape[3] - width - 1  # of R², below its pool of 3×3
    known = np.zeros((len(WORDS), len(data.letters), 1, columns), bool)
    for template, word in zip(known, WORDS, strict=True):
        for k, letter in enumerate(word):
            template[data.letters.index(letter), 0, k * (width + 1)] = True
    options = {"n_classes": len(WORDS), "max_iter": 150, "n_init": 8}
    return Task(data, test, layers, options, [data.features, known], 2)


TASKS = {
    "shapes in 2 forms": lambda seed: shapes_task(2, seed),
    "shapes in 3 forms": lambda seed: shapes_task(3, seed),
    "words in 2 fonts": words_task,
}


def without(task: Task) -> list[Layer]:
    """The same layers without the third dimension."""
    first, last = task.layers
    return [Layer(**{**vars(first), "variants": 1}), last]


def wrong(model: HCN, task: Task) -> float:
    """Share of test images in the wrong template; templates are matched one to one."""
    found, truth = model.cluster(task.test.images), task.truth
    counts = np.zeros((len(model.weights_[-1]), truth.max() + 1))
    np.add.at(counts, (found, truth), 1)
    return 1 - float(counts[linear_sum_assignment(-counts)].sum()) / len(truth)


def known(task: Task) -> HCN:
    """The network that made the data."""
    model = HCN(task.layers, n_classes=len(task.weights[-1]))
    return model.set_weights(task.weights, task.data.images.shape[2:])


def known_bits(task: Task) -> float:
    """Bits of the images and weights with the network that made them."""
    model, X = known(task), task.data.images
    network, images = model._model.network, Images(X, np.ones(X.shape, bool))
    return -host_joint(network, images, all_allowed(network, len(X)), model.weights_) / BITS


def run(bench: Benchmark, name: str, seed: int, first_seed: int) -> None:
    """One seed: with the third dimension, and without."""
    task = TASKS[name](seed)
    groups = len(task.data.features) // task.variants
    # Far worse than any difference between seeds: some are enough.
    flat = [without(task)] if seed < first_seed + N_WITHOUT else []
    for layers in (task.layers, *flat):
        model = HCN(layers, random_state=seed, **task.options)
        _, seconds, _ = measure(lambda model=model: model.fit(task.data.images, task.y))
        W1 = model.weights_[0]
        deep = layers[0].variants > 1
        bench.add(
            task=name,
            variants=deep,
            seed=seed,
            groups=groups_found(W1, task.data.features, task.variants) if deep else None,
            of_groups=groups,
            iou=float(matched_iou(W1, task.data.features).mean()),
            kilobits=-model.log_joint_ / BITS / 1000,
            true_kilobits=known_bits(task) / 1000,
            wrong=100 * wrong(model, task),
            true_wrong=100 * wrong(known(task), task),
            seconds=seconds,
        )


# Networks for digits: what the pools of both layers choose from, and whether an edge between two
# directions is in the channels of both.
DIGITS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "edges in two channels": ({}, {}, True),
    "edges in one channel": ({}, {}, False),
    "ring of 3, edges in one": ({"pool_features": 3, "feature_order": "ring"}, {}, False),
    "ring of 3, weighted 1:2:1": (
        {
            "pool_features": 3,
            "feature_order": "ring",
            "pool_prior": np.reshape([1, 2, 1], (3, 1, 1)),
        },
        {},
        False,
    ),
    "features in 2 variants": ({"variants": 2}, {}, True),
    "the same, learned priors": ({"variants": 2}, {"pool_prior": "learned"}, True),
}
PER_CLASS, FEATURES, TEMPLATES, TURNS = 10, 48, 10, (0, 15, 30)


def run_digits(bench: Benchmark, name: str, seed: int) -> None:
    """One seed: errors on test digits as they are, and turned to either side."""
    first, last, shared = DIGITS[name]
    split, edges = Split(mnist()), OrientedEdges(8, shared=0.9 if shared else 1.0)
    train, how = split.learning(PER_CLASS), {"pool": 3, "damping": 0.5, "perturbation": 0.1}
    learned = HCN(
        [
            Layer(FEATURES, size=26, pool_border="same", p_W=0.001, **how, **first),
            Layer(p_W=0.05, **how, **last),
        ],
        templates_per_class=TEMPLATES,
        max_iter=40,
        n_init=1,
        engine="beliefs",
        inference="match",
        random_state=seed,
        **LEARNING,
    )
    _, seconds, _ = measure(lambda: learned.fit(edges.transform(train.images), train.labels))
    # The priors of pools as they were learned, or given.
    levels = learned._model.network.levels
    kept = [
        replace(layer, pool_prior=level.window, perturbation=0.0)
        for layer, level in zip(learned.layers, levels, strict=True)
    ]
    model = for_new_digits(learned.set_params(layers=kept))
    errors = {}
    for turn in TURNS:
        images = split.test.images[:N_TEST]
        signs = np.where(np.arange(len(images)) % 2, 1, -1)
        turned = [
            rotate(image, sign * turn, reshape=False, order=1) if turn else image
            for image, sign in zip(images, signs, strict=True)
        ]
        predicted = model.predict(edges.transform(np.stack(turned)))
        errors[f"turned_{turn}"] = 100 * float((predicted != split.test.labels[:N_TEST]).mean())
    bench.add(task="digits", network=name, seed=seed, seconds=seconds, **errors)


def report_digits(rows: list[Row]) -> None:
    """The table of digits: a row per network."""
    lines = []
    for name in DIGITS:
        mine = [r for r in rows if r.get("network") == name]
        if mine:
            errors = [spread([r[f"turned_{turn}"] for r in mine], 1) for turn in TURNS]
            lines.append([name, *errors, spread([r["seconds"] for r in mine], 0)])
    if lines:
        head = [
            "digits",
            *(f"turned by {turn}°: errors in %" if turn else "errors in %" for turn in TURNS),
        ]
        table([*head, "seconds"], lines)


def report(rows: list[Row]) -> str:
    """The table: a row per task and network."""
    lines = []
    for name in TASKS:
        for deep in (True, False):
            mine = [r for r in rows if r["task"] == name and r["variants"] == deep]
            if not mine:
                continue
            right = sum(r["groups"] == r["of_groups"] for r in mine)
            lines.append(
                [
                    name,
                    "with variants" if deep else "without",
                    f"{right}/{len(mine)}" if deep else "–",
                    spread([r["iou"] for r in mine], 2),
                    spread([r["kilobits"] for r in mine], 1),
                    spread([r["true_kilobits"] for r in mine], 1),
                    spread([r["wrong"] for r in mine], 1),
                    spread([r["true_wrong"] for r in mine], 1),
                    spread([r["seconds"] for r in mine], 0),
                ]
            )
    head = ["data", "network", "all groups right", "IoU of W¹", "kilobits", "true weights"]
    return table([*head, "test error %", "true weights", "seconds"], lines)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("variants", "parts with variants, learned by messages", arguments)
    n = options.seeds or (1 if options.quick else 20)
    every = (*TASKS, "digits")
    chosen = ("words in 2 fonts",) if options.quick else selected(options.only, every)
    for name in chosen:
        if name == "digits":
            for seed in range(options.first_seed, options.first_seed + min(n, 5)):
                for network in DIGITS:
                    run_digits(bench, network, seed)
            continue
        for seed in range(options.first_seed, options.first_seed + n):
            run(bench, name, seed, options.first_seed)
    report([row for row in bench.rows if row["task"] != "digits"])
    report_digits(bench.rows)
    return bench


if __name__ == "__main__":
    main()
