"""At most eight frames from a method of an estimator to a compiled kernel."""

import sys

import pytest

from hcnet import HCN, FeatureLearner, Layer, TemplateClassifier
from hcnet.datasets import shapes
from hcnet.engine.threads import over_lanes, over_threads

DATA = shapes(feature_size=9, n_images=8, random_state=0)
MODELS = {
    "features": FeatureLearner(2, 5, max_iter=2, random_state=0),
    "network": HCN([Layer(4, size=9), Layer()], templates_per_class=2, max_iter=4, random_state=0),
    "beliefs": HCN([Layer(4, size=9), Layer()], engine="beliefs", max_iter=4, random_state=0),
    "templates": TemplateClassifier(4, 5, 2, random_state=0),
}
# The functions that call a kernel.
LOOPS = {make(None).__code__ for make in (over_lanes, over_threads)}


def use(model):
    model.fit(DATA.images, DATA.labels)
    getattr(model, "predict", getattr(model, "transform", None))(DATA.images)


@pytest.mark.parametrize("name", MODELS)
def test_calls_are_shallow(name):
    use(MODELS[name])  # compiles, or loads what was compiled
    stacks = set()

    def watch(frame, event, _):
        if event == "call" and frame.f_code in LOOPS and frame.f_back.f_code not in LOOPS:
            stack = []
            while frame.f_code is not use.__code__:
                stack.insert(0, frame.f_code.co_name)
                frame = frame.f_back
            stacks.add(tuple(stack))

    sys.setprofile(watch)
    try:
        use(MODELS[name])
    finally:
        sys.setprofile(None)
    assert stacks
    assert [stack for stack in stacks if len(stack) > 8] == [], sorted(stacks, key=len)[-1]
