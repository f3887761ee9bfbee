"""Models as dictionaries, whatever comes in: the same model, or a sentence."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import about, anything, outcome

from hcnet import HCN, FeatureLearner, Layer

KINDS = {
    "hcnet.FeatureLearner": FeatureLearner(feature_size=2, n_init=1, max_iter=1, random_state=0),
    "hcnet.HCN": HCN([Layer(2, size=2, pool=1), Layer(pool=1)], n_init=1, max_iter=1),
}
X = np.zeros((2, 4, 4), bool)
X[:, 1, 1:3] = X[1, 2, 2] = True


@pytest.fixture(scope="module", params=KINDS)
def described(request):
    model = KINDS[request.param]
    outcome(model.fit, X)
    return model, json.loads(json.dumps(model.to_dict()))


@given(st.data())
@about(*(f"{kind}.{m}" for kind in KINDS for m in ("to_dict", "from_dict")), examples=40)
def test_a_description_with_anything_in_it(described, data):
    model, whole = described
    again = type(model).from_dict(whole)
    np.testing.assert_array_equal(again.denoise(X), model.denoise(X))
    key = data.draw(st.sampled_from([*whole, "more"]))
    outcome(type(model).from_dict, {**whole, key: data.draw(anything())})
    outcome(type(model).from_dict, {k: v for k, v in whole.items() if k != key})
    outcome(type(model).from_dict, data.draw(anything()))


@pytest.mark.parametrize("kind", [FeatureLearner(), HCN([Layer()])], ids=["parts", "network"])
@about(*(f"{kind}.to_onnx" for kind in KINDS))
@given(st.just("nowhere.onnx"))
def test_what_is_not_fitted_is_not_exported(kind, path):
    assert outcome(kind.to_onnx, path) is None
    assert outcome(kind.to_dict) is None
