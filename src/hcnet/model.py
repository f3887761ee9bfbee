"""What learning leaves behind: features and priors, and their file."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hcnet.images import BoolArray
from hcnet.layers import Border
from hcnet.objective import Priors

FORMAT = "hcnet-parts"
VERSION = 1


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
            "priors": {name: getattr(self.priors, name) for name in ("p_S", "p_W", "p01", "p10")},
        }
        part = path.with_name(path.name + ".part")
        try:
            with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("header.json", json.dumps(header, indent=1))
                with archive.open("features.npy", "w") as file:
                    np.lib.format.write_array(file, np.packbits(self.features), allow_pickle=False)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PartsModel:
        """Read a model that `save` wrote."""
        try:
            with zipfile.ZipFile(path) as archive:
                header = json.loads(archive.read("header.json"))
                with archive.open("features.npy") as file:
                    packed = np.lib.format.read_array(file, allow_pickle=False)
            if header["format"] != FORMAT:
                raise ValueError(header["format"])
            if header["version"] > VERSION:
                raise ValueError(
                    f"{path} was written by a newer hcnet (file version {header['version']}, this "
                    f"hcnet reads up to {VERSION}); update hcnet."
                )
            shape = tuple(header["feature_shape"])
            bits = np.unpackbits(packed, count=int(np.prod(shape)))
            return cls(
                features=bits.reshape(shape).astype(bool),
                priors=Priors(**header["priors"]),
                border=header["border"],
                image_size=(int(header["image_size"][0]), int(header["image_size"][1])),
            )
        except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, TypeError) as error:
            raise ValueError(
                f"{path} is not a model file of hcnet, or is damaged ({error}); pass a file that "
                f"save() wrote."
            ) from error
