"""`BooleanMatrixFactorization`: a 0/1 table as the Boolean product of two 0/1 tables."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hcnet.checkpoint import EVERY
from hcnet.checks import check_count, check_optional_count, check_random_state
from hcnet.engine.driver import Status, interruptible
from hcnet.engine.engines import DEFAULT_ENGINE, Engine
from hcnet.estimators.base import Estimator
from hcnet.factorization.binary_factors import Factors, Table
from hcnet.factorization.factorizer import PASSING_DAMPING, Factorizer
from hcnet.images import BoolArray, Images
from hcnet.learning.learn import LearningOptions
from hcnet.model import PARTS_MODEL, PartsModel
from hcnet.objective import Priors, estimate, log_joint
from hcnet.progress import Callback
from hcnet.validation.images import check_codes, check_table
from hcnet.validation.parameters import check_learning, check_max_memory, check_priors


@dataclass(eq=False, repr=False)
class BooleanMatrixFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Factor a 0/1 table with noise and unobserved entries; both factors are binary.

    Every row is the OR of some components.  The model is the single-layer HCN for images of one
    pixel that have a channel per column.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None chooses it by the joint probability.
    max_components : int, default=20
        The most components that are considered where the number is left open.
    algorithm : {"refined", "mpmp"}, default="refined"
        "mpmp": max-product message passing alone (needs n_components).  "refined": the best of
        message passing and annealed sampling on the same joint probability, then the binary
        factors closest to the posterior mean.
    p_S, p_W, p01, p10 : float or None, default=None
        Density of the codes and of the components, probability that a one is seen as zero and
        that a zero is seen as one; None: estimated.
    n_init : int or None, default=None
        Starts where the number of components is given; None: three.
    max_iter : int or None, default=None
        Sweeps of message passing with algorithm="mpmp".
    max_seconds : float or None, default=None
        Stop after about this time with the best factors so far.
    engine : str or Engine, default="active"
        As in `FeatureLearner`; an engine given by its name has a damping of 0.5.
    max_memory, device, random_state, verbose, callback
        As in `FeatureLearner`; the device is that of algorithm="mpmp".

    Attributes
    ----------
    components_ : ndarray of bool, shape (n_components, n_columns)
        The components, the most used first.
    codes_ : ndarray of bool, shape (n_rows, n_components)
        The components of each training row.
    p_S_, p_W_, p01_, p10_ : float
        The parameters, as given or estimated.
    log_joint_ : float
        Joint log-probability of table, codes and components.
    n_iter_, history_, status_, seconds_ : int, list, str, float
        Sweeps, a record of each, why learning stopped, and how long it took.

    """

    _kind = "BooleanMatrixFactorization"
    _model_kind = PARTS_MODEL
    _model: PartsModel = field(init=False)

    n_components: int | None = None
    _: KW_ONLY
    max_components: int = 20
    algorithm: str = "refined"
    p_S: float | None = None
    p_W: float | None = None
    p01: float | None = None
    p10: float | None = None
    n_init: int | None = None
    max_iter: int | None = None
    max_seconds: float | None = None
    max_memory: int | None = None
    engine: str | Engine = DEFAULT_ENGINE
    device: str = "cpu"
    random_state: int | np.random.Generator | None = None
    verbose: bool = False
    callback: Callback | None = None

    def fit(
        self,
        X: ArrayLike | sparse.sparray,
        y: object = None,
        mask: ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Factor X; `mask` is True (or X is NaN) where an entry is not observed.

        With a `checkpoint`, the path of a file, the state of learning is written to it `every` so
        many seconds.  If the process ends, the same call continues from there, to the same result.
        """
        table, priors = Table(*check_table(X, mask)), check_priors(self)
        rank, most, options = self._checked(ready=True)

        def running(factors: Factors) -> BooleanMatrixFactorization:
            now = self._copy()._store(factors, table, priors)
            now.status_ = Status.RUNNING.value
            return now

        progress = self._progress(running)
        with (
            self._keeping(checkpoint, every, "fit", table.values, table.observed) as keeper,
            closing(progress),
            interruptible(),
        ):
            rng = self._generator(keeper)
            limits = options.max_seconds, options.max_memory
            learner = Factorizer(table, priors, rng, progress, *limits, keeper)
            if rank is not None and options.algorithm == "mpmp":
                found = learner.by_messages(rank, options.engine, options.max_iter)
            else:
                found = learner.refined(rank, min(most, *table.shape), options.n_init)
        return self._store(found.best, table, priors)._store_run(found)

    def fit_transform(
        self, X: ArrayLike | sparse.sparray, y: object = None, mask: ArrayLike | None = None
    ) -> BoolArray:
        """Factor X, and return the components of each row, as `transform` finds them.

        For an ambiguous row they may differ from `codes_`, which were learned together with the
        components.
        """
        return self.fit(X, y, mask).transform(X, mask)

    def transform(self, X: ArrayLike | sparse.sparray, mask: ArrayLike | None = None) -> BoolArray:
        """The components of each row of X, (rows, components)."""
        check_is_fitted(self)
        values, observed = check_table(X, mask)
        columns = self.components_.shape[1]
        if values.shape[1] != columns:
            raise ValueError(
                f"X has {values.shape[1]} features, but BooleanMatrixFactorization is expecting "
                f"{columns} features as input."
            )
        images = Images(values[:, :, None, None], observed[:, :, None, None])
        rng, most = np.random.default_rng(0), check_max_memory(self.max_memory)
        found = self._model.explain(images, rng, most)
        codes = np.zeros((len(values), len(self.components_)), bool)
        codes[found.placements[:, 0], found.placements[:, 1]] = True
        return codes

    def inverse_transform(self, codes: ArrayLike | sparse.sparray) -> BoolArray:
        """Rows from codes: the OR of their components."""
        check_is_fitted(self)
        table = check_codes(codes)
        if table.shape[1] != len(self.components_):
            raise ValueError(
                f"codes must have shape (rows, {len(self.components_)}), one column per "
                f"component, got {table.shape}; pass what transform returns."
            )
        return Factors(
            table.toarray().astype(np.int8), self.components_.T.astype(np.int8)
        ).product()

    def inpaint(self, X: ArrayLike | sparse.sparray, mask: ArrayLike) -> BoolArray:
        """X with the entries under the mask filled in."""
        values, observed = check_table(X, mask)
        return np.where(observed, values, self.inverse_transform(self.transform(X, mask)))

    def score(
        self, X: ArrayLike | sparse.sparray, y: object = None, mask: ArrayLike | None = None
    ) -> float:
        """Joint log-probability of X and its codes, given the components."""
        codes = self.transform(X, mask)
        values, observed = check_table(X, mask)
        factors = Factors(codes.astype(np.int8), self.components_.T.astype(np.int8))
        return log_joint(factors.counts(Table(values, observed)), self._model.priors)

    def _check_parameters(self) -> None:
        self._checked()
        check_priors(self)
        check_random_state(self.random_state)

    def _checked(self, ready: bool = False) -> tuple[int | None, int, LearningOptions]:
        """The number of components, the most that are considered, and how to learn."""
        rank = check_optional_count("n_components", self.n_components, 1, "to have it chosen")
        most = check_count("max_components", self.max_components)
        options = check_learning(self, ready, PASSING_DAMPING, least_sweeps=1)
        if options.algorithm == "mpmp" and rank is None:
            raise ValueError(
                "algorithm='mpmp' cannot choose the number of components; pass n_components, or "
                "use algorithm='refined'."
            )
        return rank, most, options

    def _store(self, factors: Factors, table: Table, priors: Priors) -> Self:
        self._forget()
        order = np.argsort(-factors.S.sum(axis=0), kind="stable")
        components = np.ascontiguousarray(factors.W[:, order].T.astype(bool))
        counts = factors.counts(table)
        known = estimate(counts, priors)
        self._publish(PartsModel(components[:, :, None, None], known, "valid", (1, 1)))
        self.codes_ = factors.S[:, order].astype(bool)
        self.log_joint_ = log_joint(counts, known)
        return self

    def _publish(self, model: PartsModel) -> Self:
        if (model.features.shape[2:], model.border, model.image_size) != ((1, 1), "valid", (1, 1)):
            raise ValueError("its components are no rows of a table")
        self._model = model
        self.components_ = model.features[:, :, 0, 0]
        self.n_features_in_ = self.components_.shape[1]
        self.p_S_, self.p_W_ = model.priors.p_S, model.priors.p_W
        self.p01_, self.p10_ = model.priors.p01, model.priors.p10
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []  # codes are booleans, whatever the table was
        return tags
