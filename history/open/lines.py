"""Lines of a file of text, decoded strictly, and JSON objects line by line."""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from fencepost.history.open.edn import EdnSet, Keyword
from fencepost.history.open.refusal import BadLineError, MalformedHistoryError, at_line, shown

_LINE_BYTES_MAX: Final = 1 << 28
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_DEEP: Final = "expected fewer levels of nesting"


def text_lines(file: BinaryIO, *, source: str) -> Iterator[str]:
    """Yield each line, with its end; raise MalformedHistoryError for bytes that are not UTF-8."""
    number = 0
    while line := file.readline(_LINE_BYTES_MAX):
        number += 1
        if len(line) == _LINE_BYTES_MAX:
            raise MalformedHistoryError(
                source, number, f"expected a line of less than {_LINE_BYTES_MAX} bytes; found more"
            )
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise MalformedHistoryError(
                source, number, f"expected UTF-8; found {shown(line[error.start : error.end])}"
            ) from None


def json_objects(lines: Iterator[str], *, source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object of each non-blank line: arrays as tuples, {"keyword": "x"} as Keyword.

    Raises MalformedHistoryError for what is no JSON object, or has a name twice.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        with at_line(source, number):
            try:
                found = _form(decoder.decode(line.rstrip()))
            except RecursionError:
                raise BadLineError(_TOO_DEEP) from None
            except ValueError as error:
                raise BadLineError(f"expected JSON; found {shown(line)}: {error}") from None
            if _SURROGATE.search(line) and not _is_text(found):
                raise BadLineError(f"expected Unicode; found half a pair in {shown(line)}")
            if not isinstance(found, dict):
                raise BadLineError(f"expected a JSON object; found {shown(found)}")
        yield number, found


def _is_text(form: Any) -> bool:
    """Return whether all of it can be written as UTF-8: JSON can name halves of pairs alone."""
    try:
        json.dumps(_plain(form), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def json_text(form: Any) -> str:
    """Return a form as JSON, on one line."""
    return json.dumps(_plain(form), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) < len(pairs):
        raise BadLineError(f"expected each name once; found {shown([name for name, _ in pairs])}")
    return whole


def _refuse_constant(text: str) -> None:
    raise BadLineError(f"expected JSON; found {text}")


def _form(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_form(item) for item in value)
    if isinstance(value, dict):
        if value.keys() == {"keyword"} and isinstance(value["keyword"], str):
            return Keyword(value["keyword"])
        return {name: _form(item) for name, item in value.items()}
    return value


def _plain(form: Any) -> Any:
    match form:
        case Keyword():
            return {"keyword": form.name}
        case EdnSet():
            return [_plain(item) for item in form.items]
        case tuple() | list():
            return [_plain(item) for item in form]
        case dict():
            return {name: _plain(item) for name, item in form.items()}
    return form
