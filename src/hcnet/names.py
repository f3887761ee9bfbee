"""The words that parameters take, each list in this one place.

The module imports nothing heavy, because the command line reads it for its help.
"""

from typing import Literal, get_args

Algorithm = Literal["auto", "refined", "mpmp", "soft"]
ExactAlgorithm = Literal["refined", "mpmp"]
DeviceName = Literal["cpu", "cuda", "auto"]
EngineName = Literal["active", "beliefs", "dense", "reference"]
Ink = Literal["auto", "bright", "dark"]
Method = Literal["explain", "forward", "passing", "match"]
ScheduleName = Literal["sequential", "per-image", "blocks"]

ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
EXACT_ALGORITHMS: tuple[str, ...] = get_args(ExactAlgorithm)
DEVICE_NAMES: tuple[str, ...] = get_args(DeviceName)
ENGINE_NAMES: tuple[str, ...] = get_args(EngineName)
INKS: tuple[str, ...] = get_args(Ink)
METHODS: tuple[str, ...] = get_args(Method)
SCHEDULE_NAMES: tuple[str, ...] = get_args(ScheduleName)
