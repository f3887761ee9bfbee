"""hcnet in double precision: its own source, in which every float32 is a float64.

So whatever a user can do can be compared with float64, by the same engine and as fast, and the
library needs no second type of numbers.

What is compiled of modules that know neither float32 nor the rest of the library is the same in
both: they stay where they are, so that it is found and takes no time.
"""

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "hcnet"


def library():
    """The folder that holds the package; made once for a state of the source."""
    files = sorted(SOURCE.rglob("*"))
    files = [path for path in files if path.is_file() and "__pycache__" not in path.parts]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    folder = ROOT / ".numba_cache" / f"double-{digest[:16]}"
    if folder.exists():
        return folder
    folder.parent.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    for path in files:
        copy = made / "hcnet" / path.relative_to(SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".py":
            shutil.copyfile(path, copy)
            continue
        text = path.read_text("utf-8")
        if path.name == "__init__.py":
            text += f"\n__path__.append({str(path.parent)!r})\n"
        elif "numba" in text and "float32" not in text and "hcnet" not in text:
            continue
        copy.write_text(text.replace("np.float32", "np.float64"), "utf-8")
    try:
        made.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(made)
    return folder


class Precisions:
    """Calls functions of `precision_runs` in float32, here, and in float64, in another process."""

    def __init__(self):
        folder, here = library(), Path(__file__).parent
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (folder, here)))}
        command = [sys.executable, "-c", "import precision_runs; precision_runs.answer()"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)

    def close(self):
        with self._process:
            self._process.stdin.close()

    def double(self, function, *arguments):
        """What comes of it in float64."""
        self._ask(function, arguments)
        return pickle.load(self._process.stdout)

    def both(self, function, *arguments):
        """What comes of it in float32 and in float64, at the same time."""
        self._ask(function, arguments)
        return function(*arguments), pickle.load(self._process.stdout)

    def _ask(self, function, arguments):
        pickle.dump((function.__name__, arguments), self._process.stdin)
        self._process.stdin.flush()
