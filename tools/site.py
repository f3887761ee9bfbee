"""MkDocs hooks: files outside `docs` become pages, and links are adapted to the site.

`README.md` is the first page; `CONTRIBUTING.md`, `SECURITY.md` and `CHANGELOG.md` are pages, too.
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
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
}
# A link or a picture; the text of a link may be a picture.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside `docs`."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_relinked(text, ROOT)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adapt the links of pages in `docs`."""
    if page.file.src_uri in PAGES.values():
        return markdown
    return _relinked(markdown, (ROOT / "docs" / page.file.src_uri).parent)


def _relinked(markdown: str, folder: Path) -> str:
    """Return the text with links for the site; links to files outside it become plain text."""

    def relink(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        text = LINK.sub(relink, text)
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

    return LINK.sub(relink, markdown)
