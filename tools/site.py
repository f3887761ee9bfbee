"""Hooks of MkDocs: which pages the site has, beside those that are files in `docs`.

`README.md` is its first page; `CONTRIBUTING.md` and `CHANGELOG.md` are pages, too.  The navigation
in `mkdocs.yml` may name pages that are not there yet.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Files of the repository that are pages of the site, and their names there.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
# A link or a picture; the text of a link may be a picture.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")


def on_config(config: Any) -> Any:
    """Leave out of the navigation what is not there, and add what is not in it."""
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    there |= set(PAGES.values())
    sections = []
    for section in config["nav"]:
        ((title, entries),) = section.items()
        found = [entry for entry in entries if set(entry.values()) & there]
        there -= {page for entry in found for page in entry.values()}
        if found:
            sections.append({title: found})
    if there:
        sections.append({"More": sorted(there)})
    config["nav"] = sections
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside of `docs`."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_relinked(text, ROOT)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links from `docs` to files beside it."""
    if page.file.src_uri in PAGES.values():
        return markdown
    return _relinked(markdown, (ROOT / "docs" / page.file.src_uri).parent)


def _relinked(markdown: str, folder: Path) -> str:
    """Links as the site needs them; to what is no part of it only the text is kept."""

    def one(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        text = LINK.sub(one, text)
        if "://" in target or target.startswith(("#", "mailto:")):
            return match.group()
        path, _, anchor = target.partition("#")
        place = (folder / path).resolve()
        name = place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else ""
        if name in PAGES:
            name = f"docs/{PAGES[name]}"
        if not name.startswith("docs/"):
            return text
        # All pages lie in one folder.
        return f"{picture}[{text}]({name.removeprefix('docs/')}{'#' if anchor else ''}{anchor})"

    return LINK.sub(one, markdown)
