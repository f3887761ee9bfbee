"""Find the spike motifs in a recording of many neurons: parts in one dimension.

Every neuron is a channel of an image that is one pixel high and as wide as the recording is long.

python examples/spike_raster.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np
from PIL import Image

from hcnet import FeatureLearner
from hcnet.images import BoolArray
from hcnet.metrics import matched_iou
from hcnet.plotting.drawing import colour_of, framed, tile_grid

NEURONS, STEPS = 40, 360
MOTIFS, LENGTH, SPIKES, REPEATS = 3, 24, 26, 7
DROPPED, STRAY = 0.06, 0.015  # spikes that fail, and spikes that mean nothing


def motifs(rng: np.random.Generator) -> BoolArray:
    """Which neuron fires when: (motifs, neurons, steps), over the full length."""
    W = np.zeros((MOTIFS, NEURONS, LENGTH), bool)
    for motif in W:
        neurons = rng.permutation(NEURONS)[:SPIKES]
        motif[neurons, np.linspace(0, LENGTH - 1, SPIKES).round().astype(int)] = True
    return W


def recording(W: BoolArray, rng: np.random.Generator) -> BoolArray:
    """Motifs at random times, which may overlap, with failures and stray spikes."""
    spikes = np.zeros((NEURONS, STEPS), bool)
    for motif in W:
        for start in rng.choice(STEPS - LENGTH, REPEATS, replace=False):
            spikes[:, start : start + LENGTH] |= motif
    return (spikes & (rng.random(spikes.shape) >= DROPPED)) | (rng.random(spikes.shape) < STRAY)


def raster(spikes: BoolArray, owners: np.ndarray, order: np.ndarray) -> Image.Image:
    """Spikes as dots in the colour of their motif (-1: none), a row per neuron."""
    canvas = np.full((*spikes.shape, 3), 255, np.uint8)
    canvas[spikes] = (130, 130, 130)
    for motif in range(owners.max() + 1):
        canvas[spikes & (owners == motif)] = colour_of(motif)
    large = canvas[order].repeat(5, axis=0).repeat(3, axis=1)
    large[4::5] = 255  # keeps the rows apart
    return framed(large, 1)


def main() -> None:
    """Make a recording, learn its motifs, and draw both."""
    path = sys.argv[1] if len(sys.argv) > 1 else "spike_raster.png"
    rng = np.random.default_rng(1)
    truth = motifs(rng)
    spikes = recording(truth, rng)
    learner = FeatureLearner(feature_size=(1, LENGTH), random_state=0, verbose=True)
    learner.fit(spikes[None, :, None])  # (images, channels, height, width)
    found = learner.features_[:, :, 0]
    owners = np.full(spikes.shape, -1)
    for _, motif, _, start in learner.placements_:
        first, last = max(start, 0), min(start + LENGTH, STEPS)
        part = found[motif][:, first - start : last - start]
        owners[:, first:last][part] = motif
    exact = int((matched_iou(learner.features_, truth[:, :, None]) == 1).sum())
    print(
        f"{len(found)} motifs at {len(learner.placements_)} times, "
        f"{exact} of {MOTIFS} right to the last spike"
    )
    # Neurons in the order in which the first motif lets them fire show it as a line.
    first_spike = np.where(found[0].any(axis=1), found[0].argmax(axis=1), LENGTH)
    unsorted, by_motif = np.arange(NEURONS), np.argsort(first_spike, kind="stable")
    panels = [
        raster(spikes, np.full(spikes.shape, -1), unsorted),
        raster(spikes, owners, unsorted),
        raster(spikes, owners, by_motif),
    ]
    captions = [
        f"Seen: {NEURONS} neurons, {STEPS} steps, {spikes.sum():,} spikes",
        f"Found: {len(found)} motifs; grey spikes belong to none",
        "The same, neurons sorted by when they fire in the first motif",
    ]
    tile_grid(panels, columns=1, captions=captions, margin=8, gap=12).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
