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


@pytest.fixture
def path(tmp_path):
    return known_parts(p01=0.01).save(tmp_path / "parts.hcn")


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The bytes of a file."""
    model = known_network(shapes(feature_size=9, n_images=2, random_state=0))
    return model.save(tmp_path_factory.mktemp("network") / "shapes.hcn").read_bytes()


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """The bytes of another."""
    learner = FeatureLearner(3, 4, random_state=0)
    learner.partial_fit(np.random.default_rng(0).random((4, 9, 9)) < 0.3, batch_size=2)
    return learner.save(tmp_path_factory.mktemp("stream") / "stream.hcn").read_bytes()


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


def listed_as(about):
    """The header lists another type and shape of an array."""
    return lambda path: change(path, put("arrays", PARTS, value=about))


def put_model(*keys, value):
    """Another value of the model."""
    return lambda path: change(path, put("contents", "model", *keys, value=value))


def other_number(text):
    """Another number in the header, or what is none."""
    return lambda path: with_header(path, members(path)[HEADER].replace(b"0.01", text, 1))


def with_header(path, text):
    return forge(path, members(path) | {HEADER: text})


def zip_bomb(path):
    forge(path, members(path) | {f"{PARTS}.npy": bytes(2**27)}, True, zipfile.ZIP_DEFLATED)


def packed_header(path):
    text = members(path)[HEADER] + b" " * 2**26
    forge(path, members(path) | {HEADER: text}, True, zipfile.ZIP_DEFLATED)


def many_small_values(path):
    about = json.loads(members(path)[HEADER]) | {"x": [[]] * 250_000}
    with_header(path, json.dumps(about, separators=(",", ":")).encode())


def twice(path):
    kept = members(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forge(path, [*kept.items(), (f"{PARTS}.npy", kept[f"{PARTS}.npy"])])


def overlapping(path):
    """One member under two names: both lie at the same place of the file."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        first = archive.infolist()[0]
    at = content.find(b"PK\x01\x02")
    at = content.find(b"PK\x01\x02", at + 4)
    content[at + 42 : at + 46] = first.header_offset.to_bytes(4, "little")
    path.write_bytes(content)


def encrypted(path):
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\x01\x02") + 8] |= 1
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


HARM = {
    "a zip bomb": zip_bomb,
    "a packed header": packed_header,
    "lists in lists": lambda path: with_header(path, b"[" * 900_000),
    "a header of small things": many_small_values,
    "the same name twice": twice,
    "members that overlap": overlapping,
    "an encrypted member": encrypted,
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
    "a huge array": listed_as(["|u1", [2**46]]),
    "an array of huge sides": listed_as(["|u1", [2**40, 2**40, 2**40]]),
    "an array of many sides": listed_as(["|u1", [1] * 10_000]),
    "an array of negative size": listed_as(["|u1", [-3]]),
    "an array of objects": listed_as(["|O", [3]]),
    "an array of records": listed_as([[["x", "<i4"]], [3]]),
    "an array of floats": lambda path: replace_array(path, PARTS, np.ones(3)),
    "an array too short": lambda path: replace_array(path, PARTS, np.ones(2, np.uint8)),
    "huge features": put_model("features", value=[2**40, 2**40, 3, 3]),
    "features larger than images": put_model("image_size", value=[2, 2]),
    "noise of one half": put_model("priors", "p01", value=0.5),
    "an unknown estimator": lambda path: change(path, put("kind", value="os.system")),
}


@pytest.mark.parametrize("harm", HARM)
def test_harm_ends_in_a_sentence(harm, path, capsys):
    HARM[harm](path)
    message = "is a file of 'os.system'" if harm == "an unknown estimator" else "damaged"
    refused(path, message)
    assert "harm was done" not in capsys.readouterr().out


def model(**values):
    """Other values of the model of a network."""
    return lambda about: about["contents"]["model"].update(values)


def level(k, **values):
    return lambda about: about["contents"]["model"]["levels"][k].update(values)


def parameter(**values):
    return lambda about: about["contents"]["parameters"].update(values)


DAMAGE = {
    "format is a list": put("format", value=[]),
    "no layers": model(levels=[], channels=4),
    "too few categories": model(categories=[0, 0, 1]),
    "too few names": model(classes=["a"]),
    "too many names": model(classes=["a", "b", "c"]),
    "the same name twice": model(classes=["a", "a"]),
    "names in rows": model(classes=[["a"], ["b"]]),
    "a class without templates": model(categories=[0, 0, 2, 2], classes=["a", "b", "c"]),
    "a class of too large a number": model(categories=[0, 0, 1, 2**40]),
    "p_on is two": model(p_on=2),
    "small image": model(image_size=[5, 5]),
    "huge image": model(image_size=[2**19, 2**19]),
    "more features": level(0, weights=[5, 1, 9, 9]),
    "no features": level(0, weights=[0, 1, 9, 9]),
    "features too large": level(0, weights=[4, 1, 20, 20]),
    "features without size": level(0, weights=[4, 1, 0, 9]),
    "no parameters": put("contents", "parameters", value=None),
    "a strange parameter": parameter(color="red"),
    "unknown inference": parameter(inference="guess"),
    "a strange way": parameter(inference={"name": "passing", "speed": 2}),
    "layers without end": parameter(layers=[]),
    "layers of numbers": parameter(layers=[1, 2]),
    "a layer of its own": parameter(layers=[{"height": 3}]),
    "a strange story": put("contents", "training", value={"weather": 3}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_network_that_makes_no_sense_ends_in_a_sentence(damage, network, tmp_path):
    path = tmp_path / "shapes.hcn"
    path.write_bytes(network)
    refused(change(path, DAMAGE[damage]))


STREAM_ARRAYS = {
    "no last images": ("recent-sizes", np.zeros((0, 2), np.int64)),
    "images without size": ("recent-sizes", np.zeros((4, 2), np.int64)),
    "images of huge size": ("recent-sizes", np.full((4, 2), 2**20)),
    "beliefs that are none": ("beliefs-now-0", np.full((1, 3, 4, 4), np.nan, np.float32)),
}
STREAM_VALUES = {
    "huge features": (("shape", "n_features"), 2**40),
    "less than no images": (("n_images",), -1),
    "half a minibatch": (("n_batches",), 1.5),
    "unknown border": (("shape", "border"), "round"),
    "infinite positions": (("tally", "positions"), 1e300),
    "impossible priors": (("open_priors", "p_S"), 2.0),
    "another generator": (("rng",), {"bit_generator": "other"}),
    "half a generator": (("rng", "state"), 5),
    "no stream": ((), "not a stream"),
}


@pytest.mark.parametrize("harm", [*STREAM_ARRAYS, *STREAM_VALUES])
def test_hostile_streams_end_in_a_sentence(harm, stream, tmp_path):
    path = tmp_path / "stream.hcn"
    path.write_bytes(stream)
    if harm in STREAM_ARRAYS:
        name, array = STREAM_ARRAYS[harm]
        replace_array(path, f"stream-{name}", array)
    else:
        keys, value = STREAM_VALUES[harm]
        change(path, put("contents", "stream", *keys, value=value))
    refused(path)


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
