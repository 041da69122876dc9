"""EDN, form by form: what is read, what is refused, and where."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.history.open.edn import EdnSet, Keyword, Symbol, Tagged, edn_forms, edn_text
from fencepost.history.open.refusal import MalformedHistoryError

WORDS = st.from_regex(r"[a-z][a-z0-9?!*-]{0,8}", fullmatch=True)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | WORDS.map(Keyword)
)
FORMS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(WORDS.map(Keyword), inner, max_size=4)
        | st.lists(inner, max_size=4, unique_by=edn_text).map(lambda items: EdnSet(tuple(items)))
        | inner.map(lambda form: Tagged("inst", form))
    ),
    max_leaves=20,
)


def forms(text: str) -> list[Any]:
    return [form for _, form in edn_forms(text.splitlines(keepends=True), source="h.edn")]


@given(st.lists(FORMS.filter(lambda form: not isinstance(form, tuple)), max_size=4))
def test_what_is_written_is_read_again(written: list[Any]) -> None:
    assert forms("\n".join(map(edn_text, written))) == written


@given(st.lists(FORMS, max_size=4))
def test_a_file_that_is_one_vector_is_its_forms(written: list[Any]) -> None:
    assert forms(edn_text(written)) == written


@given(st.text(alphabet='{}[]()#:"\\_; \n12.ae', max_size=20))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        forms(text)
    except MalformedHistoryError as error:
        assert str(error).startswith("h.edn:")  # noqa: PT017  # most texts are not refused


def test_an_operation_of_jepsen_is_a_map() -> None:
    text = "#jepsen.history.Op{:index 7, :time 123, :type :invoke, :value (1 #{2} nil)}"
    (operation,) = forms(text)
    assert operation == Tagged(
        "jepsen.history.Op",
        {
            Keyword("index"): 7,
            Keyword("time"): 123,
            Keyword("type"): Keyword("invoke"),
            Keyword("value"): (1, EdnSet((2,)), None),
        },
    )


def test_comments_commas_and_discarded_forms_are_nothing() -> None:
    assert forms("; a\n1, #_ #_ 2 {:b 3} 4 ; c\n#_5") == [1, 4]


def test_a_string_may_go_on_over_lines_and_those_behind_it_keep_their_numbers() -> None:
    lines = ['{:a "x\n', 'y\\"" :b 1}\n', "2\n"]
    assert list(edn_forms(lines, source="h.edn")) == [
        (1, {Keyword("a"): 'x\ny"', Keyword("b"): 1}),
        (3, 2),
    ]


def test_what_is_no_number_of_ours_keeps_its_text() -> None:
    assert forms("1/2 1.5M 7N \\newline a$b.<init>") == [
        Symbol("1/2"),
        Symbol("1.5M"),
        7,
        Symbol("\\newline"),
        Symbol("a$b.<init>"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{:a 1\n", "1: expected '}' for this '{'; found the end"),
        ("1\n{:a 1]", "2: expected '}' for the '{' of line 2; found ']'"),
        ("[1\n2", "1: expected ']' for this '['; found the end"),
        ("[1] 2", "1: expected the end of the file; found '2'"),
        ("{:a}", "1: expected a value for each key of a map; found an odd number of forms"),
        ("{:a 1 :a 2}", "1: expected each key of a map once"),
        ("{{} 1}", "1: expected plain keys in a map"),
        ("#{1 1}", "1: expected a set of different elements"),
        ("01", "1: expected a number; found '01'"),
        ("1x", "1: expected a number; found '1x'"),
        ("1e999", "1: expected a number"),
        (":", "1: expected a keyword; found ':'"),
        ('1\n"abc', "2: expected the end of a string; found none"),
        (r'"\q"', r"1: expected an escape of EDN; found \q"),
        (")", "1: expected a form; found ')'"),
        ("#inst", "1: expected a form after '#inst'; found the end"),
        ("{:a " * 100, "1: expected at most 64 levels of nesting; found more"),
    ],
)
def test_what_is_no_edn_is_refused(text: str, expected: str) -> None:
    with pytest.raises(MalformedHistoryError) as refused:
        forms(text)
    assert str(refused.value).startswith(f"h.edn:{expected}")
