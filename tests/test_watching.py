"""A callback is told every step, and can use what is known by then."""

import numpy as np
import pytest

from hcnet import HCN, BooleanMatrixFactorization, FeatureLearner, Layer
from hcnet.datasets import boolean_matrix, shapes, two_bars
from hcnet.engine.driver import Status
from hcnet.reporting import LiveReport


@pytest.fixture(scope="module")
def images():
    return two_bars(size=(24, 24), n_placements=12, random_state=0).images


def learned(images, **parameters):
    steps = []
    learner = FeatureLearner(feature_size=(6, 6), n_init=2, random_state=0, **parameters)
    learner.set_params(callback=steps.append).fit(images)
    return learner, steps


def test_every_step_of_every_start_is_told(images):
    learner, steps = learned(images)
    stages = [step.stage for step in steps if step.iteration == 1]
    assert stages == ["Message passing", "Refining", "Refining"]  # the second starts from nothing
    assert [step.history[-1].iteration for step in steps] == list(range(1, len(steps) + 1))
    seconds = [step.seconds for step in steps]
    assert seconds == sorted(seconds)
    assert max(step.objective for step in steps) == pytest.approx(learner.log_joint_, rel=0.05)
    assert all(step.total >= step.iteration for step in steps)


def test_watching_changes_nothing(images):
    watched, _ = learned(images)
    alone = FeatureLearner(feature_size=(6, 6), n_init=2, random_state=0).fit(images)
    np.testing.assert_array_equal(watched.features_, alone.features_)
    np.testing.assert_array_equal(watched.placements_, alone.placements_)
    assert watched.log_joint_ == alone.log_joint_


def test_the_model_of_a_step_can_be_used_and_saved(images, tmp_path):
    models = []

    def keep(step):
        if step.iteration in (1, 20):
            models.append(step.model())

    learner = FeatureLearner(feature_size=(6, 6), n_init=1, random_state=0, callback=keep)
    learner.fit(images)
    assert len(models) >= 2
    model = models[-1]
    assert model.status_ == Status.RUNNING.value
    assert model.denoise(images).shape == images.shape
    assert model.compression_ratio_ >= learner.compression_ratio_ - 1e-9
    model.save(tmp_path / "now.hcn")
    assert FeatureLearner.load(tmp_path / "now.hcn").features_.shape == model.features_.shape
    assert learner.status_ != Status.RUNNING.value


def test_streams_tell_their_minibatches_and_the_refinement_at_the_end(images):
    steps = []
    learner = FeatureLearner(
        n_features=4,
        feature_size=(6, 6),
        random_state=0,
        callback=lambda step: steps.append((step.stage, step.model().features_.shape)),
    )
    learner.fit_stream(np.concatenate([images] * 6))
    assert steps[0][0] == "Minibatches"
    assert steps[-1] == ("Refining", learner.features_.shape)


def test_a_network_tells_its_passes():
    data, steps = shapes(n_images=20, random_state=0), []

    def keep(step):
        steps.append(step.stage)
        if len(steps) == 3:
            assert step.model().predict(data.images).shape == (20,)
            assert step.model().log_joint_ == step.objective

    HCN([Layer(4, size=21), Layer()], n_classes=4, max_iter=4, random_state=0, callback=keep).fit(
        data.images
    )
    assert steps[:4] == ["Start 1 of 2"] * 2 + ["Start 2 of 2"] * 2
    assert steps[-1] == "Best start"


@pytest.mark.parametrize(
    ("parameters", "stages"),
    [
        ({"n_components": 3}, ["Message passing", "Annealing 3 components", "Averaging"]),
        ({"max_components": 4}, ["Annealing 4 components", "Averaging"]),
        ({"n_components": 3, "algorithm": "mpmp", "max_iter": 5}, ["Message passing"]),
    ],
)
def test_a_factorization_tells_every_sweep(tmp_path, parameters, stages):
    data = boolean_matrix(shape=(40, 30), rank=3, flips=0.05, random_state=0)
    told, models = [], []

    def keep(step):
        told.append(step.stage)
        assert np.isfinite(step.objective)
        assert step.objective < 0
        if step.iteration in (1, 150):
            models.append(step.model())

    watched = BooleanMatrixFactorization(random_state=0, callback=keep, **parameters)
    watched.fit(data.table)
    assert [stage for stage in dict.fromkeys(told) if stage in stages] == stages
    assert len(told) == watched.n_iter_
    for model in models:
        assert model.status_ == Status.RUNNING.value
        assert model.transform(data.table).shape == model.codes_.shape
        assert model.inverse_transform(model.codes_).shape == data.table.shape
    models[-1].save(tmp_path / "now.hcn")
    alone = BooleanMatrixFactorization(random_state=0, **parameters).fit(data.table)
    np.testing.assert_array_equal(watched.components_, alone.components_)
    np.testing.assert_array_equal(watched.codes_, alone.codes_)


def test_a_live_report_of_a_table_is_refused_in_a_sentence(tmp_path):
    live = LiveReport(tmp_path / "live.html", np.eye(9))
    with pytest.raises(TypeError, match="BooleanMatrixFactorization learns from a table"):
        BooleanMatrixFactorization(2, callback=live).fit(np.eye(9))


def test_an_error_in_a_callback_reaches_its_author(images):
    def broken(step):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        learned(images)[0].set_params(callback=broken).fit(images)


@pytest.mark.parametrize("callback", [0, "print", [print]])
@pytest.mark.parametrize("method", ["fit", "fit_stream"])
def test_what_cannot_be_called_is_refused_before_learning_starts(images, callback, method):
    for model in (FeatureLearner(feature_size=6), HCN([Layer(4, size=6), Layer()])):
        model.set_params(callback=callback)
        with pytest.raises(TypeError, match="callback must be a function that takes a Step"):
            getattr(model, method)(images)
        assert not hasattr(model, "history_")
    table = BooleanMatrixFactorization(callback=callback)
    with pytest.raises(TypeError, match="callback must be a function that takes a Step"):
        table.fit(images[0, 0])
