"""Parts of scanned pages: made-up ones with known glyphs, or the page files of a folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numba
import numpy as np
from PIL import Image
from scipy import ndimage

from benchmarks import page_kinds
from benchmarks.harness import Benchmark, Row, measure, seeds, selected, spread, start, table
from hcnet import FeatureLearner
from hcnet.datasets import ScannedText, scanned_text
from hcnet.datasets.parts_data import render
from hcnet.image_files import read_images
from hcnet.images import BoolArray, Images
from hcnet.metrics import glyph_scores
from hcnet.objective import image_bits
from hcnet.plotting import show_parts

STRENGTHS = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
DEFAULT = 1  # the strength that the targets are for
# Least share of glyphs in pure parts; most parts per shape; most placements per glyph.
PURE, PARTS, PLACEMENTS = 0.98, 1.15, 1.05
# On page files: most placements per component, least share of components explained, seconds, MB.
PER_COMPONENT, EXPLAINED, SECONDS, MEGABYTES = 1.1, 0.95, 30, 1000
SMALLEST = 20  # pixels of a component that counts
SUFFIXES = (".tif", ".tiff", ".png", ".pbm")
RAW = "ptt5.raw"  # CCITT test page 5: 2376 rows of 216 bytes, 1 is ink
RAW_SIZE = (2376, 1728)
# Bytes of the lossless bilevel coder of DjVu, which matches shapes, and the figures of a search
# over connected components only, with a coder that mixes contexts: parts, placements per component,
# bytes.
CJB2 = {"feyn": 59790, "witten": 38719, "ptt5": 22534, "lucasta.1.300": 16041, "patent": 8589}
COMPONENTS_ONLY = {
    "feyn": (162, 1.01, 46061),
    "witten": (123, 0.99, 30151),
    "ptt5": (105, 0.99, 17827),
    "lucasta.1.300": (59, 0.90, 12935),
    "patent": (155, 1.05, 6712),
}


def learn(X: BoolArray, seed: int, algorithm: str) -> tuple[FeatureLearner, Row]:
    """A fitted learner, and the figures that need no truth."""
    learner = FeatureLearner(algorithm=algorithm, random_state=seed)
    learner, seconds, megabytes = measure(lambda: learner.fit(X))
    copies = np.bincount(learner.placements_[:, 1], minlength=len(learner.features_))
    bits = learner.compression_ratio_ * image_bits(Images(X, np.ones(X.shape, bool)))
    return learner, {
        "seed": seed,
        "algorithm": algorithm,
        "parts": int((copies >= 2).sum()),
        "placements": len(learner.placements_),
        "seconds": seconds,
        "megabytes_peak": megabytes,
        "bits": float(bits),
        "bytes": float(bits) / 8,
    }


def explained(X: BoolArray, learner: Any) -> tuple[int, float, float]:
    """Number of components that count, the share with half of their ink under parts; that of ink.

    Components are 8-connected.  Two touching letters are one component, so the ink under all
    placements counts together.
    """
    covered = render(learner.features_, learner.placements_, X.shape)
    n_components, n_explained = 0, 0
    ink = float((X & covered).sum() / max(X.sum(), 1))
    for page, under in zip(X[:, 0], covered[:, 0], strict=True):
        labels, n = ndimage.label(page, np.ones((3, 3), int))
        size = np.bincount(labels[page], minlength=n + 1)
        half = 2 * np.bincount(labels[page & under], minlength=n + 1) >= size
        n_components += int((size >= SMALLEST).sum())
        n_explained += int((half & (size >= SMALLEST)).sum())
    return n_components, n_explained / max(n_components, 1), ink


def glyph_row(learner: FeatureLearner, data: ScannedText) -> Row:
    """The figures that need the truth."""
    scores = glyph_scores(learner.placements_, learner.features_, data)
    return {
        "glyphs": len(data.shapes),
        "in_pure_parts": scores.in_pure_parts,
        "parts_per_shape": scores.parts_per_shape,
        "placements_per_glyph": scores.placements_per_glyph,
        "missing": scores.missing,
    }


def read_page(path: Path) -> BoolArray:
    """All pages of a file, bool (n, 1, height, width)."""
    if path.name == RAW:
        bits = np.unpackbits(np.fromfile(path, np.uint8))
        return bits.reshape(1, 1, *RAW_SIZE).astype(bool)
    return read_images(path).X


def page_files(folder: Path) -> list[Path]:
    """The page files of a folder."""
    files = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in SUFFIXES or p.name == RAW]
    if not files:
        raise SystemExit(f"No page in {folder}: put .tif, .png or .pbm files there, or {RAW}.")
    return files


def report_pages(rows: list[Row]) -> str:
    """The table of page files: a row per file."""
    lines = []
    for row in rows:
        parts, per_component, mixed = COMPONENTS_ONLY.get(row["page"], ("–", "–", "–"))
        memory = row["megabytes_peak"]
        lines.append(
            [
                row["page"],
                row["components"],
                row["parts"],
                parts,
                f"{row['placements_per_component']:.2f}",
                per_component,
                f"{100 * row['explained']:.1f} %",
                f"{100 * row['ink_explained']:.1f} %",
                f"{row['seconds']:.1f}",
                "–" if memory is None else f"{memory:.0f}",
                f"{row['bits']:,.0f}",
                f"{row['bytes']:,.0f}",
                mixed,
                CJB2.get(row["page"], "–"),
            ]
        )
    return table(
        [
            "page",
            f"components ≥ {SMALLEST} px",
            "parts",
            "of components only",
            f"placements per component (≤ {PER_COMPONENT})",
            "of components only",
            f"explained (≥ {100 * EXPLAINED:.0f} %)",
            "of the ink",
            f"seconds (≤ {SECONDS})",
            f"peak MB (≤ {MEGABYTES})",
            "bits",
            "bytes",
            "of components only, mixed contexts",
            "cjb2 bytes",
        ],
        lines,
    )


def report_kinds(rows: list[Row]) -> str:
    """The table of other kinds of pages: a row per page."""

    def share(row: Row, name: str) -> str:
        return f"{100 * row[name]:.1f} %" if name in row else "–"

    def ratio(row: Row, name: str) -> str:
        return f"{row[name]:.2f}" if name in row else "–"

    return table(
        [
            "kind",
            "seed",
            "components",
            "shapes",
            "parts",
            "placements",
            "in pure parts",
            "parts per shape",
            "placements per shape",
            "missing",
            "components explained",
            "of the ink",
            "seconds",
            "bytes",
        ],
        [
            [
                row["kind"],
                row["seed"],
                row["components"],
                row.get("glyphs", "–"),
                row["parts"],
                row["placements"],
                share(row, "in_pure_parts"),
                ratio(row, "parts_per_shape"),
                ratio(row, "placements_per_glyph"),
                share(row, "missing"),
                share(row, "explained"),
                share(row, "ink_explained"),
                f"{row['seconds']:.1f}",
                f"{row['bytes']:,.0f}",
            ]
            for row in rows
        ],
    )


def meets_targets(row: Row) -> bool:
    """Whether a made-up page is explained as it should be at the default strength."""
    return bool(
        row["in_pure_parts"] >= PURE
        and row["parts_per_shape"] <= PARTS
        and row["placements_per_glyph"] <= PLACEMENTS
    )


def report(rows: list[Row]) -> str:
    """The table of made-up pages: a row per strength."""
    if rows and "page" in rows[0]:
        return report_pages(rows)
    if rows and "kind" in rows[0]:
        return report_kinds(rows)
    lines = []
    for strength in sorted({row["strength"] for row in rows}):
        mine = [row for row in rows if row["strength"] == strength]
        lines.append(
            [
                f"{strength:g}" + (" (default)" if strength == DEFAULT else ""),
                seeds(mine),
                spread([row["glyphs"] for row in mine], 0),
                spread([100 * row["in_pure_parts"] for row in mine], 2),
                spread([row["parts_per_shape"] for row in mine], 2),
                spread([row["placements_per_glyph"] for row in mine]),
                spread([100 * row["missing"] for row in mine], 2),
                f"{sum(map(meets_targets, mine))}/{len(mine)}",
                spread([row["parts"] for row in mine], 0),
                spread([row["bytes"] for row in mine], 0),
                spread([row["seconds"] for row in mine], 1),
                f"{max(row['megabytes_peak'] or 0 for row in mine):.0f}",
            ]
        )
    return table(
        [
            "strength",
            "seeds",
            "glyphs",
            f"% in pure parts (≥ {100 * PURE:.0f})",
            f"parts per shape (≤ {PARTS})",
            f"placements per glyph (≤ {PLACEMENTS})",
            "% without placement",
            "all three",
            "parts",
            "bytes",
            "seconds",
            "peak MB",
        ],
        lines,
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument(
        "--pages", type=Path, metavar="FOLDER", help="learn the page files of a folder"
    )
    parser.add_argument(
        "--sheets", type=Path, metavar="FOLDER", help="of --kinds: write pages and parts there"
    )
    parser.add_argument(
        "--kinds", action="store_true", help="learn made-up pages of other kinds than print"
    )
    parser.add_argument("--algorithm", default="soft", help="of the FeatureLearner")


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("pages", "parts of scanned pages, one core", arguments, add_options)
    numba.set_num_threads(1)
    size = (500, 1275) if options.quick else None
    compiling = scanned_text(size=(400, 900), random_state=0)
    learn(compiling.images, 0, options.algorithm)
    if options.kinds:
        for seed in range(options.first_seed, options.first_seed + (options.seeds or 1)):
            for kind, data in page_kinds.kinds(seed, options.quick):
                if data is None:
                    print(f"{kind}: left out, since its font or Pillow's Raqm is not installed.")
                    continue
                X = data.images if isinstance(data, ScannedText) else data
                learner, figures = learn(X, seed, options.algorithm)
                if options.sheets is not None:
                    options.sheets.mkdir(parents=True, exist_ok=True)
                    show_parts(learner).save(options.sheets / f"{kind}-{seed}-parts.png")
                    Image.fromarray(~X[0, 0]).save(options.sheets / f"{kind}-{seed}.png")
                n, share, ink = explained(X, learner)
                truth = glyph_row(learner, data) if isinstance(data, ScannedText) else {}
                bench.add(
                    kind=kind, components=n, explained=share, ink_explained=ink, **truth, **figures
                )
    elif options.pages is not None:
        files = {path.stem: path for path in page_files(options.pages)}
        for name in selected(options.only, list(files)):
            X = read_page(files[name])
            if options.quick:
                X = X[:1, :, :600, :1300]
            learner, figures = learn(X, options.first_seed, options.algorithm)
            n, share, ink = explained(X, learner)
            per_component = len(learner.placements_) / max(n, 1)
            bench.add(
                page=name,
                components=n,
                placements_per_component=per_component,
                explained=share,
                ink_explained=ink,
                **figures,
            )
    else:
        for strength in selected(options.only, (0, 1, 2) if options.quick else STRENGTHS):
            # The targets are for the default strength; the others show where it breaks.
            n = options.seeds or (1 if options.quick else 20 if strength == DEFAULT else 3)
            for seed in range(options.first_seed, options.first_seed + n):
                data = scanned_text(size=size, strength=strength, random_state=seed)
                learner, figures = learn(data.images, seed, options.algorithm)
                bench.add(strength=strength, **glyph_row(learner, data), **figures)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
