"""Known features: reconstruction is a binary convolution, codes are S."""

import numpy as np
import pytest
from scipy.signal import convolve2d

from hcnet.images import Images
from hcnet.model import PartsModel, codes_of, placements_from_codes
from hcnet.objective import Priors, log_joint
from hcnet.solutions.tiles import Tile

PRIORS = Priors(p_S=0.01, p_W=0.4, p01=0.01, p10=0.01)


def make(border, seed=0, n_features=3, channels=2, n=2, size=(9, 11), window=(3, 4)):
    rng = np.random.default_rng(seed)
    features = rng.random((n_features, channels, *window)) < 0.6
    model = PartsModel(features, PRIORS, border, size)
    blank = np.zeros((n, channels, *size), bool)
    layer = model.layer(size)
    S = rng.random((n, n_features, *layer.placement_size)) < 0.05
    return model, Images(blank, ~blank), layer, S


@pytest.mark.parametrize("border", ["full", "valid"])
@pytest.mark.parametrize("seed", range(4))
def test_reconstruction_is_a_convolution_cut_at_one(border, seed):
    model, images, layer, S = make(border, seed)
    got = model.reconstruct(np.argwhere(S), len(S), images.size)
    (oh, ow), (H, W) = layer.overhang, images.size
    for n in range(len(S)):
        for a in range(layer.n_channels):
            total = sum(
                convolve2d(S[n, f].astype(int), model.features[f, a].astype(int))
                for f in range(layer.n_features)
            )
            np.testing.assert_array_equal(got[n, a], total[oh : oh + H, ow : ow + W] > 0)


@pytest.mark.parametrize("border", ["full", "valid"])
def test_codes_round_trip(border):
    _, _, layer, S = make(border)
    placements = np.argwhere(S)
    table = codes_of(placements, layer, len(S))
    assert table.shape == (len(S), layer.n_features * layer.n_positions)
    np.testing.assert_array_equal(table.toarray().reshape(S.shape), S)
    back = placements_from_codes(table, layer)
    assert sorted(map(tuple, back)) == sorted(map(tuple, placements))


def test_codes_of_nothing():
    model, _, layer, _ = make("full", n_features=0)
    table = codes_of(np.empty((0, 4), np.int64), layer, 2)
    assert table.shape == (2, 0)
    assert placements_from_codes(table, layer).shape == (0, 4)
    assert model.features.shape[0] == 0


@pytest.mark.parametrize("border", ["full", "valid"])
@pytest.mark.parametrize("seed", range(3))
def test_explanation_is_at_least_as_probable_as_the_truth(border, seed):
    model, blank, _, S = make(border, seed)
    clean = model.reconstruct(np.argwhere(S), len(S), blank.size)
    flip = np.random.default_rng(seed).random(clean.shape) < 0.01
    images = Images(clean ^ flip, blank.observed)
    found = model.explain(images, np.random.default_rng(0))
    made = model.reconstruct(found.placements, len(S), images.size)
    errors = np.count_nonzero(made != images.pixels)
    assert errors == found.counts.errors
    truth = -S.sum() * np.log(0.01) - (S.size - S.sum()) * np.log(0.99)
    truth -= flip.sum() * np.log(0.01) + (flip.size - flip.sum()) * np.log(0.99)
    on = model.features.sum()
    truth -= on * np.log(0.4) + (model.features.size - on) * np.log(0.6)
    assert log_joint(found.counts, PRIORS) >= -truth - 1e-6


@pytest.mark.parametrize("border", ["full", "valid"])
def test_tiles_find_what_is_found_at_once(border, monkeypatch):
    model, *_ = make(border, 1)
    rng = np.random.default_rng(2)
    S = rng.random((3, len(model.features), *model.layer((60, 70)).placement_size)) < 0.002
    clean = model.reconstruct(np.argwhere(S), 3, (60, 70))
    images = Images(clean ^ (rng.random(clean.shape) < 0.01), np.ones_like(clean))
    at_once = model.explain(images, np.random.default_rng(0))
    monkeypatch.setattr("hcnet.model.TILE_BYTES", 2**15)
    found = model.explain(images, np.random.default_rng(0))
    assert len(np.unique(found.placements, axis=0)) == len(found.placements)
    made = model.reconstruct(found.placements, 3, images.size)
    assert np.count_nonzero(made != images.pixels) == found.counts.errors
    assert found.bits <= 1.005 * at_once.bits


def test_tiles_are_a_partition_of_all_positions():
    tiles, seen = [Tile(0, 3, 0, 50, 0, 70)], np.zeros((3, 50, 70), int)
    while tiles:
        tile = tiles.pop()
        halves = tile.halves(8, 9)
        tiles += halves
        if not halves:
            assert (tile.last - tile.first, tile.bottom - tile.top <= 8) == (1, True)
            seen[tile.first, tile.top : tile.bottom, tile.left : tile.right] += 1
    assert (seen == 1).all()
