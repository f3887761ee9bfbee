"""Compiled loops over threads, and in pieces between which a run can be ended.

Numba's own parallel loops depend on which threading layer a machine happens to have: with one of
them two Python threads that run such loops at the same time end the process, with another one a
forked child does that uses them after its parent.  Here the loops run on ordinary Python threads
instead: compiled code lets go of the interpreter's lock.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar

import numba
import numpy as np

from hcnet.engine.driver import look

# Pieces of a loop per thread: the last to finish keeps the others waiting for a quarter at most.
_PIECES = 4
# Seconds that a piece of a loop takes, about, the indices of a first one, and how pieces may grow.
_SECONDS, _FIRST, _GROWTH = 0.05, 64, 8

Result = TypeVar("Result")

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def n_threads() -> int:
    """Threads that loops use: `numba.set_num_threads`, or the variable NUMBA_NUM_THREADS."""
    return int(numba.get_num_threads())


class Pace:
    """Does one kind of work in short pieces, and looks between two whether it is to be ended.

    A compiled loop cannot be ended otherwise.  Pieces are as long as the one before makes believe,
    but grow only step by step.  Where indices are `alike`, about, in all calls, it begins with the
    length of the last call.
    """

    def __init__(self, alike: bool = False) -> None:
        self._alike, self._of_one = alike, math.inf  # seconds per index

    @property
    def indices(self) -> int:
        """Indices of a piece."""
        return max(int(_SECONDS / self._of_one), 1)

    def __call__(self, work: Callable[[int, int], Any], n: int) -> None:
        """Call work(first, last) for all indices below n, or until it returns True."""
        first, most = 0, min(self.indices, -(-n // _GROWTH)) if self._alike else _FIRST
        while first < n:
            if first:
                look()
            last = min(first + most, n)
            if self.piece(work, first, last):
                return
            most = min(self.indices, _GROWTH * most)
            first = last

    def piece(self, work: Callable[[int, int], Result], first: int, last: int) -> Result:
        """One piece."""
        began = time.perf_counter()
        result = work(first, last)
        self._of_one = max((time.perf_counter() - began) / (last - first), 1e-9)
        return result


def paced(kernel: Callable[..., Any]) -> Callable[..., None]:
    """From ``kernel(first, last, *arguments)``, compiled, make ``loop(n, *arguments)``.

    One index after the other, in pieces; it ends early where the kernel returns True.
    """
    pace = Pace()

    @wraps(kernel)
    def loop(n: int, *arguments: Any) -> None:
        pace(lambda first, last: kernel(first, last, *arguments), n)

    return loop


def over_lanes(kernel: Callable[..., None]) -> Callable[..., None]:
    """The same as `over_threads`, for a loop over lanes of which ``lanes`` has the ends.

    The arguments of the loop are ``n, order, lanes`` and others.  A lane that is alone is run in
    pieces: it may be long.
    """
    loop, pace = over_threads(kernel), Pace()

    @wraps(kernel)
    def laned(n: int, order: Any, lanes: Any, *arguments: Any) -> None:
        if n > 1:
            loop(n, order, lanes, *arguments)
            return

        def work(first: int, last: int) -> None:
            kernel(0, 1, order, np.array([first, last]), *arguments)

        pace(work, len(order))

    return laned


def over_threads(kernel: Callable[..., None]) -> Callable[..., None]:
    """From ``kernel(first, last, *arguments)``, compiled, make ``loop(n, *arguments)``.

    Every index from 0 to n - 1 is in one piece of the loop.  Which thread works on which piece is
    left to chance, so what a piece writes must be nobody else's.
    """
    pace = Pace(alike=True)

    @wraps(kernel)
    def loop(n: int, *arguments: Any) -> None:
        helpers = min(n_threads(), n) - 1
        if helpers < 1:
            pace(lambda first, last: kernel(first, last, *arguments), n)
            return
        pieces = min(max(_PIECES * (helpers + 1), n // pace.indices), n)
        caller = threading.get_ident()
        numbers = itertools.count()
        stop = threading.Event()
        held = [arguments]

        def work() -> None:
            try:
                while not stop.is_set() and (k := next(numbers)) < pieces:
                    ends = k * n // pieces, (k + 1) * n // pieces
                    if threading.get_ident() != caller:
                        kernel(*ends, *held[0])
                        continue
                    pace.piece(lambda first, last: kernel(first, last, *held[0]), *ends)
                    look()
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
