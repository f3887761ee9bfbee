"""Files made by hand: any members, with or without the right checksums."""

import hashlib
import io
import json
import zipfile

import numpy as np

HEADER, SUMS = "header.json", "SHA256SUMS"


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


def replace_array(path, key, array):
    """Another array in place of one; the header says so, and the checksums fit."""
    kept = members(path)
    about = json.loads(kept[HEADER])
    about["arrays"][key] = [array.dtype.str, list(array.shape)]
    kept[HEADER] = json.dumps(about).encode()
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0))
    data = buffer.getvalue()
    # NumPy leaves room for the first axis to grow; ours has none.
    text = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape}, }}"
    line = text + " " * (-(len(text) + 11) % 64) + "\n"
    start = 10 + int.from_bytes(data[8:10], "little")
    data = data[:8] + len(line).to_bytes(2, "little") + line.encode() + data[start:]
    kept[f"{key}.npy"] = data
    return forge(path, kept)
