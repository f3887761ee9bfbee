"""Compiled loops over threads.

Numba's own parallel loops depend on which threading layer a machine happens to have: with one of
them two Python threads that run such loops at the same time end the process, with another one a
forked child does that uses them after its parent.  Here the loops run on ordinary Python threads
instead: compiled code lets go of the interpreter's lock.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar

import numba

# Pieces of a loop per thread: the last to finish keeps the others waiting for a quarter at most.
_PIECES = 4

Result = TypeVar("Result")

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def n_threads() -> int:
    """Threads that loops use: `numba.set_num_threads`, or the variable NUMBA_NUM_THREADS."""
    return int(numba.get_num_threads())


def over_threads(kernel: Callable[..., None]) -> Callable[..., None]:
    """From ``kernel(first, last, *arguments)``, compiled, make ``loop(n, *arguments)``.

    Every index from 0 to n - 1 is in one piece of the loop.  Which thread works on which piece is
    left to chance, so what a piece writes must be nobody else's.
    """

    @wraps(kernel)
    def loop(n: int, *arguments: Any) -> None:
        helpers = min(n_threads(), n) - 1
        if helpers < 1:
            kernel(0, n, *arguments)
            return
        pieces = min(_PIECES * (helpers + 1), n)
        numbers = itertools.count()
        stop = threading.Event()
        held = [arguments]

        def work() -> None:
            try:
                while not stop.is_set() and (k := next(numbers)) < pieces:
                    kernel(k * n // pieces, (k + 1) * n // pieces, *held[0])
            except BaseException:
                stop.set()
                raise

        running = _start(work, helpers)
        try:
            work()
        finally:
            # Nobody may still be writing when the caller goes on, whatever happened.
            running = [future for future in running if not future.cancel()]
            try:
                wait(running)
            except BaseException:  # Ctrl-C
                stop.set()
                wait(running)
                raise
            finally:
                held.clear()  # who was not needed stays in the queue a while, and must keep nothing
        for future in running:
            future.result()

    return loop


def _start(work: Callable[[], None], times: int) -> list[Future[None]]:
    """Have some threads help with the work; they are kept for the next time."""
    global _pool
    futures: list[Future[None]] = []
    with _lock:
        if _pool is None:
            # As many as one loop can ask for; they are started when they are needed.
            most = max(int(numba.config.NUMBA_NUM_THREADS) - 1, 1)  # type: ignore[attr-defined]
            _pool = ThreadPoolExecutor(most, thread_name_prefix="hcnet")
        with suppress(RuntimeError):  # the interpreter is closing: the caller does it alone
            for _ in range(times):
                futures.append(_pool.submit(work))
    return futures


def _forget() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that nobody holds."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
