"""Printed numbers: fixed width, and the value is what the text says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.numbers import printed


@pytest.mark.parametrize(
    ("value", "padded", "plain"),
    [
        (0.0, "0.00", "0.00"),
        (3.124, "3.12", "3.12"),
        (9.994, "9.99", "9.99"),
        (9.996, "10.0", "10.0"),  # not 10.00: one decimal is given up at 10
        (11.26, "11.3", "11.3"),
        (99.96, "0100", "100"),
        (301.4, "0301", "301"),
        (3750.0, "3750", "3750"),
        (12345.0, "12345", "12345"),
    ],
)
def test_two_decimals_take_four_characters(value: float, padded: str, plain: str) -> None:
    assert printed(np.array([value]), 2, pad=True).text[0] == padded
    assert printed(np.array([value]), 2, pad=False).text[0] == plain


@given(st.lists(st.floats(0, 9_999), min_size=1, max_size=20), st.integers(2, 4))
def test_every_number_is_as_wide_and_right_to_its_last_digit(values: list[float], decimals: int) -> None:
    numbers = printed(np.array(values), decimals, pad=True)
    for value, text, stated in zip(values, numbers.text, numbers.value, strict=True):
        assert stated == float(text)
        last_digit = 10.0 ** -len(text.partition(".")[2])
        assert abs(stated - value) <= last_digit / 2 * (1 + 1e-9)
        if value < 10 ** (decimals + 1) - 1:
            assert len(text) == decimals + 2


def test_shape_is_kept() -> None:
    numbers = printed(np.array([[1.0, 20.0], [300.0, 0.5]]), 2, pad=True)
    assert numbers.text.tolist() == [["1.00", "20.0"], ["0300", "0.50"]]
    assert printed(np.array(812.0), 2, pad=True).text.item() == "0812"
