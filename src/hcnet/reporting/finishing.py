"""What all reports end with: how learning went, and how to do it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hcnet.engine.driver import Record
from hcnet.environment import versions
from hcnet.images import Images
from hcnet.plotting.charts import curve_points
from hcnet.progress import Step
from hcnet.reporting import charts
from hcnet.reporting.content import Content, Picture, fingerprint

# Parameters that say how a run is watched, and change nothing about its result.
WATCHING = ("verbose", "callback")
# Seconds after which a browser reads a live report again.
REFRESH = 3


def finished(
    content: Content,
    images: Images | None,
    told: dict[str, Any],
    history: Sequence[Record],
    parameters: dict[str, Any],
    code: str,
    live: Step | None = None,
) -> Content:
    """The same content with what is known about the run; `told` is an estimator's summary."""
    if told.get("log_joint") is not None:
        content.facts.append(
            ("Joint log-probability", f"{told['log_joint']:,.1f}", "of the images learned from")
        )
    if "n_iter" in told:
        content.facts.append(("Steps", f"{told['n_iter']:,}", told.get("status", "")))
    if history:
        ends = history[0].objective, history[-1].objective
        text = (
            f"{history[-1].figure.capitalize()} over {len(history)} steps: from {ends[0]:,.0f} to "
            f"{ends[1]:,.0f}."
        )
        if points := curve_points(history):
            chart = charts.curve(points, history[-1].figure)
            content.pictures.insert(0, Picture("Learning", chart, text))
    content.code = code
    content.parameters = {
        name: repr(value) for name, value in parameters.items() if name not in WATCHING
    }
    if parameters.get("random_state") is None:
        content.parameters["random_state"] = "None: no seed was given or kept, runs may differ"
    content.versions = versions()
    if images is not None:
        content.fingerprint = fingerprint(images)
        content.parameters["fingerprint of X"] = content.fingerprint
    if live is not None:
        of = "" if live.total is None else f" of about {live.total}"
        content.live = (
            f"Still learning: {live.stage.lower()}, step {live.iteration}{of}, {live.seconds:.0f} "
            f"s so far. {live.note}"
        ).strip()
        content.refresh = REFRESH
    return content
