"""A small scanned page, and its soft parts."""

import pytest

from hcnet import FeatureLearner
from hcnet.datasets import scanned_text


@pytest.fixture(scope="session")
def scan():
    return scanned_text(size=(500, 900), random_state=0)


@pytest.fixture(scope="session")
def soft(scan):
    return FeatureLearner(algorithm="soft", random_state=0).fit(scan.images)
