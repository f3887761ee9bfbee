"""All benchmarks, one after the other; writes docs/results.md and its figures."""

from __future__ import annotations

import json
import sys
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from benchmarks import (
    activeset,
    activeset_gpu,
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
)
from benchmarks.harness import Row, facts, seeds

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results.md"
IMAGES = RESULTS.parent / "images"
ALL = {
    "table1": (table1, "Table 1: the parts of single images"),
    "deconvolution": (deconvolution, "Blind deconvolution of small images"),
    "peers": (peers, "Message passing elsewhere: PGMax"),
    "bmf": (bmf, "Boolean matrix factorization"),
    "online": (online, "Learning from a stream"),
    "shapes": (shapes, "Two layers: shapes, with and without labels"),
    "alternatives": (alternatives, "Two layers: what users would pick instead"),
    "semisupervised": (semisupervised, "Two layers: few labels"),
    "noise": (noise, "Two layers: noise in the training images"),
    "inpainting": (inpainting, "Two layers: a quarter of the image missing"),
    "choices": (choices, "Two layers: what the paper leaves open"),
    "mnist": (mnist, "Two layers: digits from few examples"),
    "activeset": (activeset, "Engines that store few messages beside the dense one"),
    "speed": (speed, "Speed of a sweep"),
    "gpu": (gpu, "The CUDA engine beside the CPU"),
    "activeset_gpu": (activeset_gpu, "The active set on a GPU"),
}
PREFACE = """# Results

Made by `make paper`; each section is one benchmark, `make bench NAME=…`. No result is of a seed
that was used to develop what it measures. Ranges are over seeds: mean (least–most). "Not reached":
our mean, rounded as the paper's figure is, is worse than that figure. In figures every pale dot is
a seed, a bar or a line the mean, and an empty diamond what the paper states. Pictures of data and
parts are those of the guides, of single fits with other seeds.
"""
NOTES = {
    "table1": """Ratio: (E(S) + E(W) + E(X-R)) / E(X), lower is better; the caption of the
paper's table has it upside down. "With the true parts" is the ratio of the generator's own parts
at their own places; a fit may be shorter. A true part *pays* if the shortest explanation known
(the fit's, or that of a search started at the truth) has it, exactly, and would be longer without
it; it *clearly* pays if it would be longer by more than 1 %. In a text the rarest letters do not
pay, nor do some that others make up together (a d from a c and an l), which is why the mean IoU
over all letters is below 1 where the code is shorter than that of the true parts. Seconds are on
one core, while another core was busy. The paper's images are not public: its figures are of other
images of the same kind, also where one is not reached; our symbols take 0.136 even with their true
parts. *noca* is the paper's peer, noisy-OR component analysis, with as many features as *mpmp*; its
seconds are those of all its starts, and "paper" is the paper's figure for it
([baselines.md](baselines.md)).""",
    "deconvolution": """Four 5×5 parts, placed with probability 0.01 per position and at least three
times per image; fitted with at most five features of 6×6.""",
    "peers": """The data of the section before, 100 iterations. PGMax 0.6.1 with JAX 0.6.2 and the
settings of its own example of this problem: p_S 1e-75, p_W 0.25, pixels certain, damping 0.5, all
messages at once. *Same graph*: placements inside the image only, as PGMax's; otherwise parts may
reach over the border, which makes more ANDs. ns per AND and iteration: message passing alone.
Seconds are of the processor, on one core; hcnet was compiled before, which its cache keeps. Peak
MB is what the process grew by.""",
    "bmf": """Share of entries in % at which the product of the two binary factors differs from the
noise-free matrix. Noise and densities are estimated; the rank is given except in the column
"automatic rank" (at most 20). At 40 % flips fewer components are more probable than the truth, and
the automatic rank says so: give the rank there. *Asso* is measured here on the same matrices, with
the rank given ([baselines.md](baselines.md)); where it is marked "literature" it is the published
figure.""",
    "online": """The paper's three settings: images of 32×32 with five random characters and 3 %
flipped pixels, eight features of 12×12, minibatches of 5, λ = 0.95. *mpmp*: the paper's algorithm
alone; *refined*: the default, which ends with moves on the last images. The paper shows the learned
features without figures. Memory is the peak of a whole process that makes its images as it goes.
The cost of a minibatch counts everything that is done for it. The network is learned in
minibatches of 50, with 20 passes over each. Seconds are on one core, while another was busy; peak
MB of a fit is what the process grew by, beyond what rows before it had left behind.""",
    "shapes": """100 training and 10,000 test images (1,000 for two passes). *Solved*: W² is exactly
right up to relabelling, and all training images are in the right cluster. Test errors are medians
(least–most) in percent; "true W" is the error of the network with the weights that made the data,
without labels the mean over two orders of its templates: nearly all its errors in the fast pass are
ties between templates that both find all they look for, and the first one wins.
*Fast pass*: one forward pass. *Two passes*: message passing forward, backward and forward.
*Explained*: the default, best templates worked out down to the pixels. Unsupervised errors count
images in the wrong one of four clusters, supervised ones those in the wrong one of two classes. The
paper does not say how large its features are: with the true weights its 0.6 % fits 19×19. Seconds
are on one core of a machine whose cores were all busy; on two idle ones, 30 fits took 3.3 to 5.1 s,
the median 4.0. Of 511 such fits, 3 ended beside the solution, one of them among these. The paper
classifies by the fast pass; what its figure is compared with is the mean over fits, of the fast
pass and of the default.""",
    "alternatives": """100 labelled training images, 10,000 test images. *CNN, same form*: what the
fast pass computes (3×3 max-pool, 4 features, 3×3 max-pool, best of two templates per class), with
real weights and biases. *CNN, ReLU*: 3×3 max-pool, 16 features, ReLU, 3×3 max-pool, dense layer,
softmax. Both by Adam on the cross-entropy with an L2 penalty, 4 strengths × 8 restarts; kept is
the one with fewest errors on 1,000 further labelled images, which the HCN does not get (*80 + 20
images*: on 20 of the 100, learned from the other 80). SVM, k-NN and logistic regression choose
their settings on the same 1,000. *Pooled pixels*: after a 3×3 max-pool. The paper chose on the
test set, and does not say how large its features are. Mean (least–most); seconds with the choice
of settings, on one core, while other work ran; the most seconds of a CNN are with compilation.""",
    "semisupervised": """Shapes of 21×21, 100 training images of which some carry labels, as many
of each pattern; 10,000 test images. Peers learn from the labelled images alone; the CNN chooses its
L2 strength and restart on 1,000 further labelled images. Mean (least–most). The paper learns four
clusters without labels and names each by one label; its error is of four classes.""",
    "noise": """Shapes of 21×21, 100 labelled training images in which pixels are flipped; 10,000
test images with 0.1 % flips, as in the paper. p01 and p10 stay at their default, 1e-3. CNNs and
classic methods choose their settings on 1,000 further labelled images with 0.1 % flips, where the
paper chose on the test set. The paper shows a curve; only the errors at its first point are in the
text, that of the HCN by the fast pass.""",
    "inpainting": """Shapes of 21×21, 1,000 test images, learned without labels from 100. Where a
pixel lands in its 3×3 window is random, so that nobody can have few wrong *pixels*: the fewest has
who paints nothing at all (prior: the pixels that are on in most training images, which are none).
The other columns allow for one pixel: true on pixels with nothing on within one pixel, and painted
ones with no true one within one pixel.""",
    "choices": """Shapes of 19×19, the hardest of the three sizes, without labels, 2,000
test images; *solved* as above. Mean (least–most). Seconds are on one core of a
machine whose cores were all busy.""",
    "mnist": """MNIST, learned from the first 40 training digits of each class; errors on the
10,000 test digits in percent, and on the same digits corrupted ([pictures](mnist.md)). The paper
shows its corruptions without figures: ours were set on training digits so that the network with
ReLU does about as badly as the paper's, so that the paper's columns say how hard the task is, and
no more. *HCN*: straight lines removed, edges in 8 directions, 64 parts of 7×7 and 32 templates per
class ([how it learns](mnist.md#learning)), seeds 8000 to 8004; its settings were chosen on
validation digits before. *Lines removed*: rivals on images without lines, too, as the HCN has
them, of seed 8000; `--only "lines kept"` is the HCN on images as they are. All but the HCN choose
their settings on 1,000 labelled training digits beyond the first 100 of each class; the paper
chose its CNN on the test set. *Same form*: the paper's HCN, 64 features and 32 templates per
class, with real weights. *ReLU*: 96 features and a dense layer, as the paper's CNN. *Pooled
edges*: after a 5×5 max-pool. The seed draws weights and corruptions; SVM and k-NN have nothing
else to vary. Mean (least–most). The second table is of clean digits; in it SVM and k-NN are of seed
8000 alone. Seconds are with the choice of settings, on machines that were busy with other work.""",
    "activeset": """Plain message passing from the first of the starting priors, until the joint
log-probability has not risen for 15 sweeps; all engines one after the other on the same images,
in sequential order. The first step of the active set includes the regions that are explored; *late*
is the median of the last five. *s to the same joint*: until each is as good as the worst of them
ends up. Small images are below the size from which the default engine keeps an active set; here
it does. The scan has letters of 36×36 pixels, gets ten steps, and is too large for the dense engine
(5·10¹¹ ANDs). Digits: those of scikit-learn, enlarged to 28×28, 16 channels of edges, with labels,
30 forward and backward passes of a network as the paper has it for MNIST; *% explained*: by how
much what was learned after 5, 10, … passes is more probable than nothing, in percent of the
log-probability of nothing. Memory is what the process grew by.""",
    "speed": """An update reads and writes both messages of an AND, 16 bytes; "copy" is the time
that NumPy takes to copy as many bytes in the same run, on one thread.""",
    "gpu": """On an NVIDIA H200 (driver 580.159, CUDA 13.0, numba-cuda 0.30.4). Floor: 16 bytes per
AND at the bandwidth of a copy in the same run, in ps per AND. The CPU has a hundredth of the
digits. Fits of a GPU are from 100 starts; their seconds are of those that had the machine to
themselves (seeds 8000 to 8003, of the symbols also 8005 to 8007, of the text 8000 to 8009), the
other columns of all.""",
    "activeset_gpu": """On an NVIDIA H200 and the 16 cores beside it. *active*: on the processor;
*cuda*: the active set on the GPU, with the schedule that it has unless another is asked for;
*cuda-dense*: all messages on the GPU. Pages and scan as for the processor above; the exploration
that comes first is done by the processor. The dense engine is left out where it has no room. Memory
of a GPU is what is in use there at the end. Digits: the paper's network for MNIST, 80 forward and
backward passes, errors of one forward pass on 2,000 validation digits.""",
}

# Made by docs/make_*_figures.py, with the data and settings of the section.
PICTURES = {
    "table1": {
        "parts.png": "Noisy letters, where parts are found, the parts, and the image without noise"
    },
    "online": {"datasets-small-letters.png": "Eight images of the stream, and its five characters"},
    "shapes": {
        "network-data.png": "16 training images",
        "network-weights.png": "Weights of both layers and the templates, without and with labels",
    },
    "inpainting": {
        "network-inpainting.png": "Images with a missing centre, filled in without labels, and the "
        "truth"
    },
    "mnist": {
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
        text = module.report(rows)
        machines = sorted({r["machine"]["processor"] for r in rows})
        where = (
            f"`make bench NAME={name}`, seeds {seeds(rows)}, {max(r['day'] for r in rows)}, "
            f"{', '.join(machines)}."
        )
        images = [] if quick else _images(name, rows)
        sections.append("\n\n".join([f"## {title}", NOTES[name], text, *images, where]) + "\n")
    if not quick:
        RESULTS.write_text("\n".join(sections))
        print(f"wrote {RESULTS}")


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
