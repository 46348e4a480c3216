import math

import pytest

from glassformer.render.numbers import format_number, format_numbers, format_weights


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([10.0, 8.0, -5.0], ["10", "8", "−5"]),
        ([12.5, 30.8, 25.1], ["12.5", "30.8", "25.1"]),
        ([12.5 / 8, 30.8 / 8, 25.1 / 8], ["1.56", "3.85", "3.14"]),
        ([30.799999237060547], ["30.8"]),  # 30.8 in float32
        ([math.inf, -math.inf, 0.5], ["∞", "−∞", "0.5"]),
        ([math.nan, 1.0], ["nan", "1"]),
        ([0.01234, -0.00012], ["0.012", "0.000"]),
        ([0.01234, -0.0012], ["0.012", "−0.001"]),
        ([1234567.0, 1.0], ["1.23e+06", "1.00e+00"]),
        ([0.0, -0.0], ["0", "0"]),
        ([], []),
    ],
)
def test_a_column_shares_its_digits(values, shown):
    assert format_numbers(values) == shown


def test_a_number_alone():
    assert format_number(3.85) == "3.85"
    assert format_number(-1 / 3) == "−0.33"
    assert format_number(1e-9) == "1.00e−09"


@pytest.mark.parametrize(
    ("weights", "shown"),
    [
        ([0.25, 0.75], ["0.25", "0.75"]),
        ([1.0, 0.0], ["1.00", "0"]),
        ([0.006, 0.118, 0.876], ["0.006", "0.118", "0.876"]),
        ([0.0004, 0.9996], ["<0.001", "1.000"]),
        ([math.nan], ["nan"]),
    ],
)
def test_weights_are_never_rounded_to_nothing(weights, shown):
    assert format_weights(weights) == shown
