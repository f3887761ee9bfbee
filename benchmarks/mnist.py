"""MNIST from the first digits of each class, and what happens when test digits are corrupted."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Benchmark, Row, measure, paper_value, selected, spread, start, table
from benchmarks.mnist_digits import (
    CLEAN,
    MOST_PER_CLASS,
    PER_CLASS,
    SETS,
    Split,
    corrupted,
    further_sets,
)
from benchmarks.mnist_models import (
    by_forward_pass,
    fit_network,
    fit_network_on_16,
    fit_shapes,
    fit_templates,
    with_lines,
)
from benchmarks.mnist_rivals import RIVALS, FittedRival
from benchmarks.own_environment import UnavailableError
from hcnet.datasets import LabelledDigits, mnist

# The paper's errors in percent: HCN, CNN.
PAPER = {
    "clean": (11.15, 9.53),
    "noise": (20.69, 39.28),
    "border": (16.97, 17.78),
    "patches": (14.52, 16.27),
    "grid": (68.52, 82.69),
    "line clutter": (37.22, 55.77),
    "deletion": (22.03, 25.05),
}
# A rival that takes seconds per digit classifies some of the first clean digits, once.
FEW = ("RCN",)
# Rivals that take minutes, or environments of their own: with --quick only if they are named.
SLOW = ("CNN, variants", "CNN, variants and corruptions", "scattering, PCA", "RCN")
CURVE = (1, 5, 10, PER_CLASS, MOST_PER_CLASS)
QUICK_PER_CLASS, QUICK_DIGITS = 10, 300


class Ours(NamedTuple):
    """How a classifier learns from images, labels and a seed, and what is then used of it."""

    fit: Callable[..., Any]
    use: Callable[[Any], Any] = lambda fitted: fitted


# The paper's algorithm.  With 100 digits of each class it would take 3 GB.
NETWORKS = {
    "HCN": Ours(fit_network),
    "forward pass: HCN": Ours(fit_network, by_forward_pass),
    "16 directions: HCN": Ours(fit_network_on_16),
}
OURS = {
    **NETWORKS,
    "TemplateClassifier": Ours(fit_templates),
    "lines kept: TemplateClassifier": Ours(fit_templates, with_lines),
    "ShapeClassifier": Ours(fit_shapes),
}
METHODS = (*OURS, *RIVALS)


def report(rows: list[Row]) -> str:
    """A table of corruptions, and one of the number of digits to learn from."""
    methods = [method for method in METHODS if any(r["method"] == method for r in rows)]
    sizes = sorted({r["per_class"] for r in rows})
    main = PER_CLASS if PER_CLASS in sizes else sizes[-1]

    def values(**wanted: Any) -> list[float]:
        found = [r for r in rows if _has(r, wanted)]
        return [100 * r["wrong"] for r in found]

    def errors(**wanted: Any) -> str:
        text = spread(values(**wanted), 2)
        few = [r["tested"] for r in rows if r["method"] in FEW and _has(r, wanted)]
        if not few:
            return text
        share = float(np.mean(values(**wanted))) / 100
        return f"{text} ± {100 * np.sqrt(share * (1 - share) / sum(few)):.1f} ({sum(few)} digits)"

    def paper(name: str) -> list[str]:
        """Both figures, each beside those of the same network and of our classifier."""
        ours = {
            f"by {method}": values(corruption=name, method=method, per_class=PER_CLASS)
            for method in ("HCN", "TemplateClassifier")
        }
        return [paper_value(figure, 2, ours) for figure in PAPER[name]]

    lines = [
        [name, *paper(name)]
        + [errors(corruption=name, method=method, per_class=main) for method in methods]
        for name in SETS
    ]
    seconds = [
        spread([r["seconds"] for r in rows if (r["method"], r["per_class"]) == (method, main)], 1)
        for method in methods
    ]
    lines.append(["seconds to learn", "17 h", "–", *seconds])
    tables = [table([f"first {main} of each class", "paper's HCN", "paper's CNN", *methods], lines)]
    if len(sizes) > 1:
        print()
        lines = [
            [str(size), *(errors(corruption=CLEAN, method=m, per_class=size) for m in methods)]
            for size in sizes
        ]
        tables.append(table(["digits of each class", *methods], lines))
    others = list(dict.fromkeys(r["corruption"] for r in rows if r["corruption"] not in SETS))
    if others:
        print()
        lines = [
            [name, *(errors(corruption=name, method=m, per_class=main) for m in methods)]
            for name in others
        ]
        tables.append(table([f"further digits, first {main} of each class", *methods], lines))
    return "\n\n".join(tables)


def _has(row: Row, wanted: dict[str, Any]) -> bool:
    return all(row[key] == value for key, value in wanted.items())


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start(
        "mnist", "digits from few examples, clean and corrupted", arguments, _add
    )
    try:
        split = Split(mnist())
        further = further_sets(options.also) if options.also else {}
    except (FileNotFoundError, ValueError) as error:
        print(error)
        return bench
    sizes = options.examples_per_class or ((QUICK_PER_CLASS,) if options.quick else CURVE)
    held_out, tested = split.held_out, split.test if options.on == "test" else split.validation
    if options.quick:  # never on test digits: it is for looking while something changes
        held_out, tested = _few(held_out), _few(split.validation)
    methods = _methods(options.only)
    if options.quick and not options.only:
        methods = tuple(method for method in methods if method not in SLOW)
    missing: set[str] = set()
    seeds = options.seeds or (1 if options.quick else 5)
    for seed in range(options.first_seed, options.first_seed + seeds):
        for per_class in sizes:
            names = SETS if per_class == PER_CLASS or len(sizes) == 1 else (CLEAN,)
            fitted: dict[Any, tuple[Any, float, Any]] = {}  # by what several methods may share
            sets = [*corrupted(tested, names, seed), *further.items()]
            for method in methods:
                if method in NETWORKS and per_class != PER_CLASS and len(sizes) > 1:
                    continue
                own = OURS.get(method)
                key = own.fit if own else method
                if method in missing or (method in FEW and seed != options.first_seed):
                    continue
                try:
                    if key not in fitted:
                        fit = partial(learn, method, split.learning(per_class), held_out, seed)
                        fitted[key] = measure(fit)
                    learner, seconds, _ = fitted[key]
                    learner = own.use(learner) if own else learner
                    for name, digits in sets[:1] if method in FEW else sets:
                        found = learner.predict(digits.images)
                        wrong = float((found != digits.labels[: len(found)]).mean())
                        bench.add(
                            method=method,
                            per_class=per_class,
                            corruption=name,
                            seed=seed,
                            wrong=wrong,
                            seconds=seconds,
                            on="validation" if tested is not split.test else "test",
                            tested=len(found),
                        )
                except UnavailableError as reason:
                    missing.add(method)
                    print(f"{method} is not measured: {reason}.\n", flush=True)
    print()
    report(bench.rows)
    return bench


def _few(digits: LabelledDigits) -> LabelledDigits:
    return LabelledDigits(digits.images[:QUICK_DIGITS], digits.labels[:QUICK_DIGITS])


def learn(method: str, digits: LabelledDigits, held_out: LabelledDigits, seed: int) -> Any:
    """A classifier of grey images by its name; all that it ever gets to see is what is passed."""
    if method in OURS:
        return OURS[method].fit(digits.images, digits.labels, seed)
    return FittedRival(method, digits, held_out, seed)


def _methods(only: str | None) -> tuple[str, ...]:
    """``rivals`` stands for all but ours."""
    there = METHODS
    if only == "rivals":
        there, only = tuple(RIVALS), None
    return selected(only, there)


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--examples-per-class",
        type=lambda text: tuple(map(int, text.split(","))),
        metavar="N,N",
        help="digits of each class to learn from, 1,5,10,40,100 unless told; corrupted digits are "
        "for 40, or where there is only one number",
    )
    parser.add_argument(
        "--also",
        type=Path,
        metavar="FILE.npz",
        help="further digits to classify: arrays of uint8 (n, 28, 28) by name, their labels in y",
    )
    parser.add_argument(
        "--on", choices=("test", "validation"), default="test", help="digits to classify"
    )


if __name__ == "__main__":
    main()
