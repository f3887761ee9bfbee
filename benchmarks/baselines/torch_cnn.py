"""A convolutional network in PyTorch that learns from random variants of few images.

The variants are rotations, shears, changes of scale, shifts and smooth warps.  With `corrupted`,
two thirds of the images are also corrupted, in the ways of `hcnet.datasets.corruptions`, so that
the network has seen what it is tested on.

Import this module where PyTorch is there alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from hcnet.datasets.corruptions import CORRUPTIONS

# Largest angle, shear, change of scale, shift (in pixels), and spread of a warp (in pixels).
ANGLE, SHEAR, SCALE, SHIFT, WARP = 15.0, 0.25, 0.12, 2.0, 0.9
# A warp is smooth over so many pixels.
SMOOTH = 4.0
WIDTHS = (64, 128, 256)
STEPS, BATCH, RATE, DECAY = 1500, 128, 3e-3, 1e-2
# Images that are corrupted once, to draw from.
POOL = 20_000
# The sizes of variants that are tried; the one with the fewest errors on held-out images is kept.
STRENGTHS = (1.0, 1.6)


class TorchCNN:
    """Six 3×3 convolutions with batch normalisation, dropout and one dense layer."""

    def __init__(self, *, corrupted: bool = False, random_state: int = 0, steps: int = STEPS):
        self.corrupted, self.random_state, self.steps = corrupted, random_state, steps
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def fit(
        self,
        images: NDArray[np.uint8],
        labels: NDArray[Any],
        held_out: tuple[NDArray[np.uint8], NDArray[Any]],
    ) -> TorchCNN:
        """Train a network for each strength of the variants, and keep the best one."""
        best = np.inf
        self.classes = np.unique(labels)
        codes = np.searchsorted(self.classes, labels)
        others, answers = held_out
        if self.corrupted:  # half of them as they are, for what it will be tested on
            half = len(others) // 2
            others = np.concatenate([others[:half], _corrupt(others[half:], 0)])
        for strength in STRENGTHS:
            torch.manual_seed(self.random_state)
            network = self._train(images, codes, strength)
            wrong = float((self._classes(network, others) != answers).mean())
            if wrong < best:
                best, self.network, self.strength = wrong, network, strength
        return self

    def predict(self, images: NDArray[np.uint8]) -> NDArray[Any]:
        """Classes of grey images (n, height, width)."""
        return self._classes(self.network, images)

    def _classes(self, network: nn.Module, images: NDArray[np.uint8]) -> NDArray[Any]:
        with torch.no_grad():
            codes = [network(part).argmax(1) for part in self._tensor(images).split(1000)]
        return self.classes[torch.cat(codes).cpu().numpy()]

    def _tensor(self, images: NDArray[np.uint8]) -> torch.Tensor:
        grey = torch.tensor(images, device=self.device)[:, None]
        return grey.float() / 255

    def _train(self, images: NDArray[np.uint8], codes: NDArray[Any], strength: float) -> nn.Module:
        network = _network(images.shape[1:], len(self.classes)).to(self.device)
        seen, known = self._tensor(images), torch.tensor(codes, device=self.device)
        if self.corrupted:
            drawn = torch.randint(len(seen), (POOL,), device=self.device)
            changed = torch.cat([variants(seen[some], strength) for some in drawn.split(2000)])
            grey = (255 * changed[:, 0]).round().byte().cpu().numpy()
            pool, pool_codes = self._tensor(_corrupt(grey, self.random_state)), known[drawn]
        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=self.steps)
        fast = self.device.type == "cuda"
        for _ in range(self.steps):
            some = torch.randint(len(seen), (BATCH,), device=self.device)
            batch, answers = variants(seen[some], strength), known[some]
            if self.corrupted:
                some = torch.randint(POOL, (2 * BATCH // 3,), device=self.device)
                batch[: len(some)], answers[: len(some)] = pool[some], pool_codes[some]
            with torch.autocast(self.device.type, torch.bfloat16, enabled=fast):
                loss = functional.cross_entropy(network(batch), answers, label_smoothing=0.05)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
        return network.eval()


def variants(images: torch.Tensor, strength: float) -> torch.Tensor:
    """A random variant of each image (n, 1, height, width)."""
    n, _, height, width = images.shape

    def uniform(most: float) -> torch.Tensor:
        return (2 * torch.rand(n, device=images.device) - 1) * most * strength

    angle, shear = uniform(ANGLE * np.pi / 180), uniform(SHEAR)
    across, down = 1 + uniform(SCALE), 1 + uniform(SCALE)
    cos, sin = torch.cos(angle), torch.sin(angle)
    # Shifts do not grow with the strength; in this grid an image is 2 wide.
    right, below = uniform(2 * SHIFT / width / strength), uniform(2 * SHIFT / height / strength)
    rows = [
        torch.stack([cos * across, shear - sin * down, right], 1),
        torch.stack([sin * across, cos * down, below], 1),
    ]
    grid = functional.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    noise = torch.randn(n, 2, height, width, device=images.device)
    reach = int(2 * SMOOTH)
    x = torch.arange(-reach, reach + 1, device=images.device)
    bell = torch.exp(-(x**2) / (2 * SMOOTH**2))
    noise = noise.reshape(2 * n, 1, height, width)
    noise = functional.conv2d(noise, bell.view(1, 1, 1, -1), padding=(0, reach))
    noise = functional.conv2d(noise, bell.view(1, 1, -1, 1), padding=(reach, 0))
    noise = noise.reshape(n, 2, height, width)
    warp = noise / noise.std((2, 3), keepdim=True) * (2 * WARP * strength / width)
    return functional.grid_sample(images, grid + warp.permute(0, 2, 3, 1), align_corners=False)


def _corrupt(images: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    """Each of the corruptions for an equal share of the images, in turn."""
    changed = images.copy()
    for k, corrupt in enumerate(CORRUPTIONS.values()):
        own = slice(k, None, len(CORRUPTIONS))
        changed[own] = corrupt(images[own], random_state=seed + 1)
    return changed


def _network(size: tuple[int, int], n_classes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    before, (height, width) = 1, size
    for after in WIDTHS:
        for channels in (before, after):
            layers += [nn.Conv2d(channels, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2), nn.Dropout(0.3)]
        before, height, width = after, height // 2, width // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * height * width, n_classes))
