"""Message passing from many starts at once, on a GPU, as one process for the driver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hcnet.archive.contents import Contents
from hcnet.archive.fields import number, whole
from hcnet.archive.generators import generator_state, restore_generator
from hcnet.archive.reading import Section
from hcnet.engine.choice import updates_by
from hcnet.engine.devices import is_deterministic
from hcnet.engine.driver import Measurement
from hcnet.images import BoolArray, Images
from hcnet.layers import FeatureLayer
from hcnet.learning.passing import PassingOptions, placement_prior, weight_prior
from hcnet.objective import Priors, code_length
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver
from hcnet.solutions.written import read_explanation, written

if TYPE_CHECKING:
    from hcnet.engine.cuda.starts import Starts


class ManyStarts:
    """MPMP from many starts; the state is that of the best."""

    def __init__(
        self,
        layer: FeatureLayer,
        images: Images,
        improver: Improver,
        priors: Sequence[Priors],
        options: PassingOptions,
        rng: np.random.Generator,
        leaders: int,
    ) -> None:
        """One of the `priors` per start; so many `leaders` are asked for in the end."""
        from hcnet.engine.cuda.starts import Starts  # only where there is a GPU

        self._improver, self._options, self._rng = improver, options, rng
        self._n_leaders = min(leaders, len(priors))
        shape = (layer.n_channels, layer.n_features, *layer.feature_size)
        engine: Any = updates_by(options.engine)
        self._starts: Starts = Starts(
            engine,
            layer,
            images.observed,
            images.evidence_on_grid(priors[0].noise),
            np.array([placement_prior(float(start.p_S or 0)) for start in priors]),
            np.stack([weight_prior(float(start.p_W or 0), shape, rng) for start in priors]),
            rng,
        )
        self._leaders: list[Explanation] = []
        self._changed, self._belief_change = 0, math.inf
        self._W = self._weights()
        self._bits = self._measured()

    def step(self) -> bool:
        """One sweep of all starts."""
        schedule, damping = self._options.schedule, self._options.share
        self._belief_change = self._starts.sweep(schedule, self._rng, damping)
        before, self._W = self._W, self._weights()
        self._changed = int((before != self._W).sum())
        self._bits = self._measured()
        return True

    def measure(self) -> Measurement:
        """Joint log-probability of the best start, and how much the sweep changed in all."""
        best = min(self._bits)
        note = f"{len(self._bits)} starts"
        return Measurement(-best * math.log(2), self._changed, self._belief_change, note)

    def state(self) -> Explanation:
        """What the best start decodes to."""
        return self._decoded(int(np.argmin(self._bits)))

    def leaders(self) -> list[Explanation]:
        """What the best starts decode to, the best first."""
        if not self._leaders:
            order = np.argsort(self._bits, kind="stable")[: self._n_leaders]
            self._leaders = [self._decoded(int(k)) for k in order]
        return self._leaders

    def contents(self, finished: bool) -> Contents:
        """All messages; once it is finished, the best starts."""
        header: dict[str, Any] = {"generator": generator_state(self._rng)}
        if finished:
            found = self.leaders()
            contents = Contents(header | {"leaders": len(found)})
            for k, leader in enumerate(found):
                contents = contents.with_part(f"leader-{k}", self.pack(leader))
            return contents
        change = self._belief_change if math.isfinite(self._belief_change) else None
        header |= {"changed": self._changed, "belief_change": change}
        return Contents(header).with_part("passing", self._starts.contents())

    def restore(self, file: Section, finished: bool) -> None:
        """Become what `contents` were of."""
        header = file.header
        restore_generator(self._rng, header["generator"])
        if finished:
            n = whole("leaders", header["leaders"], 1, self._n_leaders)
            self._leaders = [self.unpack(file.part(f"leader-{k}")) for k in range(n)]
            return
        self._starts.restore(file.part("passing"))
        self._changed, change = whole("changed", header["changed"]), header["belief_change"]
        self._belief_change = math.inf if change is None else number("belief_change", change)
        self._W = self._weights()
        self._bits = self._measured()

    def pack(self, state: Explanation) -> Contents:
        """A decoded state, for a file."""
        return written(state, self._improver)

    def unpack(self, file: Section) -> Explanation:
        """The state of a file."""
        return read_explanation(file, self._improver)

    def _weights(self) -> BoolArray:
        return np.asarray(self._starts.weight_beliefs() > 0)

    def _measured(self) -> list[float]:
        """Code length of what every start decodes to, in bits."""
        found = self._starts.tallies()
        bits = []
        for placed, weights_on, pixels in zip(
            found.placed, found.weights_on, found.pixels, strict=True
        ):
            used = (placed > 0) & (weights_on > 0)
            counts = self._improver.counts(
                int(used.sum()), int(placed[used].sum()), int(weights_on[used].sum()), pixels
            )
            bits.append(code_length(counts, self._improver.priors))
        return bits

    def _decoded(self, start: int) -> Explanation:
        W, placements = self._starts.decoded(start)
        return self._improver.evaluate([self._improver.feature(w) for w in W], placements)


def memory_of_starts(
    layer: FeatureLayer, images: Images, options: PassingOptions, n_starts: int
) -> int:
    """Bytes that so many starts take on the GPU."""
    from hcnet.engine.cuda.starts import starts_memory

    lanes = options.schedule.lanes(images.n_images) if is_deterministic(options.engine) else 1
    return starts_memory(layer, images.n_images, images.n_observed, n_starts, lanes)
