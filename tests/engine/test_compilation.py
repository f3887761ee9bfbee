"""The same numbers whether a process compiles the engine or finds it compiled in the cache."""

import os
import subprocess
import sys

SCRIPT = """
import hashlib
import numpy as np
from hcnet.engine.base import rebuild
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import start_messages, trees_of

rng = np.random.default_rng(0)
shape = (20, 1, 21, 21)
images = Images(rng.random(shape) < 0.4, np.ones(shape, bool))
layer = FeatureLayer(4, 1, (5, 5), (21, 21), "full")
prior = np.full((1, 4, 5, 5), -1, np.float32)
engine = CPUEngine()
for name in SCHEDULE_NAMES:
    pixels = trees_of(images.observed, rng)
    messages = start_messages(layer, pixels, images.evidence(Noise(1e-3, 1e-3)), -1.0, prior)
    for array in (messages.to_field, messages.to_kernel):
        array[:] = rng.normal(0, 3, array.shape)
    rebuild(engine, messages)
    for _ in range(3):
        for batch in Schedule(name).batches(messages.images, rng):
            engine.update(messages, batch, 0.7)
    arrays = messages.field, messages.kernel, messages.to_field, messages.to_kernel
    print(name, *(hashlib.sha256(array.tobytes()).hexdigest() for array in arrays))
"""


def test_a_process_that_compiles_gives_the_messages_of_one_that_does_not(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def messages():
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    compiled = messages()
    code = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert messages() == compiled != ""
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == code != {}
