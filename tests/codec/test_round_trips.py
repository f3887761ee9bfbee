"""Every page comes back bit for bit, whatever is on it and however parts are placed."""

import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from drawn_pages import KINDS, pages, random_page, text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hcnet.codec import Reader, compress, decompress
from hcnet.codec.container import VERSION
from hcnet.codec.page_coder import State, decode_page, encode_page

SETTINGS = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def assert_comes_back(images, **options):
    found = decompress(compress(images, **options))
    assert len(found) == len(images)
    for page, image in zip(found, images, strict=True):
        assert page.dtype == bool
        np.testing.assert_array_equal(page, image)


@SETTINGS
@given(st.lists(pages(), min_size=1, max_size=10))
def test_pages_come_back_bit_for_bit(images):
    assert_comes_back(images, verify=False)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 1), (1, 2), (97, 64)])
def test_pages_of_every_kind_and_shape_come_back(kind, shape):
    assert_comes_back([kind(np.random.default_rng(0), *shape)])


def test_a_large_white_page_comes_back_and_takes_few_bytes():
    page = np.zeros((3000, 2000), bool)
    assert len(compress(page, verify=False)) < 200
    assert_comes_back([page], verify=False)


def some_parts(rng, shape):
    """Parts of any size anywhere, over each other and over the border of the page."""
    n = int(rng.integers(1, 9))
    sizes = rng.integers(1, 12, (n, 2))
    part = rng.integers(n, size=int(rng.integers(0, 20)))
    corner = np.stack([rng.integers(-12, side + 12, len(part)) for side in shape], axis=1)
    return np.concatenate([part[:, None], corner.reshape(-1, 2)], axis=1), sizes


def round_trips(rng, count):
    """Pages with parts at any places, in groups that share what they have learned; all versions."""
    for first in range(0, count, 50):
        version = 1 + first // 50 % VERSION
        written, read = State(version), State(version)
        several = int(rng.integers(1, 9))
        sizes = rng.integers(1, 12, (several, 2))
        for _ in range(min(50, count - first)):
            page = random_page(rng)
            rows, _ = some_parts(rng, page.shape)
            rows = rows[rows[:, 0] < several]
            data = encode_page(page, rows, sizes, written)
            np.testing.assert_array_equal(decode_page(data, page.shape, read), page)


def test_2_000_pages_come_back_with_parts_at_any_places():
    round_trips(np.random.default_rng(0), 2000)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_10_000_pages_come_back():
    rng = np.random.default_rng(1)
    round_trips(rng, 5000)
    for _ in range(250):
        assert_comes_back([random_page(rng, 120) for _ in range(20)])


def test_a_page_wider_than_32_767_pixels_comes_back_in_another_process(tmp_path):
    """Distances of more than 15 bits; what one process has in memory cannot help the other."""
    page = np.zeros((30, 33_000), bool)
    rng = np.random.default_rng(5)
    page[:, :80], page[:, -80:] = text(rng, 30, 80), text(rng, 30, 80)
    np.save(tmp_path / "page.npy", page)
    code = (
        "import sys, numpy as np, hcnet.codec as codec\n"
        "for fast in (False, True):\n"
        "    data = codec.compress(np.load(sys.argv[1]), fast=fast)\n"
        "    sys.stdout.buffer.write(len(data).to_bytes(4, 'big') + data)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "page.npy")]
    written = BytesIO(subprocess.run(command, check=True, capture_output=True).stdout)
    for fast in (False, True):
        data = written.read(int.from_bytes(written.read(4), "big"))
        np.testing.assert_array_equal(decompress(data), [page])
        assert compress(page, fast=fast) == data


def test_any_order_of_pages_gives_the_same_pages():
    rng = np.random.default_rng(2)
    images = [text(rng, 60, 80) for _ in range(7)]
    reader = Reader(BytesIO(compress(images, group=3)))
    for number in (6, 0, 5, 4, 1, 1, 2, 3, -1):
        np.testing.assert_array_equal(reader[number], images[number])


def test_the_same_pages_give_the_same_bytes():
    rng = np.random.default_rng(3)
    images = [text(rng, 60, 80) for _ in range(3)]
    data = compress(images)
    assert compress(images, verify=False) == data
    assert compress(np.array(images).astype(np.uint8)) == data
    assert compress([np.asfortranarray(image, float) for image in images]) == data
    assert compress([image.tolist() for image in images]) == data


def test_pages_of_one_document_share_what_they_learn():
    rng = np.random.default_rng(4)
    letters = [rng.random((11, 8)) < 0.5 for _ in range(8)]

    def page():
        return np.block(
            [[np.pad(letters[k], 2) for k in rng.integers(8, size=12)] for _ in range(8)]
        )

    images = [page() for _ in range(4)]
    assert len(compress(images)) < 0.8 * sum(len(compress(image)) for image in images)
