"""Float32 is enough: beliefs do not drift, decisions are those of float64, extremes are exact.

Here the reference engine is float64, on small data; `test_precision` has the benchmarks' data.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

from hcnet import FeatureLearner
from hcnet.datasets import deconvolution
from hcnet.engine.base import rebuild
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.grid import on_grid
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import start_messages, trees_of
from hcnet.objective import Priors

ARRAYS = ("field", "kernel", "field_prior", "kernel_prior", "to_field", "to_kernel", "evidence")


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


@pytest.mark.parametrize("damping", [1.0, 0.5])
def test_beliefs_do_not_drift(damping):
    assert drift(509, damping) < 1e-5  # nine sweeps after the last time they were added up


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("damping", [1.0, 0.5])
def test_beliefs_do_not_drift_in_ten_thousand_sweeps(damping):
    assert drift(9_999, damping) < 1e-5


def decoded(engine, dtype, start, sweeps, schedule, damping=1.0):
    messages = start_messages(*start)
    messages = replace(messages, **{name: getattr(messages, name).astype(dtype) for name in ARRAYS})
    rng = np.random.default_rng(1)
    for _ in range(sweeps):
        for batch in Schedule(schedule).batches(messages.images, rng):
            engine.update(messages, batch, damping)
    return messages.weight_beliefs() > 0


# From a random start every rounding is another throw of the dice about which feature becomes which
# part, as every seed is.  A hint which is which leaves the rest to the data, and to the numbers.
HINT = 1.0


def both(data, n_images, sweeps, seed, schedule="sequential", damping=1.0):
    """Decoded weights in float32 and in float64, and the true parts."""
    n, size = len(data.features), data.feature_size
    layer, trees, evidence, placement, prior = problem(data.images[:n_images], n, size, seed=seed)
    truth = np.swapaxes(data.features, 0, 1)
    start = layer, trees, evidence, placement, prior + np.float32(HINT) * (2 * truth - 1)
    start = *start[:4], start[4].astype(np.float32)
    small = decoded(CPUEngine(), np.float32, start, sweeps, schedule, damping)
    large = decoded(ReferenceEngine(), np.float64, start, sweeps, schedule, damping)
    return small, large, truth


@pytest.mark.parametrize("seed", range(3))
def test_float32_decides_as_float64(seed):
    small, large, truth = both(deconvolution(random_state=seed), 8, 6, seed)
    np.testing.assert_array_equal(small, large)
    np.testing.assert_array_equal(small, truth)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("schedule", ["sequential", "per-image", "blocks"])
@pytest.mark.parametrize("seed", range(3))
def test_float32_decides_as_float64_in_all_schedules(seed, schedule):
    damping = 0.5 if schedule == "blocks" else 1.0
    patterns = deconvolution(random_state=seed)
    small, large, _ = both(patterns, 20, 30, seed, schedule, damping)
    np.testing.assert_array_equal(small, large)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2))
def test_parts_learned_in_double_precision_are_the_same(seed):
    data = deconvolution(n_images=30, random_state=seed)
    found = []
    for engine in ("dense", "reference"):
        model = FeatureLearner(feature_size=5, n_init=1, engine=engine, random_state=seed)
        found.append({part.tobytes() for part in model.fit(data.images).features_})
    assert found[0] == found[1] == {part.tobytes() for part in data.features}


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
