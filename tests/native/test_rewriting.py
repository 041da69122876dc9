"""A rewritten dataclass is what its decorator would have made."""

import dataclasses
import pickle
import sys
from types import ModuleType
from typing import Any

import pytest

from fencepost.native.rewriting import rewritten

_SOURCE = '''"""Values."""

from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """Has an order of its own."""

    kind: ClassVar[int] = 7
    one: int
    """What it is."""
    two: str = "two"
    unseen: int = field(default=3, compare=False)

    def sum(self) -> int:
        return self.one + self.unseen


@dataclass(slots=True)
class Mutable:
    numbers: list[int] = field(default_factory=list)
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.numbers)


@dataclass(slots=True, eq=False)
class Itself:
    one: int
'''


_BASE = '''"""What others inherit."""

from dataclasses import dataclass, field

UNIT = 1_000


@dataclass(slots=True)
class Base:
    one: int = 2 * UNIT
    numbers: list[int] = field(default_factory=list)

    def sum(self) -> int:
        return self.one + len(self.numbers)
'''
_HEIR = '''"""One inherits from another module, one from that."""

from dataclasses import dataclass, field

from base_of_a_test import Base


@dataclass(slots=True)
class Heir(Base):
    two: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class LastHeir(Heir):
    three: str = "three"
'''
_OTHER = "@dataclass\nclass Other:\n"
_OTHERS = {"base_of_a_test": _BASE}


def _module(source: str, monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(source, name, "exec"), made.__dict__)  # what this is about
    return made


@pytest.fixture(params=["plain", "rewritten"])
def values(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    source = _SOURCE if request.param == "plain" else rewritten(_SOURCE, {})
    return _module(source, monkeypatch, "values_of_a_test")


def test_a_rewritten_class_is_what_the_decorator_would_have_made(values: Any) -> None:
    one = values.Frozen(one=1)
    assert repr(one) == "Frozen(one=1, two='two', unseen=3)"
    assert one == values.Frozen(one=1, unseen=4)
    assert one != values.Frozen(one=2)
    assert one != (1, "two", 3)
    assert hash(one) == hash(values.Frozen(one=1, unseen=4))
    assert dataclasses.replace(one, two="2") == values.Frozen(one=1, two="2")
    assert [part.name for part in dataclasses.fields(one)] == ["one", "two", "unseen"]
    assert pickle.loads(pickle.dumps(one)).sum() == 4
    assert (values.Frozen.kind, values.Frozen.__match_args__) == (7, ())


def test_what_is_made_anew_for_each_is_shared_by_none(values: Any) -> None:
    one, other = values.Mutable(), values.Mutable([1])
    one.numbers.append(2)
    assert (one.count, other.count, values.Mutable().numbers) == (0, 1, [])
    assert values.Mutable.__match_args__ == ("numbers",)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_without_a_comparison_of_its_own_a_value_equals_itself_alone(values: Any) -> None:
    one = values.Itself(1)
    assert one == one  # noqa: PLR0124
    assert one != values.Itself(1)
    assert hash(one) != hash(values.Itself(1))


@pytest.fixture(params=["plain", "rewritten"])
def heirs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    is_plain = request.param == "plain"
    _module(_BASE if is_plain else rewritten(_BASE, {}), monkeypatch, "base_of_a_test")
    source = _HEIR if is_plain else rewritten(_HEIR, _OTHERS)
    return _module(source, monkeypatch, "heirs_of_a_test")


def test_an_heir_has_the_fields_of_both_those_of_its_base_first(heirs: Any) -> None:
    one = heirs.LastHeir(1, [2, 3], {4: "4"}, "3")
    assert repr(one) == "LastHeir(one=1, numbers=[2, 3], two={4: '4'}, three='3')"
    assert one.sum() == 3
    assert (heirs.LastHeir().one, heirs.LastHeir().three) == (2_000, "three")
    assert heirs.LastHeir().numbers is not heirs.LastHeir().numbers
    assert heirs.LastHeir.__match_args__ == ("one", "numbers", "two", "three")
    assert dataclasses.replace(one, one=5).sum() == 7
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_value_equals_none_of_its_bases(heirs: Any) -> None:
    assert heirs.Heir() != heirs.Base()
    assert heirs.Base() != heirs.Heir()
    assert heirs.Heir() == heirs.Heir()


@pytest.mark.parametrize(
    "source",
    [
        "@dataclass(order=True)\nclass One:\n    one: int\n",
        "@dataclass\nclass One(Other):\n    one: int\n",
        f"{_OTHER}    one: int\n@dataclass(slots=True)\nclass One(Other):\n    two: int\n",
        f"{_OTHER}    one: int\n@dataclass\nclass One(Other):\n    one: int\n",
        "class Other:\n    one: int\n@dataclass\nclass One(Other):\n    two: int\n",
        f"{_OTHER}    def __post_init__(self): ...\n@dataclass\nclass One(Other):\n    two: int\n",
        "@dataclass\nclass One:\n    one: int = field(repr=False)\n",
        "@dataclass\nclass One:\n    one: int\n    def __eq__(self, other): return True\n",
    ],
)
def test_what_cannot_be_written_out_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="line"):
        rewritten(source, {})
