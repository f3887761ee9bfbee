"""The command as a person runs it: a process of its own."""

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
import termios
import threading
import warnings
from pathlib import Path

COMMAND = [sys.executable, "-m", "hcnet"]


def hcnet(*arguments, cwd=None):
    """Run it, with its output in pipes."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )


class Forked:
    """Commands in processes that begin with all libraries but hcnet imported.

    Each imports hcnet and loads what it needs by itself, as after a start from nothing, of which
    other libraries take most of the time.
    """

    PARENT = """
import json, os, runpy, sys
import joblib, numba, PIL.Image, scipy.sparse, sklearn.base

while line := sys.stdin.readline():
    arguments, cwd, streams = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, path in enumerate(streams):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
        os.chdir(cwd)
        sys.argv = ["hcnet", *arguments]
        runpy.run_module("hcnet", run_name="__main__", alter_sys=True)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

    def __init__(self, folder):
        self._folder = folder
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", self.PARENT]
        self._parent = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def __call__(self, *arguments, cwd="."):
        """As `hcnet`, with its output in files."""
        words = [str(word) for word in arguments]
        streams = [os.devnull, *(str(self._folder / name) for name in ("out", "err"))]
        for path in streams[1:]:
            Path(path).write_bytes(b"")
        json.dump((words, str(Path(cwd).resolve()), streams), self._parent.stdin)
        print(file=self._parent.stdin, flush=True)
        code = int(self._parent.stdout.readline())
        said = [Path(path).read_text(encoding="utf-8") for path in streams[1:]]
        return subprocess.CompletedProcess(words, code, *said)

    def close(self):
        self._parent.communicate()


def inside(*arguments):
    """The same without a process of its own, which takes a tenth of the time."""
    from hcnet.cli import main

    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        try:
            code = main([str(word) for word in arguments])
        except SystemExit as end:  # how argparse leaves
            code = end.code
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def run(*arguments):
    """The same for a command that must succeed."""
    result = inside(*arguments)
    assert result.returncode == 0, result.stderr
    return result


def one_sentence(result, code=1, own=False):
    """The error of a command that failed as it should; no traceback, nothing beside it.

    An error of hcnet itself has to be expected (`own`).
    """
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    lines = [line for line in result.stderr.splitlines() if line.startswith("hcnet: error: ")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert ("an error of hcnet itself" in result.stderr) == own
    assert result.stdout == ""
    return lines[0].removeprefix("hcnet: error: ")


class Terminal:
    """A command whose errors and progress go to a terminal; `said` is what it showed so far.

    With `program`, any program, which is at home on the terminal: a shell.
    """

    def __init__(self, *arguments, listening=False, program=False):
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 100))
        words = [*([] if program else COMMAND), *map(str, arguments)]
        if listening:
            # Tests in the background ignore Ctrl-C, and a child would inherit that.
            code = (
                "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
                "os.execv(sys.argv[1], sys.argv[1:])"
            )
            words = [sys.executable, "-c", code, *words]
        self.process = subprocess.Popen(
            words,
            stdin=theirs if program else subprocess.DEVNULL,
            stdout=theirs if program else subprocess.PIPE,
            stderr=theirs,
            start_new_session=program,
        )
        os.close(theirs)
        self._keys = os.dup(ours)
        self.said = b""
        self._more = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self._reader.start()

    def _read(self, terminal):
        with os.fdopen(terminal, "rb", buffering=0) as file:
            while True:
                try:
                    more = file.read(4096)
                except OSError:  # how a terminal says that nobody writes to it any more
                    more = b""
                self.said += more
                self._more.set()
                if not more:
                    return

    def type(self, text):
        """Press keys."""
        os.write(self._keys, text.encode())

    def wait_for(self, text):
        """Until the terminal shows a text."""
        while text not in self.said:
            assert self._more.wait(200), self.said
            self._more.clear()
            assert self._reader.is_alive() or text in self.said, self.said

    def finish(self):
        """What it printed, and its exit code."""
        printed = self.process.communicate(timeout=240)[0]
        self._reader.join(20)
        return printed.decode(), self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()
        os.close(self._keys)
