"""All benchmarks, one after the other; writes docs/results.md."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import bmf, deconvolution, speed, table1
from benchmarks.harness import facts, seeds

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results.md"
ALL = {
    "table1": (table1, "Table 1: the parts of single images"),
    "deconvolution": (deconvolution, "Blind deconvolution of small images"),
    "bmf": (bmf, "Boolean matrix factorization"),
    "speed": (speed, "Speed of a sweep"),
}
PREFACE = """# Results

Made by `make paper`; each section is one benchmark, `make bench NAME=…`. No result is of a seed
that was used to develop what it measures. Ranges are over seeds: mean (least–most).
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
images of the same kind.""",
    "deconvolution": """Four 5×5 parts, placed with probability 0.01 per position and at least three
times per image; fitted with at most five features of 6×6.""",
    "bmf": """Share of entries in % at which the product of the two binary factors differs from the
noise-free matrix. Noise and densities are estimated; the rank is given except in the column
"automatic rank" (at most 20). At 40 % flips fewer components are more probable than the truth, and
the automatic rank says so: give the rank there.""",
    "speed": """An update reads and writes both messages of an AND, 16 bytes; "copy" is the time
that NumPy takes to copy as many bytes in the same run, on one thread.""",
}


def main() -> None:
    """Run all benchmarks with the arguments given, and write the page.

    With ``--rows FILE …`` the page is made from rows that were stored with ``--json``.
    """
    stored = _stored(sys.argv[1:])
    sections = [PREFACE]
    for name, (module, title) in ALL.items():
        if stored is None:
            rows = module.main(_own_file(sys.argv[1:], name)).rows
            rows = [{**row, **facts()} for row in rows]
        else:
            rows = [row for row in stored if row["benchmark"] == name]
        print()
        text = module.report(rows)
        machines = sorted({r["machine"]["processor"] for r in rows})
        where = (
            f"`make bench NAME={name}`, seeds {seeds(rows)}, {date.today():%Y-%m-%d}, "
            f"{', '.join(machines)}."
        )
        sections.append(f"## {title}\n\n{NOTES[name]}\n\n{text}\n\n{where}\n")
    if "--quick" not in sys.argv:
        RESULTS.write_text("\n".join(sections))
        print(f"wrote {RESULTS}")


def _stored(arguments: list[str]) -> list[dict[str, Any]] | None:
    if "--rows" not in arguments:
        return None
    files = arguments[arguments.index("--rows") + 1 :]
    return [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]


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
