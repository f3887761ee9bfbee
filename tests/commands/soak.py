"""A soak: random commands with random options on random files, all in one folder, for hours.

As a program: ``python soak.py FOLDER SECONDS [SEED]`` prints a line about whatever is wrong, a line
of figures every minute, and all figures as JSON at the end: after so long, or when there is a file
`stop` in the folder.

Half of the commands run in this process, whose memory must not grow, the others in forked
processes, some of which get a signal at a random moment.  Commands and options are those of
``hcnet --help``, and some of their values are wrong.  After each command everything in the folder
is compared with what was there before: only files that the command was told to write may differ,
and these must be whole.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import hashlib
import io
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from numba.core.dispatcher import Dispatcher
from PIL import Image

import hcnet
from hcnet import cli, codec, datasets, image_files
from hcnet.archive.files import Reader as ArchiveReader
from hcnet.commands import command as shared
from hcnet.image_files.bilevel import read_pages
from hcnet.image_files.reading import find_files

# Seconds after which a command hangs; the machine may be busy.
HANGS = 240
# Files in the folder at most, before some are removed.
MOST_FILES = 120
# Bytes of a file that a command reads at most.
MOST_BYTES = 30_000
# Address space of a process: more is refused by the system, as if there were no memory.
ADDRESSES = 12 * 2**30
# Seconds between two looks at the memory.
EVERY = 60
# Whether every command is printed.
LOG = "SOAK_LOG" in os.environ
PART = re.compile(r".*\.[0-9a-f]{16}\.part")
PICTURES = (".png", ".tif", ".pbm", ".npy", ".npz", ".gif", ".bmp")
STEMS = ("page", "a b", "größe", "-x", "x.y", "[1]", "<b>&", "ⅷ\u2028", "'", "%s", "con", "n\nl")


class HangError(BaseException):
    """A command that does not come to its end."""


def rare(rng, p=0.05):
    """True now and then."""
    return rng.random() < p


# --- files -----------------------------------------------------------------------------------


def draw(rng):
    """A small binary image."""
    seed = rng.randrange(1000)
    kind = rng.randrange(7)
    if kind == 0:
        return datasets.scanned_text(size=(90, 160), random_state=seed).images[0, 0]
    if kind == 1:
        return datasets.two_bars(
            size=(24, 24), length=6, n_placements=14, random_state=seed
        ).images[0, 0]
    if kind == 2:
        return datasets.shapes(feature_size=7, n_images=1, random_state=seed).images[0, 0]
    shape = rng.choice([(1, 1), (1, 40), (17, 3), (24, 24), (33, 70)])
    if kind == 3:
        return np.full(shape, rng.random() < 0.5)
    return np.random.default_rng(seed).random(shape) < rng.choice([0.02, 0.2, 0.5])


def write_input(rng, folder):
    """A random file: images, labels, names, settings or rubbish."""
    path = folder / f"{rng.choice(STEMS)}{rng.randrange(100)}{rng.choice(PICTURES)}"
    kind = rng.randrange(12)
    seed = rng.randrange(1000)
    if kind < 6:
        page = draw(rng)
        if path.suffix == ".npy":
            np.save(path, page if rng.random() < 0.7 else np.stack([page, ~page]).astype(float))
        elif path.suffix == ".npz":
            np.savez(path, X=page[None, None])
        else:
            image = Image.fromarray(np.where(page, 0, 255).astype(np.uint8))
            image = image.convert("1") if rng.random() < 0.7 else image
            more = [image.copy() for _ in range(rng.randrange(3))]
            several = {"save_all": True, "append_images": more} if path.suffix == ".tif" else {}
            image.save(path, **several)
    elif kind == 6:
        data = datasets.shapes(
            feature_size=7, jitter=1, n_images=rng.choice([4, 12]), random_state=seed
        )
        np.savez(path.with_suffix(".npz"), X=data.images, y=data.labels)
    elif kind == 7:
        (folder / f"labels{seed % 9}.txt").write_text("\n".join(map(str, range(rng.randrange(5)))))
    elif kind == 8:
        names = [f"{k},{chr(97 + k % 26)}" for k in range(rng.choice([1, 2, 3, 9, 60]))]
        (folder / f"names-{seed % 9}.names.csv").write_text("part,name\n" + "\n".join(names))
    elif kind == 9:
        text = rng.choice(
            ["max_seconds = 1\n", "n_init = 1\nquiet = true\n", "nonsense", "force = 3"]
        )
        (folder / f"settings{seed % 9}.toml").write_text(text)
    elif kind == 10 and (others := files_in(folder)):  # a damaged copy
        other = rng.choice(others)
        content = bytearray((folder / other).read_bytes()[:200_000])
        for _ in range(rng.randrange(1, 9)):
            if content:
                content[rng.randrange(len(content))] = rng.randrange(256)
        cut = rng.randrange(len(content) + 1) if rng.random() < 0.5 else len(content)
        Path(folder, f"damaged{seed % 9}{Path(other).suffix}").write_bytes(content[:cut])
    else:
        path.write_bytes(random.Random(seed).randbytes(rng.randrange(300)))


def files_in(folder):
    """Paths of all files in a folder, relative to it."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def state_of(folder):
    """A digest of every file, and None for every folder."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        found[name] = None if path.is_dir() else hashlib.sha256(path.read_bytes()).digest()
    return found


def broken(path):
    """What is wrong with a file that a command wrote, or None."""
    try:
        content = path.read_bytes()
        if content.startswith((b"\x97JB2", b"%PDF")):  # whatever their names are
            return None
        if content.startswith(b"PK") and b"header.json" in content[:100]:
            with ArchiveReader(path):
                pass
        elif content.startswith(b"\x89HCZ"):
            with codec.Reader(path) as reader:
                for _ in reader:
                    pass
        elif path.suffix == ".html" and not content.rstrip().endswith(b"</html>"):
            return "does not end"
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix in (".png", ".tif", ".pbm"):
            with Image.open(path) as image:
                image.load()
        elif path.suffix in (".npy", ".npz"):
            image_files.read_images([path])
        elif not content and path.suffix != ".csv":
            return "is empty"
    except Exception as error:  # whatever it is, the file is not whole
        return f"{type(error).__name__}: {error}"
    return None


# --- commands --------------------------------------------------------------------------------


class Words:
    """Makes a random command; `outputs` are the paths that it may write."""

    def __init__(self, rng, folder):
        self.rng, self.files = rng, files_in(folder)
        # Large pictures take long, and show nothing more.
        self.small = [
            name
            for name in self.files
            if (folder / name).stat().st_size < (3000 if name.endswith(".png") else MOST_BYTES)
        ]
        self.folders = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_dir())
        self.outputs: set[str] = set()
        self.force = False

    def some(self, *suffixes):
        """An existing file with one of these endings, if there is one; sometimes any other."""
        fitting = [name for name in self.small if name.endswith(suffixes)]
        if rare(self.rng, 0.03) or not fitting:
            return self.rng.choice([*self.small, *self.folders, "missing.png", ""])
        return self.rng.choice(fitting)

    def new(self, *suffixes):
        """A name to write to; sometimes that of a file that is there."""
        rng = self.rng
        path = f"out{rng.randrange(60)}{rng.choice(suffixes)}"
        if rare(rng, 0.1):
            path = rng.choice([*self.files, *self.folders, "nowhere/out.png", f"x/{path}", ""])
        self.outputs.add(os.path.normpath(path) if path else path)
        return path

    def make(self, parser, name):
        """The words of a command."""
        words, positional = [], []
        for action in parser._actions:
            if isinstance(action, argparse._HelpAction):
                continue
            if not action.option_strings:
                positional += self._positional(action, name)
            elif action.required or rare(self.rng, self._often(action)):
                words += self._option(action, name)
        if rare(self.rng, 0.02):
            words += [self.rng.choice(["--nonsense", "-q", "--outputs=3", "--", "--help"])]
        if "reference" in words:  # an engine for tests, which takes minutes for a page
            words += ["--max-seconds", "1"]
        self.force = "--force" in words
        return [
            name,
            *words,
            *(["--"] if any(p.startswith("-") for p in positional) else []),
            *positional,
        ]

    def _often(self, action):
        return {
            "max_seconds": 0.8,
            "n_init": 0.5,
            "force": 0.4,
            "layers": 0.3,
            "max_iter": 0.3,
        }.get(action.dest, 0.02)

    def _positional(self, action, name):
        if action.choices:
            return [self.rng.choice([*action.choices])]
        suffixes = {
            "model": (".hcn",),
            "names": (".names.csv",),
            "codes": tuple(f"{n}{end}" for n in range(10) for end in (".csv", ".json")),
            "file": (".hcz",),
            "table": (".names.csv", ".csv"),
        }
        if action.dest == "images":
            least = 0 if action.nargs == "*" else 1
            own = (".png", ".tif", ".pbm", ".bmp", ".gif") if name == "compress" else PICTURES
            own = (self.rng.choice(own),) if self.rng.random() < 0.7 else own
            return [self.some(*own) for _ in range(self.rng.choice([least, 1, 1, 2, 3]))]
        return [self.some(*suffixes.get(action.dest, ("",)))]

    def _option(self, action, name):
        rng, flag = self.rng, self.rng.choice(action.option_strings)
        if action.nargs == 0:
            return [flag]
        if action.dest == "layers":
            features = rng.choice([1, 3, 0, 10**9]) if rare(rng, 0.2) else 3
            return [flag, f"n_features={features},size=3", "--layer", "templates"]
        return [flag, str(self._value(action, name))]

    def _value(self, action, name):
        rng = self.rng
        if action.choices:
            return rng.choice([*action.choices, *(["wrong"] if rare(rng) else [])])
        if action.dest == "output":
            endings = {
                "learn": (".hcn",), "name": (".hcn",), "report": (".html",), "show": (".png",),
                "compress": (".hcz",), "decompress": ("",), "demo": ("",), "read": (".txt",),
                "encode": (".csv", ".json"), "classify": (".csv",), "cluster": (".csv",),
                "factor": ("",),
            }  # fmt: skip
            return self.new(*endings.get(name, (".png", ".tif", ".npy", ".npz", "")))
        outputs = {
            "picture": ".png", "sheet": ".png", "confusion": ".png", "table": ".csv",
            "report": ".html", "live": ".html", "checkpoint": ".ckpt",
        }  # fmt: skip
        if action.dest in outputs:
            return self.new(outputs[action.dest])
        if action.dest in ("mask", "labels", "model", "settings"):
            endings = {"mask": PICTURES, "labels": (".txt", ".npz", ".csv")}
            endings |= {"model": (".hcn",), "settings": (".toml",)}
            return self.some(*endings[action.dest])
        if action.dest == "max_seconds":
            return rng.choice(
                [0.2, 0.5, 1, 2, 3, *([0, -1, "nan", 1e300] if rare(rng, 0.1) else [])]
            )
        if action.type is shared.size:
            return rng.choice(
                ["3x3", 5, "4x7", *(["0x0", "99x99", "x", 10**9] if rare(rng, 0.2) else [])]
            )
        if action.type is shared.amount:
            return rng.choice(["1GiB", "100MB", 1000, "x"])
        if action.type is float:
            return rng.choice([0.1, 0.5, 0.9, 0, -1, "nan", 1e300, "x"])
        absurd = [0, -1, 10**12, 10**30, "x", 1.5] if rare(rng, 0.15) else []
        return rng.choice([1, 2, 3, 5, *absurd])


class Soak:
    """The folder, what is known of its files, and what was found."""

    def __init__(self, folder, seed):
        self.folder, self.rng = folder, random.Random(seed)
        self.parsers = cli.make_parser()[1]
        self.pages: dict[bytes, list[bytes]] = {}  # of compressed files, by digest
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        # Seconds, MiB, compiled functions, modules.
        self.samples: list[tuple[float, float, int, int]] = []
        self.slowest: list[tuple[float, str]] = []

    # --- one command ---

    def step(self):
        """Make some files, run a command, and compare the folder."""
        while self.rng.random() < 0.3 or len(files_in(self.folder)) < 30:
            write_input(self.rng, self.folder)
        self._clear()
        if rare(self.rng, 0.04):
            self._library()
            return
        words = Words(self.rng, self.folder)
        often = [name for name in self.parsers if name not in ("demo", "completion", "info")]
        name = self.rng.choice([*self.parsers, *often, *often, *["learn"] * 8])
        arguments = words.make(self.parsers[name], name)
        before = state_of(self.folder)
        forked = self.rng.random() < 0.5
        sent = self.rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]) if forked else None
        sent = sent if rare(self.rng, 0.4) else None
        began = time.perf_counter()
        code, err = self._fork(arguments, sent) if forked else self._inside(arguments)
        seconds = time.perf_counter() - began
        self.slowest = sorted([*self.slowest, (seconds, " ".join(arguments))], reverse=True)[:8]
        self.counts[f"{name} {code}"] += 1
        self.counts["commands"] += 1
        self._judge(arguments, code, err, sent)
        if LOG:
            print(f"{seconds:.1f}", code, sent, arguments, err.splitlines()[-1:], flush=True)
        self._compare(arguments, words, before, code, sent)

    def _inside(self, arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = self._main(arguments)
        return code, err.getvalue()

    def _main(self, arguments):
        with warnings.catch_warnings():
            try:
                signal.alarm(HANGS)
                return cli.main(arguments)
            except SystemExit as end:
                return end.code
            except BaseException:
                traceback.print_exc()
                return "raised"
            finally:
                signal.alarm(0)

    def _fork(self, arguments, sent):
        streams = [self.folder.parent / name for name in ("out", "err")]
        sys.stdout.flush()
        early = [signal.SIGINT, signal.SIGTERM]
        signal.pthread_sigmask(signal.SIG_BLOCK, early)
        child = os.fork()
        if child == 0:
            code = 99
            try:
                for number, path in enumerate(streams, 1):
                    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
                sys.stdout, sys.stderr = (os.fdopen(n, "w", closefd=False) for n in (1, 2))
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                    signal.signal(number, signal.SIG_DFL)  # as `hcnet.__main__` does
                signal.pthread_sigmask(signal.SIG_UNBLOCK, early)
                code = self._main(arguments)
                signal.pthread_sigmask(signal.SIG_BLOCK, early)  # what follows is not hcnet
                sys.stdout.flush()
                sys.stderr.flush()
            except BaseException:  # outside of the command: how it came there is to be seen
                os.write(2, traceback.format_exc().encode(errors="replace"))
            finally:
                os._exit(code if isinstance(code, int) else 98)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, early)
        wait = self.rng.random() * self.rng.choice([0.05, 0.5, 3])
        if sent is not None:
            time.sleep(wait)
            os.kill(child, sent)  # a child that has ended is there until it is waited for
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code, streams[1].read_text(errors="replace")

    def _judge(self, arguments, code, err, sent):
        """Exit code and words of a command."""
        said = [line for line in err.splitlines() if "hcnet: error: " in line]
        wrong = None
        if "Traceback" in err or "hcnet itself" in err or code == "raised":
            wrong = "traceback"
        elif code in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT):
            wrong = None if code == -(sent or 0) else "killed"
        elif code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
            wrong = None if code == 128 + (sent or 0) else "not interrupted"
        elif code not in (0, 1, 2, 3):
            wrong = "exit code"
        elif code == 0 and said:
            wrong = "error and success"
        elif code in (1, 3) and len(said) != 1 and "--salvage" not in arguments:
            wrong = "errors"
        if wrong:
            self._problem(wrong, arguments, f"{code}, sent {sent}: {err[-3000:]}")

    def _compare(self, arguments, words, before, code, sent):
        """Only what the command was told to write may differ, and that is whole."""
        after = state_of(self.folder)
        for name in sorted({*before, *after}):
            old, new = before.get(name), after.get(name)
            if name in before and name in after and old == new:
                continue
            if PART.fullmatch(name):
                if sent == signal.SIGKILL:
                    self.counts["parts left by kills"] += 1
                else:
                    self._problem("part left", arguments, f"{name} {code} {sent}")
                (self.folder / name).unlink(missing_ok=True)
                continue
            self._judge_change(arguments, words, name, before, after, code)
            if new is not None and (why := broken(self.folder / name)):
                self._problem("not whole", arguments, f"{name} {why}")
        self._remember(arguments, code, after)

    def _judge_change(self, arguments, words, name, before, after, code):
        told = words.outputs | {f"{path}.ckpt" for path in words.outputs}
        if arguments[0] == "name" and not words.outputs:
            told.add(os.path.normpath(arguments[-2]))
        if arguments[0] == "factor" and not words.outputs:
            told.add(f"{Path(arguments[-1]).stem}-factors")
        checkpoint = name.endswith(".ckpt")
        inside = any(name == path or name.startswith(f"{path}/") for path in told)
        above = any(path.startswith(f"{name}/") for path in told)
        if name not in after:
            if not (checkpoint and inside):
                self._problem("lost", arguments, f"{name} {code}")
        elif not (inside or above):
            self._problem("touched", arguments, f"{name} {code}")
        elif name in before and not (
            words.force or checkpoint or arguments[0] in ("name", "learn")
        ):
            self._problem("replaced without --force", arguments, f"{name} {code}")
        elif code == 2:
            self._problem("written in spite of wrong arguments", arguments, name)

    def _remember(self, arguments, code, after):
        """Pages that were compressed are the same when they are read."""
        if arguments[0] != "compress" or code != 0:
            return
        if {"--jbig2", "--pdf", "--help", "-h"} & {*arguments}:
            return
        parsed = self.parsers["compress"].parse_known_args(arguments[1:])[0]
        files = find_files([self.folder / p for p in parsed.images])
        if self.folder / parsed.output in files:  # an image that was replaced by its own pages
            return
        pages = [page for file in files for page, _ in read_pages(file)]
        with codec.Reader(self.folder / parsed.output) as reader:
            same = len(reader) == len(pages) and all(
                np.array_equal(one, other) for one, other in zip(reader, pages, strict=True)
            )
        self.counts["compressed and compared"] += 1
        if not same:
            self._problem("other pixels", arguments, "")

    # --- the library, and the long run ---

    def _library(self):
        """Load a model and use it; fit a table."""
        self.counts["library"] += 1
        rng = np.random.default_rng(self.rng.randrange(1000))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = rng.random((12, 9)) < 0.3
            hcnet.BooleanMatrixFactorization(2, max_seconds=1, random_state=0).fit(table)
            models = [name for name in files_in(self.folder) if name.endswith(".hcn")]
            if not models:
                return
            try:
                model = hcnet.load(self.folder / self.rng.choice(models))
                X = (
                    rng.random((2, *model.image_size_)) < 0.2
                    if hasattr(model, "image_size_")
                    else table
                )
                for use in ("denoise", "transform", "placements", "predict"):
                    if hasattr(model, use):
                        getattr(model, use)(X)
                hcnet.export.to_dict(model) if hasattr(hcnet.export, "to_dict") else None
            except (ValueError, TypeError):  # a damaged file, or other channels
                self.counts["library refused"] += 1
            except Exception:
                self._problem("library", ["library"], traceback.format_exc())

    def _clear(self):
        """Keep the folder small."""
        names = files_in(self.folder)
        for name in self.rng.sample(names, max(len(names) - MOST_FILES, 0)):
            (self.folder / name).unlink()
        for path in [*self.folder.iterdir()]:
            if path.is_dir() and rare(self.rng, 0.02):
                shutil.rmtree(path)

    def _problem(self, kind, arguments, more):
        self.counts[f"problem: {kind}"] += 1
        self.problems.append(f"{kind}: {arguments} {more}")
        print("PROBLEM", kind, arguments, more, flush=True)

    def run(self, seconds):
        """Go on for so long; all figures."""
        began = last = time.perf_counter()
        for n in itertools.count():
            try:
                self.step()
            except HangError:
                self._problem("hang", ["soak"], traceback.format_exc())
            now = time.perf_counter()
            if now - last > EVERY or not n:
                loaded = compiled(), len(sys.modules)
                self.samples.append((round(now - began), round(resident(), 1), *loaded))
                about = f"{now - began:.0f} s, {self.counts['commands']} commands"
                about += f", {self.samples[-1][1]} MiB, {loaded} compiled functions and modules"
                print(f"{about}, {len(self.problems)} problems", flush=True)
                last = now
            if now - began > seconds or (self.folder.parent / "stop").exists():
                break
        return self.figures(now - began)

    def figures(self, seconds):
        """What was found."""
        return {
            "seconds": round(seconds),
            "counts": dict(sorted(self.counts.items())),
            "seconds, MiB, compiled functions, modules": self.samples,
            "slowest": [(round(s, 1), words) for s, words in self.slowest],
            "problems": self.problems,
        }


def resident():
    """MiB of memory that this process has, without what its allocator keeps for later."""
    with contextlib.suppress(AttributeError):  # only of glibc
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def compiled():
    """Compiled functions that this process has loaded: each takes memory until the end."""
    found = (one for one in gc.get_objects() if isinstance(one, Dispatcher))
    return sum(len(one.overloads) for one in found)


def alarm(number, frame):
    """Give a command up."""
    raise HangError


def soak(folder, seconds, seed=0):
    """Run a soak in an empty folder."""
    folder = Path(folder).resolve() / "files"
    folder.mkdir(parents=True)
    os.chdir(folder)
    signal.signal(signal.SIGALRM, alarm)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, resource.RLIM_INFINITY))
    return Soak(folder, seed).run(seconds)


if __name__ == "__main__":
    figures = soak(sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:]))
    print(json.dumps(figures, indent=1, ensure_ascii=False))
    sys.exit(bool(figures["problems"]))
