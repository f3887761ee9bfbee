"""Models as dictionaries, whatever comes in: the same model, or a sentence."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import about, anything, outcome

from hcnet import HCN, FeatureLearner, Layer
from hcnet.export import from_dict, to_dict, to_onnx

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
    return model, json.loads(json.dumps(to_dict(model)))


@given(st.data())
@about("hcnet.export.to_dict", "hcnet.export.from_dict", examples=40)
def test_a_description_with_anything_in_it(described, data):
    model, whole = described
    again = from_dict(whole)
    np.testing.assert_array_equal(again.denoise(X), model.denoise(X))
    key = data.draw(st.sampled_from([*whole, "more"]))
    outcome(from_dict, {**whole, key: data.draw(anything())})
    outcome(from_dict, {k: v for k, v in whole.items() if k != key})
    outcome(from_dict, data.draw(anything()))


@pytest.mark.parametrize("kind", [FeatureLearner(), HCN([Layer()])], ids=["parts", "network"])
@about("hcnet.export.to_onnx")
@given(st.just("nowhere.onnx"))
def test_what_is_not_fitted_is_not_exported(kind, path):
    assert outcome(to_onnx, kind, path) is None
    assert outcome(to_dict, kind) is None
