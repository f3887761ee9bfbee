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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Generic, TypeVar

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


class LookAhead(Generic[Result]):
    """Calls made one after the other, where other threads begin with the next ones meanwhile.

    What was begun for nothing, because the caller goes on with other calls, ends by itself: so a
    call must change nothing that others see.
    """

    def __init__(self) -> None:
        self._calls: Iterator[Callable[[], Result]] = iter(())
        self._threads = 1
        self._ahead: deque[_Task[Result]] = deque()  # whose results are still to be returned
        self._waiting: deque[_Task[Result]] = deque()  # those that nobody has begun with
        self._helpers: list[Future[None]] = []

    def start(self, calls: Iterable[Callable[[], Result]], most: int | None = None) -> None:
        """From now on make these calls, at most so many at the same time."""
        self._waiting.clear()
        self._ahead.clear()
        self._calls = iter(calls)
        self._threads = n_threads() if most is None else min(n_threads(), most)

    def stop(self) -> None:
        """Make no more calls; nobody is at work any more."""
        self.start(())
        wait([helper for helper in self._helpers if not helper.cancel()])

    def next(self) -> Result:
        """What the next call returns."""
        if self._threads == 1:
            return next(self._calls)()
        # Twice as many as threads, so that nobody waits until the caller asks for more.
        for call in itertools.islice(self._calls, 2 * self._threads - len(self._ahead)):
            self._ahead.append(_Task(call))
            self._waiting.append(self._ahead[-1])
            self._get_help()
        task = self._ahead.popleft()
        while not task.done.is_set():
            own = _take(self._waiting)
            if own is None:
                task.done.wait()
            else:
                own.run()
        return task.result()

    def _get_help(self) -> None:
        self._helpers = [helper for helper in self._helpers if not helper.done()]
        if len(self._helpers) < self._threads - 1:
            self._helpers += _start(partial(_work_off, self._waiting), 1)


class _Task(Generic[Result]):
    """A call, and what it returned or raised."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._future: Future[Result] = Future()
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self._future.set_result(self._call())
        except BaseException as error:
            self._future.set_exception(error)
            if not isinstance(error, Exception):  # Ctrl-C
                raise
        finally:
            self.done.set()

    def result(self) -> Result:
        return self._future.result()


def _take(waiting: deque[_Task[Result]]) -> _Task[Result] | None:
    with suppress(IndexError):
        return waiting.popleft()
    return None


def _work_off(waiting: deque[_Task[Result]]) -> None:
    while (task := _take(waiting)) is not None:
        task.run()


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
