"""Errors as one sentence, and the exit code that goes with each."""

from __future__ import annotations

from hcnet.commands.command import FAILED, FILE_IN_THE_WAY

# What the library says about calls, as a person at the command line would do it.
_WORDS = {
    "pass overwrite=True to replace it": "pass --force to replace it",
    "pass a file that save() wrote": "pass a model that hcnet learn wrote",
}


def sentence(error: BaseException) -> str:
    """What went wrong, on one line."""
    if isinstance(error, OSError) and error.filename is not None:
        reason = (error.strerror or "unknown error").lower()
        return f"{error.filename} cannot be used ({reason}); choose another."
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) and not text:
        return "There is not enough memory; take fewer or smaller images, or set --max-memory."
    for python, here in _WORDS.items():
        text = text.replace(python, here)
    if isinstance(error, ValueError | TypeError | OSError | MemoryError | ImportError):
        return text
    return f"Something that should not happen did ({type(error).__name__}: {text})."


def exit_code(error: BaseException) -> int:
    """Of a command that ended with this error."""
    return FILE_IN_THE_WAY if isinstance(error, FileExistsError) else FAILED
