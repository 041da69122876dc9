"""Numbers of variable length, one at a time and by the column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.protocol.records import signed_column
from fencepost.clusters.protocol.varints import (
    VarintError,
    encoded_signed,
    encoded_unsigned,
    read_signed,
    read_unsigned,
)

INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (64, "8001"),
        (-64, "7f"),
        (-65, "8101"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_signed_numbers_are_zigzag(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encoded_signed(value) == data
    assert read_signed(data, 0) == (value, len(data))


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02")]
)
def test_unsigned_numbers_are_base_128_low_bits_first(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encoded_unsigned(value) == data
    assert read_unsigned(b"\xff" + data, 1) == (value, 1 + len(data))


@given(value=st.integers(0, 2**64 - 1), tail=st.binary(max_size=3))
def test_any_number_is_read_back_whatever_follows(value: int, tail: bytes) -> None:
    data = encoded_unsigned(value)
    assert read_unsigned(data + tail, 0) == (value, len(data))


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "80" * 10 + "00", "ff" * 9 + "02"])
def test_what_is_cut_or_wider_than_64_bits_is_no_number(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    with pytest.raises(VarintError, match=f"of {len(data)}"):
        read_unsigned(data, 0)
    array = np.frombuffer(data or b"\x80", np.uint8)
    _, [end] = signed_column(array, np.array([0]))
    assert end > len(array)


@given(values=st.lists(INT64, min_size=1, max_size=40))
def test_a_column_is_read_as_one_by_one(values: list[int]) -> None:
    parts = [encoded_signed(value) for value in values]
    starts = np.cumsum([0] + [len(part) for part in parts])
    read, ends = signed_column(np.frombuffer(b"".join(parts), np.uint8), starts[:-1])
    assert read.tolist() == values
    assert ends.tolist() == starts[1:].tolist()


@given(data=st.binary(min_size=1, max_size=30), at=st.integers(0, 35))
def test_a_column_agrees_with_the_single_reader_on_any_bytes(data: bytes, at: int) -> None:
    [value], [end] = signed_column(np.frombuffer(data, np.uint8), np.array([at]))
    try:
        assert (value, end) == read_signed(data, at)
    except VarintError:
        assert end > len(data)
