"""The demonstration: learn the letters of one noisy picture, and draw the result."""

from __future__ import annotations

import errno
import tempfile
import time
from pathlib import Path
from typing import Any

from hcnet import plotting
from hcnet.atomic_files import refuse_existing
from hcnet.datasets import PartsData, letters
from hcnet.engine.driver import Status
from hcnet.estimators.feature_learner import FeatureLearner
from hcnet.image_files.writing import write_images
from hcnet.images import BoolArray
from hcnet.metrics import matched_iou, true_compression

NOISE = 0.03
# A little larger than the largest letter (9×11), as if its size were unknown.
FEATURE_SIZE = (12, 12)

PICTURES = ("image.png", "parts.png", "placements.png", "reconstruction.png", "overview.png")
MODEL = "letters.hcn"
PAGE = "page.png"  # the image itself, for commands that read image files


def run_demo(
    folder: Path, seed: int, verbose: bool, overwrite: bool = False
) -> tuple[dict[str, Any], str]:
    """Learn, and write the pictures and the model into `folder`; the result, also as a table."""
    _prepare(folder)
    for name in (*PICTURES, PAGE, MODEL):
        refuse_existing(folder / name, overwrite)
    data = letters(noise=NOISE, random_state=seed)
    began = time.perf_counter()
    learner = FeatureLearner(feature_size=FEATURE_SIZE, random_state=seed, verbose=verbose)
    learner.fit(data.images)
    seconds = time.perf_counter() - began
    if learner.status_ == Status.INTERRUPTED.value:
        # Learning stops on Ctrl-C with a result, but the user wants to leave.
        raise KeyboardInterrupt
    reconstruction = learner.denoise(data.images)
    written = _write(folder, data, learner, reconstruction)
    rows = [
        *_results(data, learner, reconstruction),
        ("Time", f"{seconds:.1f} s", "to learn; the first run also compiles"),
    ]
    first, second = (max(len(row[k]) for row in rows) for k in range(2))
    table = "\n".join(f"{name:<{first}}  {value:>{second}}  {note}" for name, value, note in rows)
    result: dict[str, Any] = {name: value for name, value, _ in rows}
    result |= {"folder": str(folder), "files": written}
    return result, f"{table}\n\nWritten to {folder}: {', '.join(written)}"


def _prepare(folder: Path) -> None:
    """Make the folder and see that files can be written there, before the work and not after."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is a file, not a folder", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:  # names the temporary file, which nobody knows
        raise OSError(error.errno, error.strerror, str(folder)) from None


def _results(
    data: PartsData, learner: FeatureLearner, reconstruction: BoolArray
) -> list[tuple[str, str, str]]:
    exact = int((matched_iou(learner.features_, data.features) == 1).sum())
    explained = int((reconstruction == data.images).sum())
    wrong = int((reconstruction != data.clean).sum())
    pixels = data.images.size
    equal = f"{explained:,} of {pixels:,} equal the reconstruction"
    truth = f"{true_compression(data, FEATURE_SIZE):.2%} with the true parts at their true places"
    return [
        ("Parts found", f"{exact} of {len(data.features)}", "every pixel right (IoU 1)"),
        ("Pixels explained", f"{explained / pixels:.2%}", equal),
        ("Wrong pixels", f"{wrong:,}", "reconstruction against the picture without noise"),
        ("Compression", f"{learner.compression_ratio_:.2%}", truth),
    ]


def _write(
    folder: Path, data: PartsData, learner: FeatureLearner, reconstruction: BoolArray
) -> list[str]:
    pictures = (
        plotting.show_images(data.images),
        plotting.show_model(learner),
        plotting.show_explanation(learner, data.images),
        plotting.show_images(reconstruction),
        plotting.show_comparison(learner, data.images),
    )
    for name, picture in zip(PICTURES, pictures, strict=True):
        plotting.save_picture(picture, folder / name, overwrite=True)
    write_images(folder / PAGE, [data.images[0]], dark=True, overwrite=True)
    learner.save(folder / MODEL, overwrite=True)
    return [*PICTURES, PAGE, MODEL]
