"""Facts about this machine and this installation, for `hcnet info` and for reports."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from hcnet.engine.engines import DEFAULT_ENGINE, why_not_cuda
from hcnet.memory import machine_memory
from hcnet.names import ENGINE_NAMES
from hcnet.version import VERSION

# What hcnet itself computes and draws with, in the order in which people ask for it.
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pillow")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results may depend on."""
    # hcnet may run from a checkout that was never installed.
    others = {name: metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "hcnet": VERSION, **others}


def environment() -> dict[str, Any]:
    """Versions, engines, and the processor, memory and graphics cards that are there."""
    affinity = getattr(os, "sched_getaffinity", None)  # cores that this process may use
    return {
        "versions": versions(),
        "engines": list(ENGINE_NAMES),
        "default_engine": DEFAULT_ENGINE,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": processor(),
        "cores": len(affinity(0)) if affinity else os.cpu_count() or 1,
        "memory": machine_memory(),
        "gpus": gpus(),
        "cuda": why_not_cuda(),
    }


def processor() -> str:
    """The name of the processor, or at least its kind."""
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        facts = ""
    found = re.search(r"^model name\s*:(.*)", facts, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def gpus() -> list[str]:
    """Graphics cards as their driver names them; empty without any."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    question = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(question, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []  # the tool is there, and no card that it could ask
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]
