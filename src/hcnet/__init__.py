"""hcnet finds the parts that binary images are made of."""

from hcnet.estimators.boolean_matrix import BooleanMatrixFactorization
from hcnet.estimators.feature_learner import FeatureLearner

__version__ = "0.1.0"
__all__ = ["BooleanMatrixFactorization", "FeatureLearner", "__version__"]
