"""The command as a person runs it: a process of its own."""

import contextlib
import io
import os
import pty
import subprocess
import sys
import termios
import threading
import warnings

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


def one_sentence(result, code=1):
    """The error of a command that failed as it should; no traceback, nothing beside it."""
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    lines = [line for line in result.stderr.splitlines() if line.startswith("hcnet: error: ")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    return lines[0].removeprefix("hcnet: error: ")


class Terminal:
    """A command whose errors and progress go to a terminal; `said` is what it showed so far."""

    def __init__(self, *arguments, listening=False):
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 100))
        words = [*COMMAND, *map(str, arguments)]
        if listening:
            # Tests in the background ignore Ctrl-C, and a child would inherit that.
            code = (
                "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
                "os.execv(sys.argv[1], sys.argv[1:])"
            )
            words = [sys.executable, "-c", code, *words]
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs
        )
        os.close(theirs)
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
