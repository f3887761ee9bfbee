"""All benchmarks, one after the other; writes docs/results.md and its figures."""

from __future__ import annotations

import json
import re
import sys
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from benchmarks import (
    activeset,
    alternatives,
    bmf,
    choices,
    deconvolution,
    gpu,
    inpainting,
    mnist,
    noise,
    online,
    peers,
    semisupervised,
    shapes,
    speed,
    table1,
    variants,
)
from benchmarks.harness import Row, facts, seeds

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results.md"
IMAGES = RESULTS.parent / "images"
ALL = {
    "table1": (table1, "Table 1: the parts of single images"),
    "deconvolution": (deconvolution, "Blind deconvolution of small images"),
    "peers": (peers, "Comparison with PGMax"),
    "bmf": (bmf, "Boolean matrix factorization"),
    "online": (online, "Learning from a stream"),
    "shapes": (shapes, "Two layers: shapes, with and without labels"),
    "alternatives": (alternatives, "Two layers: other classifiers"),
    "semisupervised": (semisupervised, "Two layers: few labels"),
    "noise": (noise, "Two layers: noise in the training images"),
    "inpainting": (inpainting, "Two layers: a quarter of the image missing"),
    "choices": (choices, "Two layers: one setting changed"),
    "variants": (variants, "Two layers: parts with variants"),
    "mnist": (mnist, "Two layers: digits from few examples"),
    "activeset": (activeset, "Engines"),
    "speed": (speed, "Speed of a sweep"),
    "gpu": (gpu, "The active set on a GPU"),
}
PREFACE = """# Results

`make paper` writes this page. Each section is one benchmark; `make bench NAME=…` runs it alone,
with the name in the last line of the section. Values are means over seeds, with the range in
parentheses. Reported seeds are 8000 and above. `benchmarks/NOTES.md` has the experiments by which
settings were chosen: some used seeds below 8000, some name no seeds, and those on exploration, on
too many features and on small layers used reported seeds. Settings for digits were chosen on
training digits that no benchmark learns from. "Not reached" marks our means that are worse than
the paper's figure, after rounding to its digits. In the figures, pale dots are seeds, bars and
lines are means, and empty diamonds are the paper's figures. Unless stated otherwise, seconds were
measured on one core while other cores were busy.
"""
NOTES = {
    "table1": """The ratio is (E(S) + E(W) + E(X-R)) / E(X); lower is better. (The caption of
the paper's Table 1 inverts the formula.) *With the true parts* is the ratio of the parts that
made the image, at their true places. A part *clearly pays* if the shortest known explanation
contains it and would be more than 1 % longer without it. Rare letters of a text do not pay, so
their IoU is low although the code is shorter than that of the true parts. The paper's images
are not public; ours follow its description, so compare its figures with care. *mpmp* is the
paper's message passing alone. *noca* is the peer that the paper compares with
([comparisons](baselines.md)). Seeds: 8000–8019 refined, 8000–8009 mpmp, 8100–8102 noca.""",
    "deconvolution": """100 images of 14×14 with four parts of 5×5. At most five features of 6×6
are learned. *Peers* are figures from the literature.""",
    "peers": """The data of the previous section, 100 iterations, with PGMax 0.6.1, JAX 0.6.2
and the settings of PGMax's own example ([details](baselines.md#pgmax)). *Same graph*: parts
stay inside the image, as in PGMax. Seconds are processor time. hcnet was already compiled.""",
    "bmf": """Percentage of entries in which the product of the factors differs from the
noise-free matrix. The rank is given, except for *automatic rank* (at most 20). At 40 % flips a
lower rank is more probable than the true one, so give the rank there. *Asso* is measured on the
same matrices ([comparisons](baselines.md)); *literature* marks published figures.""",
    "online": """The paper's settings: images of 32×32 with five characters and 3 % flips, eight
features of 12×12, minibatches of 5, λ = 0.95. *refined* (the default) improves the parts on the
last images. The paper gives no figures. The network learns from minibatches of 50 with 20
passes each.""",
    "shapes": """100 training and 10,000 test images (1,000 for *two passes*). Errors are
medians (range) in percent: of four clusters without labels, of two classes with them. *True W*:
the error of the network that made the data. *Fast pass*: one forward pass, as in the paper.
*Two passes*: messages forward, backward and forward. *Explained*: the default. The paper does
not give the size of its features. On two idle cores a fit took 4.0 s (3.3–5.1, 30 fits). Of 511
such fits, 3 missed the solution, one of them in this table.""",
    "alternatives": """100 labelled training images, 10,000 test images. All methods but the HCN
choose their settings on 1,000 more labelled images, *80 + 20 images* on 20 of the 100. *Same
form*: the computation of the fast pass with real weights. *Pooled pixels*: after a 3×3
max-pool. [Comparisons](baselines.md) has the details.""",
    "variants": """Shapes whose parts have two or three forms (100 labelled images per form), and
words of two letters in two fonts (150 images, no labels). *All groups right*: every part has all
its forms in one group. *Without*: the same network, whose pools have no third dimension, on five
seeds.
Kilobits are -log p(X, H, W), *true weights* those of the network that made the data. Digits: 10
per class, turned to either side. The paper leaves this out.""",
    "semisupervised": """Test errors in percent. Shapes of 21×21; some of the 100 training
images have labels. Only the HCN also uses the images without labels. The CNN chooses its
settings on 1,000 more labelled images. The paper learns four clusters and names each by one
label.""",
    "noise": """Test errors in percent. Shapes of 21×21, 100 labelled training images with
flipped pixels, 10,000 test images with 0.1 % flips. All methods but the HCN choose their
settings on 1,000 more labelled images with 0.1 % flips. The paper states only the error at 0.1
%, by the fast pass.""",
    "inpainting": """Shapes of 21×21, learned from 100 images without labels, 1,000 test images.
Pixels move at random within 3×3, so an empty image (*prior*) has the fewest wrong pixels. The
last two columns therefore allow a distance of one pixel.""",
    "choices": """Shapes of 19×19 without labels, 2,000 test images; *solved* means that W² is
exact and all training images are in the right cluster.""",
    "mnist": """Errors in percent on 10,000 test digits of MNIST, clean and corrupted, after
learning from the first 40 training digits of each class ([guide](mnist.md)). The paper does not
give the strengths of its corruptions, so its columns only show how hard the task is.
*HCN* is the paper's network, learned by message passing in both layers at once, and classifies
by matching; *forward pass* is the same network. It sees lines, and so do the methods without
*lines removed*. `TemplateClassifier` gets images from which straight lines were removed.
*Lines removed*: other methods on the same images. The other methods choose their settings on
1,000 more labelled digits. *Pooled edges*: after a 5×5 max-pool. The second table has errors on
clean digits.""",
    "activeset": """Message passing alone, until the joint log-probability has not risen for 15
sweeps; three seeds for pages, one for scans (ten sweeps) and digits. *Late step*: the median
seconds of the last five sweeps. Digits: 100 of scikit-learn's, enlarged to 28×28, 30 passes; *%
explained* is the gain in log-probability over an empty network after 5, 10, … passes. Peak MB
is the growth of the process. *Dense* does not fit into memory for the scan.""",
    "speed": """An update reads and writes 16 bytes per AND. *By a copy* divides its time by
that of copying as many bytes with NumPy.""",
    "gpu": """On an NVIDIA H200 (*cuda*) and the 16 cores beside it (*active*).
*cuda-dense* stored all messages on the GPU; it was removed because of these figures. Pages and
scans as in [Engines](#engines). The processor explores regions first. Digits: the
[paper's network for MNIST](mnist.md#the-papers-network), matching on 2,000 validation digits.
The first of three fits also compiles. The paper needed 17 hours and 150 GB.""",
}

# Drawn by docs/make_figures.py, with the data and settings of the section.
PICTURES = {
    "table1": {
        "parts.png": "Noisy letters, where parts are found, the parts, and the image without noise"
    },
    "online": {"datasets-small-letters.png": "Eight images of the stream, and its five characters"},
    "shapes": {
        "network-data.png": "16 training images",
        "network-weights.png": "Weights of both layers and the templates, without and with labels",
    },
    "variants": {
        "gallery-two-fonts.png": "Words in two fonts, what was learned of them, and new words"
    },
    "inpainting": {
        "network-inpainting.png": "Images with a missing centre, filled in without labels, and the "
        "truth"
    },
    "mnist": {
        "mnist-network.png": "Weights of both layers by message passing, and 30 templates",
        "mnist-parts.png": "64 parts of digits, and 30 of the templates made of them",
        "mnist-corruptions.png": "Ten digits, clean and after each corruption, and their edges",
    },
    "activeset": {"active-set.png": "Share of active placements and seconds over the sweeps"},
}


def main() -> None:
    """Run all benchmarks with the arguments given, and write the page.

    With ``--rows FILE …`` it is made from rows that were stored with ``--json``; sections of which
    there are none stay as they are.
    """
    stored, quick = _stored(sys.argv[1:]), "--quick" in sys.argv
    before = _sections()
    sections = [PREFACE]
    for name, (module, title) in ALL.items():
        if stored is None:
            rows = module.main(_own_file(sys.argv[1:], name)).rows
            rows = [{**row, **facts(), "day": f"{date.today()}"} for row in rows]
        else:
            rows = [row for row in stored if row["benchmark"] == name]
        if not rows:  # not asked for, or its data are not on this machine
            sections += [before[title]] if title in before else []
            continue
        print()
        text = _compact(module.report(rows))
        machines = sorted({r["machine"]["processor"] for r in rows})
        where = (
            f"`{name}`, seeds {seeds(rows)}, {max(r['day'] for r in rows)}, {', '.join(machines)}."
        )
        images = [] if quick else _images(name, rows)
        sections.append("\n\n".join([f"## {title}", NOTES[name], text, *images, where]) + "\n")
    if not quick:
        RESULTS.write_text("\n".join(sections))
        print(f"wrote {RESULTS}")


def _compact(table: str) -> str:
    """Remove the blanks around cells: aligned lines are up to 300 characters long."""
    lines = (re.sub(r" *\| *", "|", line).strip() for line in table.splitlines())
    return "\n".join(re.sub(r"-{3,}", "---", line) for line in lines)


def _images(name: str, rows: list[Row]) -> list[str]:
    """Draw the figure of a section, if it has one; links to it and to the pictures that fit."""
    links = {}
    if find_spec("matplotlib") is None:
        print("No figure: it needs matplotlib, which is in pip install 'hcnet[docs]'.")
    else:
        from benchmarks.figures import FIGURES, write

        if name in FIGURES:
            write(name, rows, IMAGES / f"results-{name}.png")
            links[f"results-{name}.png"] = FIGURES[name].shows
    links |= PICTURES.get(name, {})
    return [f"![{shows}](images/{file})" for file, shows in links.items()]


def _sections() -> dict[str, str]:
    """The sections of the page as it is, by title."""
    if not RESULTS.exists():
        return {}
    parts = RESULTS.read_text().split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in parts}


def _stored(arguments: list[str]) -> list[Row] | None:
    """Rows of the files, with the day on which the last row of a file was written."""
    if "--rows" not in arguments:
        return None
    files = arguments[arguments.index("--rows") + 1 :]
    return [
        {**json.loads(line), "day": f"{date.fromtimestamp(Path(file).stat().st_mtime)}"}
        for file in files
        for line in Path(file).read_text().splitlines()
    ]


def _own_file(arguments: list[str], name: str) -> list[str]:
    """Give every benchmark a JSON file of its own: FILE becomes FILE-name."""
    own = list(arguments)
    if "--json" in own:
        k = own.index("--json") + 1
        path = Path(own[k])
        own[k] = str(path.with_name(f"{path.stem}-{name}{path.suffix}"))
    return own


if __name__ == "__main__":
    main()
