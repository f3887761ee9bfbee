"""Files that are written completely or not at all, and never replace another by accident."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from weakref import WeakSet

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that another has open
    fcntl = None  # type: ignore[assignment]

# Most bytes of a file name in every common file system.
MOST_NAME = 255
# What a disk says that takes no more.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# Those of the ending of an unfinished file.
_PART_BYTES = len(".0123456789abcdef.part")


def file_path(path: str | os.PathLike[str]) -> Path:
    """The path of a file that a user has named."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"A file is named by a str or a Path, got {path!r}; pass one of these.")
    try:
        possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ValueError(f"{name!r} holds characters that no file name has; choose another name.")
    found = Path(name)
    if any(len(os.fsencode(part)) > MOST_NAME for part in found.parts):
        raise ValueError(
            f"{name} is too long (more than {MOST_NAME} bytes); choose a shorter name."
        )
    return found


def write_atomically(
    path: str | os.PathLike[str], save: Callable[[IO[bytes]], object], overwrite: bool
) -> Path:
    """Let `save` write a file, which gets its name when it is complete and on the disk.

    If anything fails, a file that was there before stays as it was.
    """
    with open_atomically(path, overwrite) as target:
        save(target)
    return file_path(path)


@contextmanager
def open_atomically(
    path: str | os.PathLike[str], overwrite: bool, claim: Claim | None = None
) -> Iterator[IO[bytes]]:
    """A file to write within this block; it gets its name when the block ends without an error.

    A link stays a link: the file that it leads to is written.  Mode and owner of a file that is
    replaced stay, as far as the system allows.  A `claim` to the old file becomes one to the new.
    """
    path = file_path(path)
    refuse_existing(path, overwrite)
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{place.parent} is not a folder; create it, or choose another.")
    remove_unfinished(place)
    with _new_part(place) as (part, target), _moving(claim, target):
        with _named(path), target:
            _keep_mode_and_owner(target, place)
            yield target
            target.flush()
            os.fsync(target.fileno())
        refuse_existing(path, overwrite)  # it may have come meanwhile
        if overwrite:
            part.replace(place)
        else:
            _publish(part, place, path)
    _sync_folder(place.parent)


def _publish(part: Path, place: Path, path: Path) -> None:
    """Give a finished file its name, unless another process was faster."""
    try:
        if os.name == "nt":
            part.rename(place)  # fails there if the name exists
            return
        try:
            place.hardlink_to(part)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: an empty file keeps the place
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            part.replace(place)
    except FileExistsError:
        raise _exists(path) from None


def _exists(path: Path) -> FileExistsError:
    return FileExistsError(
        f"{path} exists already; choose another name, or pass overwrite=True to replace it."
    )


class Claim:
    """The right to write a file: at most one object has it, until it is released.

    It is a lock on the file itself, which ends with the process, however that ends.  Where there
    are no locks, everybody has the right.
    """

    def __init__(self, path: Path) -> None:
        self._place = Path(os.path.realpath(path))
        self._file: IO[bytes] | None = None
        _claims.add(self)

    def take(self) -> bool:
        """Take the right to the file, if it is there; False if another has it."""
        if fcntl is None:
            return True
        while self._file is None:
            try:
                if not stat.S_ISREG(self._place.stat().st_mode):
                    return True
                file = self._place.open("rb")
            except OSError:  # there is none, or it cannot be read, which others find out
                return True
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return False
            except OSError:  # no locks
                file.close()
                return True
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), self._place.stat()):
                    self._file = file
                    return True
            file.close()  # it was replaced before it was locked
        return True

    def move(self, file: IO[bytes]) -> None:
        """The file now is another, which is locked."""
        self.release()
        self._file = file

    def release(self) -> None:
        """Give the right back."""
        if self._file is not None:
            self._file.close()
        self._file = None


_claims: WeakSet[Claim] = WeakSet()


def _forget_claims() -> None:
    """A forked child has no claims: it may outlive its parent."""
    for claim in _claims:
        claim.release()


@contextmanager
def _moving(claim: Claim | None, target: IO[bytes]) -> Iterator[None]:
    """If all goes well in this block, a claim becomes one to the target, which is locked."""
    if claim is None:
        yield
        return
    file = os.fdopen(os.dup(target.fileno()), "rb")  # the same lock
    try:
        yield
    except BaseException:
        file.close()
        raise
    claim.move(file)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_claims)


def refuse_existing(path: Path, overwrite: bool = False) -> None:
    """Raise an error if the path is no regular file, or a file that may not be replaced."""
    if not isinstance(overwrite, bool):  # "no" would count as True
        raise TypeError(f"overwrite must be True or False, got {overwrite!r}; pass one of these.")
    try:
        mode = path.stat().st_mode  # of what a link leads to
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; name a file to write to.")
    if mode is not None and not stat.S_ISREG(mode):
        raise OSError(
            f"{path} is a device, a pipe or a socket, which is never replaced; name a regular file."
        )
    if not overwrite and os.path.lexists(path):  # also a link to nothing
        raise _exists(path)


def remove_unfinished(path: Path) -> None:
    """Remove what processes that were killed while they wrote this file have left.

    A process that is still writing holds a lock on its file.
    """
    pattern = re.compile(re.escape(cut_name(path.name, _PART_BYTES)) + r"\.[0-9a-f]{16}\.part")
    with os.scandir(path.parent) as entries:  # a folder may have very many
        names = [one.name for one in entries if one.name.endswith(".part")]
    for part in map(path.with_name, filter(pattern.fullmatch, names)):
        with suppress(OSError):  # another process is writing it, or has removed it
            if fcntl is None:
                part.unlink()
                continue
            descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
            finally:
                os.close(descriptor)


def cut_name(name: str, room: int) -> str:
    """As much of the name of a file as leaves room for so many bytes."""
    name = name[:MOST_NAME]
    while len(os.fsencode(name)) > MOST_NAME - room:
        name = name[:-1]
    return name


@contextmanager
def _new_part(place: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """An unfinished file beside `place`, locked, and removed unless it has got another name.

    Its random name is no other file's.  A file of `tempfile` would be readable for its owner only.
    """
    done = False
    while not done:
        part = place.with_name(f"{cut_name(place.name, _PART_BYTES)}.{secrets.token_hex(8)}.part")
        files: list[IO[bytes]] = []
        try:
            try:
                files.append(part.open("x+b"))
                files.append(os.fdopen(os.dup(files[0].fileno()), "rb"))  # outlives the target
                if fcntl is not None:
                    with suppress(OSError):  # no locks here: nobody removes the file, either
                        fcntl.flock(files[1], fcntl.LOCK_EX)
                if part.exists():  # otherwise somebody took it for an old one before it was locked
                    yield part, files[0]
                    done = True  # a return would stand outside of both blocks
            finally:
                _discard(part, files)
        except BaseException:  # Ctrl-C may have come between any two lines, also of `finally`
            _discard(part, files)
            raise


def _discard(part: Path, files: list[IO[bytes]]) -> None:
    """Close and remove an unfinished file; a second time does no harm."""
    try:
        if os.name == "nt":  # where an open file cannot be removed
            for file in files:
                file.close()
    finally:
        part.unlink(missing_ok=True)
    for file in files:
        file.close()


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of the disk within this block, which know no file, get the name of this one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        if error.errno in _DISK_ERRORS:
            raise OSError(error.errno, error.strerror, str(path)) from error
        if error.errno is None:  # of a library that has only counted bytes
            raise OSError(
                f"{path} could not be written ({error}); is the disk full? Free some space, or "
                f"choose another place."
            ) from error
        raise


def _keep_mode_and_owner(target: IO[bytes], place: Path) -> None:
    """Give a new file the mode and the owner of the one that it will replace."""
    if not place.exists() or not hasattr(os, "fchown"):
        return
    old, file = place.stat(), target.fileno()
    for owner in (old.st_uid, -1):  # only the administrator gives files to others
        with suppress(PermissionError):
            os.fchown(file, owner, old.st_gid)
            break
    # A program must not run with the rights of another owner than before.
    mine = os.fstat(file).st_uid == old.st_uid
    with suppress(PermissionError):
        os.fchmod(file, stat.S_IMODE(old.st_mode) if mine else old.st_mode & 0o777)


def _sync_folder(folder: Path) -> None:
    """Write a folder to the disk: only then a new name in it is there."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
