"""Arrays in the memory of a GPU: moving, adding, comparing.  All are used as runs of numbers."""

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

DeviceArray = Any  # Numba's arrays on a GPU carry no types


def hold(array: NDArray[Any]) -> DeviceArray:
    """A copy on the GPU."""
    # Views can be contiguous and still have odd strides along axes of length 1, which Numba takes
    # for a shape.
    run = np.ascontiguousarray(array).reshape(-1)
    with _enough_memory(array.nbytes):
        return cuda.to_device(run.reshape(array.shape))


def fetch(array: DeviceArray) -> NDArray[Any]:
    """A copy in the memory of the machine."""
    return np.asarray(array.copy_to_host())


def empty(shape: tuple[int, ...], dtype: Any = np.float32) -> DeviceArray:
    """An array with nothing in it yet."""
    with _enough_memory(math.prod(shape) * np.dtype(dtype).itemsize):
        return cuda.device_array(shape, dtype)


@contextmanager
def _enough_memory(size: int) -> Iterator[None]:
    """Others may take the memory that was free before a run."""
    try:
        yield
    except cuda.cudadrv.driver.CudaAPIError as error:
        if "OUT_OF_MEMORY" not in str(error):
            raise
        raise NotEnoughMemoryError(
            f"The GPU has no {size:,} bytes left, which were free before: end what else uses it, "
            f"lower max_memory, or pass device='cpu'."
        ) from None


def zeros(shape: tuple[int, ...], dtype: Any = np.float32) -> DeviceArray:
    """An array of zeros."""
    array = empty(shape, dtype)
    clear(array)
    return array


def flat(array: DeviceArray) -> DeviceArray:
    """The same numbers as one run."""
    return array.reshape(array.size)


def clear(array: DeviceArray) -> None:
    """Put 0 everywhere."""
    _launch(_clear, array.size, flat(array))


def copy(source: DeviceArray, out: DeviceArray) -> None:
    """Put the numbers of another array here."""
    _launch(_copy, source.size, flat(source), flat(out))


def copied(source: DeviceArray) -> DeviceArray:
    """Another array with the same numbers."""
    out = empty(source.shape, source.dtype)
    copy(source, out)
    return out


def add(source: DeviceArray, out: DeviceArray, sign: float = 1.0) -> None:
    """Add, or subtract, the numbers of another array."""
    _launch(_add, source.size, flat(source), np.float32(sign), flat(out))


def take(source: DeviceArray, index: DeviceArray, out: DeviceArray) -> None:
    """``out = source[index]``."""
    _launch(_take, index.size, flat(source), flat(index), flat(out))


def put(source: DeviceArray, index: DeviceArray, out: DeviceArray) -> None:
    """``out[index] = source``."""
    _launch(_put, index.size, flat(source), flat(index), flat(out))


def largest(array: DeviceArray, other: DeviceArray | None = None) -> float:
    """The largest number of an array, or difference from another, without its sign."""
    if array.size == 0:
        return 0.0
    found = hold(np.zeros(1, np.float32))
    if other is None:
        _launch(_largest, array.size, flat(array), found)
    else:
        _launch(_largest_difference, array.size, flat(array), flat(other), found)
    return float(fetch(found)[0])


def _launch(work: Any, n: int, *arguments: Any) -> None:
    if n:
        work[blocks_for(n), THREADS](*arguments)


@kernel
def _clear(array: Any) -> None:
    for i in range(cuda.grid(1), array.size, cuda.gridsize(1)):
        array[i] = 0


@kernel
def _copy(source: Any, out: Any) -> None:
    for i in range(cuda.grid(1), source.size, cuda.gridsize(1)):
        out[i] = source[i]


@kernel
def _add(source: Any, sign: Any, out: Any) -> None:
    for i in range(cuda.grid(1), source.size, cuda.gridsize(1)):
        out[i] += sign * source[i]


@kernel
def _take(source: Any, index: Any, out: Any) -> None:
    for i in range(cuda.grid(1), index.size, cuda.gridsize(1)):
        out[i] = source[index[i]]


@kernel
def _put(source: Any, index: Any, out: Any) -> None:
    for i in range(cuda.grid(1), index.size, cuda.gridsize(1)):
        out[index[i]] = source[i]


@kernel
def _largest(array: Any, found: Any) -> None:
    own = np.float32(0)
    for i in range(cuda.grid(1), array.size, cuda.gridsize(1)):
        own = _larger(own, abs(array[i]))
    cuda.atomic.max(found, 0, own)


@kernel
def _largest_difference(array: Any, other: Any, found: Any) -> None:
    own = np.float32(0)
    for i in range(cuda.grid(1), array.size, cuda.gridsize(1)):
        own = _larger(own, abs(array[i] - other[i]))
    cuda.atomic.max(found, 0, own)
