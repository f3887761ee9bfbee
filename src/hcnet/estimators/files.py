"""Reading a model file, whatever it holds."""

from __future__ import annotations

import os
from typing import Any

from hcnet.estimators.base import read_estimator
from hcnet.estimators.boolean_matrix import BooleanMatrixFactorization
from hcnet.estimators.feature_learner import FeatureLearner
from hcnet.estimators.hcn import HCN
from hcnet.estimators.template_classifier import TemplateClassifier

Estimator = FeatureLearner | HCN | TemplateClassifier | BooleanMatrixFactorization
ESTIMATORS: dict[str, Any] = {
    one._kind: one for one in (FeatureLearner, HCN, TemplateClassifier, BooleanMatrixFactorization)
}


def load(path: str | os.PathLike[str]) -> Estimator:
    """The estimator that was saved in a file.

    A file may come from anybody: one that is damaged, of a newer version or made up raises a
    ValueError that says so.
    """
    found: Estimator = read_estimator(path, ESTIMATORS)
    return found
