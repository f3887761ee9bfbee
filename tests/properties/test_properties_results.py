"""Files, exports, reports and pictures of results: right, or a sentence; nothing is lost."""

import inspect
import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.figure import Figure
from PIL import Image
from strategies import (
    about,
    anything,
    assert_is_a_sentence,
    images,
    masks,
    odd_parameters,
    outcome,
    pixels,
)

import hcnet
from hcnet import (
    HCN,
    BooleanMatrixFactorization,
    FeatureLearner,
    Layer,
    TemplateClassifier,
    plotting,
    reading,
)
from hcnet.export import from_dict, to_dict, to_onnx
from hcnet.reporting import report, summary

SIDE = 8
X = np.zeros((6, SIDE, SIDE), bool)
for k, image in enumerate(X):
    image[k % 4, 1:4] = image[k : k + 3, k] = True
WEIGHTS = [
    np.array([np.eye(3), np.eye(3)[::-1]], bool)[:, None],
    np.array([[[[1, 0], [0, 0]], [[0, 0], [0, 1]]], [[[0, 0], [0, 0]], [[1, 0], [0, 1]]]], bool),
]
QUICK = {"n_init": 1, "max_iter": 2, "random_state": 0}
KINDS = ("FeatureLearner", "HCN", "TemplateClassifier", "BooleanMatrixFactorization")
PICTURED = KINDS[:2]  # those that can show what they learned


@pytest.fixture(scope="module")
def models():
    network = HCN([Layer(2, size=3), Layer(size=2)], 2, **QUICK)
    fitted = {
        "FeatureLearner": FeatureLearner(feature_size=3, **QUICK).fit(X),
        "HCN": network.set_weights(WEIGHTS, SIDE),
        "TemplateClassifier": TemplateClassifier(2, 3, random_state=0).fit(X, [0, 1] * 3),
        "BooleanMatrixFactorization": BooleanMatrixFactorization(2, **QUICK).fit(X[0]),
    }
    assert len(fitted["FeatureLearner"].features_) > 1
    return fitted


def written(call, *arguments, **options):
    """As `outcome`; an error of the system is an answer too, if it says which file it is about."""
    try:
        return outcome(call, *arguments, **options)
    except OSError as error:
        if error.errno is None or error.filename is None:
            assert_is_a_sentence(str(error))
        return None


NAMES = ("a", "mine", "mine/a", "nowhere/a", "folder", "", ".", "a\0b", "\ud800", "ä ö\n", "…")
ENDINGS = st.sampled_from(["", ".png", ".PNG", ".hcn", ".html", "/"])
PATHS = st.one_of(
    st.tuples(st.sampled_from(NAMES), ENDINGS).map("".join),
    st.sampled_from(["/", "long" * 100]),
    odd_parameters(),
    anything(),
)
OVERWRITE = st.one_of(st.booleans(), odd_parameters(), st.sampled_from(["no", np.True_]))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file and a folder of somebody's in it, made anew for each example."""
    monkeypatch.chdir(tmp_path)

    def prepare():
        for path in sorted(tmp_path.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (tmp_path / "folder").mkdir()
        for ending in ("", ".png", ".hcn", ".html"):
            (tmp_path / f"mine{ending}").write_text("mine")
        return contents()

    def contents():
        return {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}

    return SimpleNamespace(prepare=prepare, contents=contents)


def check_only(place, before, path, overwrite):
    """Nothing has changed but the file that was written, and that only if it might."""
    now = place.contents()
    changed = {p for p in {*before, *now} if before.get(p) != now.get(p)}
    if path is None:
        assert changed == set()
        return
    assert {p.name for p in changed} == {path.name}
    assert overwrite is True or not any(p in before for p in changed)


# --- files ------------------------------------------------------------------------------------


@given(st.sampled_from(KINDS), PATHS, OVERWRITE)
@about(
    *(f"hcnet.{kind}.{m}" for kind in KINDS for m in ("save", "load")), "hcnet.load", examples=80
)
def test_a_model_is_saved_where_it_may_and_comes_back(models, place, kind, path, overwrite):
    before, model = place.prepare(), models[kind]
    found = written(model.save, path, overwrite=overwrite)
    check_only(place, before, found, overwrite)
    if found is None:
        return
    assert found.exists()
    for again in (hcnet.load(path), type(model).load(path)):
        assert type(again) is type(model)
        table, method = X, "placements"
        if kind == "BooleanMatrixFactorization":
            table, method = X[0], "transform"
        a, b = (getattr(one, method)(table) for one in (again, model))
        assert (a != b).sum() == 0
    for other in models.values():
        if type(other) is not type(model):
            assert outcome(other.load, path) is None


@given(PATHS)
@about("hcnet.load", *(f"hcnet.{kind}.load" for kind in KINDS), examples=60)
def test_no_other_file_is_a_model(place, path):
    before = place.prepare()
    for load in (hcnet.load, FeatureLearner.load, HCN.load, BooleanMatrixFactorization.load):
        assert written(load, path) is None
    assert place.contents() == before


@given(st.sampled_from(PICTURED), st.data())
@about("hcnet.export.to_dict", "hcnet.export.from_dict", "hcnet.export.to_onnx", examples=60)
def test_a_description_with_anything_in_it(models, kind, data):
    model = models[kind]
    whole = json.loads(json.dumps(to_dict(model)))
    np.testing.assert_array_equal(from_dict(whole).denoise(X), model.denoise(X))
    key = data.draw(st.sampled_from([*whole, "more"]))
    outcome(from_dict, {**whole, key: data.draw(anything())})
    outcome(from_dict, {k: v for k, v in whole.items() if k != key})
    outcome(from_dict, data.draw(anything()))
    not_fitted = type(model)(**model.get_params(deep=False))
    assert outcome(to_onnx, not_fitted, "nowhere.onnx") is outcome(to_dict, not_fitted) is None


# --- what a model says about itself -----------------------------------------------------------


@given(st.sampled_from(PICTURED), images(side=4), st.sampled_from(["fit", "fit_stream"]))
@about("hcnet.reporting.summary", examples=8)
def test_a_summary_is_json(kind, pictures, method):
    model = FeatureLearner(feature_size=1, **QUICK)
    if kind == "HCN":
        model = HCN([Layer(2, size=1, pool=1), Layer(pool=1)], 2, **QUICK)
    assert outcome(summary, model) is None  # it is not fitted
    if outcome(getattr(model, method), pictures) is None:
        return
    told = summary(model)
    assert told["kind"] == kind
    assert told["image_size"] == list(pictures.shape[-2:])
    assert json.loads(json.dumps(told, allow_nan=False)) == told


@given(st.sampled_from(PICTURED), odd_parameters())
@about("hcnet.plotting.show_model", "hcnet.plotting.show_parts", examples=30)
def test_a_model_is_drawn_at_any_scale(models, kind, scale):
    picture = outcome(plotting.show_model, models[kind], scale=scale)
    assert (picture is None) == (outcome(plotting.show_images, X[0], scale=scale) is None)
    if picture is not None:
        assert min(picture.size) > 0
    for draw in (plotting.show_model, plotting.show_parts):
        assert outcome(draw, HCN([Layer()])) is None
    sheet = outcome(plotting.show_parts, models[kind], scale)
    assert (sheet is None) == (picture is None or kind == "HCN")


@given(st.one_of(images(side=SIDE), anything()), odd_parameters())
@about("hcnet.plotting.show_factors", "hcnet.BooleanMatrixFactorization.explain", examples=30)
def test_the_factors_of_any_table_are_explained_and_drawn(models, table, scale):
    model = models["BooleanMatrixFactorization"]
    fits = outcome(model.transform, table) is not None
    told = outcome(model.explain, table)
    assert (told is not None) == fits
    if fits:
        assert (told["rows"] <= len(table)).all()
        assert (told["covers"] == told["alone"] + told["shared"]).all()
    for size in (None, scale):
        picture = outcome(plotting.show_factors, model, table, scale=size)
        assert picture is None or (fits and min(picture.size) > 0)
        assert picture is not None or size is not None or not fits
    assert outcome(plotting.show_factors, models["HCN"], table) is None


@given(st.one_of(images(side=SIDE), anything()), odd_parameters())
@about("hcnet.plotting.show_explanation", "hcnet.plotting.show_comparison", examples=30)
def test_what_explains_images_is_drawn_at_any_scale(models, pictures, scale):
    model = models["HCN"]
    for draw in (plotting.show_explanation, plotting.show_comparison):
        for size in (None, scale):
            picture = outcome(draw, model, pictures, None, size)
            fits = outcome(model.placements, pictures) is not None
            allowed = outcome(plotting.show_images, X[0], scale=size) is not None
            assert (picture is not None) == (fits and allowed)
        assert outcome(draw, HCN([Layer()]), X) is None


@given(st.data())
@about("hcnet.FeatureLearner.render", examples=25)
def test_placements_are_drawn_as_they_were_found(models, data):
    model = models["FeatureLearner"]
    shape = data.draw(st.sampled_from([(1, SIDE, SIDE), (2, SIDE, SIDE), (2, 4, 7)]))
    pictures = data.draw(pixels(shape))
    placed = model.placements(pictures)
    drawn = model.render(placed, len(pictures), pictures.shape[1:])
    np.testing.assert_array_equal(drawn[:, 0], model.denoise(pictures))


@given(
    st.one_of(anything(), st.just([[0, 0, 1, 1]]), st.just([[2**31 - 1, 0, 0, 0]])),
    odd_parameters(),
    odd_parameters(),
)
@about("hcnet.FeatureLearner.render", examples=80)
def test_any_placements(models, placements, n_images, size):
    drawn = outcome(models["FeatureLearner"].render, placements, n_images, size)
    if drawn is not None:
        assert drawn.dtype == bool
        assert drawn.ndim == 4
        assert n_images is None or len(drawn) == n_images


WHAT = {
    "path": PATHS,
    "X": st.one_of(st.none(), images(side=SIDE), anything()),
    "y": st.one_of(st.none(), st.lists(st.sampled_from([0, 1, 2, -1, "a", None])), anything()),
    "mask": st.one_of(st.none(), masks(X.shape), anything()),
    "names": st.one_of(
        st.none(),
        st.lists(st.sampled_from(["a", "</script>", 1, "\ud800"]), min_size=5, max_size=8),
        anything(),
    ),
    "overwrite": OVERWRITE,
}


@given(st.data(), st.sampled_from(PICTURED), st.booleans())
@about("hcnet.reporting.report", examples=60)
def test_a_report_is_one_file_or_none(models, place, data, kind, fresh):
    slots = [*inspect.signature(report).parameters][1:]
    name = data.draw(st.sampled_from(slots))
    options = {"path": "a.html" if fresh else "mine.html", "X": X, name: data.draw(WHAT[name])}
    before = place.prepare()
    path = written(report, models[kind], **options)
    check_only(place, before, path, options.get("overwrite"))
    if path is not None:
        text = path.read_text(encoding="utf-8")
        assert text.count("</html>") == 1
        assert text.count("</script>") == 2  # no name ends the data


# --- pictures ---------------------------------------------------------------------------------

PARTS = np.stack([np.eye(2), np.ones((2, 2))]).astype(bool)[:, None]
STEPS = [SimpleNamespace(iteration=k, objective=-50.0 / k) for k in (1, 2, 3)]
AX = Figure().subplots()
EYE = np.eye(4, dtype=bool)
PICTURES = {
    "show_images": {"X": [EYE, EYE]},
    "show_features": {"features": PARTS},
    "show_errors": {"X": X, "reconstruction": ~X},
    "plot_confusion": {"y": [0, 1, -1], "predicted": [0, 0, 1], "classes": [0, 1], "ax": AX},
    "plot_history": {"history": STEPS, "ax": AX},
}
SLOTS = [
    (name, argument)
    for name in PICTURES
    for argument in inspect.signature(getattr(plotting, name)).parameters
]
NUMBERS = (0, 1, -1.5, 1e308, -1e308, 5e-324, 1 + 2e-16, float("nan"), -float("inf"), 10**400)
POINTS = st.builds(
    SimpleNamespace, iteration=st.sampled_from(NUMBERS), objective=st.sampled_from(NUMBERS)
)
LABELS = st.sampled_from([0, 1, -1, "0", "two\nlines", "\ud800", "long" * 20, b"x", None, 1.5])
ODD = st.one_of(
    anything(),
    odd_parameters(),
    images(),
    st.lists(LABELS, max_size=4),
    st.lists(POINTS, max_size=4),
    st.lists(images(side=SIDE), max_size=3),
    st.sampled_from([range(100), [(1, 1), (10**6, 1)], (100, 10**6), (300, 120)]),
)


@given(st.sampled_from(SLOTS), ODD)
@about(*(f"hcnet.plotting.{name}" for name in PICTURES), examples=500)
def test_a_picture_of_anything(where, value):
    name, argument = where
    picture = outcome(getattr(plotting, name), **{**PICTURES[name], argument: value})
    pyplot.close("all")
    if picture is not None and not name.startswith("plot"):
        assert isinstance(picture, Image.Image)
        assert min(picture.size) > 0


@given(st.lists(POINTS, max_size=5))
@about("hcnet.plotting.plot_history", examples=60)
def test_a_curve_of_any_numbers(history):
    picture = outcome(plotting.plot_history, history, AX)
    whole = all(abs(one.iteration) < 1e300 for one in history)
    assert (picture is not None) == whole


@given(st.lists(st.tuples(LABELS, LABELS), max_size=5), st.lists(LABELS, max_size=4))
@about("hcnet.plotting.plot_confusion", examples=60)
def test_any_classes(pairs, classes):
    y, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    picture = outcome(plotting.plot_confusion, y, predicted, classes, AX)
    words = {str(one) for one in np.asarray(classes).tolist()}
    known = words >= {str(one) for one in np.asarray(predicted).tolist()}
    assert picture is None or (known and len(words) == len(classes) > 0)


@given(st.data())
@about("hcnet.plotting.show_errors", examples=30)
def test_valid_images_have_a_picture_of_their_errors(data):
    seen = data.draw(images())
    made, mask = data.draw(pixels(seen.shape)), data.draw(masks(seen.shape))
    assume(mask is None or not mask.all())
    same = plotting.show_errors(seen, seen, mask)
    assert isinstance(plotting.show_errors(seen, made, mask), Image.Image)
    marks = np.asarray(same).reshape(-1, 3)
    for colour in (plotting.drawing.MISSED, plotting.drawing.ADDED):
        assert not (marks == colour).all(axis=1).any()  # nothing is wrong


MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I", "F", "CMYK", "HSV", "LAB", "YCbCr", "I;16")


@given(
    st.one_of(
        st.builds(Image.new, st.sampled_from(MODES), st.sampled_from([(3, 2), (1, 1), (0, 3)])),
        anything(),
    ),
    st.one_of(st.just("a.png"), PATHS),
    OVERWRITE,
)
@about("hcnet.plotting.save_picture", examples=100)
def test_a_picture_is_saved_where_it_may(place, picture, path, overwrite):
    before = place.prepare()
    found = written(plotting.save_picture, picture, path, overwrite)
    check_only(place, before, found, overwrite)
    if found is not None:
        assert found.suffix.lower() == ".png"
        with Image.open(found) as again:
            assert again.size == picture.size


# --- text -------------------------------------------------------------------------------------

READING = ("name_parts", "read_pages", "read_text", "PageText")
PART = st.one_of(st.integers(-1, 4), st.sampled_from([0, 1, "0", None, 1.5, np.int64(1)]))


@given(
    st.sampled_from(PICTURED),
    st.one_of(st.dictionaries(PART, st.one_of(st.text(max_size=50), anything())), anything()),
    st.one_of(images(side=SIDE), anything()),
)
@about(*(f"hcnet.reading.{name}" for name in READING), examples=60)
def test_any_names_and_the_text_that_they_make(models, kind, names, pictures):
    model = models[kind]
    outcome(reading.name_parts, model, names)
    pages = outcome(reading.read_pages, model, pictures)
    lines = outcome(reading.read_text, model, pictures)
    fits = kind == "FeatureLearner" and outcome(model.placements, pictures) is not None
    assert (pages is not None) == (lines is not None) == fits
    if fits:
        assert lines == [page.lines for page in pages]
        assert all(line.strip() == line != "" for page in lines for line in page)
        reading.name_parts(model, dict.fromkeys(range(len(model.features_)), ""))


@given(st.one_of(st.text(), st.binary()), st.sampled_from(["", "part,name\n", "part;name\r\n"]))
@about("hcnet.reading.read_names", examples=200)
def test_any_names_file(tmp_path, content, header):
    path = tmp_path / "names.csv"
    content = content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
    path.write_bytes(header.encode() + content)
    found = outcome(reading.read_names, path)
    assert found is None or all(type(k) is int and type(v) is str for k, v in found.items())
