"""Files of every release decode for ever.

A file of a release is added once and never written again; beside it lies a TIFF file of its pages.
Before the first release with version 3: ``hcnet compress tests/codec/released/third.tif -o
tests/codec/released/third.hcz --force``; versions 1 and 2, of the others, are not written any more.
"""

from pathlib import Path

import numpy as np
import pytest

from hcnet.codec import Reader
from hcnet.codec.container import VERSION
from hcnet.image_files.bilevel import read_pages

FILES = sorted((Path(__file__).parent / "released").glob("*.hcz"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_a_release_decode(path):
    wanted = list(read_pages(path.with_suffix(".tif")))
    with Reader(path) as reader:
        assert len(reader) == len(wanted)
        for number, (pixels, info) in enumerate(wanted):
            np.testing.assert_array_equal(reader[number], pixels)
            assert reader.info(number) == info


def test_there_is_a_file_of_each_version():
    versions = {path.stem: path.read_bytes()[8] for path in FILES}
    assert versions["first"] == 1
    assert versions["second"] == 2
    assert versions["third"] == 3
    assert set(versions.values()) == set(range(1, VERSION + 1))
