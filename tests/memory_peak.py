"""How much memory a call takes."""

import tracemalloc


def memory_peak(call):
    """Most bytes that Python and NumPy hold at a time, beyond what they held before."""
    call()  # to load what is compiled
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
