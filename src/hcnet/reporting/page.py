"""A report as one HTML file that holds its content, charts, style and script."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hcnet.atomic_files import file_path, write_atomically
from hcnet.plotting.drawing import ADDED, INKS, MISSED, MISSING, PALE, PALETTE, Colour
from hcnet.reporting.content import Content

WIDTH, HEIGHT, LEFT, MARGIN = 640, 260, 110, 24  # pixels of a curve


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
        # In a script element only "</" could end the data too early.
        "DATA": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/"),
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
