"""Pages of one print share what they have, and pages of different print lose nothing together."""

from io import BytesIO

import numpy as np
import pytest

from hcnet.codec import Reader, compress
from hcnet.codec.copies import LEAST_BEFORE, MOST_BEFORE, compared
from hcnet.codec.page_parts import breaks
from hcnet.datasets import scanned_text
from hcnet.datasets.typefaces import Font

SIZE = 700, 900


def printed(seed, n=1, **options):
    return list(scanned_text(n_pages=n, size=SIZE, random_state=seed, **options).images[:, 0])


def parents(data):
    """The parent of every page, or None."""
    reader = Reader(BytesIO(data))
    return [(chain[1] if len(chain := reader._chain(k)) > 1 else None) for k in range(len(reader))]


def alone(pages):
    return sum(len(compress(page, verify=False)) for page in pages)


@pytest.mark.parametrize("fast", [False, True])
def test_pages_of_one_print_save_at_least_seven_percent(fast):
    pages = printed(7100, 3)
    single = sum(len(compress(page, fast=fast, verify=False)) for page in pages)
    data = compress(pages, fast=fast, verify=False)
    assert len(data) < 0.93 * single
    assert parents(data) == [None, 0, 1]


def test_pages_of_different_print_take_no_more_bytes_together():
    small, large = printed(7101)[0], printed(7102, fonts=Font(points=22, slant=0.2))[0]
    assert len(compress([small, large])) <= alone([small, large])


def test_a_page_that_what_was_learned_would_mislead_begins_anew():
    a, b = printed(7103, 2)
    noise = np.random.default_rng(7103).random((200, 200)) < 0.5
    data = compress([a, noise])
    assert parents(data) == [None, None]
    assert len(data) <= alone([a, noise])
    assert [page.sum() for page in Reader(BytesIO(data))] == [a.sum(), noise.sum()]
    # The text after it goes on, and would lose more than the noise gains.
    assert parents(compress([a, noise, b], verify=False)) == [None, 0, 1]


def test_breaks_are_where_few_copies_are_of_earlier_parts():
    def page(*parts):
        return np.array([(part, 0, 0) for part in parts], np.int64).reshape(-1, 3)

    assert breaks([page(0, 1), page(1, 0)]) == []
    assert breaks([page(0, 1), page(2, 3, 4, 1)]) == [1]
    assert breaks([page(0, 1), page(2), page(1, 0)]) == []
    assert breaks([page(0), page(), page()]) == [1, 2]


def test_copies_are_compared_with_as_many_as_there_is_memory_for():
    for version in (1, 2):
        assert compared(version, 10**7, 10) == compared(3, 1, 10**6)
    for n_pixels, n_copies in ((0, 0), (10**6, 0), (10**6, 3000), (8 * 10**6, 10**6), (2**28, 1)):
        n = compared(3, n_pixels, n_copies)
        assert LEAST_BEFORE < n < MOST_BEFORE + 100
        assert n_copies * n <= max(n_pixels, LEAST_BEFORE * n_copies) + 16 * n_copies
