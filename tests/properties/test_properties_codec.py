"""Compressed pages: they come back, or a sentence says why not."""

import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import about, alike, anything, odd_parameters, outcome, pixels, untouched

from hcnet.codec import PageInfo, Reader, Resolution, Writer, compress, decompress


@st.composite
def pages(draw):
    """A few pages, and the same in other forms."""
    sides = st.tuples(st.integers(1, 9), st.integers(1, 9))
    images = [draw(pixels(draw(sides))) for _ in range(draw(st.integers(1, 3)))]
    return images, [draw(alike(image)) for image in images]


@about("hcnet.codec.compress", "hcnet.codec.decompress", examples=15)
@given(pages())
def test_pages_in_any_form_come_back(both):
    images, given_images = both
    unchanged = [untouched(image) for image in given_images]
    found = decompress(compress(given_images, verify=False))
    for page, image, compare in zip(found, images, unchanged, strict=True):
        np.testing.assert_array_equal(page, image)
        compare()


@about("hcnet.codec.compress")
@given(anything(), odd_parameters(), st.sampled_from(["fast", "verify", "group"]))
def test_bad_pages_and_options_end_in_a_sentence(images, value, option):
    data = outcome(compress, images, **{option: value})
    if data is not None:
        decompress(data)


@about("hcnet.codec.decompress", "hcnet.codec.Reader", "hcnet.codec.Reader.close")
@given(st.one_of(st.binary(max_size=60), anything()), odd_parameters())
def test_bad_data_end_in_a_sentence(data, value):
    outcome(decompress, data)
    outcome(decompress, data, max_pixels=value)
    outcome(Reader, io.BytesIO(data) if isinstance(data, bytes) else data, salvage=value)


@st.composite
def infos(draw):
    """What a file may say about a page."""
    number = st.integers(0, 2**32 - 1)
    fraction = st.tuples(number, number)
    unit = st.sampled_from(["none", "inch", "centimetre"])
    resolution = st.none() | st.builds(Resolution, fraction, fraction, unit)
    name = st.text(max_size=30)
    return draw(st.builds(PageInfo, name, name, st.booleans(), st.booleans(), resolution))


@about(
    "hcnet.codec.Writer", "hcnet.codec.Writer.add", "hcnet.codec.Writer.close",
    "hcnet.codec.Reader.info", "hcnet.codec.Reader.shape",
    "hcnet.codec.Reader.pixels",
    "hcnet.codec.PageInfo", "hcnet.codec.Resolution", examples=10,
)  # fmt: skip
@given(st.lists(infos(), min_size=1, max_size=3))
def test_facts_about_pages_are_kept(about_pages):
    target = io.BytesIO()
    writer = Writer(target, verify=False)
    for k, info in enumerate(about_pages):
        writer.add(np.eye(k + 1), info)
    writer.close()
    reader = Reader(target)
    assert [reader.info(k) for k in range(len(reader))] == about_pages
    assert [reader.shape(k)[0] for k in range(len(reader))] == [*range(1, len(reader) + 1)]
    assert [reader.pixels(k) for k in range(len(reader))] == [
        (k + 1) ** 2 for k in range(len(reader))
    ]
    reader.close()
