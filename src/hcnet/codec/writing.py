"""Writes files of compressed pages, group by group."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from hcnet.atomic_files import open_atomically
from hcnet.checks import as_array, check_count, check_flag
from hcnet.codec import container
from hcnet.codec.container import Cursor
from hcnet.codec.page_coder import State, decode_page, encode_page
from hcnet.codec.page_parts import breaks, placed, search_pages
from hcnet.engine.driver import interruptible
from hcnet.images import BoolArray, PageInfo, Resolution
from hcnet.validation.images import check_images

# Pages that are learned together, and the pixels at which a group is full in any case: what is in
# memory at a time.  Any page is found by decoding at most a group.
GROUP, GROUP_PIXELS = 8, 2**26
# How long a fast search for parts takes, and a full one, compared with writing or reading a page.
SEARCH = {True: 0.6, False: 4.0}
# Letters that touch are parts of their own only if they save more than the search believes: the
# nearest copies predict pixels, and single letters have many more.
DISSOLVING = 1.3

Progress = Callable[[float], object]
Page = tuple[BoolArray, PageInfo]


class Writer:
    """Compresses pages into a file, in groups that are learned together.

    A path gets its file when the ``with`` block ends without an error; until then, and after an
    error, there is none.

    ::

        with Writer("pages.hcz") as writer:
            for page in pages:
                writer.add(page)

    Parameters
    ----------
    file : str, PathLike or binary file
        A path, or a file to write to.
    fast : bool
        Whether to spend less time on the search for parts, at the cost of a few percent.
    verify : bool
        Whether to decode every page that was encoded, and compare.
    group : int
        Pages that are learned together, at most 64.  More pages of a document make the file
        smaller; a single page is then found more slowly.
    overwrite : bool
        Whether a file of this path may be replaced.
    progress : callable or None
        Called with the number of pages that are done, and fractions of them.

    """

    def __init__(
        self,
        file: str | os.PathLike[str] | IO[bytes],
        *,
        fast: bool = False,
        verify: bool = True,
        group: int = GROUP,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._fast, self._verify = check_flag("fast", fast), check_flag("verify", verify)
        whole = SEARCH[self._fast] + 1 + self._verify
        self._search, self._each = SEARCH[self._fast] / whole, 1 / whole  # shares of the time
        self._group = check_count("group", group, most=container.MOST_CHAIN)
        self._progress = progress
        self._pages: list[Page] = []
        self._sizes: list[int] = []  # of all records so far
        self._done = 0.0
        self._stack = ExitStack()
        if isinstance(file, str | os.PathLike):
            file = self._stack.enter_context(open_atomically(file, overwrite))
        elif not hasattr(file, "write"):
            raise TypeError(
                f"file must be a path or a binary file, got {type(file).__name__}; pass one."
            )
        self._file: IO[bytes] = file
        self._file.write(container.header())

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is not None:
            self._stack.__exit__(*error)
            return
        with self._stack:
            self._write_group()
            self._file.write(container.index_and_end(self._sizes))

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        self.__exit__(None, None, None)

    def __len__(self) -> int:
        """Number of pages so far."""
        return len(self._sizes) + len(self._pages)

    def add(self, page: ArrayLike, info: PageInfo | None = None) -> None:
        """Add a page.

        Parameters
        ----------
        page : array of shape (height, width)
            Zeros and ones; ones are ink.
        info : PageInfo or None
            Names and resolution to keep with the pixels.

        """
        pixels = check_page(page)
        about = check_info(PageInfo() if info is None else info)
        held = sum(one.size for one, _ in self._pages)
        if self._pages and held + pixels.size > GROUP_PIXELS:
            self._write_group()
        self._pages.append((pixels, about))
        if len(self._pages) == self._group:
            self._write_group()

    def _write_group(self) -> None:
        """Learn and write the pages that are waiting."""
        pages, self._pages = self._pages, []
        if not pages:
            return
        payloads = self._learn(pages)
        firsts = [k for k, (_, begins) in enumerate(payloads) if begins]
        if len(firsts) == 1:
            self._write(pages, payloads)
            return
        del payloads
        for some in np.split(np.arange(len(pages)), firsts[1:]):
            related = [pages[k] for k in some]
            self._write(related, self._learn(related))

    def _learn(self, pages: list[Page]) -> list[tuple[bytes, bool]]:
        """The payload of every page, and whether it begins anew: the first, and other print."""
        n, begin = len(pages), len(self._sizes)
        whole = self._search * n
        with interruptible() as interrupted:
            images = [pixels for pixels, _ in pages]
            search = search_pages(
                images, self._fast, lambda share: self._tell(begin + whole * share), DISSOLVING
            )
        if interrupted.is_set():
            raise KeyboardInterrupt
        placements, sizes = placed(search, n)
        del search

        def encode(k: int, state: State) -> bytes:
            return encode_page(images[k], placements[k], sizes, state, self._fast)

        # Where few parts are shared, the price of a page decides.
        alone = {k: len(encode(k, State(container.VERSION))) for k in breaks(placements)}
        state, payloads = State(container.VERSION), []
        for k in range(n):
            payload = encode(k, state)
            begins = k == 0 or len(payload) > alone.get(k, len(payload))
            if k and begins:
                del state  # before there is another: it is the largest thing in memory
                state = State(container.VERSION)
                payload = encode(k, state)
            payloads.append((payload, begins))
            self._tell(begin + whole + self._each * (k + 1))
        return payloads

    def _write(self, pages: list[Page], payloads: list[tuple[bytes, bool]]) -> None:
        """Write the records of pages, decoded and compared if that is wanted."""
        begin, n, state = len(self._sizes), len(pages), None
        for k, ((pixels, info), (payload, begins)) in enumerate(zip(pages, payloads, strict=True)):
            record = container.page_record(pixels, info, int(not begins), payload)
            if self._verify:
                if begins:
                    state = None  # before there is another
                    state = State(container.VERSION)
                assert state is not None
                compare(record, pixels, info, state)
                self._tell(begin + self._search * n + self._each * (n + k + 1))
            self._file.write(record)
            self._sizes.append(len(record))

    def _tell(self, done: float) -> None:
        self._done = max(done, self._done)
        if self._progress is not None:
            self._progress(self._done)


def compare(record: bytes, pixels: BoolArray, info: PageInfo, state: State) -> None:
    """Read a record, and raise an error unless it holds the same page."""
    cursor = Cursor(record[1:])
    head = container.parse_head(cursor.take(cursor.varint()))
    cursor.checksum()
    same = head.info == info and head.shape == pixels.shape
    found = decode_page(cursor.take(head.size), head.shape, state)
    if not same or not np.array_equal(found, pixels):
        raise RuntimeError(
            "A page was not the same after it was decoded, and nothing was written; please report "
            "this with the page."
        )


def check_page(page: ArrayLike) -> BoolArray:
    """A page as a boolean array of its own."""
    if not (isinstance(page, np.ndarray) and page.dtype == bool and page.ndim == 2 and page.size):
        if _has_nan(page):
            raise ValueError(
                "A page must hold only 0 and 1, and NaN is neither; say which they are, for "
                "example with np.nan_to_num(page)."
            )
        checked = check_images(page, warn=False)
        if len(checked.shape) != 2:
            raise ValueError(
                f"A page must have shape (height, width), got {checked.shape}; add one page after "
                f"the other."
            )
        page = checked.images.pixels[0, 0]
    pixels = np.array(page, bool, order="C")
    if max(pixels.shape) > container.MOST_SIDE:
        raise ValueError(
            f"A page has at most {container.MOST_SIDE:,} rows and columns, got shape "
            f"{pixels.shape}; cut it into several."
        )
    return pixels


def _has_nan(page: ArrayLike) -> bool:
    array = as_array("A page", page)
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def check_info(info: PageInfo) -> PageInfo:
    """Names that a file can hold, and a resolution as TIFF has them."""
    if not isinstance(info, PageInfo):
        raise TypeError(f"info must be a PageInfo or None, got {type(info).__name__}; pass one.")
    for what, name in (("file", info.file), ("name", info.name)):
        if not isinstance(name, str) or len(_encoded(name)) > container.MOST_NAME:
            raise ValueError(
                f"{what} must be a text of at most {container.MOST_NAME:,} bytes, got "
                f"{str(name)[:50]!r}; shorten it."
            )
    check_flag("same_file", info.same_file)
    check_flag("min_is_white", info.min_is_white)
    one = info.resolution
    if one is not None:
        numbers = (*one.x, *one.y) if isinstance(one, Resolution) else ()
        if len(numbers) != 4 or one.unit not in container.UNITS.values():
            raise ValueError(
                f"resolution must be a Resolution of two fractions and a unit "
                f"({', '.join(container.UNITS.values())}), got {one!r}; for 300 dpi pass "
                f"Resolution((300, 1), (300, 1))."
            )
        for number in numbers:
            check_count("a number of the resolution", number, 0, most=2**32 - 1)
    return info


def _encoded(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:  # half of a pair
        raise ValueError(f"{name!r} holds characters that are none; choose another name.") from None
