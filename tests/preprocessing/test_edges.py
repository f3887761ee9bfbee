"""Edges: against filters written out one by one; both transformers as part of scikit-learn."""

import pickle

import numpy as np
import pytest
from scipy import ndimage
from sklearn.base import clone

from hcnet.datasets import corruptions
from hcnet.preprocessing import LineRemover, OrientedEdges


def blobs(n=6, size=(20, 17), seed=0):
    """Smooth grey images without two equal pixels."""
    noise = np.random.default_rng(seed).random((n, *size))
    smooth = ndimage.gaussian_filter(noise, (0, 1.2, 1.2))
    return (smooth - smooth.min()) / (smooth.max() - smooth.min())


def by_definition(image, n, sigma, threshold, mode, shared=1):
    """Every filter as an array of its own, and every pixel on its own."""
    reach = int(np.ceil(3 * sigma))
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    angles = [2 * np.pi * k / n for k in range(n)]
    strengths = []
    for angle in angles:
        own = x * np.cos(angle) + y * np.sin(angle)
        kernel = own * np.exp(-(x**2 + y**2) / (2 * sigma**2))
        kernel /= kernel[kernel > 0].sum()
        strengths.append(ndimage.correlate(image, kernel, mode=mode))
    strengths = np.array(strengths)
    best = np.pad(strengths.max(axis=0), 1)
    edges = np.zeros(strengths.shape, bool)
    for r, c in np.ndindex(*image.shape):
        k = strengths[:, r, c].argmax()
        right, down = round(np.cos(angles[k])), round(np.sin(angles[k]))
        own = best[r + 1, c + 1]
        on = (
            own >= threshold
            and own > best[r + 1 + down, c + 1 + right]
            and own >= best[r + 1 - down, c + 1 - right]
        )
        edges[:, r, c] = on & (strengths[:, r, c] >= shared * own)
    return edges


@pytest.mark.parametrize(("outside", "mode"), [("black", "constant"), ("repeat", "nearest")])
@pytest.mark.parametrize(("n", "sigma", "threshold"), [(16, 1, 0.25), (5, 0.7, 0.1), (8, 2, 0.05)])
def test_edges_are_as_defined(n, sigma, threshold, outside, mode):
    images = blobs()
    edges = OrientedEdges(n, sigma=sigma, threshold=threshold, outside=outside).transform(images)
    expected = [by_definition(image, n, sigma, threshold, mode) for image in images]
    assert edges.any()
    np.testing.assert_array_equal(edges, expected)


@pytest.mark.parametrize("sigma", [1e-300, 0.01, 0.05, 0.3, 0.5, 1, 3])
def test_a_step_has_one_edge_on_its_bright_side_of_a_strength_of_its_contrast(sigma):
    image = np.zeros((1, 40, 40))
    image[:, :, 20:] = 0.5
    found = OrientedEdges(sigma=sigma, threshold=0.49, outside="repeat").transform(image)
    assert set(zip(*np.nonzero(found)[1::2], strict=True)) == {(0, 20)}
    assert found.sum() == 40
    assert not OrientedEdges(sigma=sigma, threshold=0.51, outside="repeat").transform(image).any()


def test_ink_at_the_border_has_an_edge_there_unless_it_is_repeated():
    white = np.ones((1, 9, 9), bool)
    edges = OrientedEdges(4).transform(white)[0]
    assert edges[0, 4, 0]
    assert edges[1, 0, 4]
    assert edges[2, 4, 8]
    assert edges[3, 8, 4]
    assert not OrientedEdges(outside="repeat").transform(white).any()


def test_bytes_floats_booleans_and_a_channel_axis_mean_the_same():
    grey = (255 * blobs()).astype(np.uint8)
    edges = OrientedEdges().fit(grey).transform(grey)
    for same in (grey / 255, (grey / 255).astype(np.float32), grey[:, None], (grey / 255).tolist()):
        np.testing.assert_array_equal(OrientedEdges().transform(same), edges)
    binary = grey > 127
    expected = OrientedEdges().transform(binary.astype(np.uint8) * 255)
    np.testing.assert_array_equal(OrientedEdges().transform(binary), expected)


@pytest.mark.parametrize(
    "transformer",
    [
        OrientedEdges(8, sigma=1.5, threshold=0.3, outside="repeat"),
        LineRemover(bright=0.4, share=0.8, shortest=0.7),
    ],
)
def test_both_are_scikit_learn_transformers(transformer):
    images = corruptions.grid(blobs(), random_state=2)
    changed = transformer.fit_transform(images)
    for copy in (clone(transformer), pickle.loads(pickle.dumps(transformer))):
        assert copy.get_params() == transformer.get_params()
        np.testing.assert_array_equal(copy.transform(images), changed)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (OrientedEdges, {"n_orientations": 0}, r"whole number of at least 1, got 0"),
        (OrientedEdges, {"n_orientations": 2.5}, r"n_orientations must be a whole number"),
        (OrientedEdges, {"n_orientations": 10**9}, r"whole number of at most 360"),
        (OrientedEdges, {"sigma": 0}, r"sigma must be larger than 0 and at most 100, got 0; 1 pix"),
        (OrientedEdges, {"sigma": 1e9}, r"sigma must be larger than 0"),
        (OrientedEdges, {"sigma": "1"}, r"sigma must be larger than 0"),
        (OrientedEdges, {"shared": -0.1}, r"shared must be a number from 0 to 1, got -0.1"),
        (OrientedEdges, {"threshold": 1.5}, r"threshold must be a number from 0 to 1, got 1.5"),
        (OrientedEdges, {"outside": "white"}, r"outside must be one of 'black', 'repeat', got 'w"),
        (LineRemover, {"bright": 1.5}, r"bright must be a number from 0 to 1, got 1.5"),
        (LineRemover, {"share": 1.5}, r"share must be a number from 0 to 1, got 1.5"),
        (LineRemover, {"shortest": 1.5}, r"shortest must be a number from 0 to 1, got 1.5"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "transform"])
def test_bad_parameters_are_named(kind, arguments, message, method):
    with pytest.raises(ValueError, match=message):
        getattr(kind(**arguments), method)(blobs())


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (np.zeros((5, 5)), ValueError, r"got shape \(5, 5\); for one image pass image\[None\]"),
        (np.zeros((2, 3, 5, 5)), ValueError, r"got shape \(2, 3, 5, 5\).*average colours"),
        (np.zeros((0, 5, 5)), ValueError, r"got shape \(0, 5, 5\)"),
        (np.full((1, 5, 5), 255.0), ValueError, r"from 0 \(black\) to 1 .* got 255 to 255; divide"),
        (np.full((1, 5, 5), np.nan), ValueError, r"got nan to nan"),
        (np.full((1, 5, 5), -0.1), ValueError, r"got -0.1"),
        (np.zeros((1, 5, 5), int), TypeError, r"got dtype int64; convert it"),
    ],
)
@pytest.mark.parametrize("kind", [OrientedEdges, LineRemover])
@pytest.mark.parametrize("method", ["fit", "transform"])
def test_bad_images_are_told_what_to_do(kind, images, error, message, method):
    with pytest.raises(error, match=message):
        getattr(kind(), method)(images)


def test_bytes_of_zero_and_one_are_taken_for_a_mistake():
    with pytest.warns(UserWarning, match=r"holds only 0 and 1, .*X\.astype\(bool\)"):
        OrientedEdges().transform(np.eye(5, dtype=np.uint8)[None])
