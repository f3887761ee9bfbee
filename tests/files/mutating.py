"""Mutates what programs read, thousands of times, within limits of memory and time."""

import json
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
from handmade import ENVIRONMENT

# Seconds for one mutant, which takes milliseconds.
MOST_SECONDS = 20
# Address space beyond what the program has at first.
ROOM = 2**30
INTS = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


class TooSlowError(BaseException):
    """A mutant took too long."""


def pick(rng, items):
    """One of some items."""
    return items[int(rng.integers(len(items)))]


def bytes_of(rng, data):
    """Mutate bytes, knowing nothing about them."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if len(data) < 8:
            break
        at, length = int(rng.integers(len(data))), int(rng.geometric(0.05))
        width = int(rng.choice([1, 2, 4, 8]))
        removed, new = pick(
            rng,
            [
                (1, bytes([data[at] ^ 1 << int(rng.integers(8))])),
                (length, rng.bytes(length)),
                (length, b""),
                (0, rng.bytes(length)),
                (len(data), b""),
                (0, data[at : at + length * 10]),
                (length, bytes(length)),
                (width, (pick(rng, INTS) % 256**width).to_bytes(width, "little")),
            ],
        )
        data[at : at + removed] = new
    return bytes(data)


def hunt(count, seed, make, check, promised=None, room=ROOM):
    """Make so many mutants and check each; what happened.

    `make` returns how a mutant was made, and the mutant; `check` returns a word for what happened
    to it, in capitals if that should not be.  A mutant that is a path is kept if it went wrong.
    Every tenth is held against the `promised` bytes of memory.
    """
    rng = np.random.default_rng(seed)
    told, worst, slowest = Counter(), 0.0, 0.0
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, hard))

    def late(number, frame):
        raise TooSlowError

    signal.signal(signal.SIGALRM, late)
    for k in range(count):
        way, mutant = make(rng)
        measured = promised is not None and k % 10 == 0
        if measured:
            tracemalloc.start()
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        began = time.perf_counter()
        try:
            what = check(mutant)
        except TooSlowError:
            what = "SLOW"
        except Exception as error:
            what = f"{type(error).__name__.upper()} {error}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, time.perf_counter() - began)
        if measured:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            worst = max(worst, peak / promised())
        told[what if what[:4].islower() else what.split()[0]] += 1
        if not what[:4].islower():
            if isinstance(mutant, Path):
                mutant.rename(mutant.with_name(f"{seed}-{k}.bad"))
            print(f"{seed}-{k}: {way}: {what[:600]}", file=sys.stderr)
    return {"told": dict(told), "memory": worst, "slowest": slowest}


def run_hunt(program, count, seed, *arguments):
    """Run a program that hunts in a process of its own; what happened to its mutants."""
    command = [sys.executable, program, str(count), str(seed), *map(str, arguments)]
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT, "check": False}
    done = subprocess.run(command, timeout=60 + count / 2, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    wrong = {what for what in result["told"] if not what[:4].islower()}
    assert not wrong, done.stderr[-3000:]
    assert result["memory"] <= 1
    about = f"{result['slowest']:.1f} s at most, {result['memory']:.1%} of the memory"
    print(f"{' '.join(map(str, arguments[1:]))} seed {seed}: {about}, {result['told']}")
    return Counter(result["told"])
