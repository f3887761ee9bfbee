"""The last resort of the search: placements anew by message passing, features fixed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcnet.engine.placements import infer_placements
from hcnet.objective import estimate
from hcnet.refine.moves import Proposal
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver


def place_by_messages(
    now: Explanation, improver: Improver, rng: np.random.Generator
) -> Iterator[Proposal]:
    """Global inference of S: removes wrong pixels that no single exchange can."""
    if not now.features:
        return
    priors = estimate(now.counts, improver.priors)
    found = infer_placements(now.features, improver, priors, rng).best
    yield Proposal(list(found.features), found.placements)
