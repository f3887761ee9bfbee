"""`BooleanMatrixFactorization`: a 0/1 table as the Boolean product of two 0/1 tables."""

from __future__ import annotations

import os
import warnings
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import logit
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hcnet.archive.kinds import Node
from hcnet.checkpoint import EVERY
from hcnet.checks import check_choice, check_count, check_optional_count, check_random_state
from hcnet.engine.driver import Status, interruptible
from hcnet.engine.engines import DEFAULT_ENGINE, Engine
from hcnet.estimators.base import Estimator
from hcnet.factorization.binary_factors import Factors, Parameters, Table
from hcnet.factorization.coverage import component_table, coverage
from hcnet.factorization.factorizer import MOST_DENSE, PASSING_DAMPING, Factorizer
from hcnet.factorization.fewest_errors import coded
from hcnet.factorization.packed import Packed, SparseTable
from hcnet.factorization.sampling import likely_codes
from hcnet.grid import on_grid
from hcnet.images import BoolArray, Images
from hcnet.learning.learn import LearningOptions
from hcnet.model import PARTS_MODEL, PartsModel
from hcnet.objective import Priors, estimate, log_joint
from hcnet.progress import Callback
from hcnet.validation.images import check_codes
from hcnet.validation.parameters import check_learning, check_max_memory, check_priors
from hcnet.validation.tables import TableInput, check_rank, check_table, check_weights, sparse_ones

# What of a table the factors are to fit best.
OBJECTIVES = ("probability", "error")


def _is_large(X: Any) -> bool:
    """Whether a table is sparse and stays so."""
    return bool(sparse.issparse(X)) and X.ndim == 2 and X.shape[0] * X.shape[1] > MOST_DENSE


@dataclass(eq=False, repr=False)
class BooleanMatrixFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Factor a 0/1 table with noise and unobserved entries; both factors are binary.

    Every row is the OR of some components.  The model is the single-layer HCN for images of one
    pixel that have a channel per column.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None chooses it by the joint probability with all parameters
        integrated out, which is the negative length of a description.
    objective : {"probability", "error"}, default="probability"
        "probability": the factors that are most likely behind a noisy table.  "error": those with
        the fewest wrong entries, or the lowest weight of these, found by moves.
    max_components : int, default=40
        The most components that are considered where the number is left open.
    algorithm : {"refined", "mpmp"}, default="refined"
        "mpmp": max-product message passing alone (needs n_components).  "refined": the best of
        message passing and annealed sampling on the same joint probability, then the binary
        factors closest to the posterior mean.
    p_S, p_W, p01, p10 : float or None, default=None
        Density of the codes and of the components, probability that a one is seen as zero and
        that a zero is seen as one; None: estimated.
    n_init : int or None, default=None
        Starts where the number of components is given; None: three, or with objective="error" up
        to 20, by the size of the table.
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
    errors_ : float
        Observed entries of the training table that are wrong, or their weight.
    coverage_ : ndarray of int, shape (n_components, 5)
        The numbers that `explain` shows for the training table.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a DataFrame.
    row_names_ : list of str
        Names of the training rows, if X was a DataFrame.
    n_iter_, history_, status_, seconds_ : int, list, str, float
        Sweeps, a record of each, why learning stopped, and how long it took.

    """

    _kind = "BooleanMatrixFactorization"
    _model_kind = PARTS_MODEL
    _model: PartsModel = field(init=False)

    n_components: int | None = None
    _: KW_ONLY
    objective: str = "probability"
    max_components: int = 40
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
        weights: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Factor X; `mask` is True (or X is NaN) where an entry is not observed.

        `weights` says for each entry how much it counts, as if it were there so many times.

        With a `checkpoint`, the path of a file, the state of learning is written to it `every` so
        many seconds.  If the process ends, the same call continues from there, to the same result.
        """
        rank, most, options = self._checked(ready=True)
        priors = check_priors(self)
        given: TableInput | None = None
        table: Table | SparseTable
        data: list[Any]
        stays = options.algorithm != "mpmp" and mask is None and weights is None
        if stays and _is_large(X):
            table = SparseTable(sparse_ones(X))
            data = [table.ones.indptr, table.ones.indices, table.ones.data != 0]
        else:
            given = check_table(X, mask, learning=True)
            table = Table(given.values, given.observed, check_weights(weights, given))
            data = [given.values, given.observed]
            data += [] if table.weights is None else [table.weights]
        check_rank(rank, table.shape)

        def running(factors: Factors) -> BooleanMatrixFactorization:
            now = self._copy()._store(factors, table, priors)
            now.status_ = Status.RUNNING.value
            return now

        progress = self._progress(running)
        with (
            self._keeping(checkpoint, every, "fit", *data) as keeper,
            closing(progress),
            interruptible(),
        ):
            rng = self._generator(keeper)
            limits = options.max_seconds, options.max_memory
            learner = Factorizer(table, priors, rng, progress, *limits, keeper)
            most = min(most, *table.shape)
            if self.objective == "error" and options.algorithm != "mpmp":
                found = learner.fewest_errors(rank, most, options.n_init)
            elif rank is not None and options.algorithm == "mpmp":
                found = learner.by_messages(rank, options.engine, options.max_iter)
            else:
                found = learner.refined(rank, most, options.n_init)
        self._store(found.best, table, priors)._store_run(found)
        if rank is None and len(self.components_) == most < min(table.shape):
            warnings.warn(
                f"All of max_components={most} components are used; raise max_components if more "
                f"may be there.",
                UserWarning,
                stacklevel=2,
            )
        if given is not None and given.column_names is not None:
            self.feature_names_in_ = np.array(given.column_names, object)
            self.row_names_ = given.row_names
        return self

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
        if mask is None and _is_large(X):
            table: Table | SparseTable = SparseTable(sparse_ones(X))
        else:
            given = check_table(X, mask)
            self._check_names(given)
            table = Table(given.values, given.observed)
        columns = self.components_.shape[1]
        if table.shape[1] != columns:
            raise ValueError(
                f"X has {table.shape[1]} features, but BooleanMatrixFactorization is expecting "
                f"{columns} features as input."
            )
        if self.objective == "error":
            packed = Packed.of(table)
            return coded(packed.on, packed.off, self.components_.T.astype(np.int8)).astype(bool)
        if isinstance(table, SparseTable):
            p_S = np.full(len(self.components_), logit(self.p_S_))
            known = Parameters(self._model.priors.noise, on_grid(p_S), on_grid(p_S))
            return likely_codes(table, self.components_.T.astype(np.int8), known).astype(bool)
        images = Images(table.values[:, :, None, None], table.observed[:, :, None, None])
        rng, most = np.random.default_rng(0), check_max_memory(self.max_memory)
        found = self._model.explain(images, rng, most)
        codes = np.zeros((len(table.values), len(self.components_)), bool)
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
        given = check_table(X, mask)
        filled = self.inverse_transform(self.transform(X, mask))
        return np.where(given.observed, given.values, filled)

    def explain(
        self, X: ArrayLike | sparse.sparray | None = None, mask: ArrayLike | None = None
    ) -> Any:
        """What each component covers: of X, or of the training table if X is None.

        A row per component: how many rows have it, how many of their ones it covers, how many of
        these no other component covers (`alone`) and how many others do (`shared`), how many zeros
        it covers (`wrong`), and its columns.  A DataFrame if pandas is there, else an array with
        these names.
        """
        check_is_fitted(self)
        if X is None:
            if not hasattr(self, "coverage_"):
                raise ValueError(
                    "A model from a file does not know its training table; pass X, and the mask."
                )
            found = self.coverage_
        else:
            codes, given = self.transform(X, mask), check_table(X, mask)
            factors = Factors(codes.astype(np.int8), self.components_.T.astype(np.int8))
            found = coverage(factors, Table(given.values, given.observed))
        names = getattr(self, "feature_names_in_", None)
        return component_table(found, self.components_, names)

    def score(
        self, X: ArrayLike | sparse.sparray, y: object = None, mask: ArrayLike | None = None
    ) -> float:
        """Joint log-probability of X and its codes, given the components."""
        codes = self.transform(X, mask)
        given = check_table(X, mask)
        factors = Factors(codes.astype(np.int8), self.components_.T.astype(np.int8))
        return log_joint(factors.counts(Table(given.values, given.observed)), self._model.priors)

    def _check_names(self, given: TableInput) -> None:
        """An error if the columns of a DataFrame are not those that were learned."""
        known = getattr(self, "feature_names_in_", None)
        names = given.column_names
        if known is None or names is None or len(names) != len(known):
            return
        strange = [(a, b) for a, b in zip(names, known, strict=True) if a != b]
        if strange:
            raise ValueError(
                f"The feature names should match those that were passed during fit: column "
                f"{strange[0][0]!r} came where {strange[0][1]!r} was; pass X[model."
                f"feature_names_in_]."
            )

    def _check_parameters(self) -> None:
        self._checked()
        check_priors(self)
        check_random_state(self.random_state)

    def _checked(self, ready: bool = False) -> tuple[int | None, int, LearningOptions]:
        """The number of components, the most that are considered, and how to learn."""
        check_choice("objective", self.objective, OBJECTIVES)
        rank = check_optional_count("n_components", self.n_components, 1, "to have it chosen")
        most = check_count("max_components", self.max_components)
        options = check_learning(self, ready, PASSING_DAMPING, least_sweeps=1)
        if options.algorithm == "mpmp" and rank is None:
            raise ValueError(
                "algorithm='mpmp' cannot choose the number of components; pass n_components, or "
                "use algorithm='refined'."
            )
        return rank, most, options

    def _store(self, factors: Factors, table: Table | SparseTable, priors: Priors) -> Self:
        self._forget()
        order = np.argsort(-factors.S.sum(axis=0), kind="stable")
        components = np.ascontiguousarray(factors.W[:, order].T.astype(bool))
        counts = factors.counts(table)
        known = estimate(counts, priors)
        self._publish(PartsModel(components[:, :, None, None], known, "valid", (1, 1)))
        self.codes_ = factors.S[:, order].astype(bool)
        self.log_joint_ = log_joint(counts, known)
        self.errors_ = counts.errors
        ordered = Factors(factors.S[:, order], factors.W[:, order])
        self.coverage_ = coverage(ordered, table)
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

    @classmethod
    def _from_file(cls, file: Node) -> Self:
        loaded = super()._from_file(file)
        names = getattr(loaded, "feature_names_in_", None)
        if names is not None and len(names) != loaded.n_features_in_:
            raise ValueError(f"it names {len(names)} columns of {loaded.n_features_in_}")
        return loaded

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []  # codes are booleans, whatever the table was
        return tags
