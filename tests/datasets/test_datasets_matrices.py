import numpy as np

from hcnet.datasets import boolean_matrix


def test_clean_is_the_boolean_product_of_the_factors():
    data = boolean_matrix(shape=(30, 40), rank=4, random_state=0)
    product = (data.row_factors[:, :, None] & data.column_factors[None]).any(axis=1)
    np.testing.assert_array_equal(data.clean, product)
    assert data.row_factors.shape == (30, 4)
    assert data.column_factors.shape == (4, 40)
    assert data.table.dtype == data.mask.dtype == data.clean.dtype == np.bool_


def test_flips_and_mask_have_the_asked_rates():
    data = boolean_matrix(shape=(300, 300), flips=0.2, observed=0.7, random_state=0)
    tolerance = 4 * 0.5 / 300
    assert abs((data.table != data.clean).mean() - 0.2) < tolerance
    assert abs(data.mask.mean() - 0.3) < tolerance


def test_without_noise_everything_is_seen_as_it_is():
    data = boolean_matrix(flips=0.0, random_state=0)
    np.testing.assert_array_equal(data.table, data.clean)
    assert not data.mask.any()
