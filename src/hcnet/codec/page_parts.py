"""Parts of pages, as the codec places them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hcnet.engine.driver import Limits, Measurement, run
from hcnet.images import BoolArray
from hcnet.soft.lines import in_lines
from hcnet.soft.pieces import IntArray, find_pieces, joined
from hcnet.soft.soft_search import SoftSearch

BORDER = 1  # pixels around a part that it also predicts
# Pages of one print have most copies of the same parts (0.59 and more on all pages at hand), pages
# of different print hardly any (0.01).
RELATED = 0.25


def search_pages(
    pages: Sequence[BoolArray],
    fast: bool = False,
    progress: Callable[[float], object] | None = None,
    dissolving: float = 1.0,
) -> SoftSearch:
    """Search pages for parts; a fast search finds only common parts inside ink that hangs together.

    `progress` is told which share of the search is done; `dissolving` is that of `SoftSearch`.
    """
    pieces = joined([in_lines(find_pieces(page, n)) for n, page in enumerate(pages)])
    search = SoftSearch(pages, pieces, seed=0, brief=fast, dissolving=dissolving)

    def report(step: int, measurement: Measurement, seconds: float) -> None:
        if progress is not None:
            progress(search.done)

    run(search, Limits(), report)
    return search


def breaks(placements: Sequence[IntArray]) -> list[int]:
    """Pages from which on few copies are of parts that earlier pages have, too."""
    found = []
    for k in range(1, len(placements)):
        earlier, later = (np.concatenate(some)[:, 0] for some in (placements[:k], placements[k:]))
        if np.isin(later, earlier).sum() <= RELATED * len(later):
            found.append(k)
    return found


def placed(search: SoftSearch, n_pages: int) -> tuple[list[IntArray], IntArray]:
    """Rows of part, top and left for every page, and the sizes of the parts."""
    pieces, parts = search.pieces, search.parts
    used = np.concatenate([search.assigned[search.shared], search.covers[:, 1]])
    names, number = np.unique(used, return_inverse=True)
    box = parts.box[names]
    sizes = np.stack([box[:, 1] - box[:, 0], box[:, 3] - box[:, 2]], axis=1) + 2 * BORDER
    copies = np.flatnonzero(search.shared)
    k = search.assigned[copies]
    corner = pieces.reference[copies] - parts.reference[k] - search.shift[copies]
    corner += parts.box[k][:, ::2]
    which = np.concatenate([copies, search.covers[:, 0]])
    corner = np.concatenate([corner, search.covers[:, 2:]]) - BORDER
    corner += np.stack([pieces.top, pieces.left], axis=1)[which]
    rows = np.concatenate([number[:, None], corner], axis=1)
    return [rows[pieces.page[which] == n] for n in range(n_pages)], sizes
