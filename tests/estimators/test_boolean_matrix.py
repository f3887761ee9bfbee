"""BooleanMatrixFactorization on tables whose factors are known."""

import numpy as np
import pytest
from scipy import sparse

from hcnet import BooleanMatrixFactorization, FeatureLearner
from hcnet.datasets import boolean_matrix
from hcnet.memory import NotEnoughMemoryError


def small(seed=0, **options):
    settings = {"shape": (60, 50), "rank": 3, "flips": 0.05} | options
    return boolean_matrix(random_state=seed, **settings)


def error(model, data):
    return (model.inverse_transform(model.codes_) != data.clean).mean()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("algorithm", ["refined", "mpmp"])
def test_a_clean_table_is_factored_exactly(seed, algorithm):
    data = small(seed, flips=0.0)
    model = BooleanMatrixFactorization(3, algorithm=algorithm, random_state=seed).fit(data.table)
    assert error(model, data) == 0


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_removed_and_estimated(seed):
    data = boolean_matrix(shape=(150, 150), rank=4, flips=0.15, random_state=seed)
    model = BooleanMatrixFactorization(4, random_state=seed).fit(data.table)
    assert error(model, data) < 0.003
    assert abs((model.p01_ + model.p10_) / 2 - 0.15) < 0.02


@pytest.mark.parametrize("seed", range(3))
def test_the_number_of_components_is_found(seed):
    data = boolean_matrix(shape=(120, 100), rank=4, flips=0.1, random_state=seed)
    model = BooleanMatrixFactorization(max_components=8, random_state=seed).fit(data.table)
    assert model.components_.shape == (4, 100)
    assert error(model, data) < 0.003


def test_a_given_number_of_components_is_kept_though_noise_hides_them():
    """At 40 % flips the empty answer is more probable than the truth, and half of it is wrong."""
    data = boolean_matrix(shape=(200, 200), rank=5, flips=0.4, random_state=0)
    model = BooleanMatrixFactorization(5, random_state=0).fit(data.table)
    assert model.components_.any(axis=1).all()
    assert error(model, data) < 0.31


def test_pure_noise_has_no_component():
    table = np.random.default_rng(0).random((60, 60)) < 0.5
    model = BooleanMatrixFactorization(max_components=4, random_state=0).fit(table)
    assert model.components_.shape == (0, 60)
    assert model.transform(table).shape == (60, 0)


def test_unobserved_entries_are_filled_in():
    data = boolean_matrix(shape=(150, 150), rank=2, flips=0.1, observed=0.5, random_state=1)
    # What is hidden is wrong on purpose: only a method that looks under the mask would fail.
    table = np.where(data.mask, ~data.clean, data.table)
    model = BooleanMatrixFactorization(2, random_state=0).fit(table, mask=data.mask)
    assert error(model, data) < 0.003
    with pytest.warns(UserWarning, match="NaN is taken as missing"):
        same = BooleanMatrixFactorization(2, random_state=0).fit(np.where(data.mask, np.nan, table))
    np.testing.assert_array_equal(same.codes_, model.codes_)
    filled = model.inpaint(table, data.mask)
    assert (filled[data.mask] == data.clean[data.mask]).mean() > 0.99
    np.testing.assert_array_equal(filled[~data.mask], table[~data.mask])


def test_the_same_seed_gives_the_same_factors_of_dense_and_sparse_tables():
    data = small(flips=0.3)
    dense = BooleanMatrixFactorization(3, random_state=0).fit(data.table)
    for kind in (np.array, sparse.csr_array, sparse.coo_array):
        other = BooleanMatrixFactorization(3, random_state=0).fit(kind(data.table.astype(int)))
        np.testing.assert_array_equal(other.components_, dense.components_)
        np.testing.assert_array_equal(other.codes_, dense.codes_)


def test_factors_are_binary_and_new_rows_are_coded():
    data = boolean_matrix(shape=(200, 80), rank=3, flips=0.02, random_state=0)
    model = BooleanMatrixFactorization(3, random_state=0).fit(data.table[:150])
    assert model.components_.dtype == model.codes_.dtype == bool
    codes = model.transform(data.table[150:])
    assert (model.inverse_transform(codes) != data.clean[150:]).mean() < 0.01
    assert model.score(data.table[150:]) < 0
    names = [f"booleanmatrixfactorization{k}" for k in range(3)]
    assert list(model.get_feature_names_out()) == names


def test_it_is_the_feature_learner_on_images_of_one_pixel():
    """Rows as 1×1 images with a channel per column have the same parts."""
    data = small(2, shape=(80, 40), flips=0.0)
    model = BooleanMatrixFactorization(3, random_state=0).fit(data.table)
    learner = FeatureLearner(3, (1, 1), random_state=0).fit(data.table[:, :, None, None])
    parts = {part.tobytes() for part in learner.features_[:, :, 0, 0]}
    assert parts == {part.tobytes() for part in model.components_}


def test_time_limit_is_kept_and_said():
    data = boolean_matrix(shape=(300, 300), rank=8, flips=0.2, random_state=0)
    model = BooleanMatrixFactorization(8, max_seconds=0.05, random_state=0).fit(data.table)
    assert "time limit" in model.status_
    assert model.codes_.shape == (300, 8)


def test_memory_limit_names_the_ways_out():
    model = BooleanMatrixFactorization(3, max_memory=1000)
    with pytest.raises(NotEnoughMemoryError, match=r"lower n_components .* raise max_memory"):
        model.fit(small().table)


@pytest.mark.parametrize(
    ("options", "table", "sentence"),
    [
        ({}, np.zeros((0, 4)), "holds no pixel"),
        ({}, np.full((3, 3), 2), "must hold only 0 and 1"),
        ({}, np.zeros(4), "must be a table of shape"),
        ({}, np.zeros((2, 2, 2)), "must be a table of shape"),
        ({"n_components": 0}, np.eye(4), "n_components must be a whole number"),
        ({"p01": 0.7, "p10": 0.1}, np.eye(4), "p01 must lie strictly between 0 and 0.5"),
        ({"p01": 0.1}, np.eye(4), "p01 and p10 must be given together"),
        ({"algorithm": "mpmp"}, np.eye(4), "cannot choose the number of components"),
        ({"algorithm": "asso"}, np.eye(4), "algorithm must be one of"),
    ],
)
def test_bad_input_gets_a_sentence(options, table, sentence):
    with pytest.raises(ValueError, match=sentence):
        BooleanMatrixFactorization(**options).fit(table)


def test_bad_codes_and_rows_get_a_sentence():
    model = BooleanMatrixFactorization(2, random_state=0).fit(np.eye(6))
    with pytest.raises(ValueError, match="codes must have shape"):
        model.inverse_transform(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.transform(np.zeros((3, 5)))
