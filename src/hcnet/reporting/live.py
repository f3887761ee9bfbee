"""A report that is updated while a fit runs."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence

from numpy.typing import ArrayLike

from hcnet.atomic_files import refuse_existing
from hcnet.progress import Step
from hcnet.reporting.page import report_path, write_report
from hcnet.reporting.reports import REFRESH, page_content

# The largest share of the time of a fit that reports may take.
SHARE = 0.1


class LiveReport:
    """A callback that writes a report every few seconds, to be watched in a browser.

    ::

        live = LiveReport("report.html", X)
        model = FeatureLearner(callback=live).fit(X)
        report(model, "report.html", X, overwrite=True)     # the final one

    Args:
        path: the file; a browser that shows it reads it again by itself.
        X: images to show, usually those that are learned from.
        mask: where pixels of X are missing.
        names: of the images.
        overwrite: whether a file that is there may be replaced.

    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        X: ArrayLike,
        mask: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = report_path(path)
        refuse_existing(self.path, overwrite)
        self.X, self.mask, self.names = X, mask, names
        self._next = 0.0
        self._broken = False

    def __call__(self, step: Step) -> None:
        """Write the report, if the last one is old enough."""
        if self._broken or time.perf_counter() < self._next:
            return
        began = time.perf_counter()
        content = page_content(step.model(), self.X, None, self.mask, self.names, step)
        try:
            write_report(self.path, content, overwrite=True)
        except OSError as error:  # a full disk must not end hours of learning
            self._broken = True
            warnings.warn(
                f"The live report {self.path} cannot be written any more ({error}); learning goes "
                f"on without it.",
                UserWarning,
                stacklevel=2,
            )
        took = time.perf_counter() - began
        self._next = time.perf_counter() + max(REFRESH, took / SHARE)

    def __deepcopy__(self, memo: object) -> LiveReport:
        """Itself: a clone of an estimator writes to the same file."""
        return self
