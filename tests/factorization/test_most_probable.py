"""The search for the most probable factors, its kernels, and tables with many rows."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

import hcnet
from benchmarks.bmf_rank import correlated_blocks
from hcnet import BooleanMatrixFactorization
from hcnet.datasets import boolean_matrix
from hcnet.factorization import factorizer
from hcnet.factorization.binary_factors import Factors, Table, marginal_log_joint
from hcnet.factorization.most_probable import MostProbable
from hcnet.factorization.packed import packed_bits
from hcnet.factorization.probability_kernels import sample
from hcnet.factorization.sampling import Sampler, climb_to_maximum
from hcnet.objective import Priors


def searched(table, most, seed=0, moves=150):
    process = MostProbable(
        table, most, Priors(), np.random.default_rng(seed), Factors.zeros(table, 0)
    )
    process.moves, process._low = moves, moves // 2
    while process.step():
        pass
    return process


def random_table(seed, weights):
    rng = np.random.default_rng(seed)
    shape = (30, 70)
    steps = rng.integers(1, 6, shape).astype(np.float32) if weights else None
    return Table(rng.random(shape) < 0.4, rng.random(shape) < 0.8, steps), rng


@pytest.mark.parametrize("beta", [0.0, 0.7])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_pass_on_bits_is_that_entry_by_entry(seed, weights, beta):
    table, rng = random_table(seed, weights)
    S, W = ((rng.random((n, 4)) < 0.3).astype(np.int8) for n in table.shape)
    evidence, prior, draws = np.array([1.5, -2.0]), rng.normal(size=4), rng.random(S.shape)
    each = np.where(table.on, evidence[0], np.where(table.off, evidence[1], 0))
    each = each if table.weights is None else each * table.weights
    wanted = S.copy()
    for n in range(len(S)):
        for f in range(4):
            others = wanted[n].copy()
            others[f] = 0
            own = (W[:, f] > 0) & ~(W @ others > 0)
            odds = each[n, own].sum() + prior[f]
            wanted[n, f] = draws[n, f] < expit(beta * odds) if beta else odds > 0
    bits = table.packed
    changed = sample(bits.on, bits.off, S, packed_bits(W.T), evidence, prior, beta, draws)
    np.testing.assert_array_equal(S, wanted)
    assert changed > 0


@pytest.mark.parametrize("weights", [False, True])
def test_the_search_has_the_joint_probability_as_its_objective(weights):
    data = boolean_matrix(shape=(60, 40), rank=4, flips=0.1, random_state=0)
    times = np.random.default_rng(0).integers(1, 4, data.table.shape).astype(np.float32)
    table = Table(data.table, ~data.mask, times if weights else None)
    process = searched(table, 8)
    best = process.state().used()
    value = marginal_log_joint(best, table)
    assert process.measure().objective == pytest.approx(value, rel=1e-9)
    assert (best.product() != data.clean).mean() < (0.1 if weights else 0.02)


def test_given_parameters_are_kept_in_the_search():
    data = boolean_matrix(shape=(60, 40), rank=3, flips=0.1, random_state=1)
    fixed = {"p_S": 0.3, "p_W": 0.3, "p01": 0.1, "p10": 0.1}
    model = BooleanMatrixFactorization(max_components=6, random_state=0, **fixed).fit(data.table)
    assert len(model.components_) == 3
    assert (model.inverse_transform(model.codes_) != data.clean).mean() < 0.01


@pytest.mark.parametrize("seed", [0, 1])
def test_the_number_that_is_chosen_is_no_worse_than_numbers_by_hand(seed):
    """Real tables have many weak components, which annealing from many loses at once."""
    X = correlated_blocks(200, 8, random_state=seed)
    table = Table(X, np.ones(X.shape, bool))

    def value(model):
        bits = model.codes_.astype(np.int8), model.components_.T.astype(np.int8)
        factors = Factors(*bits).used()
        if model.n_components:
            climb_to_maximum(factors, Sampler(table, np.random.default_rng(0)), Priors(), 20)
        return marginal_log_joint(factors.used(), table)

    options = {"random_state": seed, "max_components": 20}
    chosen = value(BooleanMatrixFactorization(**options).fit(X))
    by_hand = [
        value(BooleanMatrixFactorization(k, objective="error", n_init=1, **options).fit(X))
        for k in (4, 8)
    ]
    assert chosen >= max(by_hand)


def test_a_limit_that_all_components_reach_is_told():
    X = correlated_blocks(200, 6)
    with pytest.warns(UserWarning, match="All of max_components=3 components are used; raise"):
        BooleanMatrixFactorization(max_components=3, random_state=0).fit(X)


@pytest.mark.parametrize("objective", ["probability", "error"])
@pytest.mark.parametrize("rank", [None, 4])
def test_a_tall_table_is_factored_from_some_of_its_rows(monkeypatch, objective, rank):
    monkeypatch.setattr(factorizer, "MOST_ROWS", 100)
    data = boolean_matrix(shape=(450, 30), rank=4, flips=0.05, random_state=0)
    shapes = set()
    model = BooleanMatrixFactorization(
        rank,
        objective=objective,
        max_components=6,
        n_init=2,
        random_state=0,
        callback=lambda step: shapes.add(len(step.model().codes_)),
    ).fit(data.table)
    assert shapes == {450}
    assert model.components_.shape == (4, 30)
    assert (model.inverse_transform(model.codes_) != data.clean).mean() < 0.01


@pytest.mark.parametrize("objective", ["probability", "error"])
def test_a_tall_table_that_was_broken_off_goes_on_from_its_checkpoint(
    monkeypatch, tmp_path, objective
):
    monkeypatch.setattr(factorizer, "MOST_ROWS", 60)
    table = boolean_matrix(shape=(130, 12), rank=2, flips=0.1, random_state=0).table

    class BrokenError(Exception):
        pass

    def breaking(step):
        if step.stage.startswith("Moves") and step.iteration == 2:
            raise BrokenError

    options = {"objective": objective, "max_components": 3, "n_init": 1, "random_state": 0}
    model = BooleanMatrixFactorization(**options).fit(table)
    components, codes = model.components_, model.codes_
    path = tmp_path / "fit.ckpt"
    with pytest.raises(BrokenError):
        BooleanMatrixFactorization(callback=breaking, **options).fit(
            table, checkpoint=path, every=0.05
        )
    model.fit(table, checkpoint=path)
    np.testing.assert_array_equal(model.components_, components)
    np.testing.assert_array_equal(model.codes_, codes)


@pytest.mark.parametrize("rank", [None, 3])
def test_a_sparse_table_stays_sparse_with_the_most_probable_factors(monkeypatch, rank):
    data = boolean_matrix(shape=(200, 50), rank=3, flips=0.01, random_state=0)
    for module in (hcnet.estimators.boolean_matrix, factorizer):
        monkeypatch.setattr(module, "MOST_DENSE", 0)
    monkeypatch.setattr(factorizer, "MOST_STORED", 0)
    monkeypatch.setattr(hcnet.estimators.boolean_matrix, "check_table", None)
    X = sparse.csr_array(data.table.astype(float))
    model = BooleanMatrixFactorization(rank, max_components=5, random_state=0).fit(X)
    np.testing.assert_array_equal(model.inverse_transform(model.codes_), data.clean)
    found = model.inverse_transform(model.transform(X))
    assert (found != data.clean).mean() < 0.01
