"""Arrays in the memory of a GPU, and kernels that loop over their elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.cuda.compilation import THREADS, blocks_for, compiled, kernel
from hcnet.memory import NotEnoughMemoryError

_larger = compiled.larger

DeviceArray = Any  # Numba's arrays on a GPU have no static types


def hold(array: NDArray[Any]) -> DeviceArray:
    """A copy on the GPU."""
    # A contiguous view can have odd strides along axes of length 1, which Numba does not accept.
    contiguous = np.ascontiguousarray(array).reshape(-1)
    with _enough_memory(array.nbytes):
        return cuda.to_device(contiguous.reshape(array.shape))


def fetch(array: DeviceArray) -> NDArray[Any]:
    """A copy in the memory of the processor."""
    return np.asarray(array.copy_to_host())


def empty(shape: tuple[int, ...], dtype: Any = np.float32) -> DeviceArray:
    """An array without defined values."""
    with _enough_memory(math.prod(shape) * np.dtype(dtype).itemsize):
        return cuda.device_array(shape, dtype)


@contextmanager
def _enough_memory(size: int) -> Iterator[None]:
    """Other programs may have taken the memory that was free before the run."""
    try:
        yield
    except cuda.cudadrv.driver.CudaAPIError as error:
        if "OUT_OF_MEMORY" not in str(error):
            raise
        raise NotEnoughMemoryError(
            f"The GPU could not provide {size:,} bytes, which were free before the run: stop other "
            f"programs that use it, lower max_memory, or pass device='cpu'."
        ) from None


def zeros(shape: tuple[int, ...], dtype: Any = np.float32) -> DeviceArray:
    """An array of zeros."""
    array = empty(shape, dtype)
    clear(array)
    return array


def flat(array: DeviceArray) -> DeviceArray:
    """A view with one axis."""
    return array.reshape(array.size)


def clear(array: DeviceArray) -> None:
    """Set all elements to 0."""
    launch(_clear, array.size, flat(array))


def copied(source: DeviceArray) -> DeviceArray:
    """A copy on the GPU of an array there."""
    out = empty(source.shape, source.dtype)
    flat(out).copy_to_device(flat(source))
    return out


def largest(array: DeviceArray, other: DeviceArray | None = None) -> float:
    """The largest absolute value of an array, or of its difference from another."""
    return float(largest_of_parts(array, 1, other)[0])


def largest_of_parts(
    array: DeviceArray, n: int, other: DeviceArray | None = None
) -> NDArray[np.float32]:
    """The largest absolute values of n parts of the same size."""
    found, size = hold(np.zeros(n, np.float32)), array.size // n
    other, share = (array, 0) if other is None else (other, 1)
    grid = blocks_for(size), blocks_for(n, 1)
    _largest[grid, THREADS](flat(array), flat(other), np.float32(share), size, found)
    return fetch(found)


def launch(work: Any, n: int, *arguments: Any) -> None:
    """Run a kernel that loops over n elements with a stride of all threads."""
    if n:
        work[blocks_for(n), THREADS](*arguments)


@kernel
def _clear(array):
    for i in range(cuda.grid(1), array.size, cuda.gridsize(1)):
        array[i] = 0


@kernel
def _largest(array, other, share, size, found):
    for part in range(cuda.blockIdx.y, found.size, cuda.gridDim.y):
        own = np.float32(0)
        for i in range(cuda.grid(1), size, cuda.gridDim.x * cuda.blockDim.x):
            z = part * size + i
            own = _larger(own, abs(array[z] - share * other[z]))
        cuda.atomic.max(found, part, own)
