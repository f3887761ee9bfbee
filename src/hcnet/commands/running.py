"""A running ``hcnet learn``: its progress in pipes, and the checkpoint that it keeps by itself."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hcnet.commands import command

if TYPE_CHECKING:
    from hcnet import FeatureLearner
    from hcnet.commands.command import Model
    from hcnet.progress import Callback, Step

# Seconds until the first line about progress, and between two.
FIRST_LINE, LINES = 4.0, 10.0


class ProgressLines:
    """A callback that remembers the last step, and prints a line about it every few seconds.

    A thread prints: a step may take longer.  Used in a `with` block; `also` is another callback.
    """

    def __init__(self, also: Callback | None = None) -> None:
        self._also, self._step = also, None
        self._began = self._stage_began = self._last = time.perf_counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._print, daemon=True)

    _step: Step | None

    def __call__(self, step: Step) -> None:
        """Remember a step."""
        if step.iteration == 1:
            self._stage_began = self._last
        self._step, self._last = step, time.perf_counter()
        if self._also is not None:
            self._also(step)

    def line(self) -> str:
        """Stage, figures and an estimate."""
        step, seconds = self._step, time.perf_counter() - self._began
        if step is None:
            return f"{seconds:.0f} s, before the first step."
        text = f"{seconds:.0f} s, {step.stage.lower()}, step {step.iteration:,}"
        if step.total is not None:
            each = (self._last - self._stage_began) / step.iteration
            left = each * (step.total - step.iteration)
            text += f" of about {step.total:,}, {left:,.0f} s left"
        return f"{text}; {step.note or f'{step.figure} {step.objective:,.0f}'}."

    def _print(self) -> None:
        wait = FIRST_LINE
        while not self._over.wait(wait):
            with suppress(OSError, ValueError):  # the reader has gone: the command finds out
                print(f"hcnet: {self.line()}", file=sys.stderr, flush=True)
            wait = LINES

    def __enter__(self) -> ProgressLines:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


@contextmanager
def watched(options: argparse.Namespace, model: Model) -> Iterator[None]:
    """Print lines about the progress of a fit where there is no terminal for a bar."""
    if options.quiet or command.on_a_terminal(options):
        yield
        return
    with ProgressLines(model.callback) as model.callback:
        yield


def tell_choices(options: argparse.Namespace, model: FeatureLearner) -> None:
    """Say which window and algorithm are taken."""
    from hcnet.estimators.feature_learner import WINDOW

    algorithm, size = model.algorithm, model.feature_size
    if size is None and algorithm == "auto":
        about = "the images decide how large parts are, and whether they repeat exactly"
        command.note(options, f"{about} (--feature-size, --algorithm).")
        return
    sides = (size, size) if isinstance(size, int) else size or WINDOW
    least = "" if size else "at least "
    window = f"windows are {least}{sides[0]}×{sides[1]}"
    if algorithm == "soft":
        window = f"parts are at most {sides[0]}×{sides[1]}" if size else "parts have any size"
    algorithm = "refined" if algorithm == "auto" else algorithm  # a window is of exact parts
    command.note(options, f"{window} (--feature-size), the algorithm is {algorithm}.")


def checkpoint(options: argparse.Namespace) -> Path:
    """The checkpoint of a fit, and a line about it."""
    path = command.checkpoint_path(options)
    if path.exists():
        command.note(options, f"goes on from {path}, if that is of the same fit.")
    else:
        command.note(options, f"{path} keeps the state: the same command goes on from there.")
    return path


def save(options: argparse.Namespace, model: Model, interrupted: bool) -> None:
    """Write the model; a checkpoint that nobody has asked for stays only if it is needed."""
    model.save(options.output, overwrite=options.force or command.goes_on(options))
    path = command.checkpoint_path(options)
    if interrupted:
        command.note(options, f"the same command goes on from {path}.")
    elif path != options.checkpoint:
        path.unlink(missing_ok=True)
