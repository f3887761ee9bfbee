"""Every move undoes the defect that it is for, on an example made for it."""

import math
from functools import partial

import numpy as np
import pytest

from hcnet.datasets import two_bars
from hcnet.engine.driver import CutShort, Limits, Outcome, Status, run
from hcnet.images import Images
from hcnet.layers import FeatureLayer
from hcnet.learning import learn as learning
from hcnet.learning.learn import LearningOptions
from hcnet.metrics import matched_iou, true_explanation
from hcnet.objective import Priors
from hcnet.refine import moves, search
from hcnet.solutions.explanation import NOWHERE, Canvas
from hcnet.solutions.improver import Improver

WINDOW = (7, 7)


def part(*lines):
    """A part in the top left corner of its window."""
    drawn = np.array([[mark == "#" for mark in line.ljust(WINDOW[1])] for line in lines])
    weights = np.zeros((1, *WINDOW), bool)
    weights[0, : drawn.shape[0], : drawn.shape[1]] = drawn
    return weights


RING = part("#####", "#...#", "#...#", "#...#", "#####")
CROSS = part("#...#", ".#.#.", "..#..", ".#.#.", "#...#")
HOOK = part("##...", "#....", "#....", "#..##", "#####")
GRID = [(r, c) for r in range(1, 46, 9) for c in range(1, 46, 9)]  # 25 places that do not touch
BOTH = [(RING, GRID[:13]), (CROSS, GRID[13:])]


def draw(*placed):
    """An image of 48×48 and an improver for it; `placed` are pairs of a part and its corners."""
    image = np.zeros((1, 1, 54, 54), bool)
    for weights, corners in placed:
        for r, c in corners:
            image[0, :, r : r + WINDOW[0], c : c + WINDOW[1]] |= weights
    image = image[:, :, :48, :48]
    layer = FeatureLayer(0, 1, WINDOW, (48, 48), "full")
    return Improver(Canvas(layer, Images(image, np.ones_like(image))), Priors())


def explain(improver, *placed):
    """The explanation by these features at these corners."""
    oh, ow = improver.canvas.layer.overhang
    rows = [(0, f, r + oh, c + ow) for f, (_, corners) in enumerate(placed) for r, c in corners]
    return improver.evaluate(
        [improver.feature(weights) for weights, _ in placed],
        np.array(rows, np.int64).reshape(-1, 4),
    )


def attempts(move, now, improver, seed=0):
    """All proposals of a move, worked out."""
    rng = np.random.default_rng(seed)
    return [
        improver.improve(proposal.features, proposal.placements, now, rng, proposal.rounds)
        for proposal in move(now, improver, rng)
    ]


def assert_undone(move, true, learned, *, seeds=1, errors=None):
    """Some proposal is better than what was learned, and its features are exactly the true parts.

    Both are pairs of a part and its corners.
    """
    improver = draw(*true)
    now = explain(improver, *learned)
    assert errors in (None, now.counts.errors)
    found = [x for seed in range(seeds) for x in attempts(move, now, improver, seed)]
    best = min(found, key=lambda explanation: explanation.bits)
    assert best.bits < now.bits - 1
    assert len(best.features) == len(true)
    assert matched_iou(best.weights(), np.stack([weights for weights, _ in true])).min() == 1
    assert best.counts.errors == 0


def halves(weights, axis, at=3):
    """A part cut in two."""
    first = np.arange(7).reshape((7, 1) if axis == 1 else 7) < at
    return weights & first, weights & ~first


def test_merge_joins_a_part_that_was_split():
    left, right = halves(RING, axis=2)
    assert_undone(moves.merge, [(RING, GRID)], [(left, GRID), (right, GRID)], errors=0)


def test_merge_joins_a_part_with_its_own_copy():
    bar = part("#####", ".....")
    pair = part("#####", ".....", ".....", ".....", "#####")
    twice = GRID + [(r + 4, c) for r, c in GRID]
    assert_undone(moves.merge, [(pair, GRID)], [(bar, twice)], errors=0)


def test_divide_parts_two_parts_that_share_a_feature():
    both = [(RING, GRID[:13]), (HOOK, GRID[13:])]
    assert_undone(moves.divide, both, [(RING & HOOK, GRID)])


@pytest.mark.parametrize(("move", "seeds"), [(moves.birth, 5), (moves.crop, 30)])
def test_birth_and_crop_find_a_part_that_is_missing(move, seeds):
    assert_undone(move, BOTH, BOTH[:1], seeds=seeds)


def test_birth_starts_from_nothing():
    assert_undone(moves.birth, [(CROSS, GRID)], [], seeds=5)


def test_split_gives_a_misplaced_feature_away():
    both = [(RING, GRID[:20]), (CROSS, GRID[20:])]
    assert_undone(moves.split, both, [(RING, GRID)], seeds=5)


def test_subtract_takes_a_contained_part_out():
    bar = part(".......", ".......", ".......", ".......", ".......", ".......", "#######")
    true = [(bar, GRID[:17]), (CROSS, GRID[:9] + GRID[17:])]
    learned = [(CROSS | bar, GRID[:9] + GRID[17:]), (bar, GRID[9:17])]
    assert_undone(moves.subtract, true, learned, seeds=3)


INNER = [(r, c) for r in range(1, 40, 9) for c in range(1, 40, 9)]  # away from the border


def test_shift_lets_a_part_grow_over_the_edge_of_its_window():
    wide = np.ones((1, 7, 7), bool)
    wide[:, 2:5, 2:5] = False
    short = np.roll(wide, 1, axis=2)
    short[:, :, 0] = False  # its last column is cut, and the window has no room on that side
    learned = [(short, [(r, c - 1) for r, c in INNER])]
    assert_undone(moves.shift, [(wide, INNER)], learned, errors=7 * len(INNER))


def test_shift_finds_what_a_part_lacks_anywhere_around_it():
    """A dot so far below its bar that a window with the bar in the middle does not reach it."""
    both = part("#######", "", "", "", "", "", "...#...")
    bar = np.roll(part("#######"), 3, axis=1)
    learned = [(bar, [(r - 3, c) for r, c in INNER])]
    assert_undone(moves.shift, [(both, INNER)], learned, errors=len(INNER))


def test_shift_gives_up_a_pixel_for_more_on_the_other_side():
    wanted = part("#######", "", "", "", "", "...#...", "..###..")
    lacking = np.roll(part("#######"), 3, axis=1)
    lacking[0, 0, 0] = True  # is there below two of the placements
    corners = [(r, c) for r in range(10, 40, 9) for c in range(1, 40, 9)]
    dots = part("#")
    improver = draw((wanted, corners), (dots, [(r - 3, c) for r, c in corners[:2]]))
    now = explain(improver, (lacking, [(r - 3, c) for r, c in corners]))
    best = min(attempts(moves.shift, now, improver), key=lambda found: found.bits)
    assert best.bits < now.bits
    assert matched_iou(best.weights(), wanted[None]).min() == 1


def test_trim_frees_a_part_that_loose_pixels_hold_in_place():
    """Noise made a pixel above the bar pay, and with it a bar stands beside where it belongs."""
    data = two_bars(random_state=19)
    improver, truth = true_explanation(data, data.feature_size)
    upright, flat = np.zeros((2, 1, 15, 15), bool)
    upright[0, :, 7] = flat[0, 10] = flat[0, 4, 11] = True
    features = [improver.feature(weights) for weights in (upright, flat)]
    now = improver.improve(features, NOWHERE, truth, np.random.default_rng(1))
    assert now.features == tuple(features)
    assert attempts(moves.polish, now, improver)[0].bits >= now.bits - 1e-6
    assert min(found.bits for found in attempts(moves.trim, now, improver)) < now.bits - 1


def test_merge_leaves_loose_pixels_out_that_no_window_holds():
    left, right = CROSS.copy(), np.roll(CROSS, -3, axis=2)
    left[:, :, 3:] = False
    right[:, :, 2:] = False
    right[0, 3, 6] = True
    learned = [(left, GRID), (right, [(r, c + 3) for r, c in GRID])]
    assert_undone(moves.merge, [(CROSS, GRID)], learned)


def test_of_placements_that_explain_the_same_the_one_that_fits_more_leaves_others_free():
    """A stem and an o make up a b; an h, which errs by a pixel, and a c do so, too."""
    o, stem = part("", "", ".####", "##..##", "##..##", ".####"), part(*["##"] * 6)
    c, h = part("", "", ".####", "##", "##", ".####"), part("##", "##", "##.##", *["##..##"] * 3)
    improver = draw((o | stem, GRID))
    features = [improver.feature(weights) for weights in (o, stem, c, h)]
    now = explain(improver, (o, []), (stem, []), (c, GRID), (h, GRID))
    overhang = improver.canvas.layer.overhang
    rows = [(0, f, y + overhang[0], x + overhang[1]) for f in (2, 3) for y, x in GRID]
    found = improver.improve(features, np.array(rows), now, np.random.default_rng(0), 1)
    assert found.counts.errors == 0
    assert len(found.features) == 2


def test_complete_gives_a_part_the_pixels_that_others_cover():
    """Two others fill the same gap, each at half of the places: none of them can go alone."""
    gap = part(".....", "....#", "....#")
    fill, other = part(".....", "..###", "..###"), part(".....", "...##", "...##", "...##")
    image = RING.copy()
    image[0, 1:4, 2:4] = True
    learned = [(image & ~gap, GRID), (fill, GRID[:13]), (other, GRID[13:])]
    improver = draw((image, GRID))
    polished = attempts(moves.polish, explain(improver, *learned), improver)
    assert all(len(found.features) == 3 for found in polished)
    assert_undone(moves.complete, [(image, GRID)], learned, errors=0)


def test_merge_takes_the_place_of_all_pairs_that_it_can_replace():
    """The other pair has no feature of the first in it, and one at a time gains nothing."""
    (top, bottom), (left, right) = halves(RING, axis=1), halves(RING, axis=2)
    improver = draw((RING, GRID))
    half, rest = GRID[:13], GRID[13:]
    now = explain(improver, (top, half), (bottom, half), (left, rest), (right, rest))
    rng = np.random.default_rng(0)
    proposal = next(iter(moves.merge(now, improver, rng)))
    found = improver.improve(proposal.features, proposal.placements, now, rng)
    assert matched_iou(found.weights(), RING[None]).min() == 1
    assert len(found.features) == 1


def test_all_proposals_are_tried_before_a_search_is_over(monkeypatch):
    """A move that helps with its last proposal only."""
    improver = draw(*BOTH)
    now, better = explain(improver, BOTH[0]), explain(improver, *BOTH)

    def many(now, improver, rng):
        for _ in range(30):
            yield moves.Proposal(now.features, now.placements, 1)
        yield moves.Proposal(better.features, better.placements, 1)

    def nothing(*_, **__):
        return iter(())

    for name in ("merge", "divide", "birth", "split", "crop", "complete", "grow", "shift", "trim"):
        monkeypatch.setattr(moves, name, nothing)
    monkeypatch.setattr(moves, "subtract", many)
    outcome = run(search.Search(improver, now, np.random.default_rng(0)), Limits())
    assert outcome.status is Status.FINISHED
    assert outcome.best.bits == better.bits


@pytest.mark.parametrize("move", [moves.delete, moves.absorb])
def test_delete_removes_a_useless_feature(move):
    corner = part("##", "#.")
    learned = [(RING & ~corner, GRID), (corner, GRID)]
    assert_undone(partial(move, f=1), [(RING, GRID)], learned, errors=0)


def test_delete_of_a_feature_that_is_gone_proposes_nothing():
    improver = draw((RING, GRID))
    now = explain(improver, (RING, GRID))
    for move in (moves.delete, moves.absorb, moves.dissolve):
        assert list(move(now, improver, None, 1)) == []
    assert list(moves.absorb(now, improver, None, 0)) == []  # nobody is left to take over


def test_merge_reaches_parts_that_lie_at_the_edges_of_their_windows():
    """Far apart as their windows are, the two stand side by side."""
    left, right = part("##.", "#..", "##."), part("..#", "###")
    both = left | np.roll(right, 3, axis=2)
    away = np.roll(left, 4, axis=2)  # at the right edge of its window
    learned = [(away, [(r, c - 4) for r, c in GRID]), (right, [(r, c + 3) for r, c in GRID])]
    assert_undone(moves.merge, [(both, GRID)], learned, errors=0)


def test_dissolve_gives_a_shared_fragment_to_all_parts_that_have_it():
    """Merged with one of them alone it stays for the other, and nothing is gained."""
    fragment = part("###", "#.#", "###")
    first = part("", "", "", "", "#######", "#")
    second = part("......#", "", "", "......#", "......#")
    true = [(fragment | first, GRID[:13]), (fragment | second, GRID[13:])]
    learned = [(fragment, GRID), (first, GRID[:13]), (second, GRID[13:])]
    assert_undone(partial(moves.dissolve, f=0), true, learned, errors=0)


@pytest.mark.parametrize("move", [moves.scratch, moves.place_by_messages])
def test_scratch_and_messages_place_features_anew(move):
    assert_undone(move, BOTH, [(RING, GRID[:1]), (CROSS, GRID[13:14])])


def loose(extra):
    """A ring and a bar side by side; the pixel `extra` counts to the ring, though apart from it."""
    ring = part("###....", "#.#....", "###....")
    bar = part("....###")
    pixel = np.zeros_like(ring)
    pixel[0][extra] = True
    improver = draw((ring | bar | pixel, GRID))
    now = explain(improver, (ring | pixel, GRID), (bar, GRID))
    assert now.counts.errors == 0
    return improver, now, ring, bar, pixel


def test_tidy_gives_a_loose_pixel_to_the_part_beside_it():
    improver, now, ring, bar, pixel = loose((1, 6))
    rng = np.random.default_rng(0)
    found = [
        improver.evaluate(proposal.features, proposal.placements)
        for proposal in moves.tidy(now, improver, rng)
    ]
    tidied = min(found, key=moves.count_pieces)
    assert tidied.bits == pytest.approx(now.bits)
    assert (moves.count_pieces(now), moves.count_pieces(tidied)) == (3, 2)
    assert matched_iou(tidied.weights(), np.stack([ring, bar | pixel])).min() == 1


def test_tidying_ends_where_a_pixel_belongs_to_nobody(monkeypatch):
    """It could go to and fro between the two parts for ever."""
    monkeypatch.setattr(search, "PATIENCE", 0)
    improver, now, *_ = loose((5, 3))
    outcome = run(search.Search(improver, now, np.random.default_rng(0)), Limits())
    assert outcome.status is Status.FINISHED
    assert outcome.best.bits <= now.bits


def test_learning_returns_the_tidied_solution(monkeypatch):
    """Tidying makes no code shorter, so a driver that waits for improvements misses it."""
    monkeypatch.setattr(search, "PATIENCE", 0)
    improver, now, ring, bar, pixel = loose((1, 6))
    start = Outcome(now, -now.bits * math.log(2), Status.CONVERGED, 0, 0.0)
    monkeypatch.setattr(learning._Learner, "start", lambda *_: start)
    canvas = improver.canvas
    options, rng = LearningOptions(n_init=1, max_iter=0), np.random.default_rng(0)
    found = learning.learn(canvas.images, canvas.layer, Priors(), options, rng).explanation
    assert found.bits <= now.bits + 1e-6
    assert matched_iou(found.weights(), np.stack([ring, bar | pixel])).min() == 1


def test_pieces_are_counted_over_all_channels():
    layer = FeatureLayer(0, 3, (4, 4), (9, 9), "full")
    blank = np.zeros((1, 3, 9, 9), bool)
    improver = Improver(Canvas(layer, Images(blank, ~blank)), Priors())
    weights = np.zeros((3, 4, 4), bool)
    weights[0, 0, 0] = weights[2, 0, 1] = True  # channels have no order: these two touch
    found = improver.evaluate([improver.feature(weights)], np.array([[0, 0, 4, 4]]))
    assert moves.count_pieces(found) == 1


OF_ALL = "polish scratch merge birth split divide subtract crop tidy shift grow trim complete"
EVERY_MOVE = {name: getattr(moves, name) for name in [*OF_ALL.split(), "place_by_messages"]} | {
    name: partial(getattr(moves, name), f=0) for name in ("delete", "absorb", "dissolve")
}


@pytest.mark.parametrize("name", EVERY_MOVE)
@pytest.mark.parametrize("border", ["full", "valid"])
@pytest.mark.parametrize("kind", ["nothing learned", "blank", "all on", "window as the image"])
def test_moves_survive_the_edges(name, border, kind):
    rng = np.random.default_rng(0)
    image = {"blank": np.zeros, "all on": np.ones}.get(kind, np.ones)((2, 1, 6, 5)) > 0
    window = (6, 5) if kind == "window as the image" else (2, 3)
    layer = FeatureLayer(0, 1, window, (6, 5), border)
    improver = Improver(Canvas(layer, Images(image, np.ones_like(image))), Priors())
    features = [] if kind == "nothing learned" else [improver.feature(np.ones((1, *window)))]
    placements = np.array([[0, 0, 0, 0]]) if features else NOWHERE
    now = improver.evaluate(features, placements)
    for proposal in EVERY_MOVE[name](now, improver, rng):
        found = improver.improve(proposal.features, proposal.placements, now, rng)
        again = improver.evaluate(found.features, found.placements)
        assert again.bits == found.bits


def test_the_search_finds_both_parts_from_nothing():
    improver = draw(*BOTH)
    process = search.Search(improver, explain(improver), np.random.default_rng(0))
    outcome = run(process, Limits())
    assert outcome.status is Status.FINISHED
    assert matched_iou(outcome.best.weights(), np.stack([RING, CROSS])).min() == 1
    joints = [record.objective for record in outcome.history]
    assert joints == sorted(joints)
    assert sum(move.bits_saved for move in process.statistics.values()) == pytest.approx(
        explain(improver).bits - outcome.best.bits
    )


def test_a_search_ends_where_another_ended():
    improver = draw(*BOTH)
    truth = explain(improver, *BOTH)
    first, again = (
        search.Search(improver, explain(improver), np.random.default_rng(0), known_ends=ends)
        for ends in ((), (truth.bits,))
    )
    steps = [run(process, Limits()).n_iter for process in (first, again)]
    assert first.now.bits == again.now.bits == truth.bits
    assert steps[1] < steps[0] / 3


@pytest.mark.parametrize(("n_init", "starts"), [(None, learning.ENOUGH), (5, 5)])
def test_starts_that_agree_are_enough_unless_their_number_is_given(n_init, starts, monkeypatch):
    made, rng = [], np.random.default_rng(0)
    begin = search.Search.__post_init__
    monkeypatch.setattr(
        search.Search, "__post_init__", lambda self: made.append(self) or begin(self)
    )
    canvas = draw((RING, GRID)).canvas
    options = LearningOptions(n_init=n_init, max_iter=0)
    learning.learn(canvas.images, canvas.layer, Priors(), options, rng)
    assert len(made) == starts


def test_the_search_keeps_to_the_most_features():
    improver = draw(*BOTH)
    limited = search.Search(improver, explain(improver), np.random.default_rng(0), max_features=1)
    outcome = run(limited, Limits())
    assert len(outcome.best.features) == 1


def test_grow_lengthens_a_bar_whose_placements_disagree_on_the_missing_end():
    bar = part("#######")
    improver = draw((bar, GRID[:12]))
    short = part("######")
    # Half of the short bars lack the left end, the other half the right one.
    now = explain(improver, (short, [(r, c + k % 2) for k, (r, c) in enumerate(GRID[:12])]))
    polished = attempts(moves.polish, now, improver)
    assert all(found.bits > now.bits - 1e-6 for found in polished)
    best = min(attempts(moves.grow, now, improver), key=lambda found: found.bits)
    assert best.bits < now.bits
    assert best.counts.errors == 0
    assert best.weights().sum() == 7


def test_a_move_that_is_given_up_changes_nothing(monkeypatch):
    """A search whose steps are given up again and again takes the same way as any other."""
    data = two_bars(size=(24, 24), length=6, n_placements=12, random_state=0)
    layer = FeatureLayer(0, 1, WINDOW, (24, 24), "full")
    images = Images(data.images.astype(bool), np.ones(data.images.shape, bool))
    improver = Improver(Canvas(layer, images), Priors())
    looks, rng = [0], np.random.default_rng(1)

    def look():
        looks[0] -= 1
        if looks[0] == 0:
            raise CutShort

    monkeypatch.setattr("hcnet.solutions.improver.look", look)
    monkeypatch.setattr("hcnet.engine.threads.look", look)
    ends = []
    for cuts in (False, True):
        process = search.Search(improver, improver.evaluate([], NOWHERE), np.random.default_rng(0))
        alive = True
        while alive:
            looks[0] = int(rng.integers(1, 60)) * cuts
            try:
                alive = process.step()
            except CutShort as cut:
                assert cut.intact  # noqa: PT017
        looks[0] = 0
        ends.append((process.now.bits, process.statistics, process.now.placements.tolist()))
    assert ends[0] == ends[1]
