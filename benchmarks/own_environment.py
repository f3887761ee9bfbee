"""Environments of their own, for rivals that need other versions of what the benchmarks use."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# Seconds: installing downloads some 200 MB.
INSTALL_SECONDS, TRY_SECONDS = 900, 120
# One core, like hcnet beside it.
ONE_CORE = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
# No pictures on a screen, no progress bars, no warnings.
QUIET = {"MPLBACKEND": "Agg", "TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore"}


class UnavailableError(Exception):
    """Why a rival cannot be measured, in a sentence."""


@dataclass(frozen=True)
class OwnEnvironment:
    """A Python environment of a rival, in `.cache`, which is created at first use.

    `packages` are arguments of `pip install`, one call each.  `trial` is code that runs if the
    environment is good.  `worker` is the file, beside this one, that runs in it: it gets a folder
    with ``problem.npz``, and leaves ``solution.npz`` there.
    """

    name: str
    packages: tuple[tuple[str, ...], ...]
    trial: str
    worker: str
    extra_path: str = ""  # a folder with code that no package holds

    @property
    def folder(self) -> Path:
        """Where it is."""
        return ROOT / ".cache" / self.name.lower()

    def python(self, create: bool) -> Path:
        """The interpreter of the environment, which is created if need be and told to."""
        ready = self.folder / "ready"
        interpreter = self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if ready.exists():
            return interpreter
        if not create:
            raise UnavailableError("its environment is not there; without --quick it is created")
        where = self.folder.relative_to(ROOT)
        print(f"creating an environment for {self.name} in {where} …", flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            venv.create(self.folder, with_pip=True)
            for packages in self.packages:
                command = [interpreter, "-m", "pip", "install", "--quiet", *packages]
                self._run(command, INSTALL_SECONDS)
            self._run([interpreter, "-c", self.trial], TRY_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise UnavailableError(
                f"its environment could not be created: {_reason(error)}"
            ) from None
        ready.touch()
        return interpreter

    def solve(
        self, interpreter: Path, problem: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        """What the rival makes of a problem, by its worker in the environment."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.savez(folder / "problem.npz", **problem)
            try:
                self._run([interpreter, Path(__file__).with_name(self.worker), folder], seconds)
            except (OSError, subprocess.SubprocessError) as error:
                raise UnavailableError(f"it did not finish: {_reason(error)}") from None
            with np.load(folder / "solution.npz") as solution:
                return dict(solution)

    def _run(self, command: list[Any], seconds: float) -> None:
        environment = {**os.environ, **ONE_CORE, **QUIET}
        if self.extra_path:
            environment["PYTHONPATH"] = self.extra_path
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
