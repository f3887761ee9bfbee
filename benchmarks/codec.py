"""Lossless compression of pages: bytes, seconds and memory beside other people's programs.

Seconds are processor time, so that threads count and a busy machine does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy import ndimage

from benchmarks.codec_rivals import Coded, Rival, Unusable, clocked, g4, minidjvu_document, rivals
from benchmarks.harness import Benchmark, Row, measure, selected, start, table
from benchmarks.pages import page_files, read_page
from hcnet.datasets import scanned_text
from hcnet.images import BoolArray

try:
    from hcnet.codec import compress, decompress
except ImportError:  # then the table has the rivals alone
    compress = decompress = None

OURS, FAST = "ours", "ours --fast"
CODERS = ("G4", "JBIG1", "cjb2", "minidjvu", "jbig2enc", "paq8px", FAST, OURS)
SLOW = "paq8px"  # 10 seconds a page each way: too long for --quick
# Targets: share of bytes saved on text pages together against cjb2, and on every page against the
# smaller of JBIG1 and cjb2; bytes of single pages; share of bytes that --fast may lose.
SAVED_TEXT, SAVED_PAGE, FAST_LOSES = 0.20, 0.10, 0.06
BYTES = {"ptt5": 18_000, "feyn": 44_000}
SAVED_DOCUMENT = 0.07
COMPRESS_SECONDS, DECOMPRESS_SECONDS, FAST_SECONDS, MEGABYTES = 40, 10, 8, 500
# A page is text if half of its ink is in letters: 8-connected components whose longer side has 8 to
# 100 pixels.  Text pages at hand have 72 % and more, sheets of music 15 % and less.
LETTERS, LETTER = 0.5, (8, 100)
N_PAGES = 4  # made-up pages; documents have all, and one less
PIECES = 2, 3, 4  # into which pages of text are cut, to be documents


def is_text(page: BoolArray) -> bool:
    """Whether half of the ink is in components of the size of letters."""
    labels, n = ndimage.label(page, np.ones((3, 3), int))
    ink = np.bincount(labels[page], minlength=n + 1)[1:]
    boxes = ndimage.find_objects(labels)
    longer = np.array([max(side.stop - side.start for side in box) for box in boxes], int)
    letters = (longer >= LETTER[0]) & (longer <= LETTER[1])
    return bool(ink[letters].sum() >= LETTERS * max(ink.sum(), 1))


def cut(page: BoolArray, n: int) -> list[BoolArray]:
    """Pages of the same fonts: a page cut at the emptiest rows near its n-ths."""
    near, rows = max(len(page) // (5 * n), 1), [0]
    for k in range(1, n):
        first = max(len(page) * k // n - near, 0)
        rows.append(first + int(np.argmin(page[first : first + 2 * near].sum(1))))
    pages = [page[top:bottom] for top, bottom in pairwise([*rows, len(page)])]
    return [one for one in pages if one.size]


def run_ours(pages: Sequence[BoolArray], fast: bool) -> Row:
    """Compress and decompress by hcnet, and compare."""
    # The encoder's own check takes as long as decompressing, and is part of the seconds.
    work = partial(compress, list(pages), fast=fast, verify=True)
    (code, there), _, megabytes = measure(lambda: clocked(work))
    (back, again), _, more = measure(lambda: clocked(lambda: decompress(code)))
    same = len(back) == len(pages) and all(
        np.array_equal(a, b) for a, b in zip(back, pages, strict=True)
    )
    if not same:
        raise SystemExit(f"hcnet.codec did not give the pages back (fast={fast}).")
    peaks = [peak for peak in (megabytes, more) if peak is not None]
    return {
        "bytes": len(code),
        "compress_seconds": there,
        "decompress_seconds": again,
        "megabytes_peak": max(peaks, default=None),
    }


def run_page(coder: str, page: BoolArray, usable: dict[str, Rival]) -> Row:
    """Figures of one coder on one page."""
    if coder in (OURS, FAST):
        return run_ours([page], fast=coder == FAST)
    coded: Coded = g4(page) if coder == "G4" else usable[coder].run(page)
    return asdict(coded)


def run_document(name: str, pages: Sequence[BoolArray], usable: dict[str, Rival]) -> list[Row]:
    """Bytes of pages compressed together and one by one, by ours and by minidjvu."""
    rows: list[Row] = []
    if compress is not None:
        single = sum(len(compress([page], fast=False, verify=False)) for page in pages)
        rows.append({"coder": OURS, "single": single, **run_ours(pages, fast=False)})
    if "minidjvu" in usable:
        try:
            single = sum(usable["minidjvu"].run(page).bytes for page in pages)
            together = minidjvu_document(pages)
            rows.append({"coder": "minidjvu", "single": single, "bytes": together})
        except Unusable as reason:
            print(f"{name}: {reason}")
    return [{"document": name, "pages": len(pages), **row} for row in rows]


def percent(ours: float, other: float) -> str:
    """How much ours is larger (+) or smaller (−)."""
    return f"{100 * (ours / other - 1):+.1f} %".replace("-", "−")


def by_coder(rows: Sequence[Row]) -> dict[str, Row]:
    """The row of each coder."""
    return {row["coder"]: row for row in rows}


def against_best(of: dict[str, Row]) -> str:
    """Ours relative to the smaller of JBIG1 and cjb2."""
    best = [of[coder]["bytes"] for coder in ("JBIG1", "cjb2") if coder in of]
    return percent(of[OURS]["bytes"], min(best)) if best and OURS in of else "–"


def missed(of: dict[str, Row], page: str) -> list[str]:
    """The targets for the bytes of one page that are not reached."""
    if OURS not in of:
        return []
    ours, found = of[OURS]["bytes"], []
    best = [of[coder]["bytes"] for coder in ("JBIG1", "cjb2") if coder in of]
    if best and ours > (1 - SAVED_PAGE) * min(best):
        found.append(f"−{100 * SAVED_PAGE:.0f} %")
    if page in BYTES and ours >= BYTES[page]:
        found.append(f"< {BYTES[page]:,}")
    if FAST in of and of[FAST]["bytes"] > (1 + FAST_LOSES) * ours:
        found.append(f"fast within {100 * FAST_LOSES:.0f} %")
    return found


def report_bytes(rows: Sequence[Row]) -> str:
    """Bytes: a row per page, and their sum over text pages."""
    lines = []
    names = list(dict.fromkeys(row["page"] for row in rows))
    of_page = {name: by_coder([row for row in rows if row["page"] == name]) for name in names}
    for name, of in of_page.items():
        text = next(iter(of.values()))["text"]
        cells = [f"{of[coder]['bytes']:,}" if coder in of else "–" for coder in CODERS]
        fails = ", ".join(missed(of, name))
        reached = (f"not {fails}" if fails else "yes") if OURS in of else "–"
        lines.append([name, "yes" if text else "no", *cells, against_best(of), reached])
    texts = [of for of in of_page.values() if next(iter(of.values()))["text"]]
    # A sum needs a figure of every text page.
    total = {
        coder: {"bytes": sum(of[coder]["bytes"] for of in texts)}
        for coder in CODERS
        if texts and all(coder in of for of in texts)
    }
    cells = [f"{total[coder]['bytes']:,}" if coder in total else "–" for coder in CODERS]
    lines.append([f"{len(texts)} text pages", "", *cells, against_best(total), _reached(total)])
    return table(
        [
            "page",
            "text",
            *(f"{coder} generic" if coder == "jbig2enc" else coder for coder in CODERS),
            f"ours by the smaller of JBIG1 and cjb2 (≤ −{100 * SAVED_PAGE:.0f} %)",
            "targets reached",
        ],
        lines,
    )


def _reached(total: dict[str, Row]) -> str:
    """The target for text pages together, and where ours is."""
    if OURS not in total or "cjb2" not in total:
        return "–"
    ours, cjb2 = total[OURS]["bytes"], total["cjb2"]["bytes"]
    wanted = f"{percent(ours, cjb2)} by cjb2, wanted ≤ −{100 * SAVED_TEXT:.0f} %"
    return f"{'yes' if ours <= (1 - SAVED_TEXT) * cjb2 else 'not'}: {wanted}"


def report_seconds(rows: Sequence[Row]) -> str:
    """Seconds to compress and decompress, and memory: a row per page."""
    lines = []
    for name in dict.fromkeys(row["page"] for row in rows):
        of = by_coder([row for row in rows if row["page"] == name])
        cells = [
            f"{of[c]['compress_seconds']:.2f} / {of[c]['decompress_seconds']:.2f}"
            if c in of
            else "–"
            for c in CODERS
        ]
        peaks = [of[c]["megabytes_peak"] if c in of else None for c in (FAST, OURS)]
        lines.append([name, *cells, *("–" if peak is None else f"{peak:.0f}" for peak in peaks)])
    limits = {
        OURS: f" (≤ {COMPRESS_SECONDS} / {DECOMPRESS_SECONDS})",
        FAST: f" (≤ {FAST_SECONDS} / {DECOMPRESS_SECONDS})",
    }
    return table(
        [
            "seconds",
            *(coder + limits.get(coder, "") for coder in CODERS),
            f"peak MB {FAST}",
            f"peak MB {OURS} (≤ {MEGABYTES})",
        ],
        lines,
    )


def report_documents(rows: Sequence[Row]) -> str:
    """Several pages together against the sum of single ones."""
    lines = [
        [
            row["document"],
            row["pages"],
            row["coder"],
            f"{row['single']:,}",
            f"{row['bytes']:,}",
            percent(row["bytes"], row["single"]),
            f"{row['compress_seconds']:.1f}" if "compress_seconds" in row else "–",
        ]
        for row in rows
    ]
    return table(
        [
            "document",
            "pages",
            "coder",
            "bytes, one by one",
            "bytes, together",
            f"together by one by one (ours ≤ −{100 * SAVED_DOCUMENT:.0f} %)",
            "seconds to compress",
        ],
        lines,
    )


def report(rows: list[Row]) -> str:
    """Bytes, seconds, and a section on documents."""
    pages = [row for row in rows if "page" in row]
    documents = [row for row in rows if "document" in row]
    sections = []
    if pages:
        sections.append(report_bytes(pages))
        print()
        sections.append(report_seconds(pages))
    if documents:
        print("\ndocuments")
        sections.append(f"documents\n\n{report_documents(documents)}")
    return "\n\n".join(sections)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--pages", type=Path, metavar="FOLDER", help="the page files of a folder")
    parser.add_argument("--paq8px", metavar="PATH", help="the program; else $PAQ8PX or the path")
    parser.add_argument("--jbig2enc", metavar="PATH", help="jbig2; else $JBIG2ENC or the path")


def usable_rivals(options: Any) -> dict[str, Rival]:
    """The rivals whose programs are there; a sentence on each of the others."""
    usable = {}
    for rival in rivals(options.jbig2enc, options.paq8px):
        reason = rival.missing()
        if options.quick and rival.name == SLOW:
            reason = f"{SLOW} is left out: it is too slow for --quick."
        if reason is None:
            usable[rival.name] = rival
        else:
            print(reason)
    if compress is None:
        print("Ours is left out: this version of hcnet has no hcnet.codec.")
    return usable


def load(options: Any) -> tuple[dict[str, BoolArray], dict[str, list[BoolArray]]]:
    """Pages by name, and documents of several pages."""
    n, size = (2, (500, 1275)) if options.quick else (N_PAGES, None)
    made_up = scanned_text(n_pages=n, size=size, random_state=options.first_seed).images[:, 0]
    documents = {f"scanned_text, {k} pages": list(made_up[:k]) for k in (n - 1, n) if k > 1}
    pages: dict[str, BoolArray] = {}
    if options.pages is None:
        pages = {f"scanned_text {k}": page for k, page in enumerate(made_up, 1)}
    else:
        files = {path.stem: path for path in page_files(options.pages)}
        for name in selected(options.only, list(files)):
            X = read_page(files[name])[:, 0]
            if options.quick:  # by another name, since the targets are for whole pages
                middle = X.shape[1] // 2
                X, name = X[:1, max(middle - 200, 0) : middle + 200, :1300], f"{name} (cut)"
            several = len(X) > 1
            pages |= {f"{name} {k}" if several else name: x for k, x in enumerate(X, 1)}
            if several:
                documents[name] = list(X)
            elif is_text(X[0]) and not options.quick:
                documents |= {f"{name}, {n} pieces": cut(X[0], n) for n in PIECES}
    texts = [page for page in pages.values() if is_text(page)]
    if len(texts) > 1 and not options.quick:
        documents["different print"] = texts[:2]
    return pages, documents


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("codec", "lossless pages, one core", arguments, add_options)
    numba.set_num_threads(1)
    usable = usable_rivals(options)
    pages, documents = load(options)
    coders = [c for c in CODERS if c == "G4" or c in usable or (c in (OURS, FAST) and compress)]
    if compress is not None:  # compile before the clock starts
        compiling = scanned_text(size=(400, 900), random_state=0).images[0, 0]
        for fast in (True, False):
            run_ours([compiling], fast)
    for name, page in pages.items():
        facts = {"page": name, "text": is_text(page), "height": len(page), "width": len(page[0])}
        for coder in coders:
            try:
                bench.add(**facts, coder=coder, **run_page(coder, page, usable))
            except Unusable as reason:
                print(f"{name}: {reason}")
    for name, several in documents.items():
        for row in run_document(name, several, usable):
            bench.add(**row)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
