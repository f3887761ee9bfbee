"""Text read from made-up scans with correct names: errors per character.

A person who names the parts of a page would type the commonest text of each part's places.  That
text is known here: every glyph belongs to the placement that covers most of its ink.
"""

from __future__ import annotations

import argparse
from collections import Counter
from functools import partial
from typing import Any

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, measure, seeds, spread, start, table
from hcnet import FeatureLearner
from hcnet.datasets import scanned_text
from hcnet.datasets.scanned_text import ScannedText
from hcnet.metrics import character_error_rate
from hcnet.reading import name_parts, read_text
from hcnet.reading.words import page_lines

# A tenth of a letter page is enough for a quick look.
QUICK_SIZE = (700, 1400)
KEYS = ("wrong", "wrong_new", "wrong_layout")
NOTHING = " "  # the name of a piece whose letter is named by another part


def true_names(features: Any, placements: Any, truth: ScannedText) -> dict[int, str]:
    """The commonest text of the places of each part."""
    best: dict[int, tuple[int, int]] = {}  # pixels and placement of each glyph
    height, width = truth.owners.shape[1:]
    for k, (n, f, r, c) in enumerate(placements.tolist()):
        i, j = np.nonzero(features[f].any(axis=0))
        i, j = i + r, j + c
        inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
        owners = truth.owners[n, i[inside], j[inside]]
        for glyph, count in Counter(owners[owners >= 0].tolist()).items():
            best[glyph] = max(best.get(glyph, (0, 0)), (count, k))
    texts: dict[int, str] = {}
    for glyph in sorted(best, key=lambda glyph: truth.boxes[glyph, 1]):
        k = best[glyph][1]
        texts[k] = texts.get(k, "") + str(truth.characters[glyph])
    found: dict[int, Counter[str]] = {}
    for k, f in enumerate(placements[:, 1].tolist()):
        found.setdefault(f, Counter())[texts.get(k, NOTHING)] += 1
    return {f: _name(texts) for f, texts in found.items()}


def _name(texts: Counter[str]) -> str:
    """The commonest text; a dot that is also a full stop is named so, above however many stems."""
    nothing = texts.pop(NOTHING, 0)
    known = texts.total()
    return texts.most_common(1)[0][0] if known > nothing / 10 else NOTHING


def error_rate(model: FeatureLearner, pages: ScannedText, first: int, last: int) -> float:
    """Errors per character of some pages, with a line end as a character."""
    read = read_text(model, pages.images[first:last])
    texts = ["\n".join(page) for page in read]
    return character_error_rate("\n".join(texts), "\n".join(map("\n".join, pages.text[first:last])))


def layout_error_rate(pages: ScannedText) -> float:
    """The same for the first page with every glyph known: errors of lines and spaces alone."""
    first = pages.pages == 0
    boxes = pages.boxes[first]
    boxes = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
    lines = page_lines(boxes, pages.characters[first].astype(object))
    return character_error_rate("\n".join(lines), "\n".join(pages.text[0]))


def report(rows: list[Row]) -> str:
    """The table: a row per strength of the degradation."""
    lines = []
    for strength in sorted({row["strength"] for row in rows}):
        mine = [row for row in rows if row["strength"] == strength]
        shares = [[100 * row[key] for row in mine] for key in KEYS]
        lines.append(
            [
                f"{strength:g}",
                seeds(mine),
                spread([row["glyphs"] for row in mine], 0),
                spread([row["parts"] for row in mine], 0),
                *(spread(share, 2) for share in shares),
                spread([row["seconds"] for row in mine], 1),
            ]
        )
    header = ["strength", "seeds", "characters", "parts", "wrong %", "wrong % on a new page"]
    return table([*header, "with all glyphs known", "seconds to learn"], lines)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--algorithm", default="soft", help="of the FeatureLearner")


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    about = "text of a scanned page, and of one not learned"
    bench, options = start("reading", about, arguments, add_options)
    numba.set_num_threads(1)
    n = options.seeds or (1 if options.quick else 10)
    for strength in (1.0,) if options.quick else (0.5, 1.0, 1.5, 2.0):
        for seed in range(options.first_seed, options.first_seed + n):
            size = QUICK_SIZE if options.quick else None
            pages = scanned_text(n_pages=2, size=size, strength=strength, random_state=seed)
            model = FeatureLearner(algorithm=options.algorithm, random_state=seed)
            model, seconds, _ = measure(partial(model.fit, pages.images[:1]))
            name_parts(model, true_names(model.features_, model.placements_, pages))
            bench.add(
                strength=strength,
                seed=seed,
                glyphs=int((pages.pages == 0).sum()),
                parts=len(model.features_),
                wrong=error_rate(model, pages, 0, 1),
                wrong_new=error_rate(model, pages, 1, 2),
                wrong_layout=layout_error_rate(pages),
                seconds=seconds,
            )
            print(bench.rows[-1], flush=True)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
