"""Parts that lie on lines: lines, pieces cut from them, and whole sheets."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage

from hcnet import FeatureLearner
from hcnet.datasets import scanned_text
from hcnet.engine.driver import Limits, run
from hcnet.images import Images
from hcnet.soft import coding
from hcnet.soft.pieces import find_pieces, joined, many_pieces, selected
from hcnet.soft.rules import without_lines
from hcnet.soft.sizes import size_of_parts
from hcnet.soft.soft_search import SoftSearch
from hcnet.soft.windows import LENGTHS, ink_of, window_search


def blot(rng, side=21):
    """A disc or a ring with a ragged edge."""
    y, x = np.mgrid[:side, :side] - side // 2
    near = np.hypot(y, x) + rng.normal(0, 0.35, (side, side))
    return near < 0.4 * side


def cross(rng, side=25):
    y, x = np.mgrid[:side, :side] - side // 2
    arm = np.minimum(np.abs(y + x), np.abs(y - x)) + rng.normal(0, 0.35, (side, side))
    return (arm < 3.5) & (np.maximum(np.abs(y), np.abs(x)) < side // 2)


@pytest.fixture(scope="module")
def staves():
    """Discs and crosses on lines of three pixels, and how many there are of each."""
    rng = np.random.default_rng(3)
    page = np.zeros((700, 900), bool)
    for row in range(60, 700, 40):
        page[row : row + 3, 10:890] = True
    for row in range(60, 660, 80):
        for column in range(20, 850, 45):
            shape = (blot, cross)[int(rng.integers(2))](rng)
            y, x = row - shape.shape[0] // 2 + int(rng.integers(-2, 3)), column
            page[y : y + shape.shape[0], x : x + shape.shape[1]] |= shape
    return page


def test_lines_are_taken_away_and_what_lies_on_them_stays():
    page = np.zeros((60, 120), bool)
    page[28:31, :] = True
    page[:, 100:102] = True
    disc = np.hypot(*(np.mgrid[:21, :21] - 10)) < 10
    page[19:40, 40:61] |= disc
    rest, lines = without_lines(page, 48)
    _, n = ndimage.label(rest, np.ones((3, 3)))
    assert n == 1
    assert (rest[19:40, 40:61] & disc).sum() > 0.95 * disc.sum()
    assert not (lines & ~page).any()
    assert (rest | lines)[page].all()
    assert lines[29].all()  # also below the disc
    none, empty = without_lines(page, 200)
    assert (none == page).all()
    assert not empty.any()


def test_hidden_pixels_cost_nothing(staves):
    table = np.random.default_rng(0).random((1 << len(coding.TEMPLATE), 2)).astype(np.float32)
    pieces = find_pieces(staves, largest=(700, 900))
    around = coding.template_bits(replace(pieces, hidden=np.ones_like(pieces.ink)).arrays(), table)
    none = coding.template_bits(replace(pieces, hidden=np.zeros_like(pieces.ink)).arrays(), table)
    assert (coding.template_bits(pieces.arrays(), table) == none).all()
    assert (around < none).all()


def test_a_piece_adds_its_bits_to_the_page(staves):
    rest, _ = without_lines(staves, LENGTHS[1])
    pieces = selected(find_pieces(rest), np.arange(5))
    pieces = replace(pieces, hidden=np.zeros_like(pieces.ink))
    table = np.random.default_rng(0).random((1 << len(coding.TEMPLATE), 2)).astype(np.float32)
    bits = coding.added_bits(pieces.arrays(), pieces.top, pieces.left, staves.view(np.uint8), table)
    for i in range(5):
        less = staves & ~ink_of(pieces, np.array([i]), staves, 0)
        whole = coding.page_bits(staves.view(np.uint8), table)
        assert bits[i] == pytest.approx(whole - coding.page_bits(less.view(np.uint8), table), 1e-4)


def test_shapes_on_lines_are_found(staves):
    learner = FeatureLearner(algorithm="soft", random_state=0).fit(staves)
    assert 2 <= len(learner.features_) <= 6
    assert np.bincount(learner.placements_[:, 1]).max() > 30
    again = learner.placements(staves)
    assert len(again) > 0.8 * len(learner.placements_) > 80


def test_a_sheet_that_hangs_together_is_soft(staves):
    assert find_pieces(staves, largest=(700, 900)).page.size < 60
    assert many_pieces([staves])
    assert FeatureLearner(random_state=0).fit(staves).algorithm_ == "soft"


def test_a_search_among_cut_pieces_shortens_the_code_and_can_be_stored(staves):
    first = SoftSearch([staves], find_pieces(staves), 0)
    while first.step():
        pass
    search = window_search([staves], first, LENGTHS[0], None, 0)
    before = search.alone.sum()
    run(search, Limits())
    assert search.energy() < before
    assert window_search([np.zeros_like(staves)], first, LENGTHS[0], None, 0) is None
    assert len(joined([search.pieces, first.pieces]).hidden) == search.pieces.ink.size + len(
        first.pieces.ink
    )


@pytest.mark.parametrize("steps", [5, 25, 30])
def test_a_fit_goes_on_where_it_was_stopped(staves, tmp_path, steps):
    """The second of these is within the search among cut pieces, or at its beginning."""
    whole = FeatureLearner(algorithm="soft", random_state=0).fit(staves)
    seen = []

    def stop(step):
        seen.append(step)
        if len(seen) == steps:
            raise RuntimeError("stopped")

    path = tmp_path / "state"
    learner = FeatureLearner(algorithm="soft", random_state=0, callback=stop)
    with pytest.raises(RuntimeError, match="stopped"):
        learner.fit(staves, checkpoint=path, every=0)
    learner.set_params(callback=None).fit(staves, checkpoint=path)
    assert (learner.placements_ == whole.placements_).all()
    assert learner.log_joint_ == whole.log_joint_


@pytest.mark.parametrize("noise", [0, 0.02])
@pytest.mark.parametrize("side", [16, 20])
def test_windows_are_as_large_as_the_pieces_that_repeat(side, noise):
    rng = np.random.default_rng(side)
    sprites = rng.random((3, side, side)) < 0.6
    sprites[:, [0, -1]] = sprites[:, :, [0, -1]] = True
    page = np.zeros((4 * side + 20, 6 * side + 28), bool)
    for i, (y, x) in enumerate(np.ndindex(4, 6)):
        at = slice(y * (side + 4) + 3, None), slice(x * (side + 4) + 3, None)
        page[at][:side, :side] = sprites[i % 3]
    page ^= rng.random(page.shape) < noise
    images = Images(page[None, None], np.ones((1, 1, *page.shape), bool))
    assert size_of_parts(images) == (side, side)
    learner = FeatureLearner(n_init=1, random_state=0).fit(page)
    assert learner.features_.shape == (3, 1, side, side)
    assert len(learner.placements_) == 24


def test_a_piece_is_not_explained_by_a_part_that_has_lost_its_copies(staves):
    page = np.zeros((staves.shape[0] + 300, staves.shape[1]), bool)
    text = scanned_text(size=(300, 500), random_state=0).images[0, 0]
    page[:300, :500], page[300:] = text[:, : page.shape[1]], staves
    first = SoftSearch([page], find_pieces(page), 0)
    while first.step():
        pass
    alone = int(np.flatnonzero(first.parts.n == 1)[0])
    first.covers = np.array([[alone, alone, 0, 0]])
    assert first.explained[alone] == first.shared[alone]
    assert (window_search([page], first, LENGTHS[0], None, 0).covers >= 0).all()
