"""Mutated files, one after the other, within limits of memory and time.

A test module is also a program that mutates files so many times and prints what happened as JSON:
limits of memory hold for a whole process.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np

import hcnet

# Seconds for a file, which takes at most a tenth of one.
MOST_SECONDS = 20
# Address space beyond what the program has at first.
ROOM = 2**30


class TooSlowError(BaseException):
    """A file took too long."""


def pick(rng, items):
    """One of some items."""
    return items[int(rng.integers(len(items)))]


def fuzz(count, seed, mutate, check, keep):
    """Mutate so many times; what happened.  Everything should be compiled before.

    ``mutate(rng)`` gives something to check, how it was made, and the bytes of memory that checking
    it may take.  ``check`` of it gives a word for what happened, in capitals if that went wrong;
    then ``keep`` of it and a name keeps it.
    """
    rng = np.random.default_rng(seed)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, hard))

    def late(number, frame):
        raise TooSlowError

    signal.signal(signal.SIGALRM, late)
    told, worst, slowest = Counter(), 0.0, 0.0
    for k in range(count):
        mutant, way, allowed = mutate(rng)
        measured = k % 10 == 0
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
            worst = max(worst, peak / allowed)
        told[what.split()[0] if what[0].isupper() else what] += 1
        if what[0].isupper():
            keep(mutant, f"{seed}-{k}.bad")
            print(f"{seed}-{k}: {way}: {what}", file=sys.stderr)
    return {"told": dict(told), "memory": worst, "slowest": slowest}


def program(fuzz_folder):
    """What a test module does as a program, with a folder, a count and a seed."""
    print(json.dumps(fuzz_folder(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))


def run(module, folder, count, seed):
    """Mutate files in a process of its own; what happened."""
    paths = (Path(hcnet.__file__).parents[1], Path(module).parent, Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, module, folder, str(count), str(seed)]
    options = {"capture_output": True, "text": True, "env": environment, "check": False}
    done = subprocess.run(command, timeout=120 + count, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    wrong = {what for what in result["told"] if what[0].isupper()}
    assert not wrong, done.stderr[-3000:]
    assert result["memory"] <= 1
    print(f"seed {seed}: {result['slowest']:.1f} s at most, {result['memory']:.1%} of the memory")
    return Counter(result["told"])
