"""`FeatureLearner` with soft parts: pages of all kinds, all methods, and the choice by itself."""

import json

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

import hcnet
from hcnet import FeatureLearner
from hcnet.cli import main
from hcnet.datasets import letters, scanned_text, shapes, text, two_bars
from hcnet.engine.driver import Status
from hcnet.export import from_dict, to_dict, to_onnx
from hcnet.images import Images
from hcnet.plotting import plot_history, show_errors, show_explanation, show_features, show_parts
from hcnet.reporting import report
from hcnet.soft.pieces import many_pieces
from hcnet.soft.soft_learning import learn_soft

pytestmark = pytest.mark.filterwarnings("ignore:The parts explain")


def learner(**options):
    return FeatureLearner(algorithm="soft", random_state=0, **options)


def same(one, other):
    for name in ("features_", "feature_probabilities_", "placements_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.log_joint_ == other.log_joint_


def use(model, X, mask=None):
    """Everything that a fitted model can do with images."""
    codes, rows = model.transform(X, mask), model.placements(X, mask)
    n, size = codes.shape[0], np.shape(X)[-2:]
    assert codes.shape[1] == model._model.layer(size).n_positions * len(model.features_)
    np.testing.assert_array_equal(
        model.inverse_transform(codes, size), model.render(rows, n, size) if len(rows) else 0
    )
    assert model.denoise(X, mask).shape == np.shape(X)
    assert np.isfinite(model.score(X, mask=mask))
    assert model.compression_ratio(X, mask) > 0
    if hasattr(model, "placements_"):
        assert len(model._bits_saved(X, mask)) == len(model.placements_)
    assert model.feature_probabilities_.shape == model.features_.shape
    return model


def test_letters_are_found_with_their_shades(scan, soft):
    assert soft.algorithm_ == "soft"
    assert soft.compression_ratio_ < 0.16
    assert soft.status_ == Status.FINISHED.value
    p = soft.feature_probabilities_
    np.testing.assert_array_equal(soft.features_, p >= 0.5)
    assert p.min() == 0
    assert p.max() == 1
    assert 0.01 < ((p > 0.1) & (p < 0.9)).mean() < 0.5
    uses = np.bincount(soft.placements_[:, 1])
    assert len(uses) == len(soft.features_)
    assert (uses >= 2).all()
    # A part in its place is where a letter is.
    made = soft.render(soft.placements_)
    covered = (made & scan.images).sum() / scan.images.sum()
    assert covered > 0.75
    assert (made & scan.images).sum() / made.sum() > 0.85
    assert (soft._bits_saved(scan.images, None) > 0).mean() > 0.9
    use(soft, scan.images)


def test_the_same_seed_gives_the_same_parts(scan, soft):
    same(learner().fit(scan.images), soft)
    same(clone(soft).fit(scan.images), soft)
    assert len(learner().set_params(random_state=1).fit(scan.images).features_)


def test_the_parts_are_found_again_in_other_pages(soft):
    other = scanned_text(size=(300, 900), random_state=5)
    found = soft.placements(other.images)
    assert len(found) > 0.5 * len(other.characters)
    made = soft.render(found, image_size=(300, 900))
    assert (made & other.images).sum() > 0.5 * other.images.sum()
    assert soft.compression_ratio(other.images) < 0.5
    with pytest.raises(ValueError, match="larger than the images"):
        soft.placements(other.images[..., :20, :20])
    with pytest.raises(ValueError, match="X has 2 channels, but the features were learned with 1"):
        soft.placements(np.zeros((1, 2, 60, 60)))


@pytest.mark.parametrize("flips", [0.0, 0.02])
def test_denoising_takes_flips_back_and_leaves_the_rest(scan, soft, flips):
    rng = np.random.default_rng(0)
    noisy = scan.images ^ (rng.random(scan.images.shape) < flips)
    wrong = (soft.denoise(noisy) != scan.images).sum()
    assert wrong <= 0.25 * flips * scan.images.size + 0.0005 * scan.images.size


def test_letters_behind_a_stain_are_filled_in(scan, soft):
    """Half of each of some letters is missing."""
    mask = np.zeros(scan.images.shape, bool)
    for row, column, height, width in scan.boxes[10:190:60]:
        mask[0, 0, row + height // 2 : row + height, column : column + width] = True
    filled = soft.inpaint(scan.images, mask)
    np.testing.assert_array_equal(filled[~mask], scan.images[~mask])
    right = (filled[mask] & scan.images[mask]).sum()
    assert right > 0.3 * scan.images[mask].sum()
    assert (filled[mask] & ~scan.images[mask]).sum() < 0.5 * right


def test_missing_pixels_are_no_ink():
    page, mask = PAGES["two pieces"][0], np.zeros((50, 120), bool)
    mask[:, 60:] = True
    with pytest.warns(UserWarning, match="No part was found"):
        use(learner().fit(page, mask=mask), page, mask)
    mask[:, 60:100] = False
    model = use(learner().fit(page, mask=mask), page, mask)
    assert len(model.placements_) == 2
    holes = np.where(mask, np.nan, page)
    with pytest.warns(UserWarning, match="NaN is taken as missing"):
        np.testing.assert_array_equal(learner().fit(holes).features_, model.features_)


def bar(height=50, width=60):
    page = np.zeros((height, width), bool)
    page[10:20, 10:15] = True
    return page


def stripes(height=20, width=120):
    """Copies that are as high as the page."""
    page = np.zeros((height, width), bool)
    for x in range(3):
        page[:, x::12] = True
    return page


PAGES = {
    "empty": (np.zeros((50, 60)), 0),
    "full": (np.ones((50, 60)), 0),
    "one pixel": (np.ones((1, 1)), 0),
    "smaller than a part": (np.eye(3), 0),
    "a row": (np.ones((1, 500)), 0),
    "one piece": (bar(), 0),
    "specks": (np.random.default_rng(0).random((80, 80)) < 0.03, 0),
    "two pieces": (np.concatenate([bar(), bar()], axis=1), 1),
    "as high as the page": (stripes(), 1),
    "as wide as the page": (stripes().T, 1),
    "with flips": (stripes(30, 300) ^ (np.random.default_rng(0).random((30, 300)) < 0.01), 1),
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.filterwarnings("ignore:No part was found")
def test_pages_of_any_kind_are_learned_from(name, tmp_path):
    page, n = PAGES[name]
    model = use(learner().fit(page), page)
    assert len(model.features_) == n
    assert (n == 0) == (len(model.placements_) == 0)
    # Everything fits into images of this size, also from a file.
    again = use(hcnet.load(model.save(tmp_path / "model.hcn")), page)
    np.testing.assert_array_equal(again.features_, model.features_)
    np.testing.assert_array_equal(again.denoise(page), model.denoise(page))


def test_several_pages_share_their_parts():
    pages = scanned_text(size=(300, 600), n_pages=2, random_state=0)
    both = use(learner().fit(pages.images), pages.images)
    assert set(both.placements_[:, 0]) == {0, 1}
    for page in range(2):
        used = set(both.placements_[both.placements_[:, 0] == page, 1])
        assert len(used) > len(both.features_) / 2
    alone = learner().fit(pages.images[:1])
    assert both.compression_ratio_ < alone.compression_ratio_ + 0.01


def test_limits_on_number_and_size(scan, soft):
    few = use(learner(n_features=4).fit(scan.images), scan.images)
    assert len(few.features_) == 4
    np.testing.assert_array_equal(
        few.feature_probabilities_.sum(axis=(1, 2, 3)),
        soft.feature_probabilities_[:4].sum(axis=(1, 2, 3)),
    )
    assert soft.compression_ratio_ < few.compression_ratio_ < 0.3
    small = use(learner(feature_size=(30, 24)).fit(scan.images), scan.images)
    assert small.features_.shape[2] <= 30
    assert small.features_.shape[3] <= 24
    assert len(small.features_)


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({}, np.zeros((2, 3, 30, 30)), "one channel, and X has 3; use algorithm='refined'"),
        ({"border": "valid"}, bar(), "border is for parts that repeat exactly; leave it out"),
        ({"p01": 0.1, "p10": 0.1}, bar(), "p01 is for parts that repeat exactly"),
        ({"n_init": 3}, bar(), "n_init is for parts that repeat exactly"),
        ({"feature_size": "x"}, bar(), "feature_size must be"),
        ({"n_features": 0}, bar(), "n_features must be"),
        ({}, np.full((9, 9), np.nan), "nothing to learn from"),
    ],
)
@pytest.mark.filterwarnings("ignore:X holds")
def test_bad_input_is_explained(options, X, message):
    with pytest.raises(ValueError, match=message):
        learner(**options).fit(X)


@pytest.mark.filterwarnings("ignore:No part was found")
def test_scans_are_soft_by_themselves_and_exact_parts_are_not(scan, soft):
    same(FeatureLearner(random_state=0).fit(scan.images), soft)
    exact = {
        "letters": letters(size=(80, 120), n_placements=40, noise=0.01, random_state=0).images,
        "text": text(size=(60, 100), random_state=0).images,
        "clean print": scanned_text(size=(150, 300), dpi=100, strength=0, random_state=0).images,
        "small images": shapes(n_images=6, random_state=0).images,
    }
    clean = Images(exact["clean print"], np.ones_like(exact["clean print"]))
    assert many_pieces(list(exact["clean print"][:, 0]))
    assert learn_soft(clean, None, None, None, np.random.default_rng(0)).soft is False
    for name, X in exact.items():
        found = FeatureLearner(random_state=0, max_seconds=3).fit(X)
        assert found.algorithm_ == "refined", name
        assert not hasattr(found, "feature_probabilities_")
    for options in ({"feature_size": 12}, {"n_init": 1}, {"border": "valid"}):
        found = FeatureLearner(2, random_state=0, max_iter=2, **options).fit(two_bars().images)
        assert found.algorithm_ == "refined"


def test_large_parts_on_a_large_page_are_soft():
    rng = np.random.default_rng(0)
    sprites = np.kron(rng.random((2, 7, 7)) < 0.7, np.ones((6, 6), bool))
    page = np.zeros((1, 600, 600), bool)
    for n, (y, x) in enumerate(np.ndindex(6, 3)):
        page[0, 90 * y + 10 :, 180 * x + 10 :][:42, :42] = sprites[n % 2]
    assert not many_pieces(list(page))
    # An exact search with windows of this size takes minutes.
    assert FeatureLearner(random_state=0).fit(page).algorithm_ == "soft"


def test_a_time_limit_leaves_a_usable_model(scan):
    for algorithm in ("soft", "auto"):
        model = FeatureLearner(algorithm=algorithm, max_seconds=1e-6, random_state=0)
        use(model.fit(scan.images), scan.images)
        assert model.status_ == Status.TIME_LIMIT.value
        assert model.algorithm_ == "soft"


def test_a_callback_sees_usable_models_and_changes_nothing(scan, soft, monkeypatch):
    """Also before all pieces were looked at."""
    monkeypatch.setitem(hcnet.soft.soft_search.CHUNKS, "gather", 50)
    parts = []

    def watch(step):
        model = step.model()
        parts.append(len(model.features_))
        assert model.placements_.shape[1] == 4
        assert model.compression_ratio_ > 0.05

    watched = learner(callback=watch).fit(scan.images)
    assert len(parts) == watched.n_iter_ > soft.n_iter_
    np.testing.assert_array_equal(watched.features_, soft.features_)
    np.testing.assert_array_equal(watched.placements_, soft.placements_)


def test_windows_at_the_border(soft):
    """Parts that lie on the border lie where they did; none leaves the page by a whole window."""
    model, size = soft._model, (120, 200)
    (h, w), overhang = model.window, np.array(model.layer(size).overhang)
    corners = [(-1, -1), (size[0] - 2, size[1] - 2), (0, size[1] - 3), (40, 50)]
    rows = np.array([(0, f, *corner) for f in range(3) for corner in corners])
    placed = model.windows(rows, size)
    assert (placed[:, 2:] >= 0).all()
    assert (placed[:, 2:] < np.array(model.layer(size).placement_size)).all()
    drawn = model.reconstruct(placed, 1, size)[0, 0]
    expected = np.zeros((size[0] + 2 * h, size[1] + 2 * w), bool)
    for _, f, y, x in rows:
        part = model.part(f) >= 0.5
        at = slice(y + h, y + h + part.shape[0]), slice(x + w, x + w + part.shape[1])
        expected[at] |= part
    np.testing.assert_array_equal(drawn, expected[h : h + size[0], w : w + size[1]])
    assert len(placed) == len(rows)
    np.testing.assert_array_equal(overhang, (h - 1, w - 1))
    chance = model.chances_on(np.zeros(size, bool), placed[:, 1:])
    np.testing.assert_array_equal(chance >= 0.5, drawn)
    # Whole windows outside are brought to the border.
    far = model.windows(np.array([(0, 0, -500, 9), (0, 1, 7, 5000)]), size)
    assert (far[:, 2:] < np.array(model.layer(size).placement_size)).all()


def test_the_bits_of_pages_count_every_pixel_once(scan, soft):
    """Explained again, they are about those of learning; without parts, those of the page."""
    assert soft.score(scan.images) == pytest.approx(soft.log_joint_, rel=0.15)
    model = soft._model
    page = scan.images[0, 0]
    alone = model.residue(page, np.zeros((0, 4), np.int64))
    found = model.explain(Images(scan.images, np.ones_like(scan.images)))
    assert found.bits < 0.8 * alone
    everything = np.array([(0, 0, y, x) for y in range(0, 500, 9) for x in range(0, 900, 9)])
    assert model.residue(page, everything) < 0.05 * alone


def test_dictionaries(scan, soft):
    plain = json.loads(json.dumps(to_dict(soft)))
    again = from_dict(plain)
    assert again.algorithm_ == "soft"
    np.testing.assert_array_equal(again.feature_probabilities_, soft.feature_probabilities_)
    np.testing.assert_array_equal(again.placements(scan.images), soft.placements(scan.images))


def test_onnx_is_refused(soft, tmp_path):
    with pytest.raises(ValueError, match="parts that repeat exactly, and these are soft; use"):
        to_onnx(soft, tmp_path / "soft.onnx")
    assert not any(tmp_path.iterdir())


def test_pictures_and_the_report(scan, soft, tmp_path):
    X = scan.images
    pictures = [
        show_parts(soft),
        show_features(soft.features_),
        show_explanation(soft, X),
        show_errors(X, soft.render(soft.placements_)),
    ]
    assert all(min(picture.size) > 10 for picture in pictures)
    shades = np.unique(np.asarray(pictures[0].convert("L")))
    assert len(shades) > 20  # probabilities are grey
    plot_history(soft.history_)
    path = report(soft, tmp_path / "report.html", X)
    assert path.stat().st_size > 10_000
    assert "soft" in path.read_text(encoding="utf-8")


def test_the_command(scan, tmp_path, capsys, monkeypatch):
    """From a scan to a model, and everything that takes a model."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.where(scan.images[0, 0], 0, 255).astype(np.uint8)).save("page.png")
    stain = np.zeros(scan.images.shape[2:], np.uint8)
    stain[100:130, 100:200] = 255
    Image.fromarray(stain).save("stain.png")

    def run(*words, code=0):
        found = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert found == code, err
        assert "Traceback" not in out + err
        return out

    told = json.loads(run("learn", "page.png", "-o", "page.hcn", "--random-state", 0, "--json"))
    assert told["algorithm"] == "soft"
    assert told["parts"] > 10
    assert "of at most" in run("show", "page.hcn")
    run("report", "page.hcn", "page.png", "-o", "page.html")
    run("denoise", "page.hcn", "page.png", "-o", "clean.png")
    run("inpaint", "page.hcn", "page.png", "--mask", "stain.png", "-o", "filled.png")
    table = run("encode", "page.hcn", "page.png")
    assert len(table.splitlines()) > 100
    (tmp_path / "codes.csv").write_text(table)
    run("render", "page.hcn", "codes.csv", "-o", "again.png")
    names = [path.name for path in tmp_path.iterdir()]
    assert {"page.html", "clean.png", "filled.png", "again.png"} <= set(names)
    assert "soft" in run("learn", "page.png", "--algorithm", "soft", "-o", "two.hcn")
    run("learn", "page.png", "--algorithm", "soft", "--n-init", 2, "-o", "three.hcn", code=1)
    run("sample", "page.hcn", "-o", "new.png", code=1)
