"""A report as one HTML file that holds its content, style and script."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path

from hcnet.atomic_files import file_path, write_atomically
from hcnet.plotting.drawing import ADDED, INKS, MISSED, MISSING, PALE, PALETTE, Colour
from hcnet.reporting.content import Content, Picture


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
    pieces = {
        "TITLE": html.escape(content.title),
        "REFRESH": _refresh(content),
        "STYLE": style,
        "SCRIPT": script,
        "LIVE": f'<p class="live" role="status">{html.escape(content.live)}</p>'
        if content.live
        else "",
        "SUMMARY": html.escape(content.summary),
        "FACTS": _rows(content.facts),
        "PICTURES": "\n".join(_picture(one) for one in content.pictures),
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


def _refresh(content: Content) -> str:
    if not content.refresh:
        return ""
    return f'<meta http-equiv="refresh" content="{content.refresh}">'


def _rows(rows: Sequence[Sequence[str]]) -> str:
    cells = []
    for name, *rest in rows:
        others = "".join(f"<td>{html.escape(str(one))}</td>" for one in rest)
        cells.append(f'<tr><th scope="row">{html.escape(str(name))}</th>{others}</tr>')
    return "\n".join(cells)


def _picture(one: Picture) -> str:
    return (
        f'<figure><div role="img" aria-label="{html.escape(one.text)}">{one.chart}</div>'
        f"<figcaption>{html.escape(one.title)}</figcaption></figure>"
    )
