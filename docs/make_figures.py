"""Draw the pictures of the documentation: python docs/make_figures.py [NAME …].

Run it from the root of the repository.  Without names it draws all of them.  "report" and
"scans" need Chromium, "digits" needs MNIST (in the folder HCNET_DATA, or downloaded).
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from figures import datasets, diagrams, digits, fits  # noqa: E402


def draw_gallery() -> None:
    """Run all examples and keep their pictures."""
    with tempfile.TemporaryDirectory() as folder:
        for script in sorted((ROOT / "examples").glob("*.py")):
            path = Path(folder) / f"{script.stem}.png"
            subprocess.run([sys.executable, script, path], check=True)
            with Image.open(path) as picture:
                fits.save(picture, f"gallery-{script.stem.replace('_', '-')}")


FIGURES = {
    "readme": fits.draw_readme,
    "start": fits.draw_start,
    "datasets": datasets.draw_datasets,
    "layer": diagrams.draw_layer,
    "tree": diagrams.draw_tree,
    "levels": diagrams.draw_network,
    "sweeps": fits.draw_sweeps,
    "active-set": fits.draw_active_set,
    "network": fits.draw_network,
    "stream": fits.draw_stream,
    "denoising": fits.draw_denoising,
    "digits": digits.draw_digits,
    "report": fits.draw_report,
    "scans": fits.draw_scans,
    "schematic": fits.draw_schematic,
    "gallery": draw_gallery,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name]()
