import numpy as np
import pytest

from hcnet.datasets import boolean_matrix


def test_clean_is_the_boolean_product_of_the_factors():
    data = boolean_matrix(shape=(30, 40), rank=4, random_state=0)
    product = (data.row_factors[:, :, None] & data.column_factors[None]).any(axis=1)
    np.testing.assert_array_equal(data.clean, product)
    assert data.row_factors.shape == (30, 4)
    assert data.column_factors.shape == (4, 40)
    assert data.table.dtype == data.mask.dtype == data.clean.dtype == np.bool_


@pytest.mark.parametrize("rank", [1, 5, 12])
@pytest.mark.parametrize("density", [0.2, 0.5, 0.8])
def test_density_is_met_on_average(rank, density):
    shares = [
        boolean_matrix(shape=(60, 60), rank=rank, density=density, random_state=seed).clean.mean()
        for seed in range(60)
    ]
    assert abs(np.mean(shares) - density) < 5 * np.std(shares) / np.sqrt(len(shares))


def test_flips_and_mask_have_the_asked_rates():
    data = boolean_matrix(shape=(300, 300), flips=0.2, observed=0.7, random_state=0)
    tolerance = 4 * 0.5 / 300
    assert abs((data.table != data.clean).mean() - 0.2) < tolerance
    assert abs(data.mask.mean() - 0.3) < tolerance


def test_without_noise_everything_is_seen_as_it_is():
    data = boolean_matrix(flips=0.0, random_state=0)
    np.testing.assert_array_equal(data.table, data.clean)
    assert not data.mask.any()


@pytest.mark.parametrize("density", [0.0, 1.0])
def test_extreme_densities_give_a_constant_matrix(density):
    data = boolean_matrix(density=density, random_state=0)
    assert (data.clean == bool(density)).all()
