"""Where messages are passed: on the processor, or on a graphics card."""

from __future__ import annotations

import sys
import warnings
from typing import Literal, get_args

DeviceName = Literal["cpu", "cuda", "auto"]
DEVICE_NAMES: tuple[str, ...] = get_args(DeviceName)

# Engines on a graphics card, beside those of the processor (`engine.choice`): all keep an active
# set, and give the same bits every time unless their name says otherwise.
CUDA = "cuda"
ASYNCHRONOUS = "asynchronous"


class NoDeviceError(RuntimeError):
    """There is no graphics card that could be used."""


def gpu_engine(deterministic: bool = True) -> str:
    """The name of an engine on a graphics card."""
    return CUDA if deterministic else f"{CUDA}-{ASYNCHRONOUS}"


def on_gpu(engine: str) -> bool:
    """Whether an engine works on a graphics card."""
    return engine.split("-")[0] == CUDA


def is_deterministic(engine: str) -> bool:
    """Whether images that share weights have copies of them, on a graphics card."""
    return ASYNCHRONOUS not in engine.split("-")


def engine_on(device: str, engine: str, deterministic: bool) -> str:
    """The engine to use: that of the processor, or one on a graphics card.

    "auto" takes a graphics card if there is one, and otherwise says so.
    """
    if device == "cpu":
        return engine
    problem = why_not_cuda()
    if problem is None:
        return gpu_engine(deterministic)
    if device == "cuda":
        raise NoDeviceError(f"device='cuda' cannot be used: {problem}; pass device='cpu'.")
    warnings.warn(f"The processor is used instead of a GPU: {problem}.", UserWarning, stacklevel=4)
    return engine


def why_not_cuda() -> str | None:
    """What is missing for the CUDA engine, if anything."""
    try:
        from numba import cuda
    except ImportError as error:
        return f"numba-cuda is not installed ({error}): pip install 'hcnet[cuda]'"
    if not hasattr(cuda, "current_context"):
        return "this Numba has no CUDA target: pip install 'hcnet[cuda]'"
    try:
        cuda.current_context()
    except Exception as error:  # drivers fail in many ways, each with a class of its own
        lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
        return f"there is no NVIDIA GPU with a working driver ({' '.join(lines[:2])})"
    return None


def room_for(engine: str) -> int | None:
    """Bytes that are free on the graphics card; None for engines of the processor."""
    if not on_gpu(engine):
        return None
    from numba import cuda

    return int(min(cuda.current_context().get_memory_info().free, sys.maxsize))
