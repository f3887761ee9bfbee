"""Memory that a run needs, held against what there is before it starts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# Where Linux says how much the programs of a container may take.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


class NotEnoughMemoryError(MemoryError):
    """A run would need more memory than allowed."""


def check_memory(
    what: str, needed: int, allowed: int | None, remedy: str, gpu: int | None = None
) -> int:
    """`needed`, unless that is more than `allowed` or more than the machine has.

    What is to be in the memory of a GPU is held against the bytes that are free on the `gpu`.
    """
    if allowed is not None and needed > allowed:
        raise NotEnoughMemoryError(
            f"{what} would take {_size(needed)}, and max_memory allows {_size(allowed)}: {remedy}, "
            f"or raise max_memory."
        )
    there = machine_memory() if gpu is None else gpu
    if there is not None and needed > there:
        place, other = f", and this machine has {_size(there)}", ""
        if gpu is not None:
            place, other = f" on the GPU, which has {_size(gpu)} free", ", or pass device='cpu'"
        raise NotEnoughMemoryError(f"{what} would take {_size(needed)}{place}: {remedy}{other}.")
    return needed


def machine_memory() -> int | None:
    """Bytes that this machine or container has, where that can be known."""
    found = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # "max" where there is no limit
        found.append(int(_CONTAINER.read_text()))
    return min((size for size in found if size > 0), default=None)


def _size(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB" if size >= 2**20 else f"{size:,} bytes"
