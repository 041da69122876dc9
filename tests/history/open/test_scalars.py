"""Keys and values that are no integers, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.history.open.edn import Keyword
from fencepost.history.open.refusal import BadLineError
from fencepost.history.open.scalars import Numbering, Originals, Scalar, key_of, key_text

KEYWORDS = st.from_regex(r"[a-z][a-z0-9-]{0,5}", fullmatch=True).map(Keyword)


@given(st.integers() | st.text() | KEYWORDS)
def test_a_key_comes_back_as_what_it_was(key: int | str | Keyword) -> None:
    found = key_of(key_text(key))
    assert (type(found), found) == (type(key), key)


@given(st.lists(st.text() | KEYWORDS | st.integers() | st.text(), unique_by=repr))
def test_different_keys_have_different_names(keys: list[int | str | Keyword]) -> None:
    assert len({key_text(key) for key in keys}) == len(keys)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.integers(0, 5) | st.text(max_size=2) | KEYWORDS | st.booleans() | st.just(1.5),
        )
    )
)
def test_a_value_comes_back_as_what_it_was(values: list[tuple[str, Scalar]]) -> None:
    numbering = Numbering()
    numbers = [(key, numbering.number(key, value)) for key, value in values]
    originals = Originals(numbering.table())
    found = [originals.value(key, number) for key, number in numbers]
    assert [(type(one), one) for one in found] == [(type(one), one) for _, one in values]


def test_values_that_are_no_integers_are_numbered_key_by_key() -> None:
    numbering = Numbering()
    assert [numbering.number(*one) for one in (("a", "x"), ("a", 7), ("b", "x"), ("a", "y"))] == [
        -1,
        7,
        -1,
        -2,
    ]


@pytest.mark.parametrize("order", [(-3, "x"), ("x", -3)])
def test_negative_integers_and_numbered_values_do_not_mix(order: tuple[Scalar, Scalar]) -> None:
    numbering = Numbering()
    numbering.number("a", order[0])
    with pytest.raises(BadLineError, match="of key a either no negative integers"):
        numbering.number("a", order[1])


@pytest.mark.parametrize("value", [None, (1, 2), {}, float("nan"), 1 << 63])
def test_what_cannot_be_a_value_is_refused(value: object) -> None:
    with pytest.raises(BadLineError, match="expected"):
        Numbering().number("a", value)
