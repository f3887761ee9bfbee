"""What the tests of the estimators share."""

import pytest
from scenes import scene

from hcnet import FeatureLearner
from hcnet.datasets import shapes


@pytest.fixture(scope="session")
def fitted():
    images, _ = scene()
    return FeatureLearner(feature_size=3, n_init=2, random_state=0).fit(images), images


@pytest.fixture(scope="session")
def data():
    """Ten images for a network of two layers, and what made them."""
    return shapes(feature_size=9, n_images=10, random_state=0)
