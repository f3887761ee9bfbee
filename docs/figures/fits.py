"""Pictures of single fits: README, start, engine, network, streams, reports."""

import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from benchmarks import activeset, page_kinds
from benchmarks.harness import Benchmark
from hcnet import HCN, FeatureLearner, Layer
from hcnet.datasets import deconvolution, letters, scanned_text, shapes, small_letters
from hcnet.metrics import matched_iou
from hcnet.plotting import (
    show_comparison,
    show_errors,
    show_explanation,
    show_features,
    show_images,
    show_model,
    show_parts,
)
from hcnet.plotting.drawing import tile_grid
from hcnet.reading import name_parts
from hcnet.reporting import report

DOCS = Path(__file__).resolve().parents[1]
IMAGES = DOCS / "images"


def save(picture: Image.Image, name: str, colours: int = 64) -> None:
    """Write a picture with a palette, which takes a third of the bytes."""
    path = IMAGES / f"{name}.png"
    picture.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def draw_readme() -> None:
    """Draw the parts of a noisy picture of letters."""
    data = letters(noise=0.03, random_state=0)
    learner = FeatureLearner(feature_size=(12, 12), random_state=0).fit(data.images)
    save(show_comparison(learner, data.images), "parts", 256)


def draw_start() -> None:
    """Run the code of docs/start.md up to its picture."""
    page = (DOCS / "start.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec("\n".join(code[:4]), {})
        with Image.open("found.png") as picture:
            save(picture, "start-found")
        os.chdir(before)


def draw_sweeps() -> None:
    """Draw features after some sweeps of message passing."""
    data = deconvolution(n_images=100, random_state=0)
    priors = {"p_S": 0.01, "p_W": 0.4, "p01": 1e-3, "p10": 1e-3}
    options = {"algorithm": "mpmp", "engine": "dense", "border": "valid", "n_init": 1}
    tiles, sweeps = [], (1, 2, 4, 8, 16)
    for n in sweeps:
        learner = FeatureLearner(5, 6, max_iter=n, random_state=0, **priors, **options)
        learner.fit(data.images)
        tiles.append(show_features(learner.features_, colours=True, columns=5, scale=10))
    captions = [f"{n} sweep" + "s" * (n > 1) for n in sweeps]
    sheet = tile_grid(tiles, columns=1, margin=4, captions=captions, gap=10)
    save(sheet, "engine-sweeps", 32)


def draw_active_set() -> None:
    """Plot the share of active placements and the seconds of each sweep."""
    data = {
        "letters 200×200, 12 of 12×12": "letters",
        "noisy letters 200×200, 12 of 12×12": "letters, 3 % flips",
        "text 200×200, 32 features": "text",
    }
    sweeps = 22
    activeset.compile_everything()
    bench = Benchmark("figure", "")
    for name in data:
        activeset.one_page(bench, name, 8000)
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, label), colour in zip(data.items(), ("#0072B2", "#D55E00", "#009E73"), strict=True):
        dense, active = (
            next(r for r in bench.rows if r["data"] == name and r["engine"] == engine)
            for engine in ("dense", "active")
        )
        share = 100 * np.array(active["share_active"][:sweeps])
        steps = np.arange(1, len(share) + 1)
        left.semilogy(steps, np.where(share, share, np.nan), color=colour, label=label)
        for row, style in ((active, "-"), (dense, ":")):
            seconds = row["seconds_per_step"][:sweeps]
            right.semilogy(np.arange(1, len(seconds) + 1), seconds, style, color=colour)
    left.set(xlabel="sweep", ylabel="% of placements active", ylim=(0.01, 1), xlim=(0, sweeps))
    right.set(xlabel="sweep", ylabel="seconds", xlim=(0, sweeps))
    right.plot([], [], "k-", label="active set")
    right.plot([], [], "k:", label="dense engine")
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.set_xticks(range(0, sweeps + 1, 5))
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "active-set.png", dpi=110)


def draw_network() -> None:
    """Draw weights, templates, completions and samples of two networks."""
    data = shapes(random_state=0)
    layers = [Layer(4, size=21), Layer()]
    clusters = HCN(layers, n_classes=4, random_state=0).fit(data.images)
    classes = HCN(layers, templates_per_class=2, random_state=0).fit(data.images, data.labels)

    show_images(data.images[:16], columns=8, scale=3).save(IMAGES / "network-data.png")
    models = {"without labels": clusters, "with labels": classes}
    panels = [show_model(model, scale=4) for model in models.values()]
    panels += [show_images(model.weights_[1].reshape(4, 4), scale=22) for model in models.values()]
    captions = [
        f"{what}, {name}"
        for what in ("Templates and W1", "W2: a row per template, a column per feature")
        for name in models
    ]
    save(tile_grid(panels, columns=2, captions=captions, gap=28), "network-weights")

    test = shapes(n_images=8, random_state=1)
    mask = np.zeros((25, 25), bool)
    mask[6:19, 6:19] = True
    filled = clusters.inpaint(test.images, np.broadcast_to(mask, test.images.shape))
    rows = {"seen": test.images, "filled in": filled, "truth": test.images}
    missing = np.zeros((3, 8, 1, 25, 25), bool)
    missing[0] = mask
    show_images(
        np.concatenate(list(rows.values())),
        missing.reshape(24, 1, 25, 25),
        [name for name in rows for _ in test.images],
        columns=8,
        scale=4,
    ).save(IMAGES / "network-inpainting.png")
    drawn, _ = clusters.sample(16, random_state=0)
    show_images(drawn, columns=8, scale=3).save(IMAGES / "network-samples.png")


def draw_stream() -> None:
    """Learn one alphabet, then another, and draw the parts on the way."""
    looks = (0, 25, 50, 100, 200, 400)  # images of the new characters seen so far
    old = small_letters(n_images=500, characters="AGKRS", n_characters=5, random_state=0)
    new = small_letters(n_images=max(looks), characters="BEMTX", n_characters=5, random_state=1)
    tiles, captions = [], []
    for forgetting in (0.8, 0.95, 0.99):
        learner = FeatureLearner(8, 12, random_state=0)
        learner.partial_fit(old.images, forgetting=forgetting)
        for before, look in zip((0, *looks), looks, strict=False):
            if look:
                learner.partial_fit(new.images[before:look], forgetting=forgetting)
            known = [
                int((matched_iou(learner.features_, data.features) >= 0.95).sum())
                for data in (old, new)
            ]
            print(f"lambda={forgetting} new images: {look} old, new characters known: {known}")
            tiles.append(show_features(learner.features_, colours=True, columns=4, scale=3))
            captions.append(f"lambda {forgetting}, {look} new images")
    save(tile_grid(tiles, columns=len(looks), captions=captions, gap=24), "online-forgetting")


def draw_report() -> None:
    """Click a part and a pixel of a report in Chromium, and keep the screenshot."""
    sys.path.insert(0, str(DOCS.parent / "tests" / "browser"))
    from chromium import Browser

    X = letters(noise=0.03, random_state=0).images
    learner = FeatureLearner(feature_size=12, random_state=0).fit(X)
    errors = show_errors(X[:, :, :80, :160], learner.denoise(X)[:, :, :80, :160], scale=4)
    save(errors, "command-line-errors", 16)
    with tempfile.TemporaryDirectory() as folder, Browser(1100, 900) as browser:
        path = report(learner, Path(folder) / "report.html", X, names=["page.png"])
        browser.open(path)
        browser.click("#layers .card:nth-child(2) .part")
        _, _, row, column = next(
            place for place in learner.placements_ if place[1] == 1 and 40 < place[2] < 120
        )
        scale = browser.value("Number(document.getElementById('image-size').value)")
        browser.click("#image", (column + 5.5) * scale, (row + 4.5) * scale)
        browser.value("window.scrollTo(0, 0)")
        shot = Path(folder) / "shot.png"
        browser.screenshot(shot)
        with Image.open(shot) as picture:
            save(picture.convert("RGB").crop((0, 0, 1100, min(picture.height, 1085))), "report")


def draw_scans() -> None:
    """Type names into the report of a scanned page in Chromium, and keep the screenshot."""
    sys.path[:0] = [str(DOCS.parent / "tests" / "browser"), str(DOCS.parent / "examples")]
    import scanned_page
    from chromium import Browser

    page = scanned_page.scan()
    learner = FeatureLearner(random_state=0).fit(page.images)
    names = scanned_page.typed_names(learner, page)
    name_parts(learner, {part: names[part] for part in range(5)})
    with tempfile.TemporaryDirectory() as folder, Browser(1100, 900) as browser:
        path = report(learner, Path(folder) / "report.html", page.images, names=["page.tif"])
        browser.open(path)
        browser.click("#layers .card:nth-child(5) .part")
        browser.value("window.scrollTo(0, 0)")
        shot = Path(folder) / "shot.png"
        browser.screenshot(shot)
        with Image.open(shot) as picture:
            save(
                picture.convert("RGB").crop((0, 0, 1100, min(picture.height, 1085))), "scans-report"
            )


def draw_schematic() -> None:
    """A made-up schematic, its symbols in colours, and all parts."""
    X = page_kinds.schematic(1, (900, 1100)).images
    learner = FeatureLearner(random_state=0).fit(X)
    part = (0, 0, 900, 430)
    panels = [
        show_images(X, scale=1).crop(part),
        show_explanation(learner, X, scale=1).crop(part),
        show_parts(learner),
    ]
    captions = [
        "Seen: symbols that hang together by wires",
        "Symbols in the colours of their parts",
        "All parts, the most used first",
    ]
    save(tile_grid(panels, columns=1, captions=captions, margin=8, gap=16), "scans-schematic")


def draw_denoising() -> None:
    """A scanned page, the page with flips, and what denoising makes of it."""
    page = scanned_text(size=(900, 1500), random_state=9000).images
    noisy = page ^ (np.random.default_rng(0).random(page.shape) < 0.03)
    clean = FeatureLearner(algorithm="soft", random_state=0).fit(noisy).denoise(noisy)
    views = [X[0, 0, 100:150, 90:690] for X in (page, noisy, clean)]
    gap = np.zeros((8, views[0].shape[1]), bool)
    sheet = np.concatenate([views[0], gap, views[1], gap, views[2]])
    save(Image.fromarray(~np.kron(sheet, np.ones((2, 2), bool))).convert("L"), "scans-denoising", 2)
