"""Thousands of mutants of every other format that is read: read, or refused with a sentence.

As a program: ``python test_fuzzed_input.py COUNT SEED FOLDER SUFFIX…`` mutates samples of formats
so often, reads what comes out in every way within limits of memory and time, and prints what
happened as JSON.  Model files and dictionaries are in test_fuzzing.py, compressed pages in
codec/test_mutated_pages.py.
"""

import gzip
import io
import json
import struct
import sys
import warnings
import zipfile
import zlib
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hcnet.cli import make_parser, with_settings
from hcnet.commands.factoring import read_table
from hcnet.commands.using import _read_codes
from hcnet.datasets.mnist import read_idx
from hcnet.image_files import files_of_images, read_images, read_labels, stream_images
from hcnet.image_files.bilevel import read_pages
from hcnet.image_files.tiff import write_tiff
from hcnet.images import PageInfo, Resolution
from hcnet.reading import read_names
from tests.mutations import INTS, bytes_of, hunt, pick, run_hunt

# Larger images are refused here, so that thousands can be read.
MOST_PIXELS = 1_000_000
ON = np.random.default_rng(0).random((3, 19, 26)) < 0.3
GREY = np.random.default_rng(0).integers(0, 256, (19, 26, 3), np.uint8)
PICTURES = [Image.fromarray(page.astype(np.uint8) * 255) for page in ON]
BITS = [picture.convert("1") for picture in PICTURES]
COLOURS = Image.fromarray(GREY)
SEVERAL = {"save_all": True, "append_images": PICTURES[1:]}
EXIF = Image.Exif()
EXIF[274] = 6  # on its side


def saved(picture, kind, **how):
    file = io.BytesIO()
    picture.save(file, kind, **how)
    return file.getvalue()


def own_tiff():
    file = io.BytesIO()
    resolution = Resolution((300, 1), (300, 1), "inch")
    write_tiff(
        file, [(page, PageInfo("a", "näme", k > 0, False, resolution)) for k, page in enumerate(ON)]
    )
    return file.getvalue()


def arrays():
    for array in (ON, ON[0], ON[None], GREY, GREY.astype(">f4"), GREY.astype(np.float16),
                  np.asfortranarray(GREY[..., 0]), np.where(ON, np.nan, 0.5)):  # fmt: skip
        file = io.BytesIO()
        np.save(file, array)
        yield file.getvalue()


def archives():
    for save in (np.savez, np.savez_compressed):
        for names in (("X", "y"), ("images",), ("a",)):
            file = io.BytesIO()
            save(file, **{name: ON if name != "y" else np.arange(3) for name in names})
            yield file.getvalue()


CODES = {
    "image_size": [19, 26],
    "images": [{"file": "a.png", "page": 0}, {"file": "b.png", "page": 1}],
    "placements": [{"file": "a.png", "page": 0, "part": 0, "row": -2, "column": 3}],
}
IDX = struct.pack(">BBBBIII", 0, 0, 8, 3, *ON.shape) + ON.tobytes()
SAMPLES = {
    ".png": lambda: [
        *(saved(p, "PNG") for p in (PICTURES[0], BITS[0], COLOURS, COLOURS.convert("P"))),
        saved(Image.fromarray(GREY[..., 0].astype(np.uint16) * 200), "PNG"),
        saved(COLOURS.convert("LA"), "PNG"),
        saved(PICTURES[0], "PNG", exif=EXIF, dpi=(300, 300)),
        saved(PICTURES[0], "PNG", **SEVERAL),
    ],
    ".gif": lambda: [
        saved(PICTURES[0], "GIF"),
        saved(PICTURES[0], "GIF", **SEVERAL),
        saved(COLOURS, "GIF", transparency=3),
    ],
    ".tif": lambda: [
        own_tiff(),
        *(
            saved(BITS[0], "TIFF", compression=kind, dpi=(300, 300))
            for kind in (None, "group3", "group4", "tiff_ccitt", "packbits", "tiff_lzw")
        ),
        *(saved(COLOURS, "TIFF", compression=kind) for kind in ("tiff_adobe_deflate", "jpeg")),
        saved(PICTURES[0], "TIFF", compression="tiff_lzw", exif=EXIF, **SEVERAL),
        saved(Image.fromarray(GREY[..., 0].astype(np.float32)), "TIFF"),
        saved(Image.fromarray(GREY[..., 0].astype(np.uint16)), "TIFF"),
        saved(COLOURS.convert("P"), "TIFF"),
        saved(COLOURS.convert("CMYK"), "TIFF"),
    ],
    ".jpg": lambda: [
        saved(PICTURES[0], "JPEG"),
        saved(COLOURS, "JPEG", exif=EXIF, dpi=(300, 300), progressive=True),
        saved(COLOURS.convert("CMYK"), "JPEG"),
        saved(PICTURES[0], "MPO", **SEVERAL),
    ],
    ".webp": lambda: [
        saved(COLOURS, "WEBP", lossless=True),
        saved(COLOURS, "WEBP", exif=EXIF),
        saved(COLOURS, "WEBP", **SEVERAL),
        saved(COLOURS.convert("RGBA"), "WEBP"),
    ],
    ".bmp": lambda: [saved(p, "BMP") for p in (BITS[0], PICTURES[0], COLOURS)],
    ".pbm": lambda: [saved(BITS[0], "PPM"), b"P1\n# about\n3 2\n1 0 1\n0 1 0\n"],
    ".pgm": lambda: [
        saved(PICTURES[0], "PPM"),
        saved(COLOURS, "PPM"),
        saved(Image.fromarray(GREY[..., 0].astype(np.float32)), "PPM"),
        b"P2\n3 2\n255\n1 0 255\n0 128 0\n",
        b"P5\n3 2\n65535\n" + bytes(12),
    ],
    ".npy": lambda: list(arrays()),
    ".npz": lambda: list(archives()),
    ".labels": lambda: [
        b"file,label\na/1.png,cat\nb/1.png,dog\n2.png,-1\n",
        b"label,what,file\n1,,2.png\n2,x,a/1.png\n",
        '\ufefffile,label\n"a/1.png","ä, ""ö"""\n'.encode(),
        b"1\n2\n-1\n",
        b"cat\ndog\ncat\n",
    ],
    ".names": lambda: [b'part,name\n0,e\n1,"a "\n12,\n', "\ufeffpart;name\n3;ü\n".encode()],
    ".csv": lambda: [
        b'file,page,part,row,column\na.png,0,1,2,3\nb.png,1,0,-1,7\n"a,\n.png",0,0,0,0\n'
    ],
    ".table": lambda: [
        b"name,a,b,c\nx,1,0,\ny,0,1,1\n",
        b"\xef\xbb\xbfa;b\n0;yes\nNA;1\n",
        'q\t"ü"\n1\t0\n'.encode(),
    ],
    ".json": lambda: [json.dumps(CODES).encode()],
    ".toml": lambda: [
        b'templates_per_class = 2\nn_init = 1\nvote = true\nlabels = "shapes.npz"\n'
        b"p01 = 0.01\n[[layers]]\nn_features = 4\nsize = [21, 21]\n[[layers]]\n"
    ],
    ".idx": lambda: [IDX],
    ".gz": lambda: [gzip.compress(IDX, mtime=0)],
}
FILES = [Path("/x/a/1.png"), Path("/x/b/1.png"), Path("/x/b/2.png")]
PARSER = make_parser()[1]["learn"]
IMAGES = (
    read_images,
    files_of_images,
    lambda path: list(stream_images(path, ink="dark")),
    lambda path: read_images(path, mask=path, first=1),
)


def read_settings(path):
    words = ["images", "-o", "model", "--settings", str(path)]
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return PARSER.parse_args(with_settings(PARSER, words))
    except SystemExit:  # argparse knows no file
        _, _, error = said.getvalue().partition("\n")
        raise ValueError(f"{path}: {error.rstrip()}.") from None


READERS = {
    ".npy": (*IMAGES, lambda path: read_labels(path, FILES)),
    ".npz": (*IMAGES, lambda path: read_labels(path, FILES)),
    ".labels": (lambda path: read_labels(path, FILES),),
    ".names": (read_names,),
    ".csv": (_read_codes,),
    ".json": (_read_codes,),
    ".table": (read_table,),
    ".toml": (read_settings,),
    ".idx": (lambda path: read_idx(path, 3),),
    ".gz": (lambda path: read_idx(path, 3),),
}
TEXTS = (".labels", ".names", ".csv", ".table", ".json", ".toml", ".pbm", ".pgm")
WORDS = (
    b'"', b",", b"\n", b"\r", b"\r\n", b"\0", b"\xff", "\u2028".encode(), b"-1", b"9" * 5000, b"'",
    b"[" * 9000, b"nan", b"Infinity", b"1e999", b"a" * 200_000, b"true", b"null", b";",
    b"\xef\xbb\xbf", b"../" * 50, b"{", b"}", b"]", b"=", b"[[layers]]", b"0x1", b" ", b"/",
    b"file,label\n", b"1" * 300,
)  # fmt: skip


def words_of(rng, data):
    """Put words into a text."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data) + 1))
        data[at : at + int(rng.integers(0, 4))] = pick(rng, WORDS)
    return bytes(data)


def numbers_of(rng, data):
    """Put numbers of either byte order where formats have their sizes."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 3))):
        at, width = int(rng.integers(min(len(data), 400))), int(rng.choice([1, 2, 4]))
        order = pick(rng, ["little", "big"])
        data[at : at + width] = (pick(rng, INTS) % 256**width).to_bytes(width, order)
    return bytes(data)


def chunks_of(rng, data):
    """A PNG whose chunks are mutated, and have the right checksums."""
    found, at = [], 8
    while at + 12 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        found.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    k = int(rng.integers(len(found)))
    kind, content = found[k]
    if rng.random() < 0.2:
        found.insert(int(rng.integers(len(found) + 1)), found[k])
    else:
        content = pick(rng, [numbers_of, bytes_of])(rng, content or bytes(9))
        found[k] = kind, content
    packed = (
        struct.pack(">I", len(c)) + kind + c + struct.pack(">I", zlib.crc32(kind + c))
        for kind, c in found
    )
    return data[:8] + b"".join(packed)


def members_of(rng, data):
    """An archive with mutated members."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(file, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            if rng.random() < 0.7:
                content = pick(rng, [numbers_of, bytes_of])(rng, content)
            target.writestr(info.filename, content, pick(rng, [0, 8, 12, 14]))
    return file.getvalue()


def packed_of(rng, data):
    """A packed file whose content is mutated."""
    content = pick(rng, [numbers_of, bytes_of])(rng, gzip.decompress(data))
    return gzip.compress(content, mtime=0)


SPECIAL = {".png": chunks_of, ".npz": members_of, ".gz": packed_of}


def mutated(rng, kind, data):
    """Mutate the bytes of a sample; how, and the result."""
    ways = [bytes_of, numbers_of]
    if kind in TEXTS:
        ways = [bytes_of, words_of, words_of]
    if kind in SPECIAL:
        ways.append(SPECIAL[kind])
    way = pick(rng, ways)
    return way.__name__, way(rng, data)


def outcome(read, path):
    """A word for what happened to a file."""
    try:
        read(path)
    except ValueError as error:
        said = str(error)
        named = str(path) in said and said.endswith((".", ")", "…")) and "\n" not in said
        short = len(said) < 700 + 2 * len(str(path))
        return "refused" if named and short else f"SENTENCE {said[:500]!r}"
    except MemoryError as error:
        return "too large" if str(error).endswith(".") or not str(error) else f"MEMORY {error}"
    return "read"


def check(path):
    """Read a file in every way."""
    readers = READERS.get(path.suffix, (*IMAGES, lambda path: list(read_pages(path))))
    told = {outcome(read, path) for read in readers}
    wrong = [what for what in told if not what[:4].islower()]
    return wrong[0] if wrong else "read" if "read" in told else min(told)


def fuzz(folder, kind, count, seed):
    """Mutate samples of a format so many times; what happened."""
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    path, samples = folder / f"mutant{kind}", SAMPLES[kind]()
    for sample in samples:
        path.write_bytes(sample)
        assert check(path) == "read", (kind, sample[:100])

    def make(rng):
        way, content = mutated(rng, kind, pick(rng, samples))
        path.write_bytes(content)
        return way, path

    return hunt(count, seed, make, check)


def fuzz_each(folder, count, seed, *kinds):
    """Mutate samples of some formats; what happened to those of each."""
    found = {kind: fuzz(folder, kind, count, seed) for kind in kinds}
    told = {f"{what} {kind}": n for kind in kinds for what, n in found[kind]["told"].items()}
    slowest = max(one["slowest"] for one in found.values())
    return {"told": told, "memory": 0.0, "slowest": slowest}


def test_mutated_input_is_read_or_refused(tmp_path):
    told = run_hunt(__file__, 80, 0, tmp_path, *SAMPLES)
    for kind in SAMPLES:
        assert told[f"refused {kind}"] > 3, kind
        assert told[f"read {kind}"], kind


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", SAMPLES)
def test_10_000_mutants_are_read_or_refused(tmp_path, kind):
    assert sum(run_hunt(__file__, 10_000, 1, tmp_path, kind).values()) == 10_000


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stderr.reconfigure(errors="replace")
    count, seed, folder, *kinds = sys.argv[1:]
    print(json.dumps(fuzz_each(Path(folder), int(count), int(seed), *kinds)))
