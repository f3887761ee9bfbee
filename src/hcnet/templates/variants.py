"""Variants of examples, matched with images element by element from both sides.

Every element of an image costs the more, the farther the nearest element of a variant is from it,
in distance and direction; and the other way round.  All variants of a class share the decision.
Neither side is deformed any further, so that an image is compared with tens of thousands of
variants in milliseconds: of every variant it is known how near each place in the image is to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import ssyrk
from threadpoolctl import threadpool_limits

from hcnet.archive import kinds
from hcnet.archive.kinds import Contents, Node
from hcnet.engine.driver import look
from hcnet.hierarchy.network import NETWORK_MODEL, NetworkModel
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.memory import check_memory
from hcnet.templates.deformations import MOST, Deformations, Elements, vary
from hcnet.templates.placing import place
from hcnet.templates.variant_kernels import BLOCK, cost_all, near_all, score_all

# Chosen on digits that neither train nor test: benchmarks/NOTES.md.
# Pixels at which nearness falls to 0.6, and beyond which there is none.
NEAR, REACH = 2.5, 5
# How near an element of the next direction is.
BESIDE = 0.15
# Cost of an element of a variant that the image lacks, in unexplained elements.
LACKING = 0.7
# Least weight of a lacking element, however full its channel is.
LEAST_LACKING = 0.2
# Nats for the cost of as many unexplained elements as an example has, by which variants vote, and
# by which their learned influence falls.
VOTE, INFLUENCE = 45.0, 5.0
# Nats for an influence of 1, and how strongly large weights are avoided.
LEARNED, RIDGE = 20.0, 0.1
# Nats by which an image must be more probable at another place than where it is.
MOVED = 12.0
# Most variants that have weights: 8,000 take 400 MB while these are learned.
MOST_LEARNED = 8000
# Most examples that are tried in all places.
MOST_PLACED = 100
# Variants of an example, and the memory that those of a file may take.
MOST_VARIANTS, MOST_BYTES = 10_000, 2**34
# Variants that are drawn at once while weights are learned from them.
_BATCH = 512


@dataclass(frozen=True, eq=False)
class Variants:
    """Examples, their classes, and how variants of them are made and compared."""

    examples: BoolArray  # (examples, channels, height, width)
    codes: NDArray[np.int64]  # (examples,), the class of each
    n_variants: int
    deformations: Deformations
    seed: int
    influence: FloatArray  # (learned, classes): weights of some variants, in the order of `_which`

    @property
    def n(self) -> int:
        """The number of all variants, with the examples themselves."""
        return len(self.codes) * (self.n_variants + 1)

    @property
    def _codes(self) -> NDArray[np.int64]:
        """The class of every variant."""
        return np.tile(self.codes, self.n_variants + 1)

    @property
    def memory(self) -> int:
        """Bytes of the tables: a byte per place, and the elements as they are made."""
        each = self.examples[:1].size + 16 * int(self.examples.sum(axis=(1, 2, 3)).max(initial=0))
        learned = min(self.n, MOST_LEARNED)
        return self.n * each + 6 * learned * learned

    def check_memory(self, max_memory: int | None) -> int:
        """Bytes of the tables; an error if that is more than allowed."""
        remedy = f"lower variants (now {self.n_variants})"
        return check_memory("Matching with variants", self.memory, max_memory, remedy)

    @cached_property
    def _tables(self) -> tuple[Elements, NDArray[np.uint8]]:
        """Elements of all variants, and how near every place is to each: (places, variants)."""
        rng = np.random.default_rng(self.seed)
        elements = vary(self.examples, self.n_variants, self.deformations, rng)
        size = np.array(self.examples.shape[1:])
        near = np.zeros((int(size.prod()), self.n), np.uint8)
        near_all(-(-self.n // BLOCK), *elements, size, *self._how[:2], near)
        return elements, near

    @property
    def _how(self) -> tuple[FloatArray, np.float32, np.float32]:
        """How nearness falls with the distance, that of the next direction, and a lacking one."""
        falloff = np.exp(-(np.arange(REACH + 1) ** 2) / (2 * NEAR**2)).astype(np.float32)
        turns = self.deformations.directions and self.examples.shape[1] > 2
        return falloff, np.float32(BESIDE if turns else 0), np.float32(LACKING)

    @property
    def _which(self) -> NDArray[np.int64]:
        """The variants that have weights."""
        if self.n <= MOST_LEARNED:
            return np.arange(self.n)
        return np.sort(np.random.default_rng(self.seed).choice(self.n, MOST_LEARNED, replace=False))

    @cached_property
    def _unit(self) -> float:
        """Elements of an example, in the mean."""
        return max(float(self.examples.sum()) / max(len(self.examples), 1), 1.0)

    def _weights(self, images: Images) -> FloatArray:
        """Cost of an unexplained and of a lacking element, per image and channel.

        The fuller a channel is beside those of the examples, the less either of them means.
        """
        everywhere = Images(self.examples, np.ones_like(self.examples))
        usual, share = _share(everywhere).mean(axis=0), _share(images)
        unexplained = (np.log(share) / np.log(usual)) ** 2
        lacking = np.sqrt(np.maximum((1 - share) ** 9, LEAST_LACKING**2))
        return np.stack([unexplained, lacking], axis=1).astype(np.float32)

    def learned(self, n_classes: int) -> Variants:
        """The same variants with weights by which some recognise the classes of all.

        A ridge regression of the classes on how much each variant resembles those with weights.
        """
        elements, near = self._tables
        which, codes = self._which, self._codes
        few, own = _some(elements, which), np.ascontiguousarray(near[:, which])
        square = np.zeros((len(which), len(which)), np.float32, "F")
        wanted = np.zeros((len(which), n_classes), np.float32)
        with threadpool_limits(1, "blas"):  # with more, sums are rounded differently
            for start in range(0, self.n, _BATCH):
                look()
                rows = np.arange(start, min(start + _BATCH, self.n))
                pixels = self._drawn(elements, rows)
                weights = self._weights(Images(pixels, np.ones_like(pixels)))
                alike = np.empty((len(rows), len(which)), np.float32)
                cost_all(len(rows), pixels, pixels, weights, few, own, self._how, alike)
                alike *= np.float32(-INFLUENCE / self._unit)
                np.exp(alike, out=alike)
                square = ssyrk(1, alike.T, beta=1, c=square, overwrite_c=True)
                wanted += alike.T @ np.eye(n_classes, dtype=np.float32)[codes[rows]]
            square[np.diag_indices(len(which))] += np.float32(RIDGE)
            look()
            factor = cho_factor(square, overwrite_a=True)
            look()
            influence = cho_solve(factor, wanted)
        made = replace(self, influence=np.asarray(influence, np.float32))
        made.__dict__["_tables"] = self._tables
        return made

    def _drawn(self, elements: Elements, which: NDArray[np.int64]) -> BoolArray:
        """These variants as images."""
        images = np.zeros((len(which), self.examples[:1].size), bool)
        for image, t in zip(images, which, strict=True):
            image[elements.where[slice(*elements.start[t : t + 2])]] = True
        return images.reshape(len(which), *self.examples.shape[1:])

    def class_scores(self, images: Images, n_classes: int, reach: int = 0) -> NDArray[np.float64]:
        """Log-score of every class up to a constant per image: (images, classes).

        An object counts as shifted by up to `reach` pixels if that explains it much better.
        """
        scores = self._scores(images, n_classes)
        moved = self.placed(images, reach)
        some = np.flatnonzero((moved.pixels != images.pixels).any(axis=(1, 2, 3)))
        there = self._scores(moved[some], n_classes)
        better = there.max(axis=1) > scores[some].max(axis=1) + MOVED
        scores[some[better]] = there[better]
        return scores

    def placed(self, images: Images, reach: int) -> Images:
        """The images with each object where it fits the examples best."""
        if reach == 0:
            return images
        elements, near = self._tables
        # Variants that are examples come first; of many, those evenly spread.
        n = len(self.codes)
        some = np.unique(np.linspace(0, n - 1, min(n, MOST_PLACED)).astype(np.int64))
        few = _some(elements, some), np.ascontiguousarray(near[:, some])
        return place(images, self._weights(images), few, self._how, reach, self._unit)

    def _scores(self, images: Images, n_classes: int) -> NDArray[np.float64]:
        elements, near = self._tables
        scores = np.zeros((images.n_images, n_classes))
        votes = self._codes, VOTE / self._unit
        influence = np.float32(LEARNED) * self.influence
        learned = self._which[: len(influence)], influence, INFLUENCE / self._unit
        seen = np.ascontiguousarray(images.pixels & images.observed)
        # An unobserved pixel may be on.
        maybe = np.ascontiguousarray(images.pixels | ~images.observed)
        weights = self._weights(images)
        score_all(
            len(seen), seen, maybe, weights, elements, near, self._how, votes, learned, scores
        )
        return scores


def _some(elements: Elements, which: NDArray[np.int64]) -> Elements:
    """The elements of some variants."""
    return Elements(
        np.concatenate([[0], np.cumsum(np.diff(elements.start)[which])]),
        np.concatenate([elements.where[slice(*elements.start[t : t + 2])] for t in which]),
    )


def _share(images: Images) -> NDArray[np.float64]:
    """Share of pixels that are on, per image and channel; never 0 or 1."""
    seen = images.observed.sum(axis=(2, 3))
    return np.asarray(((images.pixels & images.observed).sum(axis=(2, 3)) + 1) / (seen + 2))


_DEFORMATIONS = kinds.object_of(
    Deformations,
    **{name: kinds.number(name == "smoothness", most) for name, most in MOST.items()},
    directions=kinds.flag(),
)


class _Stored(NamedTuple):
    examples: BoolArray
    codes: NDArray[np.int64]
    n_variants: int
    deformations: Deformations
    seed: int
    influence: FloatArray


def _from_file(stored: _Stored) -> Variants:
    found = Variants(*stored)
    if found.memory > MOST_BYTES:
        raise ValueError("its variants would take too much memory")
    return found


_VARIANTS = kinds.converted(
    kinds.object_of(
        _Stored,
        examples=kinds.binary_array((None, None, None, None)),
        codes=kinds.array(np.int64, (None,), 0),
        n_variants=kinds.whole_number(1, MOST_VARIANTS),
        deformations=_DEFORMATIONS,
        seed=kinds.whole_number(0, 2**32 - 1),
        influence=kinds.array(np.float32, (None, None)),
    ),
    lambda variants: variants,
    _from_file,
)


@dataclass(frozen=True, eq=False)
class TemplateModel(NetworkModel):
    """A network, and the variants that its classes are recognised by, if there are any."""

    variants: Variants | None = None


def _write(model: TemplateModel) -> Contents:
    network = NETWORK_MODEL.write(model)
    if model.variants is None:
        return network
    more = Contents.of({"variants": _VARIANTS.write(model.variants)})
    return Contents(network.header | more.header, network.arrays | more.arrays)


def _read(node: Node, now: object) -> TemplateModel:
    network = NETWORK_MODEL.read(node)
    variants = _VARIANTS.read(node["variants"]) if "variants" in node else None
    model = TemplateModel(network.network, network.weights, network.classes, variants)
    if variants is not None:
        net, shape = network.network, variants.examples.shape
        if shape[1:] != (net.n_channels, *net.image_size) or len(variants.codes) != shape[0]:
            raise ValueError("its variants are not those of its network")
        if {*variants.codes.tolist()} != {*range(len(network.classes))}:
            raise ValueError("its variants are not of its classes")
        learned = variants.influence.shape
        if learned[0] not in (0, min(variants.n, MOST_LEARNED)) or learned[1] != len(
            network.classes
        ):
            raise ValueError("its variants have the weights of others")
    return model


TEMPLATE_MODEL = kinds.Kind(_write, _read)
