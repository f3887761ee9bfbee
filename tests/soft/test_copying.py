"""Copies that move between parts: what is counted always is what the copies are."""

import numpy as np
import plain
import pytest

from hcnet.datasets import scanned_text
from hcnet.soft import coding, copying, merging
from hcnet.soft.parts import Parts, cover
from hcnet.soft.pieces import find_pieces
from hcnet.soft.soft_search import STAGES, SoftSearch

SEED = 7


@pytest.fixture(scope="module")
def page():
    text = "noon mono amen moan name omen anon menu mean moon " * 9
    return scanned_text(size=(420, 700), text=text, random_state=1).images[0, 0]


@pytest.fixture
def search(page):
    return SoftSearch([page], find_pieces(page), SEED)


def check(pieces, parts, assigned, shift):
    """Sums, masses and numbers are those of the copies; a part lives with one of its copies."""
    placed = assigned >= 0
    assert (assigned[assigned[placed]] == assigned[placed]).all()
    np.testing.assert_array_equal(parts.n, np.bincount(assigned[placed], minlength=len(pieces)))
    sums = np.zeros_like(parts.sums)
    for i in np.flatnonzero(placed):
        k = assigned[i]
        copy, _ = plain.drawn(pieces, i, parts, k, shift[i])
        sums[parts.start[k] : parts.start[k] + copy.size] += copy.ravel()
    np.testing.assert_array_equal(parts.sums, sums)
    ends = [*parts.start[1:], len(sums)]
    mass = [sums[a:b].sum() for a, b in zip(parts.start, ends, strict=True)]
    np.testing.assert_array_equal(parts.mass, mass)
    some = parts.n > 0
    canvas = np.stack([parts.height, parts.width], axis=1)
    assert (parts.box[some][:, ::2] >= 1).all()
    assert (parts.box[some][:, 1::2] <= canvas[some] - 1).all()


def test_every_stage_leaves_parts_that_are_the_sum_of_their_copies(search):
    stages = []
    while search.step():
        if not stages or stages[-1] != search._stage:
            stages.append(search._stage)
            check(search.pieces, search.parts, search.assigned, search.shift)
    assert len(stages) >= len(STAGES) - 2
    assert (search.parts.n > 1).sum() >= 5


def test_each_stage_of_bits_shortens_the_description(search):
    bits = {}
    while search.step():
        if search._at == 0:
            bits[STAGES[search._stage - 1]] = search.energy()
    assert bits["merge"] < bits["gather"]
    assert bits["cover"] <= bits["dissolve"] * 1.001
    assert search.energy() < search.alone.sum()


def blots(n=24, kinds=3):
    rng = np.random.default_rng(SEED)
    pieces = plain.pieces_of(plain.shapes(rng, n, kinds, side=14))
    parts = Parts(np.stack([pieces.height, pieces.width], axis=1), pieces.reference)
    return pieces, parts, np.full(n, -1), np.zeros((n, 2), np.int64)


def gather(pieces, parts, assigned, shift, share=0.4):
    order, alone = np.arange(len(pieces)), np.full(len(pieces), 1e3)
    cost = np.ones(coding.TABLE, np.float32)
    given = order, pieces.arrays(), parts.arrays(), alone, assigned, shift
    copying.reassign(*given, cost, share, np.full(len(pieces), 17.0))


def test_copies_are_gathered_released_and_moved():
    pieces, parts, assigned, shift = state = blots()
    gather(*state)
    check(*state)
    assert len(np.unique(assigned)) == 3
    np.testing.assert_array_equal(assigned % 3, np.arange(24) % 3)
    # A part whose own piece leaves moves to the canvas of another copy.
    first = np.array([assigned[0]])
    copying.release(first, pieces.arrays(), parts.arrays(), assigned, shift)
    check(*state)
    assert assigned[0] == 0
    assert assigned[3] == 3
    assert parts.n[3] == 7
    copying.release(np.arange(24), pieces.arrays(), parts.arrays(), assigned, shift)
    check(*state)
    np.testing.assert_array_equal(assigned, np.arange(24))
    assert not shift.any()
    cost = np.ones(coding.TABLE, np.float32)
    gather(*state)
    copying.realign(np.arange(24), pieces.arrays(), parts.arrays(), assigned, shift, cost)
    check(*state)


def test_boxes_hold_what_a_twentieth_of_the_copies_has():
    _, parts, assigned, _ = state = blots()
    gather(*state)
    copying.tighten(parts.arrays())
    for k in np.unique(assigned):
        rows, columns = np.nonzero(20 * plain.canvas(parts, k) >= parts.n[k])
        expected = [rows.min(), rows.max() + 1, columns.min(), columns.max() + 1]
        np.testing.assert_array_equal(parts.box[k], expected)
        assert parts.counts(k).shape == tuple(parts.box[k, 1::2] - parts.box[k, ::2])


@pytest.mark.parametrize("slack", [0.0, 5.0])
def test_merging_keeps_all_copies(slack):
    """Also those pixels that lie outside of the box of a part."""
    pieces, parts, assigned, shift = state = blots(40, 2)
    assigned[:] = np.arange(40) % 8  # four parts for each blot
    copying.fill(pieces.arrays(), parts.arrays(), assigned, shift)
    copying.tighten(parts.arrays())
    cost = np.tile(np.array([0.3, 2.4], np.float32), (coding.CONTEXTS, 1))
    cost[4096 * 3 :] = cost[4096 * 3 :, ::-1]  # mostly as in the part
    cost = plain.one_rendering(cost)
    alone = np.full(40, 150.0)
    given = pieces.arrays(), parts.arrays()
    bits = coding.price(*given, assigned, shift, 1, cost, coding.NO_COUNTS)
    rest = alone, assigned, shift, bits, cost, slack, np.full(40, 17.0)
    merged = merging.merge(np.arange(8), *given, *rest)
    assert merged >= 4
    check(*state)
    assert len(np.unique(assigned)) == 8 - merged
    np.testing.assert_array_equal(assigned % 2, np.arange(40) % 2)


def test_match_finds_the_part_that_costs_least(search):
    while search.step():
        pass
    pieces, known = search.pieces, search.parts.arrays(least=2)
    given = pieces.arrays(), known, search.alone, search.cost, search.place, coding.NO_TABLE
    part, shift, bits = copying.match(*given, np.zeros(len(pieces)))
    assert ((part >= 0) == (bits < search.alone)).all()
    assert (bits <= search.alone).all()
    assert (search.parts.n[part[part >= 0]] > 1).all()
    assert (np.abs(shift) <= copying.FARTHEST).all()
    for i in np.flatnonzero(part >= 0)[::9]:
        k = part[i]
        name = search.place[i] - np.log2(search.parts.n[k])
        name += plain.row_bits(pieces, i, search.parts, k, shift[i])
        alone = plain.copy_bits(pieces, i, search.parts, part[i], shift[i], 0, search.cost)
        assert bits[i] == pytest.approx(alone + name, rel=1e-4)
    # Most copies are found again.
    same = part[search.shared] == search.assigned[search.shared]
    assert same.mean() > 0.6


@pytest.fixture(scope="module")
def letters(page):
    """A finished search, its most frequent large parts, and their bitmaps on one base line."""
    search = SoftSearch([page], find_pieces(page), SEED)
    while search.step():
        pass
    parts, area = search.parts, search.pieces.area
    often = np.argsort(-parts.n * (area >= 60), kind="stable")[:3].tolist()
    bitmaps = [2 * parts.counts(k) >= parts.n[k] for k in often]
    height = max(len(one) for one in bitmaps)
    level = [np.pad(one, ((height - len(one), 0), (0, 0))) for one in bitmaps]
    return search, often, level


def covered(search, bitmaps):
    """Pieces of these bitmaps, the parts that are found inside, and the bits saved."""
    pieces, parts, n = plain.pieces_of(bitmaps), search.parts, len(bitmaps)
    usable = np.flatnonzero((parts.n >= 3) & (parts.mass >= 30 * parts.n))
    tables = search.cost_alone, search.cost, np.full(n, np.median(search.place))
    return pieces, *cover(np.arange(n), pieces, parts, usable, np.full(n, -1), *tables)


def unknown(height):
    """A shape that no letter has."""
    rows, columns = np.indices((height, height))
    return (rows + columns) % 7 < 3


def test_touching_copies_are_found_inside_a_piece(letters):
    """Two copies of frequent parts side by side: rows lie inside, and save bits."""
    search, often, level = letters
    parts = search.parts
    pairs = [np.concatenate([level[0], level[j]], axis=1) for j in (1, 2)]
    pieces, rows, saved = covered(search, pairs)
    alone = coding.template_bits(pieces.arrays(), search.cost_alone)
    assert (saved > 0).all()
    assert (saved < alone).all()
    for i in range(2):
        found = rows[rows[:, 0] == i]
        assert len(found) >= 2
        assert set(often[:: i + 1][:2]) & set(found[:, 1].tolist())
        sides = (parts.box[:, 1::2] - parts.box[:, ::2])[found[:, 1]]
        assert (found[:, 2:] >= -1).all()
        assert (found[:, 2:] + sides <= np.array(pieces.bitmap(i).shape) + 1).all()


def test_nothing_is_found_without_parts(letters):
    search, _, level = letters
    pieces = plain.pieces_of([level[0]])
    place, none = np.full(1, np.median(search.place)), np.zeros(0, np.int64)
    given = search.parts, none, np.full(1, -1), search.cost_alone, search.cost, place
    rows, saved = cover(np.arange(1), pieces, *given)
    assert len(rows) == 0
    assert not saved.any()


def test_a_word_that_hangs_together_is_its_letters(letters):
    """The word is wider than the 64 pixels that are compared at once."""
    search, often, level = letters
    order = [0, 1, 2, 1, 0, 2, 0]
    word = np.concatenate([level[j] for j in order], axis=1)
    assert word.shape[1] > 2 * 64
    _, rows, saved = covered(search, [word])
    assert saved[0] > 0
    rows = rows[np.argsort(rows[:, 3])]
    assert rows[:, 1].tolist() == [often[j] for j in order]
    left = np.cumsum([0] + [level[j].shape[1] for j in order[:-1]])
    assert (np.abs(rows[:, 3] - left) <= 1).all()


def test_a_letter_that_touches_an_unknown_shape_is_found(letters):
    search, often, level = letters
    _, rows, saved = covered(search, [np.concatenate([level[0], unknown(len(level[0]))], axis=1)])
    assert rows[:, 1].tolist() == [often[0]]
    assert abs(rows[0, 3]) <= 1
    assert saved[0] > 0


def test_a_letter_with_more_ink_above_it_is_another_letter(letters):
    search, _, level = letters
    h, w = level[0].shape
    more = np.concatenate([unknown(h)[:, :w], level[0]])
    _, rows, saved = covered(search, [more])
    assert len(rows) == 0
    assert saved[0] == 0


def test_a_doubtful_letter_does_not_take_the_others_with_it(letters):
    search, often, level = letters
    h, w = level[0].shape
    more = np.concatenate([unknown(h)[:, :w], level[0]])
    down = ((h, 0), (0, 0))
    word = [np.pad(level[1], down), more, np.pad(level[2], down)]
    _, rows, saved = covered(search, [np.concatenate(word, axis=1)])
    assert set(rows[:, 1].tolist()) == {often[1], often[2]}
    assert saved[0] > 0
