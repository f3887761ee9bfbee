"""Reads files of compressed pages; whatever is wrong with one becomes a sentence.

A file may come from anybody: lengths are held against its size, and the pixels that it declares
against a limit, before memory is taken.
"""

from __future__ import annotations

import io
import itertools
import operator
import os
import stat
import zlib
from collections.abc import Iterator
from typing import IO

from hcnet.atomic_files import file_path
from hcnet.checks import check_count, check_flag, in_short
from hcnet.codec import container
from hcnet.codec.container import CHECKSUM, END, HEADER, Cursor, Head
from hcnet.codec.page_coder import State, decode_page
from hcnet.images import BoolArray, PageInfo
from hcnet.memory import NotEnoughMemoryError, check_memory

# Pages of more pixels are refused unless asked for: an A0 sheet at 300 dpi has half of them.
MAX_PIXELS = 2**28
# Bytes that decoding takes at most, beside the payload, and for each pixel.
STATE_BYTES, PIXEL_BYTES = 240 * 2**20, 8
LARGER = "decode it on a larger machine"
# Bytes of a file that are read at a time.
CHUNK = 2**20
ABOUT = "files that hcnet compress or hcnet.codec wrote"


class Reader:
    """The pages of a compressed file, each decoded when it is asked for.

    ``len(reader)`` is their number, ``reader[7]`` the eighth as a boolean array (True is ink), and
    iteration gives all, one after the other.  A page may depend on earlier ones of its group, which
    are then decoded, too; iteration decodes each page once.

    Parameters
    ----------
    file : str, PathLike or binary file
        A path, or a file that can seek.
    salvage : bool
        Whether to read the complete pages of a file that was cut off or is damaged; `damage` then
        says what is wrong.  Otherwise such a file is refused.
    max_pixels : int
        The largest page that is decoded.

    """

    def __init__(
        self,
        file: str | os.PathLike[str] | IO[bytes],
        *,
        salvage: bool = False,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        salvage = check_flag("salvage", salvage)
        self._max_pixels = check_count("max_pixels", max_pixels, most=2**62)
        self._own = isinstance(file, str | os.PathLike)
        self._name = "The data"
        if self._own:
            path = file_path(file)  # type: ignore[arg-type]
            self._name = str(path)
            # A pipe or a device would be waited for, or read, for ever.
            if not stat.S_ISREG(path.stat().st_mode):
                raise ValueError(f"{path} is not a file; pass {ABOUT}.")
            self._file: IO[bytes] = path.open("rb")
        elif isinstance(file, io.IOBase) or hasattr(file, "seek"):
            self._file = file  # type: ignore[assignment]
            self._name = str(getattr(file, "name", self._name))
        else:
            raise TypeError(
                f"file must be a path or a binary file that can seek, got {type(file).__name__}; "
                f"pass bytes to hcnet.codec.decompress."
            )
        self.damage: str | None = None  # what is wrong with a file that is salvaged
        self._after: tuple[int, State] | None = None  # the last page decoded, and the state after
        try:
            self._size = self._file.seek(0, os.SEEK_END)
            self._starts = self._open()
            if self.damage is not None and not salvage:
                raise ValueError(self.damage)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, if the reader has opened it."""
        if self._own:
            self._file.close()

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, page: int) -> BoolArray:
        """A page as a boolean array."""
        chain = self._chain(self._number(page))
        state = None
        if self._after is not None and self._after[0] in chain[1:]:
            chain = chain[: chain.index(self._after[0])]
            _, state = self._after
        self._after = None  # an error must not leave half a state
        for number in reversed(chain):
            head, payload = self._payload(number)
            state = State(self._version) if state is None else state
            pixels = self._decode(number, head, payload, state)
        assert state is not None
        self._after = chain[0], state
        return pixels

    def __iter__(self) -> Iterator[BoolArray]:
        for page in range(len(self)):
            yield self[page]

    def info(self, page: int) -> PageInfo:
        """What the file says about a page."""
        return self._head(self._number(page))[0].info

    def shape(self, page: int) -> tuple[int, int]:
        """Height and width of a page."""
        return self._head(self._number(page))[0].shape

    def pixels(self, page: int) -> int:
        """The pixels that a page declares, which are not more than allowed."""
        height, width = self.shape(page)
        if height * width > self._max_pixels:
            raise ValueError(
                f"Page {page} of {self._name} declares {height:,} × {width:,} pixels, and at most "
                f"{self._max_pixels:,} are decoded; if you trust the file, raise max_pixels."
            )
        return height * width

    def _number(self, page: int) -> int:
        try:
            number = operator.index(page)
        except TypeError:
            raise TypeError(f"A page is a whole number, got {page!r}; pass one.") from None
        if not -len(self) <= number < len(self):
            pages = f"{len(self)} page{'s' * (len(self) != 1)}"
            raise IndexError(
                f"{self._name} has {pages}, counted from 0, and not page {number}; pass a smaller "
                f"number."
            )
        return number % len(self)

    def _read(self, start: int, n: int) -> bytes:
        self._file.seek(start)
        return self._file.read(n)

    def _open(self) -> list[int]:
        """Where each record begins, and the index; `damage` is set if the file is not complete."""
        beginning = self._read(0, HEADER.size)
        if not beginning.startswith(container.MAGIC):
            what = "is empty" if not beginning else "is not a file of compressed pages"
            if beginning and container.MAGIC.startswith(beginning):
                what = "is cut off within its first bytes"
            raise ValueError(f"{self._name} {what}; pass {ABOUT}.")
        if len(beginning) < HEADER.size:
            raise ValueError(f"{self._name} is cut off within its first bytes; get it again.")
        _, version, flags = HEADER.unpack(beginning)
        if not 1 <= version <= container.VERSION or flags:
            raise ValueError(
                f"{self._name} has file version {version} with flags {flags:#x}, and this hcnet "
                f"reads versions 1 to {container.VERSION} without flags; update hcnet."
            )
        self._version = version
        try:
            return self._starts_of_index()
        except ValueError as error:
            return self._search(str(error))

    def _starts_of_index(self) -> list[int]:
        room = self._size - HEADER.size - END.size
        length, mark = 0, b""
        if room > 0:
            length, mark = END.unpack(self._read(self._size - END.size, END.size))
        if mark != container.END_MARK:
            raise ValueError("it has no end")
        if length > room:
            raise ValueError("its index is longer than the file")
        index = self._read(self._size - END.size - length, length)
        sizes = container.parse_index(index, room - length)
        return list(itertools.accumulate(sizes, initial=HEADER.size))

    def _search(self, why: str) -> list[int]:
        """Where each complete page begins, found from the first to the last."""
        starts = [HEADER.size]
        while True:
            try:
                head, at = self._head_at(starts[-1])
                self._check_payload(head, at)
            except ValueError:
                break
            starts.append(at + head.size)
        pages = f"{len(starts) - 1} complete page{'s' * (len(starts) != 2)}"
        sizes = [end - begin for begin, end in itertools.pairwise(starts)]
        end = container.index_and_end(sizes)
        extra = self._size - starts[-1] - len(end)
        if extra > 0 and self._read(starts[-1], len(end)) == end:
            self.damage = (
                f"{self._name} has {extra:,} byte{'s' * (extra != 1)} after its end, and nothing "
                f"may follow it; cut them off, or pass salvage=True to read what is complete."
            )
            return starts
        self.damage = (
            f"{self._name} is cut off or damaged ({why}) after {pages}; get it again, or pass "
            f"salvage=True to read what is complete."
        )
        return starts

    def _head(self, number: int) -> tuple[Head, int]:
        """The head of a page, and where its payload begins."""
        try:
            head, at = self._head_at(self._starts[number])
            if at + head.size != self._starts[number + 1]:
                raise ValueError("its record has another length than in the index")
            if head.distance > number:
                raise ValueError(f"it depends on a page {head.distance} before it")
        except ValueError as error:
            raise self._damaged(number, error) from None
        return head, at

    def _head_at(self, start: int) -> tuple[Head, int]:
        most = 1 + 10 + container.MOST_HEAD + CHECKSUM.size
        cursor = Cursor(self._read(start, most))
        if cursor.take(1) != container.PAGE:
            raise ValueError("its record does not begin as one")
        data = cursor.take(cursor.varint(container.MOST_HEAD))
        if cursor.checksum() != zlib.crc32(data):
            raise ValueError("the checksum of its head is wrong")
        head, at = container.parse_head(data), start + cursor.at
        if head.size > self._size - at:
            raise ValueError("it is longer than the file")
        return head, at

    def _check_payload(self, head: Head, at: int) -> None:
        checksum = 0
        for start in range(at, at + head.size, CHUNK):
            data = self._read(start, min(CHUNK, at + head.size - start))
            checksum = zlib.crc32(data, checksum)
        if checksum != head.checksum:
            raise ValueError("the checksum of its compressed bytes is wrong")

    def _chain(self, number: int) -> list[int]:
        """A page, the page that it depends on, and so on."""
        chain = [number]
        while distance := self._head(chain[-1])[0].distance:
            chain.append(chain[-1] - distance)
            if len(chain) > container.MOST_CHAIN:
                raise self._damaged(number, ValueError("it depends on too many pages in a row"))
        return chain

    def _payload(self, number: int) -> tuple[Head, bytes]:
        """The head and the compressed bytes of a page that there is memory for."""
        head, at = self._head(number)
        needed = STATE_BYTES + PIXEL_BYTES * self.pixels(number) + head.size
        check_memory(f"Page {number} of {self._name}", needed, None, LARGER)
        try:
            self._check_payload(head, at)
        except ValueError as error:
            raise self._damaged(number, error) from None
        return head, self._read(at, head.size)

    def _decode(self, number: int, head: Head, payload: bytes, state: State) -> BoolArray:
        try:
            pixels = decode_page(payload, head.shape, state)
            if container.pixel_digest(pixels) != head.digest:
                raise ValueError("the checksum of its pixels is wrong")
        except MemoryError:
            raise NotEnoughMemoryError(
                f"Page {number} of {self._name} takes more memory than there is; {LARGER}."
            ) from None
        except Exception as error:
            raise self._damaged(number, error, "its bytes are as they were written") from error
        return pixels

    def _damaged(self, number: int, error: Exception, more: str = "") -> ValueError:
        why = f"{in_short(error)}, though {more}" if more else in_short(error)
        return ValueError(
            f"Page {number} of {self._name} is damaged ({why}); get the file again, or read other "
            f"pages."
        )
