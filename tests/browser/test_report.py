"""Reports in a real browser, from the disk, with real clicks."""

import dataclasses
import os

import numpy as np
import pytest
from chromium import Browser, find

from hcnet import HCN, FeatureLearner, Layer, reporting
from hcnet.datasets import letters, shapes
from hcnet.engine.driver import JOINT
from hcnet.images import part_boxes
from hcnet.progress import Step
from hcnet.reading import name_parts, read_names

pytestmark = pytest.mark.skipif(find() is None, reason="there is no chromium; install the package")


@pytest.fixture(scope="module")
def learned():
    data = letters(noise=0.03, random_state=0)
    X = np.stack([data.images[0, :, :60, :70], data.images[0, :, 60:120, :70]])
    return FeatureLearner(feature_size=12, n_init=1, random_state=0).fit(X), X


@pytest.fixture(scope="module")
def report(learned, tmp_path_factory):
    learner, X = learned
    return reporting.report(
        learner, tmp_path_factory.mktemp("report") / "parts.html", X, names=["a", "b"]
    )


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    data = shapes(n_images=40, feature_size=9, random_state=0)
    model = HCN([Layer(4, size=9), Layer()], templates_per_class=2, n_init=1, random_state=0)
    model.fit(data.images, data.labels)
    path = tmp_path_factory.mktemp("report") / "network.html"
    return model, data, reporting.report(model, path, data.images, data.labels)


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


def pixel(browser, selector, x, y):
    """The colour of a pixel of a canvas."""
    element = f"document.querySelector('{selector}')"
    data = f"Array.from({element}.getContext('2d').getImageData({x}, {y}, 1, 1).data.slice(0, 3))"
    return tuple(browser.value(data))


def scale(browser):
    return browser.value("Number(document.getElementById('image-size').value)")


def explained(browser):
    return browser.value("document.getElementById('explained').innerText")


def canvas(browser, element, height, width):
    """All pixels of a canvas."""
    data = browser.value(
        f"Array.from({element}.getContext('2d').getImageData(0, 0, {width}, {height}).data)"
    )
    return np.array(data).reshape(height, width, 4)[..., :3]


def test_a_report_opens_without_errors_and_shows_every_part(browser, report, learned):
    browser.open(report)
    assert browser.problems() == []
    learner, _ = learned
    assert browser.value("document.title") == f"hcnet: {len(learner.features_)} parts"
    shown = browser.value(
        "Array.from(document.querySelectorAll('#layers .part'), b => Number(b.dataset.part))"
    )
    assert sorted(shown) == list(range(len(learner.features_)))
    size = browser.value("Number(document.getElementById('part-size').value)")
    for k, f in enumerate(shown):
        element = f"document.querySelectorAll('#layers .part canvas')[{k}]"
        top, left, bottom, right = part_boxes(learner.features_)[f]
        drawn = canvas(browser, element, (bottom - top) * size, (right - left) * size)
        own = learner.features_[f, 0, top:bottom, left:right]
        assert ((drawn[::size, ::size] != 255).any(axis=2) == own).all()


def test_a_click_on_a_part_shows_where_it_occurs(browser, report, learned):
    learner, X = learned
    browser.open(report)
    placed = learner.placements_
    part = int(placed[placed[:, 0] == 1][0, 1])
    browser.click(f"#layers .part[data-part='{part}']")
    counts = [int(((placed[:, 1] == part) & (placed[:, 0] == n)).sum()) for n in range(2)]
    there = sum(count > 0 for count in counts)
    assert f"part {part}: {sum(counts)}× in {there} of 2 images" in explained(browser)
    buttons = browser.value(
        "Array.from(document.querySelectorAll('.occurrence'), b => b.textContent)"
    )
    assert buttons == [f"{'ab'[n]}: {counts[n]}×" for n in range(2) if counts[n]]
    # Its pixels have its colour in the image, and those of other parts do not.
    if browser.value("document.getElementById('which').value") != "1":
        browser.click(".occurrence:last-of-type")
    s = scale(browser)
    others = 0
    for n, f, r, c in placed:
        i, j = np.argwhere(learner.features_[f, 0])[0]
        y, x = r + i, c + j
        if n != 1 or not (0 <= y < 60 and 0 <= x < 70) or not X[1, 0, y, x]:
            continue
        colour = pixel(browser, "#image", int((x + 0.5) * s), int((y + 0.5) * s))
        if f == part:
            assert colour != (206, 206, 206)
        elif not _covered(learner, placed[(placed[:, 0] == 1) & (placed[:, 1] == part)], y, x):
            assert colour == (206, 206, 206)
            others += 1
    assert others > 0
    browser.click(f"#layers .part[data-part='{part}']")  # and off again
    assert "× in" not in explained(browser)


def _covered(learner, placed, y, x):
    return any(
        0 <= y - r < 12 and 0 <= x - c < 12 and learner.features_[f, 0, y - r, x - c]
        for _, f, r, c in placed
    )


def test_clicks_and_arrow_keys_show_the_parts_that_explain_a_pixel(browser, report, learned):
    learner, X = learned
    browser.open(report)
    placed = learner.placements_
    placed = placed[placed[:, 0] == 0]
    s = scale(browser)
    _, f, r, c = next(row for row in placed if row[2] >= 0 and row[3] >= 0)
    i, j = np.argwhere(learner.features_[f, 0])[0]
    browser.click("#image", (c + j + 0.5) * s, (r + i + 0.5) * s)
    assert f"Row {r + i}, column {c + j}: " in explained(browser)
    top, left = part_boxes(learner.features_)[f, :2]
    assert f"part {f} at row {r + top}, column {c + left}" in explained(browser)
    # From there to all places of the part.
    browser.click("#explained .part")
    assert f"part {f}: " in explained(browser)
    # A pixel that no part covers says so.
    free = next((y, x) for y, x in np.argwhere(X[0, 0]) if not _covered(learner, placed, y, x))
    browser.click("#image", (free[1] + 0.5) * s, (free[0] + 0.5) * s)
    assert f"Row {free[0]}, column {free[1]}: on, explained by no part: noise" in explained(browser)
    browser.click("#image", 10.5 * s, 20.5 * s)
    browser.press("ArrowDown")
    browser.press("ArrowLeft")
    assert "Row 21, column 9: " in explained(browser)


def test_views_show_the_image_the_reconstruction_and_the_errors(browser, report, learned):
    learner, X = learned
    clean = learner.render(learner.placements_)
    browser.open(report)
    s = scale(browser)

    def seen(view):
        browser.click(f"#views button[data-view='{view}']")
        whole = canvas(browser, "document.getElementById('image')", 60 * s, 70 * s)
        return whole[s // 2 :: s, s // 2 :: s]

    assert ((seen("image") == 0).all(axis=2) == X[0, 0]).all()
    assert ((seen("made") == 0).all(axis=2) == clean[0, 0]).all()
    errors = seen("errors")
    assert ((errors == (213, 94, 0)).all(axis=2) == (X & ~clean)[0, 0]).all()
    assert ((errors == (0, 114, 178)).all(axis=2) == (clean & ~X)[0, 0]).all()


def test_what_is_chosen_survives_reading_the_page_again(browser, report):
    browser.open(report)
    browser.click("#after")
    browser.click("#layers .card:nth-child(2) .part")
    browser.click("#image", 40, 40)
    before = browser.value("location.hash"), explained(browser)
    assert "image=" in before[0]
    browser.value("window.oldPage = true")
    browser.send("Page.reload")
    browser.wait("!window.oldPage && document.querySelector('.occurrence') !== null")
    assert (browser.value("location.hash"), explained(browser)) == before


@pytest.mark.parametrize("size", [(1400, 900), (360, 740)])
def test_a_report_fits_wide_and_narrow_windows(browser, report, network, size):
    browser.resize(*size)
    try:
        for path in (report, network[2]):
            browser.open(path)
            assert browser.value("document.documentElement.scrollWidth") <= size[0]
            assert browser.problems() == []
    finally:
        browser.resize(1200, 900)


def field(part):
    return f"#layers input[data-part='{part}']"


def typed(browser, part):
    return browser.value(f'document.querySelector("{field(part)}").value')


def test_names_are_typed_saved_as_a_table_and_kept(browser, learned, tmp_path):
    learner, X = learned
    named = FeatureLearner.load(learner.save(tmp_path / "a.hcn"))
    name_parts(named, {0: "A", 1: "wrong"})
    path = reporting.report(named, tmp_path / "names.html", X)
    browser.open(path)
    browser.value("localStorage.clear()")
    browser.open(path)
    shown = browser.value(
        "Array.from(document.querySelectorAll('#layers input'), f => Number(f.dataset.part))"
    )
    assert sorted(shown) == list(range(len(named.features_)))
    assert (typed(browser, 0), typed(browser, 1), typed(browser, 2)) == ("A", "wrong", "")
    first, second, third, fourth = shown[:4]
    browser.click(field(first))
    browser.value("document.activeElement.select()")
    browser.send("Input.insertText", text='"')
    for text in (",", " ", "ﷲ"):  # Tab goes to the next field
        browser.press("Tab")
        browser.value("document.activeElement.select()")
        browser.send("Input.insertText", text=text)
    assert typed(browser, fourth) == "ﷲ"
    browser.press("Enter")
    assert f"part {fourth}: " in explained(browser)
    assert browser.value("document.activeElement.dataset.part") == str(fourth)
    expected = {first: '"', second: ",", third: " ", fourth: "ﷲ"}
    if 1 not in expected:
        browser.click(field(1))
        browser.value("document.activeElement.select()")
        browser.press("Backspace")
        expected[1] = ""  # the model has a name for it
    names = {0: "A", **expected}
    count = sum(name != "" for name in names.values())
    total = len(named.features_)
    assert browser.value("document.getElementById('named').textContent") == (
        f"{count} of {total} parts have names"
    )
    path = tmp_path / "names.csv"
    path.write_text(browser.value("namesFile()"), encoding="utf-8")
    assert read_names(path) == names
    # The button gives the same file.
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "d"))
    browser.click("#save-names")
    saved = tmp_path / "d" / "names.csv"
    browser.wait_for(saved.is_file)
    assert saved.read_bytes() == path.read_bytes()
    assert browser.problems() == []
    # They survive reading the page again, and other parts do not get them.
    browser.value("window.oldPage = true")
    browser.send("Page.reload")
    browser.wait("!window.oldPage && document.readyState === 'complete'")
    assert typed(browser, fourth) == "ﷲ"
    path.write_text(browser.value("namesFile()"), encoding="utf-8")
    assert read_names(path) == names
    other = FeatureLearner(feature_size=12, n_init=1, random_state=0).fit(X[:1])
    browser.open(reporting.report(other, tmp_path / "other.html", X))
    assert browser.value("namesFile()") == "part,name\n"


def test_a_part_of_the_image_is_named_where_it_is(browser, learned, tmp_path):
    learner, X = learned
    browser.open(reporting.report(learner, tmp_path / "place.html", X))
    placed = learner.placements_
    _, f, r, c = next(row for row in placed if row[0] == 0 and row[2] >= 0 and row[3] >= 0)
    i, j = np.argwhere(learner.features_[f, 0])[0]
    s = scale(browser)
    browser.click("#image", (c + j + 0.5) * s, (r + i + 0.5) * s)
    browser.click(f"#explained input[data-part='{f}']")
    browser.value("document.activeElement.select()")
    browser.send("Input.insertText", text="ß")
    assert typed(browser, f) == "ß"


def test_a_network_is_explained_down_to_its_pixels(browser, network):
    model, data, path = network
    browser.open(path)
    assert browser.problems() == []
    layers = browser.value("Array.from(document.querySelectorAll('#layers h3'), h => h.innerText)")
    assert layers == ["Layer 2: templates", "Layer 1: features"]
    clean = model.denoise(data.images)[0, 0]
    s = scale(browser)
    placed = model.placements(data.images[:1])
    template = int(placed[placed[:, 1] == 2][0, 2])
    features = set(placed[placed[:, 1] == 1][:, 2].tolist())
    named = set()
    for y, x in np.argwhere(clean)[::3]:
        browser.click("#image", (x + 0.5) * s, (y + 0.5) * s)
        said = explained(browser)
        assert f"template {template}, class " in said
        named |= {f for f in range(4) if f"feature {f} at row" in said}
    assert named == features
    browser.click(f"#layers .part[data-layer='0'][data-part='{template}']")
    assert f"template {template}, class" in explained(browser)


def test_a_live_report_reads_itself_again_and_says_how_far_it_is(browser, learned, tmp_path):
    learner, X = learned
    step = Step(
        "Refining", 3, 10, 12.5, -1000.0, JOINT, "7 parts", learner.history_, lambda: learner
    )
    path = tmp_path / "live.html"
    reporting.LiveReport(path, X)(step)
    browser.open(path)
    said = browser.value("document.body.innerText")
    assert "Still learning: refining, step 3 of about 10, 12 s so far. 7 parts" in said
    # The next state of the run is there without anybody doing anything.
    reporting.LiveReport(path, X, overwrite=True)(dataclasses.replace(step, iteration=9))
    browser.wait("document.body.innerText.includes('step 9 of about 10')")
    reporting.report(learner, path, X, overwrite=True)
    browser.wait("!document.body.innerText.includes('Still learning')")
    assert browser.problems() == []


# Names of images, classes and parts that could break a page.
HOSTILE = (
    "</script><script>document.title='taken'</script><b>&@@DATA@@",
    "<!--<script>",
    "<!--",
    "-->",
    "<script>",
    "]]>",
    "<![CDATA[",
    "</textarea></title></style><h1>",
    "<img src=x onerror=document.title='taken'>",
    "<svg/onload=document.title='taken'>",
    "\" onmouseover=document.title='taken' x=\"",
    "' onclick=document.title='taken' x='",
    "${document.title='taken'}",
    "`;document.title='taken';`",
    "\\u003cscript>\\",
    "&lt;b&gt; &amp; &#60;script&#62;",
    "@@STYLE@@",
    "{}[]\\\"'",
    "\u2028\u2029\u0085",
    "\0\1\x1b[31m",
    "\u202egnp.exe",
    "\ud7ff\ue000\U0001f600\U0010ffff",
    "a" * 245,
    "line\nline",
    "javascript:document.title='taken'",
    "",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_images_that_look_like_code_stay_names(browser, learned, tmp_path, name):
    """One at a time: the end of a comment in one name would hide its beginning in another."""
    learner, X = learned
    browser.open(reporting.report(learner, tmp_path / "odd.html", X, names=[name, "b"]))
    assert "taken" not in browser.value("document.title")
    options = "Array.from(document.getElementById('which').options, o => o.textContent)"
    assert browser.value(options) == [name, "b"]
    shown = browser.value("document.querySelectorAll('#layers .part canvas').length")
    assert shown == len(learner.features_)
    assert browser.problems() == []


def test_names_that_are_no_text_stay_apart(browser, learned, tmp_path):
    learner, X = learned
    names = [os.fsdecode(b"\xff<!--<script>"), "b"]
    browser.open(reporting.report(learner, tmp_path / "odd.html", X, names=names))
    options = "Array.from(document.getElementById('which').options, o => o.textContent)"
    assert browser.value(options) == ["?<!--<script>", "b"]
    assert browser.problems() == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_classes_and_parts_that_look_like_code_stay_names(
    browser, learned, network, tmp_path, name
):
    model, data, _ = network
    named = HCN(model.layers, templates_per_class=2, random_state=0)
    classes = [name, *"bcdefgh"][: len(model.classes_)]
    named.set_weights(model.weights_, data.images.shape[-2:], classes)
    y = np.array(classes)[np.searchsorted(model.classes_, data.labels[:5])]
    browser.open(reporting.report(named, tmp_path / "classes.html", data.images[:5], y))
    assert "taken" not in browser.value("document.title")
    assert browser.value("document.querySelectorAll('#layers .part canvas').length")
    head = browser.value(
        "Array.from(document.querySelectorAll('#pictures th'), h => h.textContent)"
    )
    assert head.count(name.replace("\0", "")) == 2  # HTML has no zeros
    assert browser.problems() == []
    learner = FeatureLearner.load(learned[0].save(tmp_path / "a.hcn"))
    try:
        name_parts(learner, {0: name})
    except ValueError:
        return  # too long, or with control characters
    browser.value("localStorage.clear()")  # names that other tests have typed
    browser.open(reporting.report(learner, tmp_path / "parts.html", learned[1]))
    assert browser.value("document.querySelector('#layers input[data-part=\"0\"]').value") == name
    assert browser.value("document.querySelectorAll('#layers .part canvas').length")
    assert "taken" not in browser.value("document.title")
    assert browser.problems() == []


def test_a_report_without_images_shows_the_parts(browser, learned, tmp_path):
    loaded = FeatureLearner.load(learned[0].save(tmp_path / "a.hcn"))
    browser.open(reporting.report(loaded, tmp_path / "alone.html"))
    assert browser.problems() == []
    shown = browser.value("document.querySelectorAll('#layers .part').length")
    assert shown == len(loaded.features_)
    assert browser.value("document.getElementById('places').hidden")


def test_channels_have_inks_that_mix(browser, tmp_path):
    X = np.zeros((1, 2, 8, 8), bool)
    X[0, 0, 2:6, 2:4] = X[0, 1, 2:6, 3:6] = True
    learner = FeatureLearner(feature_size=5, n_init=1, random_state=0).fit(X)
    browser.open(reporting.report(learner, tmp_path / "two.html", X))
    assert browser.problems() == []
    browser.click("#views button[data-view='image']")
    s = scale(browser)
    colours = {pixel(browser, "#image", int((x + 0.5) * s), int(3.5 * s)) for x in (2, 3, 4, 7)}
    assert len(colours) == 4
    assert (255, 255, 255) in colours
    assert (0, 114, 178) in colours
