"""Models that have learned nothing, and files with any members and any checksums."""

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np

import hcnet
from hcnet import HCN, FeatureLearner, Layer
from hcnet.model import PartsModel
from hcnet.objective import Priors

# For programs beside this one.
PATHS = [str(Path(hcnet.__file__).parents[1]), str(Path(__file__).parent)]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
HEADER, SUMS = "header.json", "SHA256SUMS"


def known_parts(shape=(3, 2, 3, 5), seed=0, p01=0.02, **options):
    """A learner that has some parts, without having learned them."""
    features = np.random.default_rng(seed).random(shape) < 0.5
    learner = FeatureLearner(feature_size=shape[2:], **options)
    return learner._publish(
        PartsModel(features, Priors(0.001, 0.4, p01, 0.02), "valid", (200, 300))
    )


def known_network(data, **options):
    """The network that made some shapes; two templates per class."""
    usual = {"layers": [Layer(4, size=9), Layer()], "templates_per_class": 2}
    model = HCN(**{**usual, **options})
    return model.set_weights([data.features, data.template_weights], 13, ["alike", "unlike"])


def members(path):
    """Names and contents, in order."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sums(pairs):
    """The checksums of members, as sha256sum writes them."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in pairs).encode()


def forge(path, pairs, repair=True, compression=zipfile.ZIP_STORED):
    """Write members, a mapping or pairs; the checksums are made to fit unless told otherwise."""
    pairs = list(pairs.items() if isinstance(pairs, dict) else pairs)
    if repair:
        pairs = [pair for pair in pairs if pair[0] != SUMS]
        pairs.append((SUMS, sums(pairs)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in pairs:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    path.write_bytes(buffer.getvalue())
    return path


def header(path):
    return json.loads(members(path)[HEADER])


def change(path, edit):
    """Let `edit` change the header of a file; the checksums fit again afterwards."""
    kept = members(path)
    about = json.loads(kept[HEADER])
    edit(about)
    kept[HEADER] = json.dumps(about).encode()
    return forge(path, kept)


def put(*keys, value):
    """An edit of a header: the value at the end of these keys."""

    def edit(about):
        for key in keys[:-1]:
            about = about[key]
        about[keys[-1]] = value

    return edit


def npy(dtype, shape, numbers):
    """The bytes of an array in a file; NumPy would leave room for the first axis to grow."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    line = text + " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line.encode() + numbers


def replace_array(path, key, array):
    """Another array in place of one; the header says so, and the checksums fit."""
    change(path, put("arrays", key, value=[array.dtype.str, list(array.shape)]))
    data = npy(array.dtype.str, array.shape, array.tobytes())
    return forge(path, members(path) | {f"{key}.npy": data})
