"""Keys and values that are not integers: their names and numbers in the tables, and the way back.

A key is a text in the tables. An integer becomes its digits, a keyword stands with its colon, and a
string as it is, unless it would then be taken for one of the others: `"7"` and `":x"` keep their
quotes. So a key's text tells what it was.

A value is an integer in the tables. Any other value gets, key by key, the next of -1, -2, … in the
order of appearance; the originals are kept with the history (ORIGINALS). A key whose values are of
both kinds may have no negative integers.
"""

import json
import math
import re
from typing import Final

import pyarrow as pa

from fencepost.history.open.edn import Keyword, edn_forms, edn_text
from fencepost.history.open.refusal import BadLineError, shown

Scalar = int | float | str | bool | Keyword
"""A key or a value, as a file has it."""

ORIGINALS: Final = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        # The number that stands for it in the tables.
        pa.field("value", pa.int64(), nullable=False),
        # The value as the file had it, in EDN.
        pa.field("original", pa.string(), nullable=False),
    ]
)
ORIGINALS_FILE: Final = "originals.parquet"

_INT64_MAX: Final = (1 << 63) - 1
_AMBIGUOUS: Final = re.compile(r'-?[0-9]+|[:"].*', re.DOTALL)
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")


def key_text(key: object) -> str:
    """Return the name of a key in the tables; raise RefusedError for what cannot be a key."""
    match key:
        case bool():
            pass
        case int():
            return str(key)
        case Keyword():
            return f":{key.name}"
        case str():
            return json.dumps(key, ensure_ascii=False) if _AMBIGUOUS.fullmatch(key) else key
    raise BadLineError(f"expected a key: an integer, a string or a keyword; found {shown(key)}")


def key_of(text: str) -> int | str | Keyword:
    """Return the value from which a key's name was made."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if text.startswith(":"):
        return Keyword(text[1:])
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    return text


class Numbering:
    """The numbers of the values of a history, given out in the order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}
        self._negative: set[str] = set()

    def number(self, key: str, value: object) -> int:
        """Return the number of a value of this key.

        Raise RefusedError for what cannot be a value.
        """
        if type(value) is int:
            return self._integer(key, value)
        if not isinstance(value, (str, bool, Keyword, float)) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            raise BadLineError(
                "expected a value: an integer, a string, a keyword, a boolean or a real; "
                f"found {shown(value)}"
            )
        if key in self._negative:
            raise BadLineError(_both(key))
        numbers = self._numbers.setdefault(key, {})
        return numbers.setdefault(edn_text(value), -1 - len(numbers))

    def table(self) -> pa.Table:
        """Return ORIGINALS: the values that were no integers."""
        rows = [
            {"key": key, "value": number, "original": original}
            for key, numbers in self._numbers.items()
            for original, number in numbers.items()
        ]
        return pa.Table.from_pylist(rows, schema=ORIGINALS)

    def _integer(self, key: str, value: int) -> int:
        if not -_INT64_MAX <= value <= _INT64_MAX:
            raise BadLineError(f"expected an integer of 64 bits; found {shown(value)}")
        if value < 0:
            if key in self._numbers:
                raise BadLineError(_both(key))
            self._negative.add(key)
        return value


class Originals:
    """The original values behind the numbers of a history."""

    def __init__(self, table: pa.Table | None = None) -> None:
        self._originals: dict[tuple[str, int], Scalar] = {}
        for row in table.to_pylist() if table is not None else ():
            ((_, original),) = edn_forms([row["original"]], source=ORIGINALS_FILE)
            self._originals[row["key"], row["value"]] = original

    def value(self, key: str, number: int) -> Scalar:
        """Return the value as it was."""
        return self._originals.get((key, number), number)

    def value_or_none(self, key: str, number: int | None) -> Scalar | None:
        """Return the value as it was, or None if its number is unknown."""
        return None if number is None else self.value(key, number)


def _both(key: str) -> str:
    return (
        f"expected of key {key} either no negative integers or nothing but integers; found both: "
        "values that are no integers are numbered -1, -2, …"
    )
