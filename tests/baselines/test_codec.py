"""The benchmark of lossless pages: rivals, text pages, documents and tables."""

import shutil
import zlib

import numpy as np
import pytest
from PIL import Image

from benchmarks.codec import cut, is_text, main, report
from benchmarks.codec_rivals import Rival, Unusable, g4, read_pbm, rivals, write_pbm
from hcnet.datasets import scanned_text


@pytest.fixture(scope="module")
def page():
    return scanned_text(size=(300, 501), random_state=0).images[0, 0]


def test_a_bitmap_comes_back(page, tmp_path):
    write_pbm(page, str(tmp_path / "page.pbm"))
    assert np.array_equal(read_pbm(str(tmp_path / "page.pbm")), page)


def test_every_rival_at_hand_gives_the_page_back(page):
    assert 0 < g4(page).bytes < page.size / 8
    for rival in rivals():
        if rival.missing() is None:
            assert 0 < rival.run(page).bytes < page.size / 8


def test_a_missing_program_gets_a_sentence():
    rival = Rival("none", "nowhere", (("no-such-program",),), ("true",))
    assert rival.missing() == "none is left out: no-such-program not found (nowhere)."


def test_a_lossy_program_is_left_out(page):
    other = ("cp", "page.pbm", "code.djvu")
    blank = ("sh", "-c", 'head -c 12 "$0" > "$1"; head -c 99999 /dev/zero >> "$1"')
    rival = Rival("blank", "", (other,), (*blank, "code.djvu", "back.pbm"))
    with pytest.raises(Unusable, match="did not give the page back"):
        rival.run(page)


def test_of_several_settings_the_smallest_file_counts(page):
    whole, double = ("cp", "page.pbm", "code.djvu"), ("cat", "page.pbm", "page.pbm")
    copies = Rival("copy", "", (double, whole), ("cp", "code.djvu", "back.pbm"))
    assert copies.run(page).bytes == len("P4\n501 300\n") + 300 * 63


def test_text_has_half_of_its_ink_in_letters(page):
    assert is_text(page)
    assert not is_text(np.zeros((5, 5), bool))
    staves = page.copy()
    staves[::20] = True
    assert not is_text(staves)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_pieces_make_up_the_page(page, n):
    pieces = cut(page, n)
    assert len(pieces) == n
    assert np.array_equal(np.concatenate(pieces), page)
    assert min(map(len, pieces)) > 0.5 * len(page) / n


def pack(pages, fast, verify):
    sizes = np.array([page.shape for page in pages]).tobytes()
    bits = np.packbits(np.concatenate([page.ravel() for page in pages])).tobytes()
    return bytes([len(pages)]) + sizes + zlib.compress(bits, 1 if fast else 9)


def unpack(code):
    n = code[0]
    sizes = np.frombuffer(code[1 : 1 + 16 * n], int).reshape(n, 2)
    bits = np.unpackbits(np.frombuffer(zlib.decompress(code[1 + 16 * n :]), np.uint8)).astype(bool)
    ends = np.cumsum(sizes.prod(1))
    return [bits[e - h * w : e].reshape(h, w) for (h, w), e in zip(sizes, ends, strict=True)]


def test_tables_are_made_with_and_without_ours(page, tmp_path, monkeypatch, capsys):
    Image.fromarray(~page).save(tmp_path / "ptt5.png")

    def small(n_pages=1, size=None, random_state=None):
        return scanned_text(n_pages=n_pages, size=(300, 501), random_state=random_state)

    monkeypatch.setattr("benchmarks.codec.scanned_text", small)
    monkeypatch.setattr("benchmarks.codec.compress", None)
    rows = main(["--quick", "--pages", str(tmp_path)]).rows
    assert "ours" not in {row["coder"] for row in rows}
    assert "no hcnet.codec" in capsys.readouterr().out
    monkeypatch.setattr("benchmarks.codec.compress", pack)
    monkeypatch.setattr("benchmarks.codec.decompress", unpack)
    rows = main(["--pages", str(tmp_path), "--json", str(tmp_path / "rows.jsonl")]).rows
    assert {"ours", "ours --fast"} < {row["coder"] for row in rows}
    documents = {row["document"]: row["pages"] for row in rows if "document" in row}
    made_up = {f"scanned_text, {n} pages": n for n in (3, 4)}
    assert documents == made_up | {f"ptt5, {n} pieces": n for n in (2, 3, 4)}
    compared = shutil.which("cjb2") is not None  # its encoder is a package of its own
    assert ("wanted ≤ −20 %" in report(rows)) == compared


def test_ours_must_give_the_pages_back(monkeypatch):
    monkeypatch.setattr("benchmarks.codec.compress", pack)
    monkeypatch.setattr("benchmarks.codec.decompress", lambda code: [~x for x in unpack(code)])
    with pytest.raises(SystemExit, match="did not give the pages back"):
        main(["--quick"])
