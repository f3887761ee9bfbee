"""What the tests of the estimators share."""

import pytest
from scenes import scene

from hcnet import FeatureLearner


@pytest.fixture(scope="session")
def fitted():
    images, _ = scene()
    return FeatureLearner(feature_size=3, n_init=2, random_state=0).fit(images), images
