"""BooleanMatrixFactorization on tables as people have them: names, weights, errors, bad cells."""

import sys

import numpy as np
import pandas
import pytest
from scipy import sparse

import hcnet
from hcnet import BooleanMatrixFactorization
from hcnet.datasets import boolean_matrix
from hcnet.plotting import show_factors

DATA = boolean_matrix(shape=(40, 12), rank=3, flips=0.05, random_state=0)


def frame(cells, columns=None):
    cells = np.asarray(cells)
    names = columns or [f"c{k}" for k in range(cells.shape[1])]
    return pandas.DataFrame(cells, [f"r{k}" for k in range(len(cells))], names)


def by_errors(rank=3, **options):
    settings = {"objective": "error", "n_init": 2, "random_state": 0} | options
    return BooleanMatrixFactorization(rank, **settings)


def test_errors_are_those_of_the_reconstruction_and_no_more_than_by_probability():
    for seed in range(3):
        X = boolean_matrix(shape=(60, 30), rank=6, flips=0.15, random_state=seed).table
        fewest, likely = by_errors(5).fit(X), BooleanMatrixFactorization(5, random_state=0).fit(X)
        assert fewest.errors_ == (fewest.inverse_transform(fewest.codes_) != X).sum()
        assert likely.errors_ == (likely.inverse_transform(likely.codes_) != X).sum()
        assert fewest.errors_ <= likely.errors_
        again = fewest.inverse_transform(fewest.transform(X))
        assert (again != X).sum() == fewest.errors_


def test_the_number_of_components_is_chosen_by_the_length_of_a_description():
    data = boolean_matrix(shape=(120, 60), rank=4, flips=0.03, random_state=1)
    model = by_errors(None, max_components=8).fit(data.table)
    assert len(model.components_) == 4
    noise = np.random.default_rng(0).random((40, 30)) < 0.5
    assert len(by_errors(None, max_components=3).fit(noise).components_) == 0


@pytest.mark.parametrize("objective", ["error", "probability"])
def test_weights_count_entries_as_if_they_were_there_so_often(objective):
    rng = np.random.default_rng(0)
    table = DATA.table[:, :6]
    times = rng.integers(1, 4, len(table))
    options = {"objective": objective, "random_state": 0, "n_init": 2}
    weights = np.broadcast_to(times[:, None], table.shape)
    weighted = BooleanMatrixFactorization(2, **options).fit(table, weights=weights)
    repeated = BooleanMatrixFactorization(2, **options).fit(np.repeat(table, times, axis=0))
    wrong = (weighted.inverse_transform(weighted.codes_) != table) * weights
    assert weighted.errors_ == wrong.sum()
    if objective == "error":
        assert weighted.errors_ == repeated.errors_
    else:
        assert weighted.p01_ == pytest.approx(repeated.p01_, abs=0.02)
    none = np.where(np.arange(6) < 3, 1.0, 0.0)
    half = BooleanMatrixFactorization(2, **options).fit(
        table, weights=np.broadcast_to(none, table.shape)
    )
    assert half.errors_ == (half.inverse_transform(half.codes_) != table)[:, :3].sum()


def test_fractions_are_weights_too():
    weights = np.random.default_rng(1).random(DATA.table.shape)
    model = by_errors().fit(DATA.table, weights=weights)
    wrong = model.inverse_transform(model.codes_) != DATA.table
    assert model.errors_ == pytest.approx(weights[wrong].sum(), rel=1e-4)
    assert model.errors_ < 0.8 * by_errors(1).fit(DATA.table, weights=weights).errors_


def test_a_sparse_table_stays_sparse_and_gives_the_same(monkeypatch):
    X = boolean_matrix(shape=(200, 50), rank=3, flips=0.01, random_state=0).table
    dense = by_errors(4).fit(X)
    rows = []

    def part(table, *given):
        rows.append(given)
        return original(table, *given)

    monkeypatch.setattr(hcnet.estimators.boolean_matrix, "MOST_DENSE", 0)
    original = hcnet.factorization.packed.SparseTable.rows
    monkeypatch.setattr(hcnet.factorization.packed.SparseTable, "rows", part)
    thin = by_errors(4).fit(sparse.csr_array(X.astype(float)))
    assert rows
    assert thin.errors_ <= dense.errors_ + 20
    assert thin.errors_ == (thin.inverse_transform(thin.codes_) != X).sum()
    found = thin.transform(sparse.csc_array(X))
    np.testing.assert_array_equal(found, thin.transform(X))


def test_names_of_a_table_are_kept_also_in_files(tmp_path):
    given = frame(DATA.table.astype(float))
    model = by_errors().fit(given)
    assert list(model.feature_names_in_) == list(given.columns)
    assert model.row_names_ == list(given.index)
    loaded = BooleanMatrixFactorization.load(model.save(tmp_path / "table.hcn"))
    assert list(loaded.feature_names_in_) == list(given.columns)
    assert loaded.errors_ == model.errors_
    assert loaded.objective == "error"
    np.testing.assert_array_equal(loaded.transform(DATA.table), model.transform(DATA.table))
    other = frame(DATA.table, columns=[f"d{k}" for k in range(12)])
    with pytest.raises(ValueError, match="column 'd0' came where 'c0' was"):
        model.transform(other)
    assert not hasattr(by_errors().fit(DATA.table), "feature_names_in_")


def test_explain_says_what_each_component_covers(monkeypatch):
    model = by_errors().fit(frame(DATA.table))
    told = model.explain()
    np.testing.assert_array_equal(told["rows"], model.codes_.sum(axis=0))
    assert told["columns"][0] == ", ".join(f"c{k}" for k in np.flatnonzero(model.components_[0]))
    covered = model.inverse_transform(model.codes_)
    assert told["wrong"].sum() >= (covered & ~DATA.table).sum()
    np.testing.assert_array_equal(told["covers"], told["alone"] + told["shared"])
    np.testing.assert_array_equal(model.explain(DATA.table)["columns"], told["columns"])

    monkeypatch.setitem(sys.modules, "pandas", None)  # as where it is not installed
    array = model.explain()
    assert array.dtype.names == ("rows", "covers", "alone", "shared", "wrong", "columns")
    for name in array.dtype.names:
        assert array[name].tolist() == told[name].tolist()


def test_a_model_from_a_file_explains_the_table_that_is_passed(tmp_path):
    model = by_errors().fit(DATA.table)
    loaded = BooleanMatrixFactorization.load(model.save(tmp_path / "table.hcn"))
    with pytest.raises(ValueError, match="does not know its training table; pass X"):
        loaded.explain()
    pandas.testing.assert_frame_equal(loaded.explain(DATA.table), model.explain(DATA.table))


def test_the_picture_has_every_entry_once_and_outlines_components():
    model = by_errors().fit(DATA.table)
    small = np.asarray(show_factors(model, DATA.table, scale=1))
    assert small.shape == (42, 14, 3)
    inside = small[1:-1, 1:-1].reshape(-1, 3)
    white, dark = (inside == 255).all(axis=1).sum(), (inside == 90).all(axis=1).sum()
    R = model.inverse_transform(model.codes_)
    assert white == (~R & ~DATA.table).sum()
    assert dark == (~R & DATA.table).sum()
    named = show_factors(
        model, DATA.table, rows=["x"] * 40, columns=[f"column {k}" for k in range(12)], scale=12
    )
    assert named.width > 12 * 12
    assert named.height > 40 * 12 + 30
    with pytest.raises(ValueError, match="captions must be a list of 12 texts"):
        show_factors(model, DATA.table, columns=["a"])
    with pytest.raises(TypeError, match="must be a BooleanMatrixFactorization"):
        show_factors(DATA, DATA.table)


WORDS = np.array([[0, 1], [1, "yes"]], object)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (frame(WORDS), r"the text 'yes' in row 'r1', column 'c1'; say what is on"),
        (frame([[0, 1], [3, 0]]), r"such as 3 in row 'r1', column 'c0' \(1 of the entries"),
        (np.array([[0, 1], [1, 0.5]]), r"such as 0.5 in row 1, column 1"),
        (sparse.csr_array([[0, 2], [1, 0]]), "must hold only 0 and 1, got values such as 2"),
        (sparse.csr_array(([2], ([0], [0])), (10**6, 11)), "got values such as 2; binarise"),
        (sparse.csr_array((0, 3)), "minimum of 1 is required"),
    ],
)
def test_bad_cells_are_named(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        by_errors(1).fit(X)


@pytest.mark.parametrize(
    ("rank", "options", "sentence"),
    [
        (13, {}, "n_components is 13, but X has 40 rows and 12 columns"),
        (2, {"weights": np.ones(40)}, "weights must hold a number for each entry of X"),
        (2, {"weights": -np.ones((40, 12))}, "finite numbers of at least 0"),
        (2, {"weights": np.zeros((40, 12))}, "some of them above 0"),
    ],
)
def test_bad_settings_get_a_sentence(rank, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        by_errors(rank).fit(DATA.table, **options)
    with pytest.raises(ValueError, match="objective must be one of"):
        BooleanMatrixFactorization(2, objective="fast").fit(DATA.table)


def test_rows_and_columns_of_nothing_are_named():
    mask = np.zeros(DATA.table.shape, bool)
    mask[7] = True
    with pytest.warns(UserWarning, match=r"Nothing is observed in row 7 of X \(1 rows in all\)"):
        model = by_errors().fit(DATA.table, mask=mask)
    assert not model.codes_[7].any()
    cells = np.where(np.arange(12) == 7, np.nan, DATA.table)
    with pytest.warns(UserWarning, match="in column 'c7' of X"):
        by_errors().fit(frame(cells))


def test_missing_values_of_a_data_frame_are_missing():
    cells = DATA.table.astype(object)
    cells[3, 4] = None
    model = by_errors().fit(frame(cells))
    assert model.errors_ == by_errors().fit(DATA.table, mask=cells == None).errors_  # noqa: E711


def test_limits_end_the_search_with_the_best_so_far():
    X = boolean_matrix(shape=(1200, 300), rank=8, flips=0.1, random_state=0).table
    for rank in (8, None):
        model = by_errors(rank, max_seconds=0.3).fit(X)
        assert "time limit" in model.status_
        assert model.errors_ == (model.inverse_transform(model.codes_) != X).sum()
        assert rank is None or model.codes_.shape == (1200, 8)
