"""A report: its content, plain values that JSON can hold, and the one HTML file it becomes."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.atomic_files import file_path, write_atomically
from hcnet.images import BoolArray, Images
from hcnet.plotting.drawing import ADDED, INKS, MISSED, MISSING, PALE, PALETTE, Colour

WIDTH, HEIGHT, LEFT, MARGIN = 640, 260, 110, 24  # pixels of a curve
# The most images of a report, and the most pixels of all of them: a page must open at once.
MOST_IMAGES = 60
MOST_PIXELS = 4_000_000
# Marks of a reconstruction's errors.
IS_RIGHT, IS_MISSED, IS_ADDED = 0, 1, 2
# Values are characters from here on, which are no digits in base 36.
FIRST_LETTER = 0x100


@dataclass(frozen=True)
class PartView:
    """A part, drawn down to the pixels."""

    number: int
    name: str
    size: tuple[int, int]
    pixels: str  # runs: 0 paper, k + 1 part k of the first layer, the largest number several parts
    count: int | None = None  # placements in all images
    made_of: str = ""
    label: str | None = None  # the name that a person gave it; None where there is no field for one


@dataclass(frozen=True)
class LayerView:
    """The parts of a layer, in the order in which they are shown."""

    name: str
    parts: list[PartView]


@dataclass(frozen=True)
class ImageView:
    """An image, its reconstruction, and the part that explains each pixel."""

    name: str
    size: tuple[int, int]
    seen: str  # runs: a bit per channel that is on
    made: str
    errors: str  # runs of IS_RIGHT, IS_MISSED, IS_ADDED
    missing: str | None  # runs of 0 and 1
    nodes: list[list[Any]]  # layer, part, row, column, runs of pixels (None: those of the part)
    about: str = ""


@dataclass
class Content:
    """A whole report."""

    title: str
    summary: str
    layers: list[LayerView]
    facts: list[tuple[str, str, str]]  # name, value, meaning
    images: list[ImageView] = field(default_factory=list)
    images_note: str = ""
    channels: int = 1
    parts_key: str = ""  # of parts and their names, to which names that were typed belong
    # Charts: title, HTML, and the same in words for readers who cannot see it.
    pictures: list[tuple[str, str, str]] = field(default_factory=list)
    code: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    live: str = ""  # the stage of learning, in a live report
    refresh: int = 0  # seconds after which a live report is read again

    def show_images(
        self,
        images: Images,
        made: BoolArray,
        names: Sequence[str] | None,
        nodes: list[list[list[Any]]],
        about: list[str],
    ) -> None:
        """Show the first images, with their reconstructions, nodes and remarks, and the errors."""
        n = len(made)
        self.channels = images.n_channels
        if n < images.n_images:
            self.images_note = f"The first {n} of {images.n_images:,} images."
        seen, observed = images.pixels[:n], images.observed[:n]
        missed = (seen & ~made & observed).any(axis=1)
        added = (made & ~seen & observed).any(axis=1)
        errors = np.where(missed, IS_MISSED, np.where(added, IS_ADDED, IS_RIGHT))
        for k, name in enumerate(image_names(names, n)):
            hidden = ~observed[k].all(axis=0)
            view = ImageView(
                name=name,
                size=images.size,
                seen=runs(inks(seen[k] & observed[k])),
                made=runs(inks(made[k])),
                errors=runs(errors[k]),
                missing=runs(hidden) if hidden.any() else None,
                nodes=nodes[k],
                about=about[k],
            )
            self.images.append(view)
        wrong = (errors != IS_RIGHT).sum()
        meaning = (
            f"{wrong / max(int(observed.sum()), 1):.3%} of those observed in the images shown: "
            f"{(errors == IS_MISSED).sum():,} on that no part explains, "
            f"{(errors == IS_ADDED).sum():,} off that a part covers"
        )
        self.facts.append(("Wrong pixels", f"{wrong:,}", meaning))


def runs(values: NDArray[Any]) -> str:
    """Small numbers, row by row, as runs: a character for the value, then the length in base 36."""
    flat = np.asarray(values).ravel().astype(np.int64)
    starts = np.flatnonzero(np.diff(flat, prepend=-1))  # no value is negative
    lengths = np.diff(starts, append=flat.size)
    return "".join(
        chr(FIRST_LETTER + value) + np.base_repr(length, 36).lower()
        for value, length in zip(flat[starts].tolist(), lengths.tolist(), strict=True)
    )


def inks(planes: BoolArray) -> NDArray[np.int64]:
    """A bit per channel (height, width); more than three channels are drawn as one."""
    if len(planes) > len(INKS):
        return np.asarray(planes.any(axis=0)).astype(np.int64)
    weights = 2 ** np.arange(len(planes))
    return np.asarray(np.tensordot(weights, planes.astype(np.int64), axes=1))


def shown_images(images: Images) -> Images:
    """The first images, as many as a report shows."""
    height, width = images.size
    n = max(1, min(images.n_images, MOST_IMAGES, MOST_PIXELS // (height * width)))
    return images[:n]


def image_names(names: Sequence[str] | None, n: int) -> list[str]:
    """Names as given, or numbers."""
    if names is None:
        return [f"image {k}" for k in range(n)]
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray) or not np.ndim(names):
        raise TypeError(f"names must be a list of texts, one per image, or None, got {names!r}.")
    if len(names) < n:
        raise ValueError(f"names must have an entry per image, {n}, got {len(names)}.")
    return [str(name) for name in names[:n]]


def number_of(n: int, thing: str) -> str:
    """A number with its noun."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def write_report(path: str | os.PathLike[str], content: Content, overwrite: bool) -> Path:
    """Write the page; the file is written as a whole or not at all."""
    path = report_path(path)
    # Images are named by their files, whose names may hold bytes that are no text.
    return write_atomically(
        path, lambda file: file.write(page(content).encode(errors="replace")), overwrite
    )


def report_path(path: str | os.PathLike[str]) -> Path:
    """The path of a report, which must end in .html or .htm."""
    path = file_path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(
            f"{path} does not end in .html, and reports are written as HTML; open it in a browser, "
            f"which can also print it as PDF."
        )
    return path


def page(content: Content) -> str:
    """The whole page."""
    assets = resources.files("hcnet.reporting") / "assets"
    style, script, frame = (
        (assets / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
    )
    data = asdict(content) | {
        "palette": [_css(colour) for colour in PALETTE],
        "inks": [list(ink) for ink in INKS],
        "marks": [_css((PALE, PALE, PALE)), _css(MISSED), _css(ADDED), _css(MISSING)],
    }
    live, refresh = html.escape(content.live), content.refresh
    pictures = [
        f'<figure><div role="img" aria-label="{html.escape(text)}">{chart}</div>'
        f"<figcaption>{html.escape(title)}</figcaption></figure>"
        for title, chart, text in content.pictures
    ]
    pieces = {
        "TITLE": html.escape(content.title),
        "REFRESH": f'<meta http-equiv="refresh" content="{refresh}">' if refresh else "",
        "STYLE": style,
        "SCRIPT": script,
        "LIVE": f'<p class="live" role="status">{live}</p>' if live else "",
        "SUMMARY": html.escape(content.summary),
        "FACTS": _rows(content.facts),
        "PICTURES": "\n".join(pictures),
        "CODE": html.escape(content.code),
        "PARAMETERS": _rows(list(content.parameters.items())),
        "VERSIONS": _rows(list(content.versions.items())),
        # In a script element "</" could end the data too early, and "<!--" keep it from ending.
        "DATA": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", r"\u003c"),
    }
    # In one pass, so that the text of a piece is never taken for the mark of another.
    parts = frame.split("@@")
    parts[1::2] = [pieces[name] for name in parts[1::2]]
    return "".join(parts)


def _css(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _rows(rows: Sequence[Sequence[str]]) -> str:
    cells = []
    for name, *rest in rows:
        others = "".join(f"<td>{html.escape(str(one))}</td>" for one in rest)
        cells.append(f'<tr><th scope="row">{html.escape(str(name))}</th>{others}</tr>')
    return "\n".join(cells)


def curve(points: Sequence[tuple[float, float]], figure: str) -> str:
    """A line through the points (step, `figure`), as SVG; the axes name first and last values."""
    x, y = np.array(points).T
    across, up = np.ptp(x) or 1, np.ptp(y) or 1
    columns = LEFT + (x - x.min()) / across * (WIDTH - LEFT - MARGIN)
    rows = HEIGHT - MARGIN - (y - y.min()) / up * (HEIGHT - 3 * MARGIN)
    line = " ".join(f"{c:.1f},{r:.1f}" for c, r in zip(columns, rows, strict=True))
    texts = [
        (LEFT, MARGIN / 1.5, "start", figure),
        (LEFT - 6, rows[y.argmin()] + 4, "end", f"{y.min():,.0f}"),
        (LEFT - 6, rows[y.argmax()] + 4, "end", f"{y.max():,.0f}"),
        (columns[0], HEIGHT - 4, "middle", f"{x[0]:g}"),
        (columns[-1], HEIGHT - 4, "end", f"step {x[-1]:g}"),
    ]
    words = "".join(
        f'<text x="{c:.0f}" y="{r:.0f}" text-anchor="{anchor}">{html.escape(text)}</text>'
        for c, r, anchor, text in texts
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-size="13">{words}'
        f'<polyline points="{line}" fill="none" stroke="var(--chosen)" stroke-width="2"/>'
        f'<circle cx="{columns[-1]:.1f}" cy="{rows[-1]:.1f}" r="4" fill="var(--chosen)"/></svg>'
    )


def confusion(counts: NDArray[np.int64], names: Sequence[str]) -> str:
    """A table of true classes (rows) against predicted ones; the darker, the larger the share."""
    words = [html.escape(name) for name in names]
    head = "".join(f"<th>{word}</th>" for word in words)
    rows = [f"<tr><th>true \\ predicted</th>{head}</tr>"]
    for word, row in zip(words, counts, strict=True):
        shares = row / max(int(row.sum()), 1)
        cells = "".join(
            f'<td style="background:rgb(0 114 178 / {share:.2f});'
            f"color:{'#fff' if share > 0.5 else 'inherit'};text-align:center;"
            f'padding:.2rem .7rem">{count:,}</td>'
            for count, share in zip(row.tolist(), shares, strict=True)
        )
        rows.append(f"<tr><th>{word}</th>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>"
