"""MNIST from files that are written here; the network is a server on this machine, or nothing."""

import functools
import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest

from hcnet.datasets import mnist
from hcnet.datasets.mnist import cache_folder, fetch

NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def idx(array):
    sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def digits(seed=0):
    """Thirty training and twelve test images of 6×5 in three classes, as four arrays."""
    rng = np.random.default_rng(seed)
    train, test = rng.permutation(30) % 3, np.arange(12) % 3
    images = [rng.integers(256, size=(len(labels), 6, 5)) for labels in (train, test)]
    return images[0], train, images[1], test


def write(folder, arrays, packed=True):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(NAMES, arrays, strict=True):
        content = gzip.compress(idx(array)) if packed else idx(array)
        (folder / f"{name}{'.gz' * packed}").write_bytes(content)


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """A home of its own, no data, and a network that refuses."""
    monkeypatch.delenv("HCNET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # the port where nobody listens


def assert_same(data, arrays):
    found = (data.images, data.labels, data.test_images, data.test_labels)
    for own, expected in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(own, expected)
    assert data.images.dtype == data.test_images.dtype == np.uint8
    assert data.labels.dtype == data.test_labels.dtype == np.int64


@pytest.mark.parametrize("packed", [True, False])
def test_files_are_read_packed_or_not(tmp_path, packed):
    write(tmp_path / "data", digits(), packed)
    assert_same(mnist(tmp_path / "data"), digits())
    assert_same(mnist(str(tmp_path / "data")), digits())


@pytest.mark.parametrize("inside", ["", "mnist"])
def test_the_environment_names_a_folder(tmp_path, monkeypatch, inside):
    write(tmp_path / "data" / inside, digits())
    monkeypatch.setenv("HCNET_DATA", str(tmp_path / "data"))
    assert_same(mnist(), digits())
    write(tmp_path / "other", digits(seed=1))
    assert_same(mnist(tmp_path / "other"), digits(seed=1))  # what is passed goes first


@pytest.mark.parametrize("download", [True, False])
def test_without_copy_and_network_a_sentence_says_where_files_go(download):
    with pytest.raises(FileNotFoundError) as error:
        mnist(download=download)
    text = str(error.value)
    assert str(cache_folder("mnist")) in text
    assert "HCNET_DATA" in text
    assert all(f"{name}.gz" in text for name in NAMES)
    assert ("download=False" in text) == (not download)
    assert not cache_folder("mnist").exists()


def spoil(change, name=NAMES[0]):
    """A folder in which the content of one file was changed."""

    def spoiled(folder):
        write(folder, digits(), packed=False)
        path = folder / name
        content = change(path.read_bytes())
        if content[:2] == b"\x1f\x8b":
            path.unlink()
            path = folder / f"{name}.gz"
        path.write_bytes(content)
        return folder

    return spoiled


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        (spoil(lambda b: b[:-1]), r"30 × 6 × 5 bytes, but 899 follow its header; .*fetch it again"),
        (spoil(lambda b: b + b"\0"), r"30 × 6 × 5 bytes, but more than 900 follow"),
        (spoil(lambda b: b[:9]), r"but 0 follow"),
        (spoil(lambda b: b""), r"begin with the bytes 00 00 08 03.* it begins with nothing"),
        (spoil(lambda b: b"\x89PNG" + b), r"it begins with 89 50 4e 47"),
        (spoil(lambda b: bytes([0, 0, 13, 3]) + b[4:]), r"it begins with 00 00 0d 03"),
        (spoil(lambda b: idx(np.zeros(30))), r"with 3 axes, but .* 01; check that images and lab"),
        (spoil(lambda b: gzip.compress(b)[:-20]), r"cannot be unpacked \(.*\); it is damaged"),
        (spoil(lambda b: b"\x1f\x8b" + b), r"cannot be unpacked"),
        (spoil(lambda b: idx(np.zeros(7)), NAMES[1]), r"holds 30 images, but .* holds 7 labels"),
    ],
)
def test_damaged_files_are_told_apart(tmp_path, spoiled, message):
    with pytest.raises(ValueError, match=message):
        mnist(spoiled(tmp_path / "data"))


def test_first_and_beyond_share_no_digit_and_leave_none_out(tmp_path):
    images, labels, *_ = digits()
    write(tmp_path, digits())
    data = mnist(tmp_path)
    for k in (1, 4, 10):
        few, others = data.first(k), data.beyond(k)
        assert np.bincount(few.labels).tolist() == [k] * 3
        assert len(few.images) + len(others.images) == 30
        for label in range(3):
            own = images[labels == label]
            np.testing.assert_array_equal(few.images[few.labels == label], own[:k])
            np.testing.assert_array_equal(others.images[others.labels == label], own[k:])
    some = data.beyond(4, 5)
    np.testing.assert_array_equal(some.images, data.beyond(4).images[:5])
    np.testing.assert_array_equal(some.labels, data.beyond(4).labels[:5])


def test_more_digits_than_there_are_is_an_error(tmp_path):
    write(tmp_path, digits())
    data = mnist(tmp_path)
    with pytest.raises(ValueError, match=r"per_class must be at most 10, .* class 0, got 11"):
        data.first(11)
    with pytest.raises(ValueError, match=r"per_class must be a whole number of at least 1"):
        data.beyond(0)
    with pytest.raises(ValueError, match=r"n_images must be at most 18, .* got 19"):
        data.beyond(4, 19)
    with pytest.raises(ValueError, match=r"download must be True or False"):
        mnist(download="yes")


@pytest.fixture
def mirrors(tmp_path):
    """Two servers: at the first, files hold something else."""
    write(tmp_path / "wrong", digits(seed=1))
    write(tmp_path / "right", digits())
    servers = []
    for folder in ("wrong", "right"):
        handler = functools.partial(Quiet, directory=str(tmp_path / folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
    yield [f"http://127.0.0.1:{server.server_port}/" for server in servers]
    for server in servers:
        server.shutdown()
        server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


NAME = f"{NAMES[0]}.gz"
DIGEST = hashlib.sha256(idx(digits()[0])).hexdigest()


def test_a_download_comes_from_the_first_mirror_that_has_the_right_file(tmp_path, mirrors):
    folder = tmp_path / "new" / "folder"
    path = fetch(NAME, DIGEST, mirrors, folder, most=10_000)
    assert path == folder / NAME
    assert hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest() == DIGEST
    assert list(folder.iterdir()) == [path]


def test_a_wrong_download_is_not_kept(tmp_path, mirrors):
    with pytest.raises(OSError, match=r"sent something else .*127\.0\.0\.1.*404"):
        fetch(NAME, DIGEST, [mirrors[0], mirrors[1] + "nothing/"], tmp_path / "new", most=10_000)
    with pytest.raises(OSError, match=r"sent something else"):
        fetch(NAME, DIGEST, mirrors[1:], tmp_path / "new", most=100)
    assert not (tmp_path / "new").exists()
