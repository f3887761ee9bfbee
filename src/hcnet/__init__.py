"""hcnet finds the parts that binary images are made of."""

from hcnet.estimators.feature_learner import FeatureLearner

__version__ = "0.1.0"
__all__ = ["FeatureLearner", "__version__"]
