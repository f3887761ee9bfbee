"""Small image files, and models that were learned from them by the command."""

import json

import numpy as np
import pytest
from PIL import Image
from running import Forked

from hcnet.datasets import shapes, two_bars


@pytest.fixture(scope="session")
def hcnet(tmp_path_factory):
    """Runs a command in a process of its own."""
    forked = Forked(tmp_path_factory.mktemp("streams"))
    yield forked
    forked.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Scans of bars, a stain on one of them, shapes with labels."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    (folder / "scans").mkdir()
    for k in range(2):
        on = two_bars(size=(24, 24), length=6, n_placements=14, random_state=k).images[0, 0]
        np.save(folder / f"bars{k}.npy", on)
        grey = np.where(on, 60, 215) + rng.normal(0, 10, on.shape)
        scan = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))
        scan.save(folder / "scans" / f"page{k}.png")
    stain = np.zeros((24, 24), np.uint8)
    stain[8:14, 8:14] = 255
    Image.fromarray(stain).save(folder / "stain.png")
    data = shapes(n_images=24, random_state=0)
    np.savez(folder / "shapes.npz", X=data.images, y=data.labels)
    return folder


@pytest.fixture(scope="session")
def parts(folder, hcnet):
    """A model of parts, and what learning it said."""
    path = folder / "bars.hcn"
    result = hcnet(
        "learn", folder / "scans", "--feature-size", "7x7", "--n-init", 1, "--random-state", 0,
        "-o", path, "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return path, json.loads(result.stdout), result.stderr


@pytest.fixture(scope="session")
def network(folder, hcnet):
    """A network, from a settings file."""
    path = folder / "shapes.hcn"
    (folder / "shapes.toml").write_text(
        "templates_per_class = 2\nn_init = 1\nmax_iter = 30\nrandom_state = 0\n"
        'labels = "shapes.npz"\n'
        "[[layers]]\nn_features = 4\nsize = [21, 21]\n[[layers]]\n"
    )
    result = hcnet(
        "learn", "shapes.npz", "--settings", "shapes.toml", "-o", "shapes.hcn", cwd=folder
    )
    assert result.returncode == 0, result.stderr
    return path, result
