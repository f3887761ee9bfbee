"""Checks on fitted estimators that functions take."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


def is_network(model: Any) -> bool:
    """Whether a fitted estimator is a network; an error unless it learned from images."""
    check_is_fitted(model)
    if hasattr(model, "weights_"):
        return True
    if not hasattr(model, "features_"):
        name = type(model).__name__
        raise TypeError(
            f"model must have learned from images, and {name} learns from a table; pass a fitted "
            f"FeatureLearner, HCN or TemplateClassifier."
        )
    return False
