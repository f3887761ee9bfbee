"""Words that are nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def likely(word: str, known: Iterable[str]) -> str:
    """What was probably meant, as the end of a sentence; nothing if nothing is near."""
    names = [name for name in known if name.startswith("--") or not name.startswith("-")]
    near = difflib.get_close_matches(word, names, 1)
    if not near:  # --features is far from --n-features by its letters
        near = [name for name in names if len(word) > 4 and word.lstrip("-") in name][:1]
    return f"; did you mean {near[0]}?" if near else ""


def with_dashes(words: Sequence[str]) -> list[str]:
    """Options as the parser knows them where they are spelled as in Python: --feature_size."""
    found, end = [], False
    for word in words:
        end = end or word == "--"
        name, equals, value = word.partition("=")
        if name.startswith("--") and not end:
            word = f"{name.replace('_', '-')}{equals}{value}"
        found.append(word)
    return found
