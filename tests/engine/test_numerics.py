"""Float32 is enough: beliefs do not drift, and extremes are exact; see also `test_precision`."""

import numpy as np
import pytest
from scipy.special import logit

from hcnet import FeatureLearner
from hcnet.datasets import deconvolution
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing, rebuild
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.grid import on_grid
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import start_messages, trees_of
from hcnet.objective import Priors


def problem(pixels, n_features, size, noise=1e-4, p_S=1e-4, p_W=0.3, seed=0):
    """A layer with the trees of some images, and the priors of its weights."""
    images = Images(pixels, np.ones(pixels.shape, bool))
    layer = FeatureLayer(n_features, pixels.shape[1], size, images.size, "full")
    rng = np.random.default_rng(seed)
    shape = (pixels.shape[1], n_features, *size)
    prior = logit(rng.uniform(0.9 * p_W, p_W, shape)).astype(np.float32)
    trees = trees_of(images.observed, rng)
    return layer, trees, images.evidence(Noise(noise, noise)), float(logit(p_S)), prior


def drift(sweeps, damping):
    """By how much the beliefs differ from the sum of what they are made of."""
    data = deconvolution(n_images=2, random_state=0)
    passing = DensePassing(CPUEngine(), *problem(data.images, 4, (5, 5)))
    rng = np.random.default_rng(1)
    for _ in range(sweeps):
        passing.sweep(Schedule("sequential"), rng, damping)
    m = passing._messages
    running = m.field.copy(), m.kernel.copy()
    rebuild(CPUEngine(), m)
    inside = m.field > -1e20  # the padding is minus infinity
    return max(
        float(np.abs(running[0] - m.field)[inside].max()),
        float(np.abs(running[1] - m.kernel).max()),
    ) / float(np.abs(m.kernel).max())


LONG = pytest.param(9_999, marks=[pytest.mark.long, pytest.mark.timeout(3600)])


@pytest.mark.parametrize("damping", [1.0, 0.5])
@pytest.mark.parametrize("sweeps", [509, LONG])
def test_beliefs_do_not_drift(sweeps, damping):
    """Nine sweeps after the last time that they were added up."""
    assert drift(sweeps, damping) < 1e-5


@pytest.mark.parametrize("name", SCHEDULE_NAMES)
@pytest.mark.parametrize("scale", [2.0**-20, 1.0, 2.0**20])
def test_evidence_of_any_size(name, scale):
    """Messages of evidence that is a million times as strong are a million times as strong.

    Damped ones move in whole steps, however strong they are, but as in double precision.
    """
    data = deconvolution(n_images=2, size=(8, 8), random_state=0)
    layer, trees, *numbers = problem(data.images, 3, (3, 3))

    def messages(engine, factor, damping):
        m = start_messages(layer, trees, *(np.float32(on_grid(x) * factor) for x in numbers))
        rng = np.random.default_rng(1)
        for _ in range(3):
            for batch in Schedule(name).batches(m.images, rng):
                engine.update(m, batch, damping)
        return np.stack([m.to_field, m.to_kernel])

    got = messages(CPUEngine(), scale, 1.0)
    assert np.isfinite(got).all()
    assert np.abs(got).max() > scale / 100
    np.testing.assert_array_equal(got, messages(ReferenceEngine(), 1.0, 1.0) * scale)
    got, wanted = (messages(engine, scale, 0.5) for engine in (CPUEngine(), ReferenceEngine()))
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("p", [1e-300, 1e-30, 0.49])
def test_priors_of_any_size(p):
    data = deconvolution(n_images=3, random_state=0)
    for priors in ({"p_S": p}, {"p01": p, "p10": p}, {"p01": 1e-300, "p10": p}, {"p_W": p}):
        assert np.isfinite([x for x in vars_of(Priors(**priors)) if x is not None]).all()
        model = FeatureLearner(3, 5, n_init=1, max_iter=3, random_state=0, **priors)
        with np.errstate(all="raise"), pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *a, **k: None)  # nothing may be learned
            model.fit(data.images)
        assert np.isfinite(model.log_joint_)
        assert np.isfinite(model.score(data.images))


def vars_of(priors):
    return priors.p_S, priors.p_W, priors.p01, priors.p10
