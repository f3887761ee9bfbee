"""SIGINT and SIGTERM at random moments of every command that writes.

Old file or new file, nothing between, and no rubbish left.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from running import COMMAND
from soak import PART, broken, files_in, state_of

from hcnet import cli
from hcnet.commands.show import completion, info

# Words of every command that writes, in a folder with the files of `world`.
WORDS = {
    "learn": "learn page.png --feature-size 7 --n-init 2 --random-state 0 --every 0 "
    "--sheet sheet.png --table table.csv --report report.html --output out.hcn",
    "learn stream": "learn page.png other.png --feature-size 7 --stream -o out.hcn",
    "learn soft": "learn text.png --algorithm soft --random-state 0 -o out.hcn",
    "learn network": "learn shapes.npz --labels shapes.npz --layer n_features=3,size=4 "
    "--layer templates --n-init 1 --max-iter 10 --random-state 0 -o out.hcn",
    "show": "show bars.hcn -o out.png",
    "report": "report bars.hcn page.png -o out.html",
    "demo": "demo -o out",
    "denoise": "denoise bars.hcn page.png -o out.png --picture picture.png",
    "denoise folder": "denoise bars.hcn page.png other.png -o out",
    "inpaint": "inpaint bars.hcn page.png --mask stain.png -o out.png",
    "classify": "classify shapes.hcn shapes.npz -o out.csv",
    "cluster": "cluster shapes.hcn shapes.npz -o out.csv",
    "encode": "encode bars.hcn page.png -o out.json --picture picture.png",
    "render": "render bars.hcn codes.json -o out.tif",
    "sample": "sample shapes.hcn -n 20 --random-state 0 -o out.npz",
    "name": "name bars.hcn names.csv -o out.hcn",
    "name itself": "name bars.hcn names.csv",
    "read": "read page.png --model named.hcn -o out.txt",
    "compress": "compress text.png other.tif -o out.hcz",
    "compress pdf": "compress text.png other.tif --pdf -o out.pdf",
    "decompress": "decompress pages.hcz -o out",
    "factor": "factor answers.csv --rank 3 -o out",
}
WRITES = {words.split()[0] for words in WORDS.values()}
QUICK = ("learn", "compress", "name itself")


def test_every_command_that_writes_is_here():
    assert {one.name for one in cli.COMMANDS} - WRITES == {info.name, completion.name}


@pytest.fixture(scope="module")
def world(tmp_path_factory, hcnet, folder, parts, network):
    """Inputs of all commands, and what each writes if nobody interrupts it."""
    from PIL import Image

    from hcnet.datasets import scanned_text

    world = tmp_path_factory.mktemp("world")
    shutil.copy(folder / "scans" / "page0.png", world / "page.png")
    shutil.copy(folder / "scans" / "page1.png", world / "other.png")
    for name in ("stain.png", "shapes.npz"):
        shutil.copy(folder / name, world / name)
    shutil.copy(parts[0], world / "bars.hcn")
    shutil.copy(network[0], world / "shapes.hcn")
    text = scanned_text(size=(120, 240), random_state=0).images[0, 0]
    for name in ("text.png", "other.tif"):
        Image.fromarray(~text).save(world / name)
    (world / "names.csv").write_text("part,name\n0,a\n")
    rng = random.Random(0)
    rows = [[f"q{k}" for k in range(9)], *([rng.choice("01") for _ in range(9)] for _ in range(50))]
    (world / "answers.csv").write_text("\n".join(map(",".join, rows)))
    for words in (
        "name bars.hcn names.csv -o named.hcn",
        "encode bars.hcn page.png -o codes.json",
        "compress text.png other.tif -o pages.hcz",
    ):
        assert hcnet(*words.split(), cwd=world).returncode == 0
    return world


def command(words, cwd):
    # Tests in the background ignore Ctrl-C, and a child would inherit that.
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *COMMAND, *words, "--force"],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupted(words, folder, number, moment):
    """Run a command on top of older results, and send a signal; what is wrong then."""
    before = state_of(folder)
    with command(words, folder) as process:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        _, said = process.communicate(timeout=240)
    about = f"{words} {number.name} {moment:.2f} {process.returncode} {said}"
    # Before and after the command the system ends the process by itself.
    assert process.returncode in (0, 128 + number, -number), about
    assert "Traceback" not in said, about
    assert "Exception ignored" not in said, about
    after = state_of(folder)
    assert {*before} <= {*after} | {"out.hcn.ckpt"}, about
    changed = [name for name in after if before.get(name, b"") != after[name]]
    for name in changed:
        assert not PART.fullmatch(name), about
        assert name.startswith(("out", "picture", "sheet", "table", "report")) or (
            name == "bars.hcn" and words[0] == "name"
        ), (name, about)
        if after[name] is not None:
            assert broken(folder / name) is None, (name, about)
    return process.returncode


def interrupt_often(name, world, folder, times, seed):
    """Each signal so many times; how often the command had not come to its end."""
    rng = random.Random(seed)
    words = WORDS[name].split()
    shutil.copytree(world, folder, dirs_exist_ok=True)
    for _ in range(2):  # the first may compile, which the others do not
        began = time.perf_counter()
        with command(words, folder) as process:
            _, said = process.communicate(timeout=240)
        seconds = time.perf_counter() - began
        assert process.returncode == 0, said
    assert {*files_in(world)} < {*files_in(folder)} or words[0] == "name"
    ended = 0
    for number in (signal.SIGINT, signal.SIGTERM) * times:
        code = interrupted(words, folder, number, rng.uniform(0, seconds))
        ended += code != 0
    print(f"{name}: {2 * times} signals within {seconds:.1f} s, {ended} before the end")
    return ended


# Libraries may say that their import failed where Ctrl-C came.
FAILED_IMPORT = """
import signal, sys
number = getattr(signal, sys.argv.pop())
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore Ctrl-C
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "numba":
            try:
                signal.raise_signal(number)
            except KeyboardInterrupt:
                raise ImportError("initialization failed")
sys.meta_path.insert(0, Finder)
from hcnet.__main__ import start
sys.exit(start())
"""


@pytest.mark.parametrize(("name", "word"), [("SIGINT", "Interrupted."), ("SIGTERM", "Terminated.")])
def test_an_import_that_a_signal_breaks_is_no_error(name, word, world, tmp_path):
    words = "report", world / "bars.hcn", world / "page.png", "-o", tmp_path / "out.html", name
    command = [sys.executable, "-c", FAILED_IMPORT, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + getattr(signal, name), done.stderr
    assert done.stderr.split() == [word]


# Python drops what is raised in the callback of a weak reference, with a message.
DROPPED = FAILED_IMPORT.replace(
    """            try:
                signal.raise_signal(number)
            except KeyboardInterrupt:
                raise ImportError("initialization failed")
""",
    """            class Thing: pass
            thing = Thing()
            ref = weakref.ref(thing, lambda _: signal.raise_signal(number))
            del thing
            time.sleep(5)
""",
).replace("import signal, sys", "import signal, sys, time, weakref")

# On a busy machine it takes long to start a thread: the signal must not come again before that.
BUSY = """
import threading, time
class Timer(threading.Timer):
    def start(self):
        super().start()
        time.sleep(0.3)
threading.Timer = Timer
"""


@pytest.mark.parametrize("busy", ["", BUSY], ids=["idle", "busy"])
@pytest.mark.parametrize(("name", "word"), [("SIGINT", "Interrupted."), ("SIGTERM", "Terminated.")])
def test_a_signal_that_python_drops_comes_again(name, word, busy, world, tmp_path):
    words = "report", world / "bars.hcn", world / "page.png", "-o", tmp_path / "out.html", name
    command = [sys.executable, "-c", busy + DROPPED, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + getattr(signal, name), done.stderr
    assert done.stderr.split() == [word]


# Where Python looks for modules first: a signal comes in code that a library has as text.
TEXT = """
import signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "numba":
            exec("signal.raise_signal(signal.SIGTERM)")
sys.meta_path.insert(0, Finder)
"""


def test_a_signal_in_code_that_is_text_ends_the_command_as_any_other(world, tmp_path):
    """Python ended such a process by SIGINT, without a word."""
    (tmp_path / "sitecustomize.py").write_text(TEXT)
    words = "report", "bars.hcn", "page.png", "-o", tmp_path / "out.html"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [*COMMAND, *words], cwd=world, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.split()) == (128 + signal.SIGTERM, ["Terminated."])


# Sends a signal when so many lines of hcnet.cli and hcnet.__main__ have been run outside of the
# command itself: around the block in which signals are heard.
MOMENT = """
import json, os, signal, sys, tempfile
from pathlib import Path
number = getattr(signal, sys.argv.pop())
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore Ctrl-C
lines, inside, ready = 0, False, False
def trace(frame, event, argument):
    global lines, inside, ready
    # Before that, Python itself answers Ctrl-C, with a traceback.
    ready = ready or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    file, name = Path(frame.f_code.co_filename).name, frame.f_code.co_name
    if name == "_printed":
        inside = event != "return"
    elif event == "line" and ready and not inside:
        if lines == moment:
            print("sent", file=sys.stderr)
            signal.raise_signal(number)
        lines += 1
    return trace if file in ("cli.py", "__main__.py", "contextlib.py") else None
from hcnet import cli
from hcnet.__main__ import start
for moment in range(200):
    said = tempfile.TemporaryFile()
    process = os.fork()  # a process for each moment; the import, which takes a second, is shared
    if not process:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(said.fileno(), 2)
        sys.settrace(trace)
        code = start()
        sys.settrace(None)
        sys.exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    said.seek(0)
    print(json.dumps([moment, code, said.read().decode()]), flush=True)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_before_or_after_the_command_is_no_error(name):
    """Before each line that runs around a command, until there is none."""
    number = getattr(signal, name)
    command = [sys.executable, "-c", MOMENT, "info", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for row in process.stdout:
            moment, code, said = json.loads(row)
            assert code in (0, -number, 128 + number), (moment, said)
            assert "Traceback" not in said
            assert "Exception ignored" not in said
            if "sent" not in said:
                break
        process.kill()
    assert 20 < moment < 199


@pytest.mark.parametrize("name", QUICK)
def test_a_signal_leaves_the_old_file_or_the_new_one(name, world, tmp_path):
    interrupt_often(name, world, tmp_path, 2, seed=0)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", WORDS)
def test_twenty_signals_leave_the_old_file_or_the_new_one(name, world, tmp_path):
    assert interrupt_often(name, world, tmp_path, 10, seed=1) >= 5
