r"""EDN, read strictly and form by form: Clojure's notation for data, in which Jepsen writes.

Nothing is evaluated. A tag (`#inst "…"`, `#jepsen.history.Op{…}`) is kept as a name with its form.
Memory holds one form: those of a file that is one vector are handed on one by one, too. Nesting has
a bound, so that no file can exhaust the stack.

| EDN | here |
|---|---|
| nil, true, 1, 1N, 1.5 | None, bool, int, int, float |
| "text" | str |
| :word | Keyword |
| symbol, \c, 1/2, 1.5M | Symbol, which keeps the text |
| [] and () | tuple |
| #{} | EdnSet, in the order of the file |
| {} | dict |
| #tag form | Tagged |
| ; comment, #_ form, `,` | nothing |

edn_format 0.8.0, the maintained reader on PyPI, reads a text as one and without its lines, at 6,000
operations of list-append a second where this reads 24,000. It refuses each tag that is not declared
to it, and takes without a word a key that a map has twice, 1e400 (as infinity) and 01 (as two
numbers). kim-edn knows no keywords, sets or tags. (5,000 operations, three runs, two cores.)

Source: https://github.com/edn-format/edn.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from fencepost.history.open.refusal import BadLineError, MalformedHistoryError, shown

Form = Any
"""One of the right-hand column above."""

_DEPTH_MAX: Final = 64
_STRING_LINES_MAX: Final = 10_000
_NUMBER_LENGTH_MAX: Final = 100
_TOKEN: Final = re.compile(
    r"""
    (?P<space> [\s,]+ | ;.* )
    | (?P<string> "(?:[^"\\]|\\.)*" )
    | (?P<unended> " )
    | (?P<open> \#\{ | [\[({] )
    | (?P<close> [\])}] )
    | (?P<discard> \#_ )
    | (?P<char> \\(?:u[0-9A-Fa-f]{4}|[a-z]+|\S) )
    | (?P<tag> \#[A-Za-z][^\s,"\\\[\](){};]* )
    | (?P<atom> [^\s,"\\\[\](){};]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*)N?")
_REAL: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_NUMBERISH: Final = re.compile(r"[+-]?[0-9]")
_CONSTANTS: Final[dict[str, Form]] = {"nil": None, "true": True, "false": False}
_CLOSES: Final = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword: `:name`."""

    name: str

    def __repr__(self) -> str:
        return f":{self.name}"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A word that is no keyword, and whatever else is kept as its text."""

    text: str


@dataclass(frozen=True, slots=True)
class EdnSet:
    """A set: `#{…}`."""

    items: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tagged form: `#tag form`."""

    tag: str
    form: Form


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def edn_forms(lines: Iterable[str], *, source: str) -> Iterator[tuple[int, Form]]:
    """Yield each form of a file with its line; of one vector or list, each of its forms.

    Raises MalformedHistoryError where the text is not EDN.
    """
    tokens = _tokens(lines, source)
    reader = _Reader(tokens, source)
    first = next(tokens, None)
    if first is None:
        return
    if first.kind == "open" and first.text in "[(":
        yield from reader.items(first)
        rest = next(tokens, None)
        if rest is not None and not reader.is_discarded(rest):
            raise MalformedHistoryError(
                source, rest.line, f"expected the end of the file; found {shown(rest.text)}"
            )
        return
    while first is not None:
        if not reader.is_discarded(first):
            yield first.line, reader.form(first, depth=0)
        first = next(tokens, None)


def edn_text(form: Form) -> str:
    """Return a form in EDN, on one line; raise TypeError for anything else."""
    match form:
        case None:
            return "nil"
        case bool():
            return "true" if form else "false"
        case int() | float():
            assert math.isfinite(form), form
            return repr(form)
        case str():
            return json.dumps(form, ensure_ascii=False)
        case Keyword():
            return f":{form.name}"
        case Symbol():
            return form.text
        case tuple() | list():
            return f"[{' '.join(map(edn_text, form))}]"
        case EdnSet():
            return f"#{{{' '.join(map(edn_text, form.items))}}}"
        case dict():
            pairs = (f"{edn_text(key)} {edn_text(value)}" for key, value in form.items())
            return f"{{{', '.join(pairs)}}}"
        case Tagged():
            return f"#{form.tag} {edn_text(form.form)}"
    raise TypeError(f"no EDN form: {form!r}")


def _tokens(lines: Iterable[str], source: str) -> Iterator[_Token]:
    numbered = enumerate(lines, start=1)
    for first_number, first in numbered:
        number, line, at = first_number, first, 0
        while at < len(line):
            found = _TOKEN.match(line, at)
            if found is None:
                raise MalformedHistoryError(
                    source, number, f"expected EDN; found {shown(line[at:])}"
                )
            kind = found.lastgroup
            assert kind is not None
            if kind == "unended":
                whole = _whole_string(line[at:], numbered)
                if whole is None:
                    raise MalformedHistoryError(
                        source, number, "expected the end of a string; found none"
                    )
                (number, line), at = whole, 0
                continue
            at = found.end()
            if kind != "space":
                yield _Token(kind, found[0], number)


def _whole_string(begun: str, numbered: Iterator[tuple[int, str]]) -> tuple[int, str] | None:
    """Return the number of the line in which the string ends, and its text to that line's end."""
    parts = [begun]
    for number, line in islice(numbered, _STRING_LINES_MAX):
        parts.append(line)
        if '"' in line:
            whole = "".join(parts)
            found = _TOKEN.match(whole)
            if found is not None and found["string"]:
                return number, whole
    return None


@dataclass(frozen=True, slots=True)
class _Reader:
    tokens: Iterator[_Token]
    source: str

    def items(self, opened: _Token) -> Iterator[tuple[int, Form]]:
        """Yield the forms up to the bracket that closes this one, each with its line."""
        for token in self.tokens:
            if token.kind == "close":
                self._check_close(opened, token)
                return
            if not self.is_discarded(token):
                yield token.line, self.form(token, depth=1)
        raise MalformedHistoryError(
            self.source,
            opened.line,
            f"expected {_CLOSES[opened.text]!r} for this {opened.text!r}; found the end",
        )

    def is_discarded(self, token: _Token) -> bool:
        """Return whether the token is `#_`; the form that this leaves out is then read, too."""
        if token.kind != "discard":
            return False
        self._next_form(token, depth=1)
        return True

    def form(self, token: _Token, *, depth: int) -> Form:
        """Return the form that begins with this token."""
        try:
            return self._form(token, depth)
        except BadLineError as error:
            raise MalformedHistoryError(self.source, token.line, str(error)) from None

    def _form(self, token: _Token, depth: int) -> Form:
        if depth > _DEPTH_MAX:
            raise BadLineError(f"expected at most {_DEPTH_MAX} levels of nesting; found more")
        match token.kind:
            case "atom":
                return _atom(token.text)
            case "open":
                return self._collection(token, depth)
            case "string":
                return _ESCAPE.sub(_unescaped, token.text[1:-1])
            case "tag":
                return Tagged(token.text[1:], self._next_form(token, depth=depth + 1))
            case "char":
                return Symbol(token.text)
        raise BadLineError(f"expected a form; found {shown(token.text)}")

    def _next_form(self, after: _Token, *, depth: int) -> Form:
        for token in self.tokens:
            if not self.is_discarded(token):
                return self.form(token, depth=depth)
        raise MalformedHistoryError(
            self.source, after.line, f"expected a form after {after.text!r}; found the end"
        )

    def _collection(self, opened: _Token, depth: int) -> Form:
        items: list[Form] = []
        for token in self.tokens:
            if token.kind == "close":
                self._check_close(opened, token)
                return _collected(opened.text, items)
            if not self.is_discarded(token):
                items.append(self.form(token, depth=depth + 1))
        raise BadLineError(
            f"expected {_CLOSES[opened.text]!r} for this {opened.text!r}; found the end"
        )

    def _check_close(self, opened: _Token, closed: _Token) -> None:
        if closed.text != _CLOSES[opened.text]:
            raise MalformedHistoryError(
                self.source,
                closed.line,
                f"expected {_CLOSES[opened.text]!r} for the {opened.text!r} of line "
                f"{opened.line}; found {closed.text!r}",
            )


def _collected(opened: str, items: list[Form]) -> Form:
    if opened in "[(":
        return tuple(items)
    if opened == "#{":
        texts = [edn_text(item) for item in items]
        if len(set(texts)) < len(texts):
            raise BadLineError(f"expected a set of different elements; found {shown(items)}")
        return EdnSet(tuple(items))
    if len(items) % 2:
        raise BadLineError("expected a value for each key of a map; found an odd number of forms")
    try:
        whole = dict(zip(items[::2], items[1::2], strict=True))
    except TypeError:
        raise BadLineError("expected plain keys in a map; found a map or a set as key") from None
    if len(whole) * 2 < len(items):
        raise BadLineError(f"expected each key of a map once; found {shown(items[::2])}")
    return whole


def _atom(text: str) -> Form:
    if text.startswith(":"):
        if len(text) == 1 or text.startswith("::"):
            raise BadLineError(f"expected a keyword; found {text!r}")
        return Keyword(text[1:])
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) <= _NUMBER_LENGTH_MAX:
        if _INTEGER.fullmatch(text):
            return int(text.removesuffix("N"))
        if _REAL.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
    if _NUMBERISH.match(text) and not re.fullmatch(r"[+-]?[0-9.eE+-]+M|[+-]?[0-9]+/[0-9]+", text):
        raise BadLineError(f"expected a number; found {text!r}")
    return Symbol(text)


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if escape.startswith("u"):
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _refuse_escape(escape)
    return _ESCAPES[escape] if escape in _ESCAPES else _refuse_escape(escape)


def _refuse_escape(escape: str) -> str:
    raise BadLineError(f"expected an escape of EDN; found \\{escape}")
