"""Where messages are passed: on the processor, or on a graphics card."""

from __future__ import annotations

import warnings

from hcnet.names import DEVICE_NAMES as DEVICE_NAMES
from hcnet.names import DeviceName as DeviceName


class NoDeviceError(RuntimeError):
    """There is no graphics card that could be used."""


def find_gpu(required: bool) -> bool:
    """Whether there is a GPU; a warning if there is none, and an error if it is `required`."""
    problem = why_not_cuda()
    if problem is None:
        return True
    if required:
        raise NoDeviceError(f"device='cuda' cannot be used: {problem}; pass device='cpu'.")
    warnings.warn(f"The processor is used instead of a GPU: {problem}.", UserWarning, stacklevel=5)
    return False


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
