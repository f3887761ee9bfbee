"""The description of the format is enough to write a decoder.

`plain_decoder` was written from docs/codec-format.md alone.  The crafted files were written with it
run backwards, and reach what hcnet's own files hardly do: several pages of one parent, copies far
over the border, part sizes and steps that are written out, more copies than are compared.
"""

from pathlib import Path

import numpy as np
import plain_decoder
import pytest

from hcnet.codec import Reader

HERE = Path(__file__).parent
FILES = sorted([*(HERE / "crafted").glob("*.hcz"), *(HERE / "released").glob("*.hcz")])
SLOW = "first", "jumps", "ranks", "third"  # in plain Python


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.long] * (path.stem in SLOW))
        for path in FILES
    ],
)
def test_a_decoder_written_from_the_description_reads_the_same_pages(path):
    wanted = plain_decoder.decode(path.read_bytes())
    with Reader(path) as reader:
        assert len(reader) == len(wanted)
        for number, page in enumerate(wanted):
            np.testing.assert_array_equal(reader[number], page)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_page_has_the_pixels_of_its_digest(path):
    with Reader(path) as reader:
        for number in range(len(reader)):
            assert reader[number].ndim == 2  # a wrong digest raises an error
