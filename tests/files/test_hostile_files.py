"""Files that somebody made to do harm: each ends in a sentence, in little memory."""

import io
import json
import pickle
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from handmade import (
    HEADER,
    SUMS,
    change,
    forge,
    known_network,
    known_parts,
    members,
    put,
    replace_array,
)

import hcnet
from hcnet import FeatureLearner
from hcnet.archive import files
from hcnet.datasets import shapes

PARTS = "model-features"


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """The bytes of a file of each kind."""
    stream = FeatureLearner(3, 4, random_state=0)
    stream.partial_fit(np.random.default_rng(0).random((4, 9, 9)) < 0.3, batch_size=2)
    network = known_network(shapes(feature_size=9, n_images=2, random_state=0))
    models = {"parts": known_parts(p01=0.01), "network": network, "stream": stream}
    folder = tmp_path_factory.mktemp("models")
    return {kind: model.save(folder / kind).read_bytes() for kind, model in models.items()}


def refused(path, message="not a model file of hcnet, or is damaged"):
    """What `load` says about a file; it must not take much memory to find out."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message) as caught:
            hcnet.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 * 2**20 + 20 * path.stat().st_size
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 500 + len(str(path))
    return sentence


def put_in(*keys, value):
    """Another value in the header."""
    return lambda path: change(path, put(*keys, value=value))


def update(*keys, **values):
    """Other values in the contents."""

    def edit(about):
        for key in ("contents", *keys):
            about = about[key]
        about.update(values)

    return lambda path: change(path, edit)


def put_array(name, array):
    return lambda path: replace_array(path, f"stream-{name}", array)


def other_number(text):
    """Another number in the header, or what is none."""
    return lambda path: with_header(path, members(path)[HEADER].replace(b"0.01", text, 1))


def with_header(path, text):
    return forge(path, members(path) | {HEADER: text})


def packed(path, name, data):
    forge(path, members(path) | {name: data}, True, zipfile.ZIP_DEFLATED)


def many_small_values(path):
    about = json.loads(members(path)[HEADER]) | {"x": [[]] * 250_000}
    with_header(path, json.dumps(about, separators=(",", ":")).encode())


def twice(path):
    kept = members(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forge(path, [*kept.items(), (f"{PARTS}.npy", kept[f"{PARTS}.npy"])])


def directory(path, entry, at, value):
    """Other bytes in an entry of the directory of the archive."""
    content = bytearray(path.read_bytes())
    begin = 0
    for _ in range(entry + 1):
        begin = content.index(b"PK\x01\x02", begin + 4)
    content[begin + at : begin + at + len(value)] = value
    path.write_bytes(content)


def evil_name(name):
    def damage(path):
        kept = members(path)
        about = json.loads(kept[HEADER])
        about["arrays"][name] = about["arrays"].pop(PARTS)
        kept = {key if key != f"{PARTS}.npy" else f"{name}.npy": data for key, data in kept.items()}
        forge(path, kept | {HEADER: json.dumps(about).encode()})

    return damage


def pickled(path):
    class Harm:
        def __reduce__(self):
            return print, ("harm was done",)

    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([Harm()], object), allow_pickle=True)
    forge(path, members(path) | {f"{PARTS}.npy": buffer.getvalue()})


def extra_fields(path):
    """As many empty ones as a member can have, each of which took as long as all of them."""
    kept = members(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in kept.items():
            info = zipfile.ZipInfo(name)
            info.extra = b"\x99\x99\0\0" * (2**16 // 4 - 1)
            archive.writestr(info, data)


HARM = {
    "extra fields": extra_fields,
    "a zip bomb": lambda path: packed(path, f"{PARTS}.npy", bytes(2**27)),
    "a packed header": lambda path: packed(path, HEADER, members(path)[HEADER] + b" " * 2**26),
    "lists in lists": lambda path: with_header(path, b"[" * 900_000),
    "a header of small things": many_small_values,
    "the same name twice": twice,
    # The second member lies where the first does.
    "members that overlap": lambda path: directory(path, 1, 42, bytes(4)),
    "an encrypted member": lambda path: directory(path, 0, 8, b"\x01"),
    "a name that leads upwards": evil_name("../../../../tmp/evil"),
    "an absolute name": evil_name("/tmp/evil"),
    "a pickle in place of an array": pickled,
    "a pickle in place of a file": lambda path: path.write_bytes(pickle.dumps(print)),
    "nothing": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello"),
    "only an end": lambda path: path.write_bytes(path.read_bytes()[-22:]),
    "no end": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "no header": lambda path: forge(path, [*members(path).items()][1:]),
    "no checksums": lambda path: forge(path, [*members(path).items()][:-1], repair=False),
    "other checksums": lambda path: forge(path, members(path) | {SUMS: b"x" * 90}, repair=False),
    "a member too many": lambda path: forge(path, members(path) | {"more.npy": b"x"}),
    "a header that is a list": lambda path: with_header(path, b"[]"),
    "a header that is no text": lambda path: with_header(path, b"\xff\xfe\xfd"),
    "a header with NaN": other_number(b"NaN"),
    "a header with infinity": other_number(b"1e999"),
    "a number of many digits": other_number(b"1" * 100_000),
    "a huge array": put_in("arrays", PARTS, value=["|u1", [2**46]]),
    "an array of huge sides": put_in("arrays", PARTS, value=["|u1", [2**40, 2**40, 2**40]]),
    "an array of many sides": put_in("arrays", PARTS, value=["|u1", [1] * 10_000]),
    "an array of negative size": put_in("arrays", PARTS, value=["|u1", [-3]]),
    "an array of objects": put_in("arrays", PARTS, value=["|O", [3]]),
    "an array of records": put_in("arrays", PARTS, value=[[["x", "<i4"]], [3]]),
    "an array of floats": lambda path: replace_array(path, PARTS, np.ones(3)),
    "an array too short": lambda path: replace_array(path, PARTS, np.ones(2, np.uint8)),
    "huge features": put_in("contents", "model", "features", value=[2**40, 2**40, 3, 3]),
    "features larger than images": put_in("contents", "model", "image_size", value=[2, 2]),
    "noise of one half": put_in("contents", "model", "priors", "p01", value=0.5),
    "too few part names": put_in("contents", "model", "part_names", value=["a"]),
    "too many part names": put_in("contents", "model", "part_names", value=["a"] * 100_000),
    "part names in rows": put_in("contents", "model", "part_names", value=[["a"]] * 3),
    "a part name of two lines": put_in("contents", "model", "part_names", value=["a\nb", "", ""]),
    "a part name without end": put_in("contents", "model", "part_names", value=["a" * 999, "", ""]),
    "an unknown estimator": put_in("kind", value="os.system"),
}
NETWORKS = {
    "format is a list": put_in("format", value=[]),
    "no layers": update("model", levels=[], channels=4),
    "too few categories": update("model", categories=[0, 0, 1]),
    "too few names": update("model", classes=["a"]),
    "too many names": update("model", classes=["a", "b", "c"]),
    "the same name twice": update("model", classes=["a", "a"]),
    "names in rows": update("model", classes=[["a"], ["b"]]),
    "a class without templates": update("model", categories=[0, 0, 2, 2], classes=["a", "b", "c"]),
    "a class of too large a number": update("model", categories=[0, 0, 1, 2**40]),
    "p_on is two": update("model", p_on=2),
    "small image": update("model", image_size=[5, 5]),
    "huge image": update("model", image_size=[2**19, 2**19]),
    "more features": update("model", "levels", 0, weights=[5, 1, 9, 9]),
    "no features": update("model", "levels", 0, weights=[0, 1, 9, 9]),
    "features too large": update("model", "levels", 0, weights=[4, 1, 20, 20]),
    "features without size": update("model", "levels", 0, weights=[4, 1, 0, 9]),
    "no parameters": put_in("contents", "parameters", value=None),
    "a strange parameter": update("parameters", color="red"),
    "unknown inference": update("parameters", inference="guess"),
    "a strange way": update("parameters", inference={"name": "passing", "speed": 2}),
    "layers without end": update("parameters", layers=[]),
    "layers of numbers": update("parameters", layers=[1, 2]),
    "a layer of its own": update("parameters", layers=[{"height": 3}]),
    "a strange story": put_in("contents", "training", value={"weather": 3}),
}
STREAMS = {
    "huge features": put_in("contents", "stream", "shape", "n_features", value=2**40),
    "less than no images": put_in("contents", "stream", "n_images", value=-1),
    "half a minibatch": put_in("contents", "stream", "n_batches", value=1.5),
    "unknown border": put_in("contents", "stream", "shape", "border", value="round"),
    "infinite positions": put_in("contents", "stream", "tally", "positions", value=1e300),
    "impossible priors": put_in("contents", "stream", "open_priors", "p_S", value=2.0),
    "another generator": put_in("contents", "stream", "rng", value={"bit_generator": "other"}),
    "half a generator": put_in("contents", "stream", "rng", "state", value=5),
    "no stream": put_in("contents", "stream", value="not a stream"),
    "no last images": put_array("recent-sizes", np.zeros((0, 2), np.int64)),
    "images without size": put_array("recent-sizes", np.zeros((4, 2), np.int64)),
    "images of huge size": put_array("recent-sizes", np.full((4, 2), 2**20)),
    "beliefs that are none": put_array("beliefs-now-0", np.full((1, 3, 4, 4), np.nan, np.float32)),
}
ALL = {"parts": HARM, "network": NETWORKS, "stream": STREAMS}


@pytest.mark.parametrize(("kind", "harm"), [(kind, harm) for kind in ALL for harm in ALL[kind]])
def test_harm_ends_in_a_sentence(kind, harm, originals, tmp_path, capsys):
    path = tmp_path / "model.hcn"
    path.write_bytes(originals[kind])
    ALL[kind][harm](path)
    refused(path, "is a file of 'os.system'" if harm == "an unknown estimator" else "damaged")
    assert "harm was done" not in capsys.readouterr().out


def test_memory_stays_within_what_is_promised(tmp_path):
    """Eight bits of a file become eight booleans, once."""
    learner = known_parts((400, 2, 100, 100))
    path = learner.save(tmp_path / "parts.hcn")
    tracemalloc.start()
    loaded = hcnet.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(loaded.features_, learner.features_)
    assert peak < 10 * path.stat().st_size + 5 * 2**20


def test_headers_of_arrays_are_those_of_numpy(tmp_path):
    for array in (np.arange(3), np.zeros((2, 0), np.float32), np.float64(3.5)):
        array = files.plain_array(np.asarray(array))
        data = files.array_header(array.dtype.str, array.shape) + array.tobytes()
        assert len(files.array_header(array.dtype.str, array.shape)) % 64 == 0
        read = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        np.testing.assert_array_equal(read, array)
        assert (read.dtype, read.shape) == (array.dtype, array.shape)
