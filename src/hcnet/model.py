"""What learning leaves behind: features and priors, and their file."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray
from hcnet.layers import Border
from hcnet.objective import Priors

FORMAT = "hcnet-parts"
VERSION = 1
# What reading a file that is none of ours, or was cut off, can raise.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,  # zipfile's word for a compression that it does not know
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, eq=False)
class PartsModel:
    """A single-layer HCN: features (F, channels, height, width) and the four priors."""

    features: BoolArray
    priors: Priors
    border: Border
    image_size: tuple[int, int]

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the model: a zip archive of a NumPy array and a JSON header, no pickle.

        The file appears whole or not at all.
        """
        path = Path(path)
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} exists already; choose another name, or pass overwrite=True to replace it."
            )
        header = {
            "format": FORMAT,
            "version": VERSION,
            "border": self.border,
            "image_size": list(self.image_size),
            "feature_shape": list(self.features.shape),
            "priors": asdict(self.priors),
        }
        # A name of its own in the same folder: nothing of the user's is in the way of it.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        part = Path(name)
        try:
            with (
                os.fdopen(handle, "wb") as target,
                zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
            ):
                archive.writestr("header.json", json.dumps(header, indent=1))
                with archive.open("features.npy", "w") as file:
                    np.lib.format.write_array(file, np.packbits(self.features), allow_pickle=False)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PartsModel:
        """Read a model that `save` wrote."""
        try:
            with zipfile.ZipFile(path) as archive:
                header = json.loads(archive.read("header.json"))
                if header["format"] != FORMAT:
                    raise ValueError(f"its format is {header['format']!r}")
                newer = header["version"] > VERSION
                if not newer:
                    with archive.open("features.npy") as file:
                        packed = np.lib.format.read_array(file, allow_pickle=False)
                    return cls._from_parts(header, packed)
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is not a model file of hcnet, or is damaged ({error}); pass a file that "
                f"save() wrote."
            ) from error
        raise ValueError(
            f"{path} was written by a newer hcnet (file version {header['version']}, this hcnet "
            f"reads up to {VERSION}); update hcnet."
        )

    @classmethod
    def _from_parts(cls, header: dict[str, Any], packed: NDArray[np.uint8]) -> PartsModel:
        F, channels, h, w = (int(k) for k in header["feature_shape"])
        height, width = (int(k) for k in header["image_size"])
        if header["border"] not in get_args(Border):
            raise ValueError(f"its border is {header['border']!r}")
        if len(packed) != -(-F * channels * h * w // 8):
            raise ValueError("its features are incomplete")
        bits = np.unpackbits(packed, count=F * channels * h * w)
        return cls(
            features=bits.reshape(F, channels, h, w).astype(bool),
            priors=Priors(*(float(header["priors"][prior.name]) for prior in fields(Priors))),
            border=header["border"],
            image_size=(height, width),
        )
