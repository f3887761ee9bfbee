"""Thousands of mutated model files and dictionaries: refused with a sentence, or usable.

As a program: ``python test_fuzzing.py COUNT SEED FOLDER files`` mutates the files of a folder so
often, loads and uses what comes out within limits of memory and time, and prints what happened as
JSON; with ``dictionaries`` it does so with what `to_dict` makes of the models.
"""

import json
import math
import sys
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from handmade import HEADER, SUMS, forge, members, npy
from mutating import bytes_of, hunt, pick, run_hunt

import hcnet
from hcnet import HCN, BooleanMatrixFactorization, FeatureLearner, Layer, TemplateClassifier
from hcnet.datasets import shapes
from hcnet.export import from_dict, to_dict
from hcnet.memory import NotEnoughMemoryError

# What docs/files.md promises: bytes, and bytes per byte of the file.
PROMISED, PROMISED_EACH = 64 * 2**20, 20
# Pixels and elements up to which a model is used, not only loaded.
SMALL = 200_000

WORDS = (
    None, True, False, 0, 1, 2, 3, 7, -1, -(2**63), 255, 2**16, 2**20, 2**31, 2**31 - 1, 2**32,
    2**48, 2**63, 2**64, 10**30, 0.5, 0.49999999, 1.0, -0.5, 1e-320, 1e-300, 1e308, "", "x", "0",
    "full", "valid", "same", "passing", "forward", "x" * 5000, "\0", "../../x", [], {}, [0], [[]],
    [1, 1], [2**40, 2**40], {"a": 1}, [None, None], [1, 2, 3, 4],
)  # fmt: skip
RAW = (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" * 5000, b"[" * 100_000,
       b'{"a":' * 50_000, b'"\\ud800"', b"\xff", b"0.1e-99999", b"true", b"9" * 30)  # fmt: skip
DTYPES = ("|u1", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8", "|O", "|b1", ">f8", "<c16", "|V9")
NAMES = ("../../evil", "/etc/passwd", "C:\\evil", "x\0y", "ü", HEADER, SUMS, "a" * 3000, "", "..",
         "model-features.npy", "header.json/", "__pickle__")  # fmt: skip


def nodes(value, path=()):
    """Paths to everything in a tree of values."""
    yield path
    items = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else items:
        yield from nodes(each, (*path, key))


def at(value, path):
    """What is at the end of a path."""
    for key in path:
        value = value[key] if isinstance(value, dict | list) else value
    return value


def header_of(rng, text):
    """Mutate values of a header."""
    about = json.loads(text)
    for _ in range(int(rng.integers(1, 3))):
        paths = [path for path in nodes(about) if path]
        *above, key = pick(rng, paths)
        holder, kind = at(about, above), int(rng.integers(6))
        old = holder[key]
        if kind <= 1:
            holder[key] = pick(rng, WORDS)
        elif kind == 2 and isinstance(old, int | float) and not isinstance(old, bool):
            holder[key] = pick(rng, [old + 1, old - 1, old * 2, -old, old / 2, old * 1000])
        elif kind == 3:
            del holder[key]
            if not about:
                break
        elif kind == 4 and isinstance(holder, dict):
            holder[f"{key}x"] = old
        elif kind == 5 and isinstance(old, list):
            holder[key] = pick(rng, [old + old, old[:-1]])
        else:
            holder[key] = json.loads(json.dumps(at(about, pick(rng, paths))))
    text = json.dumps(about).encode()
    if rng.random() < 0.1:  # what no writer of JSON writes
        begin = text.find(b":", int(rng.integers(len(text)))) + 1
        ends = [text.find(mark, begin) for mark in (b",", b"}")]
        end = min((end for end in ends if end > 0), default=begin)
        text = text[:begin] + pick(rng, RAW) + text[end:]
    return text


def array_of(rng, kept):
    """Mutate an array; half of the time the header says what became of it."""
    names = [name for name in kept if name.endswith(".npy")]
    if not names:
        return kept
    name = pick(rng, names)
    data = kept[name]
    start = 10 + int.from_bytes(data[8:10], "little")
    about = json.loads(kept[HEADER])
    entry = about["arrays"].get(name.removesuffix(".npy"))
    body = bytearray(data[start:])
    kind = int(rng.integers(5))
    if kind == 0 and body:
        for _ in range(int(rng.integers(1, 9))):
            body[int(rng.integers(len(body)))] = int(rng.integers(256))
    elif kind == 1 and entry and entry[0] in ("<f4", "<f8") and body:
        values = np.frombuffer(bytes(body), entry[0]).copy()
        odd = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -1.0, 1e-38, 3e38]
        values[int(rng.integers(len(values)))] = pick(rng, odd)
        body = values.tobytes()
    elif kind == 2:
        body = rng.bytes(int(rng.integers(0, 3 * len(body) + 9)))
    elif kind == 3:
        return kept | {name: bytes_of(rng, data)}
    if not entry or rng.random() < 0.3:
        return kept | {name: data[:start] + bytes(body)}
    if rng.random() < 0.3:
        entry[0] = pick(rng, DTYPES)
    if rng.random() < 0.7:
        n = len(body) // (int(entry[0][2:]) if entry[0][2:].isdigit() else 8)
        shapes = ([n], [n, 1], [1, n], [-1], [n, 0], [2**40, 2**40], [1] * 40, [])
        entry[1] = list(pick(rng, shapes))
    text = json.dumps(about).encode()
    return kept | {HEADER: text, name: npy(entry[0], entry[1], bytes(body))}


def members_of(rng, kept):
    """Mutate the list of members."""
    pairs = list(kept.items())
    kind, k, other = int(rng.integers(6)), *(int(n) for n in rng.integers(len(pairs), size=2))
    if kind == 0:
        pairs.insert(other, pairs[k])
    elif kind == 1:
        del pairs[k]
    elif kind == 2:
        pairs[k] = (pick(rng, NAMES), pairs[k][1])
    elif kind == 3:
        pairs.append((pick(rng, NAMES), rng.bytes(20)))
    elif kind == 4:
        pairs[k], pairs[other] = pairs[other], pairs[k]
    else:
        pairs[k] = (pairs[k][0], bytes(int(rng.integers(2**20))))
    return pairs


def mutant(rng, path, source, others):
    """Write a mutated file; how it was made."""
    kind = ("bytes", "header", "array", "members", "packed", "spliced")[
        int(rng.choice(6, p=[0.3, 0.35, 0.2, 0.08, 0.02, 0.05]))
    ]
    repair = bool(rng.random() < 0.85)
    if kind == "bytes":
        path.write_bytes(bytes_of(rng, source.read_bytes()))
        return kind
    kept = members(source)
    if kind == "header":
        kept[HEADER] = header_of(rng, kept[HEADER])
    elif kind == "array":
        kept = array_of(rng, kept)
    elif kind == "spliced":
        other = members(pick(rng, others))
        kept |= {name: data for name, data in other.items() if rng.random() < 0.5}
    elif kind == "members":
        kept = members_of(rng, kept)
    compression = zipfile.ZIP_DEFLATED if kind == "packed" else zipfile.ZIP_STORED
    if kind == "packed" and rng.random() < 0.5:
        kept = kept | {"model-features.npy": bytes(20 * 2**20)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile does not like the same name twice
        forge(path, kept, repair, compression)
    if rng.random() < 0.1:  # the checksums fit, the archive itself does not
        path.write_bytes(bytes_of(rng, path.read_bytes()))
    return kind + (", checksums fit" if repair else "")


def use(found):
    """Do something with what was loaded; False if it is too large for a test."""
    if isinstance(found, HCN | TemplateClassifier):
        network = found._model.network
        elements = network.n_channels * int(np.prod(network.image_size)) + sum(
            level.features.n_features * level.features.n_positions
            + level.pool.n_channels * level.pool.n_members * int(np.prod(level.pool.size))
            for level in network.levels
        )
        shape, size = (2, network.n_channels, *network.image_size), 10 * elements
        methods = ("predict", "placements")
    elif isinstance(found, FeatureLearner):
        _, channels, h, w = found.features_.shape
        shape, size = (1, channels, h + 2, w + 2), 20 * max(found.features_.size, channels * h * w)
        methods = ("transform", "denoise", "score")
    else:
        shape, size = (3, found.components_.shape[1]), found.components_.size
        methods = ("transform",)
    if size > SMALL:
        return False
    X = np.zeros(shape)
    X[0, ..., ::2] = 1
    for method in methods:
        getattr(found, method)(X)
    if hasattr(found, "sample"):
        found.sample(2, random_state=0)
    stream = found._stream
    if isinstance(found, FeatureLearner) and stream is not None:
        images = sum(one.images.pixels.size for one in stream.recent)
        if 20 * stream.beliefs.initial[0].size < SMALL and images < 2000:
            found.refine()
    return True


def check(path):
    """Load a file and use what comes out: a word for what happened."""
    try:
        found = hcnet.load(path)
    except ValueError as error:
        message = str(error)
        if isinstance(error.__cause__, MemoryError):
            return "MEMORY"
        one = message.startswith(str(path)) and message.endswith(".") and "\n" not in message
        return "refused" if one and len(message) < 600 + len(str(path)) else f"SENTENCE {message!r}"
    return try_to_use(found)


def try_to_use(found):
    """Do something with an estimator: a word for what happened."""
    try:
        return "used" if use(found) else "loaded, too large to be used here"
    except (ValueError, NotEnoughMemoryError) as error:  # what parameters forbid is explained
        return "used" if str(error).endswith(".") else f"VALUE {error!r}"


def fuzz(folder, count, seed):
    """Mutate files so many times; what happened."""
    sources = sorted(folder.glob("*.hcn"))
    for source in sources:
        assert check(source) == "used", source  # everything is compiled before memory is limited
    path = folder / "mutants" / "mutant.hcn"

    def make(rng):
        return mutant(rng, path, pick(rng, sources), sources), path

    return hunt(count, seed, make, check, lambda: PROMISED + PROMISED_EACH * path.stat().st_size)


def strange(rng):
    """Something that no dictionary of a model holds."""
    deep = []
    for _ in range(int(rng.integers(15, 6000))):
        deep = [deep] if rng.random() < 0.7 else {"a": deep}
    ring = []
    ring += [ring] * int(rng.integers(1, 1000))
    odd = (math.inf, -math.inf, math.nan, 10**5000, "x" * 100_000, "#" * 100_000, ["#"] * 10_000,
           b"x", {1: 2}, {None: []}, (1, 2), np.zeros(3), np.float32(1), object(), {1, 2}, range(3),
           "\ud800", list(range(20_000)))  # fmt: skip
    return pick(rng, [deep, ring, *odd])


def dictionary_of(rng, text):
    """Mutate a dictionary of `to_dict`; None if no dictionary comes out."""
    about = json.loads(text)
    arrays = about.pop("arrays") if rng.random() < 0.5 else None  # which are most of it
    try:
        about = json.loads(header_of(rng, json.dumps(about)))
    except (ValueError, RecursionError):  # what is no JSON, or nested too deep for Python
        return None
    if arrays is not None and isinstance(about, dict):
        about["arrays"] = arrays
    if rng.random() < 0.3:
        *above, key = pick(rng, [path for path in nodes(about) if path])
        at(about, above)[key] = strange(rng)
    return about


def check_dictionary(about):
    """Make an estimator of a dictionary and use it: a word for what happened."""
    try:
        found = from_dict(about)
    except ValueError as error:
        message = str(error)
        one = message.endswith(".") and "\n" not in message and len(message) < 600
        return "refused" if one else f"SENTENCE {message[:600]!r}"
    return try_to_use(found)


def fuzz_dictionaries(folder, count, seed):
    """Mutate dictionaries so many times; what happened."""
    texts = [json.dumps(to_dict(hcnet.load(path))) for path in sorted(folder.glob("*.hcn"))]
    for text in texts:
        assert check_dictionary(json.loads(text)) == "used"

    def make(rng):
        while (about := dictionary_of(rng, pick(rng, texts))) is None:
            pass
        return "dictionary", about

    return hunt(count, seed, make, check_dictionary)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A file of every kind."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "mutants").mkdir()
    image = np.kron(np.eye(4), np.ones((3, 3)))
    FeatureLearner(feature_size=3, n_init=1, random_state=0).fit(image).save(folder / "parts.hcn")
    bars = np.pad(np.ones((1, 5, 3)), ((0, 0), (2, 2), (1, 2)))
    soft = FeatureLearner(algorithm="soft", random_state=0).fit(np.tile(bars, (1, 2, 6)))
    soft.save(folder / "soft.hcn")
    rng = np.random.default_rng(0)
    table = (rng.random((30, 2)) < 0.5) @ (rng.random((2, 12)) < 0.4)
    BooleanMatrixFactorization(2, n_init=1).fit(table).save(folder / "table.hcn")
    data = shapes(feature_size=7, jitter=1, n_images=8, random_state=0)
    stream = FeatureLearner(3, 4, random_state=0).partial_fit(data.images[:4], batch_size=2)
    stream.save(folder / "parts-stream.hcn")
    layers = [Layer(3, size=4, perturbation=0.2), Layer(pool_border="same")]
    network = HCN(layers, 2, random_state=0, max_iter=1)
    network.partial_fit(data.images, data.labels, batch_size=4).save(folder / "network-stream.hcn")
    several = HCN(layers, 2, random_state=0)
    several.set_weights(network.weights_, data.images.shape[-2:], ["a", "b"])
    several.save(folder / "network.hcn")
    several.with_class_layer(p_on=0.01).save(folder / "several.hcn")
    templates = TemplateClassifier(3, 4, 1, random_state=0).fit(data.images, data.labels)
    templates.save(folder / "templates.hcn")
    return folder


def run(folder, count, seed, what="files"):
    """Mutate files or dictionaries in a process of its own; what happened."""
    return run_hunt(__file__, count, seed, folder, what)


def test_mutated_files_are_refused_or_usable(models):
    told = run(models, 1000, 0)
    assert told["refused"] > 300
    assert told["used"] > 50  # otherwise only the checksums were tested


def test_mutated_dictionaries_are_refused_or_usable(models):
    told = run(models, 300, 0, "dictionaries")
    assert told["refused"] > 100
    assert told["used"] > 10


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_100_000_mutated_files_are_refused_or_usable(models):
    told = sum((run(models, 10_000, seed) for seed in range(1, 11)), Counter())
    print(dict(told))
    assert sum(told.values()) == 100_000


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_10_000_mutated_dictionaries_are_refused_or_usable(models):
    told = run(models, 10_000, 1, "dictionaries")
    print(dict(told))
    assert sum(told.values()) == 10_000


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    seeds = int(sys.argv[1]), int(sys.argv[2])
    hunters = {"files": fuzz, "dictionaries": fuzz_dictionaries}
    print(json.dumps(hunters[sys.argv[4]](Path(sys.argv[3]), *seeds)))
