"""An environment of its own for PGMax, which needs an older JAX than the other benchmarks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".cache" / "pgmax"
# PGMax 0.6.1 asks JAX for its backend in a way that 0.7 no longer has; 0.6.2 is the last before.
JAX = "0.6.2"
PGMAX = "0.6.1"
# Without what PGMax lists and message passing does not use, such as TensorFlow and Jupyter.
PACKAGES = (
    ("--no-deps", f"pgmax=={PGMAX}"),
    (f"jax=={JAX}", f"jaxlib=={JAX}", "numba", "numpy", "scipy"),
)
# Installing downloads some 200 MB.
INSTALL_SECONDS = 900
# One core, like hcnet beside it.
ONE_CORE = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
}


class UnavailableError(Exception):
    """Why PGMax cannot be measured, in a sentence."""


def python(create: bool) -> Path:
    """The interpreter of the environment, which is created if need be and told to."""
    ready = FOLDER / "ready"
    interpreter = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if ready.exists():
        return interpreter
    if not create:
        raise UnavailableError("its environment is not there; without --quick it is created")
    print(f"creating an environment for PGMax in {FOLDER.relative_to(ROOT)} …", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        venv.create(FOLDER, with_pip=True)
        for packages in PACKAGES:
            command = [interpreter, "-m", "pip", "install", "--quiet", *packages]
            _run(command, INSTALL_SECONDS)
        _run([interpreter, "-c", "from pgmax import infer"], 120)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(FOLDER, ignore_errors=True)
        raise UnavailableError(f"its environment could not be created: {_reason(error)}") from None
    ready.touch()
    return interpreter


def solve(interpreter: Path, problem: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What PGMax makes of a problem, by `benchmarks/pgmax_worker.py` in the environment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "problem.npz", **problem)
        try:
            _run([interpreter, Path(__file__).with_name("pgmax_worker.py"), folder], seconds)
        except (OSError, subprocess.SubprocessError) as error:
            raise UnavailableError(f"it did not finish: {_reason(error)}") from None
        with np.load(folder / "solution.npz") as solution:
            return dict(solution)


def _run(command: list[Any], seconds: float) -> None:
    environment = {**os.environ, **ONE_CORE, "PYTHONWARNINGS": "ignore"}
    subprocess.run(
        [str(part) for part in command],
        check=True,
        capture_output=True,
        text=True,
        timeout=seconds,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


def _reason(error: Exception) -> str:
    """The last line of what a command said, or what happened to it."""
    said = getattr(error, "stderr", None)
    text = said.decode() if isinstance(said, bytes) else said or ""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return lines[-1].strip() if lines else str(error).splitlines()[0]
