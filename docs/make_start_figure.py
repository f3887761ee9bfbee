"""Makes the picture of docs/start.md by the code of that page: docs/make_start_figure.py."""

import os
import re
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent


def main() -> None:
    """Run the page up to the picture, in an empty folder."""
    page = (DOCS / "start.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec("\n".join(code[:4]), {})
        with Image.open("found.png") as picture:
            target = DOCS / "images" / "start-found.png"
            picture.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)
        os.chdir(DOCS)
    print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
