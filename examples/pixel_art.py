"""Find the sprites of a noisy pixel-art scene: every colour is a channel.

python examples/pixel_art.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np
from PIL import Image

from hcnet import FeatureLearner
from hcnet.images import BoolArray
from hcnet.plotting.drawing import framed, tile_grid

SIZE = (96, 176)
SPRITES_EACH = 7
NOISE = 0.004  # of the six bits of a pixel: 2 to 3 % of the pixels have a wrong colour

COLOURS = {
    "k": (43, 36, 60),
    "r": (214, 60, 60),
    "g": (74, 158, 72),
    "b": (134, 88, 52),
    "y": (246, 196, 58),
    "c": (72, 128, 214),
}
SKY = (226, 240, 250)

SPRITES = {
    "tree": """
....ggg....
..ggggggg..
.ggggkgggg.
gggggggggkg
ggkgggggggg
.gggggkggg.
..ggggggg..
....bbb....
....bbb....
....bkb....
...bbbbb...""",
    "mushroom": """
...rrrrr...
..rr.rrrr..
.rrrrrr.rr.
rr.rrrrrrrr
rrrrr.rrr.r
rrrrrrrrrrr
...y.y.y...
...yk.ky...
...y...y...
...yyyyy...""",
    "coin": """
..kkkkk..
.kyyyyyk.
kyykkkyyk
kyykyyyyk
kyykyyyyk
kyykyyyyk
kyykkkyyk
.kyyyyyk.
..kkkkk..""",
    "house": """
.....r.....
....rrr.bb.
...rrrrrbb.
..rrrrrrrr.
.rrrrrrrrr.
rrrrrrrrrrr
.yyyyyyyyy.
.ycycyykky.
.yyyyyykky.
.ycycyykky.
.yyyyyykky.""",
    "ghost": """
...ccccc...
..ccccccc..
.ccccccccc.
.c..ccc..c.
.c.kccc.kc.
ccccccccccc
ccccccccccc
cccckkkcccc
ccccccccccc
cc.ccc.cccc
c...c...c.c""",
    "heart": """
.rr...rr.
rrrr.rrrr
r.rrrrrrr
r.rrrrrrr
rrrrrrrrr
.rrrrrrr.
..rrrrr..
...rrr...
....r....""",
}


def channels_of(drawing: str) -> BoolArray:
    """A drawing as (colours, height, width)."""
    rows = drawing.strip().splitlines()
    width = max(map(len, rows))
    letters = np.array([list(row.ljust(width, ".")) for row in rows])
    return np.stack([letters == colour for colour in COLOURS])


def scene(rng: np.random.Generator) -> BoolArray:
    """Sprites at random places, one pixel apart at least: (colours, height, width)."""
    image = np.zeros((len(COLOURS), *SIZE), bool)
    taken = np.zeros(SIZE, bool)
    for drawing in list(SPRITES.values()) * SPRITES_EACH:
        sprite = channels_of(drawing)
        h, w = sprite.shape[1:]
        for _ in range(200):
            r, c = rng.integers(1, SIZE[0] - h), rng.integers(1, SIZE[1] - w)
            if not taken[r - 1 : r + h + 1, c - 1 : c + w + 1].any():
                image[:, r : r + h, c : c + w] |= sprite
                taken[r : r + h, c : c + w] = True
                break
    return image


def painted(image: BoolArray, scale: int) -> Image.Image:
    """Channels in their colours; darker ones lie on top."""
    canvas = np.full((*image.shape[1:], 3), SKY, np.uint8)
    for channel, colour in reversed(list(zip(image, COLOURS.values(), strict=True))):
        canvas[channel] = colour
    return framed(canvas, scale)


def main() -> None:
    """Make a scene, learn its sprites, and draw both."""
    path = sys.argv[1] if len(sys.argv) > 1 else "pixel_art.png"
    rng = np.random.default_rng(0)
    clean = scene(rng)
    noisy = clean ^ (rng.random(clean.shape) < NOISE)
    learner = FeatureLearner(feature_size=(13, 14), random_state=0, verbose=True).fit(noisy[None])
    restored = learner.denoise(noisy[None])[0]
    counts = np.bincount(learner.placements_[:, 1], minlength=len(learner.features_))
    print(f"{len(learner.features_)} sprites at {counts.sum()} places")
    wrong = [(image != clean).any(axis=0).sum() for image in (noisy, restored)]
    print(f"wrong pixels: {wrong[0]} in the scene, {wrong[1]} in what was rebuilt")
    sprites = [painted(sprite, 6) for sprite in learner.features_]
    sheet = tile_grid(sprites, columns=len(sprites), captions=[f"{n} times" for n in counts])
    panels = [painted(noisy, 4), sheet, painted(restored, 4)]
    captions = ["Seen: one noisy scene", "Found: its sprites", "Rebuilt from sprites alone"]
    tile_grid(panels, columns=1, captions=captions, margin=8, gap=16).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
