"""Flips taken back from scanned pages, beside filters: made-up pages, or the files of a folder."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numba
import numpy as np
from scipy import ndimage

from benchmarks.harness import Benchmark, Row, measure, selected, spread, start, table
from benchmarks.pages import page_files, read_page
from hcnet import FeatureLearner
from hcnet.datasets import scanned_text
from hcnet.images import BoolArray

RATES = (0.0, 0.01, 0.03, 0.05, 0.1)
SMALLEST = 20  # pixels of a component that counts
SIZE = (900, 1500)
# Parameters of the filters.  Each gets those that leave the fewest wrong pixels on the page, which
# only somebody who has the clean page can choose.
SPECKS = (2, 3, 4, 6, 8, 12, 20)
WIDTHS = (0.6, 0.8, 1.0, 1.3)  # of the Gaussian in space
FADES = (0.15, 0.25, 0.4)  # of the Gaussian in the difference of two patches
REACH, PATCH = 7, 5

Filter = Callable[[BoolArray], list[BoolArray]]


def median(page: BoolArray) -> list[BoolArray]:
    """The majority of 3×3 pixels."""
    return [ndimage.median_filter(page, 3)]


def despeckle(page: BoolArray) -> list[BoolArray]:
    """Components and holes under so many pixels removed."""
    results = []
    for most in SPECKS:
        clean = page.copy()
        for value, structure in ((True, np.ones((3, 3))), (False, None)):
            label, _ = ndimage.label(clean == value, structure)
            small = np.bincount(label.ravel()) < most
            small[0] = False
            clean[small[label]] = not value
        results.append(clean)
    return results


def bilateral(page: BoolArray) -> list[BoolArray]:
    """Weighted by distance and by likeness to the 3×3 mean around (a joint bilateral filter)."""
    pixels = page.astype(np.float32)
    guide = ndimage.uniform_filter(pixels, 3, mode="constant")
    results = []
    for width in WIDTHS:
        for fade in FADES:
            total, weight = np.zeros_like(pixels), np.zeros_like(pixels)
            for y, x in np.ndindex(5, 5):
                shift = y - 2, x - 2
                near = np.exp(-(shift[0] ** 2 + shift[1] ** 2) / (2 * width**2))
                like = (np.roll(guide, shift, (0, 1)) - guide) ** 2
                w = np.float32(near) * np.exp(-like / np.float32(2 * fade**2))
                total += w * np.roll(pixels, shift, (0, 1))
                weight += w
            results.append(total > 0.5 * weight)
    return results


def non_local_means(page: BoolArray) -> list[BoolArray]:
    """The mean of pixels whose patches are alike, at most REACH pixels away."""
    pixels = page.astype(np.float32)
    totals, weights = np.zeros((2, len(FADES), *page.shape), np.float32)
    for y, x in np.ndindex(2 * REACH + 1, 2 * REACH + 1):
        other = np.roll(pixels, (y - REACH, x - REACH), (0, 1))
        like = ndimage.uniform_filter((other - pixels) ** 2, PATCH)
        for k, fade in enumerate(FADES):
            w = np.exp(-like / np.float32(fade**2))
            totals[k] += w * other
            weights[k] += w
    return list(totals > 0.5 * weights)


FILTERS: dict[str, Filter] = {
    "median 3×3": median,
    "despeckle": despeckle,
    "bilateral": bilateral,
    "non-local means": non_local_means,
}


def vanished(before: BoolArray, after: BoolArray) -> int:
    """Number of components of `before` that count and have less than half of their ink after."""
    label, n = ndimage.label(before, np.ones((3, 3)))
    size = np.bincount(label[before], minlength=n + 1)[1:]
    left = np.bincount(label[before & after], minlength=n + 1)[1:]
    return int(((size >= SMALLEST) & (2 * left < size)).sum())


def figures(page: BoolArray, results: list[BoolArray]) -> Row:
    """What the best of some results has wrong."""
    best = min(results, key=lambda result: int((result != page).sum()))
    return {
        "wrong": int((best != page).sum()),
        "changed": float((best != page).mean()),
        "lost": vanished(page, best),
        "invented": vanished(best, page),
    }


def denoise_page(
    bench: Benchmark, name: str, page: BoolArray, other: BoolArray, options: argparse.Namespace
) -> None:
    """All methods on one page at all rates of flips."""
    clean = FeatureLearner(algorithm="soft", random_state=0).fit(other[None, None])
    for rate in RATES:
        rng = np.random.default_rng(options.first_seed)
        noisy = page ^ (rng.random(page.shape) < rate)
        facts = {"page": name, "rate": rate, "flips": int((noisy != page).sum())}
        own = FeatureLearner(algorithm="soft", random_state=0).fit(noisy[None, None])
        for method, learner in (("parts of the page", own), ("parts of another", clean)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                work = partial(learner.denoise, noisy[None, None])
                result, seconds, memory = measure(work)
            row = figures(page, [result[0, 0]]) | {"seconds": seconds, "megabytes_peak": memory}
            bench.add(**facts, method=method, **row)
        for method, apply in FILTERS.items():
            results, seconds, _ = measure(partial(apply, noisy))
            row = figures(page, results) | {"seconds": seconds / len(results)}
            bench.add(**facts, method=method, **row)


def report(rows: list[Row]) -> str:
    """A row per page and rate, or per rate for made-up pages."""
    made = all(row["page"].startswith("seed ") for row in rows)
    groups = dict.fromkeys(("made-up" if made else row["page"], row["rate"]) for row in rows)
    lines = []
    for name, rate in groups:
        mine = [r for r in rows if r["rate"] == rate and (made or r["page"] == name)]
        methods = list(dict.fromkeys(r["method"] for r in mine))
        by = {m: [r for r in mine if r["method"] == m] for m in methods}
        cells = [
            f"{spread([r['wrong'] for r in by[m]], 0)}; "
            f"{sum(r['lost'] for r in by[m])}, {sum(r['invented'] for r in by[m])}"
            for m in methods
        ]
        flips = spread([r["flips"] for r in by[methods[0]]], 0)
        seconds = max(r["seconds"] for r in by[methods[0]])
        lines.append([name, f"{100 * rate:g} %", flips, *cells, f"{seconds:.1f}"])
    methods = list(dict.fromkeys(r["method"] for r in rows))
    print(f"Wrong pixels; components of {SMALLEST} pixels or more lost, invented.\n")
    return table(["page", "flips", "pixels", *methods, "seconds"], lines)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument(
        "--pages", type=Path, metavar="FOLDER", help="the page files of a folder; upper half"
    )
    parser.set_defaults(first_seed=9000)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("denoising", "flips taken back, one core", arguments, add_options)
    numba.set_num_threads(1)
    if options.pages is not None:
        files = {path.stem: path for path in page_files(options.pages)}
        for name in selected(options.only, list(files)):
            whole = read_page(files[name])[0, 0]
            # The middle of a page, and for the parts of another page the rows below.
            middle, rows = len(whole) // 2, 400 if options.quick else 1000
            page, other = whole[max(middle - rows, 0) : middle], whole[middle : middle + rows]
            denoise_page(bench, name, page, other, options)
    else:
        size = (450, 900) if options.quick else SIZE
        n = options.seeds or (1 if options.quick else 3)
        for seed in range(options.first_seed, options.first_seed + n):
            page, other = (
                scanned_text(size=size, random_state=s).images[0, 0] for s in (seed, seed + 500)
            )
            denoise_page(bench, f"seed {seed}", page, other, options)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
