"""JBIG2 files and PDFs hold every pixel, as jbig2dec and Poppler decode them."""

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jbig2_tools import decoded, embedded, needs_jbig2dec, needs_poppler, rendered

from hcnet.codec import jbig2
from hcnet.codec.jbig2.documents import encode
from hcnet.datasets import scanned_text


def equal(found, pages):
    """Whether two lists of pages have the same sizes and pixels."""
    return len(found) == len(pages) and all(map(np.array_equal, found, pages))


@pytest.fixture(scope="module")
def document():
    """Two pages of text of different sizes, one of them white on black, and two without text."""
    first, second = (
        scanned_text(size=(300, width), random_state=seed).images.reshape(300, width)
        for seed, width in enumerate((700, 803))
    )
    noise = np.random.default_rng(0).random((50, 41)) < 0.4
    return [first, ~second, np.zeros((30, 20), bool), noise]


@st.composite
def small_pages(draw):
    """Up to three images of any small size and share of ink."""
    pages = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
        ink = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
        pages.append(np.random.default_rng(draw(st.integers(0, 999))).random(shape) < ink)
    return pages


@st.composite
def pages_of_copies(draw):
    """Up to two pages with many inexact copies of a few shapes, also over the border."""
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    shapes = [rng.random(rng.integers(6, 20, 2)) < 0.7 for _ in range(draw(st.integers(1, 3)))]
    pages = []
    for _ in range(draw(st.integers(1, 2))):
        page = np.zeros(rng.integers(60, 160, 2), bool)
        for _ in range(draw(st.integers(5, 40))):
            copy = shapes[rng.integers(len(shapes))]
            copy = copy ^ (rng.random(copy.shape) < draw(st.sampled_from([0.0, 0.03])))
            y, x = rng.integers(0, np.array(page.shape))
            at = page[y : y + copy.shape[0], x : x + copy.shape[1]]
            at |= copy[: at.shape[0], : at.shape[1]]
        pages.append(page ^ draw(st.booleans()))
    return pages


def both_ways(pages):
    """Assert that a file and a PDF have the same pixels as the pages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert equal(decoded(jbig2.write_file(pages), folder), pages)
        assert equal(embedded(jbig2.write_pdf(pages, [(300, 300)] * len(pages)), folder), pages)


@needs_jbig2dec
@needs_poppler
@settings(deadline=None, max_examples=40)
@given(pages=small_pages())
def test_small_images_come_back_bit_for_bit(pages):
    both_ways(pages)


@needs_jbig2dec
@needs_poppler
@settings(deadline=None, max_examples=25)
@given(pages=pages_of_copies())
def test_copies_of_shapes_come_back_bit_for_bit(pages):
    both_ways(pages)


@needs_jbig2dec
def test_a_document_with_shared_symbols_comes_back_bit_for_bit(document, tmp_path):
    assert equal(decoded(jbig2.write_file(document), tmp_path), document)


@needs_poppler
def test_a_pdf_renders_to_the_same_pixels(document, tmp_path):
    for dpi in (72, 204, 300):
        content = jbig2.write_pdf(document, [(dpi, dpi)] * len(document))
        assert equal(rendered(content, tmp_path, dpi), document)
        assert equal(embedded(content, tmp_path), document)


def test_symbols_are_shared_by_pages_and_refined(document):
    coded = encode(document)
    assert len(coded.symbols) == 2  # those by themselves, and variants of them
    assert [page.text is not None for page in coded.pages] == [True, True, False, False]
    assert coded.pages[2].generic is None


def test_text_is_smaller_with_symbols_than_without(document):
    assert len(jbig2.write_file(document)) < 0.9 * len(jbig2.write_file(document, parts=False))


@needs_jbig2dec
@needs_poppler
def test_exact_copies_are_not_refined_and_cost_little(tmp_path):
    rng = np.random.default_rng(0)
    shapes = np.pad(rng.random((5, 12, 9)) < 0.7, ((0, 0), (2, 2), (2, 2)))
    page = np.block([[shapes[rng.integers(5)] for _ in range(40)] for _ in range(20)])
    content = jbig2.write_file([page])
    assert equal(decoded(content, tmp_path), [page])
    assert len(content) < len(jbig2.write_file([page], parts=False)) / 3
    assert equal(embedded(jbig2.write_pdf([page], [(300, 300)]), tmp_path), [page])


@needs_jbig2dec
def test_more_pages_than_a_byte_counts(tmp_path):
    pages = [np.eye(3 + n % 4, dtype=bool) for n in range(300)]
    assert equal(decoded(jbig2.write_file(pages), tmp_path), pages)


def test_the_resolution_is_in_the_file_and_makes_the_size_of_a_page():
    page = np.eye(100, 200, dtype=bool)
    content = jbig2.write_file([page], [(300, 600)])
    at = content.index((200).to_bytes(4, "big") + (100).to_bytes(4, "big")) + 8
    across, down = (int.from_bytes(content[at + n : at + n + 4], "big") for n in (0, 4))
    assert (across, down) == (23622, 11811)
    box = re.search(rb"/MediaBox \[0 0 (\S+) (\S+)\]", jbig2.write_pdf([page], [(300, 600)]))
    assert [float(side) for side in box.groups()] == pytest.approx([24, 24], abs=0.002)


def test_the_same_pages_give_the_same_bytes(document):
    assert jbig2.write_file(document) == jbig2.write_file(document)


def test_a_document_without_pages_is_a_header_and_an_end():
    assert jbig2.write_file([]).startswith(b"\x97JB2")
    assert jbig2.write_pdf([], []).endswith(b"%%EOF\n")


@needs_jbig2dec
@needs_poppler
def test_the_only_symbol_of_a_dictionary_has_a_name_without_bits(tmp_path):
    shape = np.pad(np.random.default_rng(1).random((20, 15)) < 0.8, 3)
    page = np.tile(shape, (6, 9))
    coded = encode([page])
    assert len(coded.symbols) == 1
    assert coded.pages[0].generic is None
    assert equal(decoded(jbig2.write_file([page]), tmp_path), [page])
    assert equal(embedded(jbig2.write_pdf([page], [(300, 300)]), tmp_path), [page])


def test_a_pdf_needs_a_resolution_for_every_page():
    with pytest.raises(ValueError, match="shorter"):
        jbig2.write_pdf([np.eye(3, dtype=bool)] * 2, [(300, 300)])


@settings(deadline=None, max_examples=25)
@given(pages=pages_of_copies())
def test_a_file_is_never_larger_than_generic_regions(pages):
    assert len(jbig2.write_file(pages)) <= len(jbig2.write_file(pages, parts=False))
