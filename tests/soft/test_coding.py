"""Bits of pixels, pieces and copies: compiled loops against plain Python."""

import numpy as np
import plain
import pytest

from hcnet.soft import channel, coding
from hcnet.soft.coding import TEMPLATE


@pytest.fixture(scope="module")
def made():
    """Copies of two parts, with some shifts."""
    rng = np.random.default_rng(0)
    pieces = plain.pieces_of(plain.shapes(rng, 11))
    assigned = np.arange(11) % 2
    shift = rng.integers(-2, 3, (11, 2))
    shift[:2] = 0
    cost = rng.uniform(0.1, 5, coding.TABLE).astype(np.float32)
    return pieces, plain.parts_of(pieces, assigned, shift), assigned, shift, cost


@pytest.mark.parametrize("own", [0, 1])
def test_bits_of_copies_are_those_of_their_pixels_in_context(made, own):
    pieces, parts, assigned, shift, cost = made
    counts = np.zeros(coding.TABLE)
    bits = coding.price(pieces.arrays(), parts.arrays(), assigned, shift, own, cost, counts)
    expected = [
        plain.copy_bits(pieces, i, parts, k, shift[i], own, cost) for i, k in enumerate(assigned)
    ]
    np.testing.assert_allclose(bits, expected, rtol=1e-4)  # sums in single precision
    # Each copy is counted in all renderings, with their probabilities; so are its pixels.
    area = 0
    renderings = np.zeros(coding.RENDERINGS)
    for i, k in enumerate(assigned):
        each = plain.rendering_bits(pieces, i, parts, k, shift[i], own, cost)
        renderings += np.exp2(expected[i] - each)
        _, corner = plain.drawn(pieces, i, parts, k, shift[i])
        top, bottom, left, right = plain.copy_area(pieces, i, parts, k, corner)
        area += (bottom - top) * (right - left)
    np.testing.assert_allclose(counts[-1, 1], renderings, rtol=1e-2, atol=1e-6)
    assert counts[:-1].sum() == pytest.approx(area)


def test_a_copy_that_is_left_out_costs_what_it_costs_without_it(made):
    pieces, parts, assigned, shift, cost = made
    none = coding.NO_COUNTS
    given = pieces.arrays(), parts.arrays(), assigned, shift
    own = coding.price(*given, 1, cost, none)
    for i, k in enumerate(assigned):
        others = np.arange(len(pieces)) != i
        rest = plain.pieces_of([pieces.bitmap(j) for j in np.flatnonzero(others)])
        without = plain.Parts(np.stack([pieces.height, pieces.width], axis=1), pieces.reference)
        plain.copying.fill(rest.arrays(), without.arrays(), assigned[others], shift[others])
        assert without.n[k] == parts.n[k] - 1
        without.box[:] = parts.box
        bits = coding.price(*given[:1], without.arrays(), *given[2:], 0, cost, none)
        assert bits[i] == pytest.approx(own[i], rel=1e-12)


def test_a_piece_that_is_its_part_has_no_price(made):
    pieces, _, _, _, cost = made
    alone, shift = np.arange(len(pieces)), np.zeros((len(pieces), 2), np.int64)
    parts = plain.parts_of(pieces, alone, shift)
    bits = coding.price(pieces.arrays(), parts.arrays(), alone, shift, 1, cost, coding.NO_COUNTS)
    assert not bits.any()


def test_levels_have_the_bounds_that_the_design_says():
    part = np.zeros((5, 7, 7), np.uint8)
    for level, on in enumerate((0, 1, 3, 4, 5)):  # of 5 copies
        part[:on, 3, 1 + level] = 1
    part[:, 0, 0] = part[:, 6, 6] = 1
    pieces = plain.pieces_of(part)
    assigned, shift = np.zeros(5, np.int64), np.zeros((5, 2), np.int64)
    shift[:] = pieces.reference - pieces.reference[0]  # all bitmaps on the same pixels
    parts = plain.parts_of(pieces, assigned, shift)
    cost = np.zeros((coding.LEVELS, 4096, 2), np.float32)
    cost += 10.0 ** np.arange(coding.LEVELS, dtype=np.float32)[:, None, None]
    cost = plain.one_rendering(cost.reshape(-1, 2))
    given = pieces.arrays(), parts.arrays(), assigned, shift, 0, cost, coding.NO_COUNTS
    bits = coding.price(*given)
    # Shares (on + 0.12) / (5 + 0.4): 0.02, 0.2, 0.6, 0.8, 0.948; two corners have the last, too.
    np.testing.assert_array_equal(bits, np.full(5, 75 + 10 + 100 + 4 * 1000))


def test_differences_are_counted_from_the_majority(made):
    pieces, parts, assigned, shift, _ = made
    found = coding.differences(pieces.arrays(), parts.arrays(), assigned, shift)
    for i, k in enumerate(assigned):
        copy, _ = plain.drawn(pieces, i, parts, k, shift[i])
        assert found[i] == (copy != (2 * plain.canvas(parts, k) >= parts.n[k])).sum()


def test_pixels_without_a_part_have_the_bits_of_earlier_pixels():
    rng = np.random.default_rng(1)
    page = rng.random((9, 14)) < 0.4
    cost = rng.uniform(0.1, 5, (1 << len(TEMPLATE), 2)).astype(np.float32)
    contexts = list(plain.template_contexts(page))
    expected = sum(float(cost[c, v]) for c, v in contexts)
    assert coding.page_bits(page.view(np.uint8), cost) == pytest.approx(expected)
    counts = np.zeros(cost.shape)
    coding.template_counts(page.view(np.uint8), counts)
    assert counts.sum() == page.size
    assert (counts * cost).sum() == pytest.approx(expected)
    # A piece lies on an empty page, and is coded with one pixel around.
    pieces = plain.pieces_of([page, page[:4]])
    bits = coding.template_bits(pieces.arrays(), cost)
    for i in range(2):
        wide = np.pad(pieces.bitmap(i), 6)
        each = np.reshape([float(cost[c, v]) for c, v in plain.template_contexts(wide)], wide.shape)
        assert bits[i] == pytest.approx(each[5:-5, 5:-5].sum())


def test_the_table_of_a_page_is_its_frequencies():
    page = np.random.default_rng(2).random((40, 40)) < 0.3
    counts = np.zeros((1 << len(TEMPLATE), 2))
    for context, value in plain.template_contexts(page):
        counts[context, value] += 1
    p = (counts[:, 1] + 0.4) / (counts.sum(axis=1) + 0.8)
    np.testing.assert_allclose(channel.template_cost([page])[:, 1], -np.log2(p), rtol=1e-5)


def test_rare_contexts_take_over_from_smaller_ones():
    rng = np.random.default_rng(3)
    counts = np.where(rng.random(coding.TABLE) < 0.02, rng.integers(1, 40, coding.TABLE), 0.0)
    counts[-1] = 0
    counts[-1, 1] = rng.integers(0, 50, coding.RENDERINGS)
    cost = channel.part_cost(counts)
    together = counts[:-1].sum(axis=2)
    table = together.reshape(coding.LEVELS, 256, 16, 2)
    straight = 0b01011010  # W, N, S and E among NW, W, SW, N, S, NE, E, SE
    for c in [*rng.integers(coding.CONTEXTS, size=30), *np.flatnonzero(together.sum(axis=1))[:30]]:
        level, around, before = c // 4096, c // 16 % 256, c % 16
        same = (np.arange(256) & straight) == (around & straight)
        none = table[level, :, before].sum(axis=0)
        four = table[level, same, before].sum(axis=0)
        for r in range(coding.RENDERINGS):
            p = (none[1] + channel.ALONE) / (none.sum() + 2 * channel.ALONE)
            for own in (four, together[c], counts[c, :, r]):
                p = (own[1] + channel.FEWER * p) / (own.sum() + channel.FEWER)
            p = np.clip(p, channel.LEAST, 1 - channel.LEAST)
            np.testing.assert_allclose(cost[c, :, r], -np.log2([1 - p, p]), rtol=1e-5)
    shares = counts[-1, 1] + channel.ALONE
    np.testing.assert_allclose(cost[-1, 1], -np.log2(shares / shares.sum()), rtol=1e-5)


def test_before_any_copy_a_shift_moves_edges_and_darkness_all():
    p = channel.chances(channel.start_cost()).reshape(-1, coding.RENDERINGS)[:-1]
    p = p.reshape(coding.LEVELS, 256, 16, coding.RENDERINGS)
    usual, west = channel.AS_SEEN.index((0, 0, 0)), 0b11100000  # the part is on to the left
    right, down = channel.AS_SEEN.index((0, 1, 0)), channel.AS_SEEN.index((1, 0, 0))
    assert (p[:, west, :, right] > p[:, west, :, usual] + 0.005).all()
    np.testing.assert_allclose(p[:, west, :, down], p[:, west, :, usual])
    np.testing.assert_allclose(p[..., right][:, [0, 255]], p[..., usual][:, [0, 255]])
    thin, bold = channel.AS_SEEN.index((0, 0, -1)), channel.AS_SEEN.index((0, 0, 1))
    assert (p[..., thin] < p[..., usual]).all()
    assert (p[..., bold] > p[..., usual]).all()


def test_chances_are_kept_to_the_bit():
    cost = channel.bits_of(np.random.default_rng(4).random(500))
    np.testing.assert_allclose(channel.bits_of(channel.chances(cost)), cost, rtol=1e-4, atol=1e-6)
    sure = channel.bits_of(np.array([0.0, 1.0]))
    assert np.isfinite(sure).all()
