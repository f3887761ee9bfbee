"""`BooleanMatrixFactorization`, whatever it is given: a right answer, or a sentence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import about, alike, masks, outcome, pixels, same_answers, untouched

from hcnet import BooleanMatrixFactorization

NAME = "hcnet.BooleanMatrixFactorization"
QUICK = {"n_init": 1, "max_components": 3, "random_state": 0}
METHODS = ("transform", "inpaint", "score")


def tables(rows=6, columns=5):
    return st.tuples(st.integers(1, rows), st.integers(1, columns)).flatmap(pixels)


@pytest.fixture(scope="session")
def factored():
    rng = np.random.default_rng(0)
    X = (rng.random((20, 2)) < 0.5) @ (rng.random((2, 5)) < 0.5)
    return BooleanMatrixFactorization(2, random_state=0).fit(X)


@given(st.data())
@about(f"{NAME}.fit", f"{NAME}.fit_transform", f"{NAME}.inverse_transform", examples=25)
def test_fit_factors_a_table_or_says_why_not(data):
    X = data.draw(tables())
    mask = data.draw(masks(X.shape))
    given_X = data.draw(st.one_of(alike(X), st.just(sparse.csr_array(X))))
    same = untouched(given_X.toarray() if sparse.issparse(given_X) else given_X)
    rank = data.draw(st.sampled_from([None, 1, 2, 9]))
    algorithm = data.draw(st.sampled_from(["refined", "mpmp"]))
    options = {"n_components": rank, "algorithm": algorithm, "max_iter": 3, **QUICK}
    model = BooleanMatrixFactorization(**options)
    codes = outcome(model.fit_transform, given_X, mask=mask)
    same()
    if codes is None:
        return
    assert codes.dtype == model.components_.dtype == bool
    assert codes.shape == (len(X), len(model.components_))
    assert model.components_.shape[1] == X.shape[1]
    assert rank is None or len(model.components_) == rank
    numbers = [model.p_S_, model.p_W_, model.p01_, model.p10_, model.log_joint_]
    assert np.isfinite(numbers).all()
    plain = BooleanMatrixFactorization(**options).fit(X, mask=mask)
    np.testing.assert_array_equal(plain.components_, model.components_)
    product = (codes.astype(int) @ model.components_.astype(int)) > 0
    np.testing.assert_array_equal(model.inverse_transform(codes), product)


@given(st.data())
@about(*(f"{NAME}.{method}" for method in METHODS), examples=30)
def test_inference_does_not_depend_on_how_the_same_table_comes(factored, data):
    X = data.draw(st.integers(1, 4).flatmap(lambda n: pixels((n, 5))))
    mask = data.draw(masks(X.shape))
    given_X = data.draw(st.one_of(alike(X), st.just(sparse.csc_array(X))))
    same_answers(factored, METHODS, X, given_X, mask)
    if mask is not None and not mask.all():
        filled = factored.inpaint(X, mask)
        assert filled.shape == X.shape
        np.testing.assert_array_equal(filled[~mask], X[~mask])
