"""Small histories of one znode: written by hand, or drawn at random, and judged by trying all.

By hand: `znodes(create(0, 5, life=1, value=1), crashed("set", 3, value=2), absent("read", 6, 8))`.

`fits` is the slow and obvious judgement: some order of those that took effect, and of some that
crashed, in which each stands at a moment between call and return and each answer is right. A plain
read may stand at any moment before its return: it shows what was there once.
"""

from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.znodes.operations import ZnodeOperation, znodes_of
from fencepost.history.schema import ZNODE_OPERATIONS

Row = dict[str, Any]
_EMPTY: Final[Row] = dict.fromkeys(ZNODE_OPERATIONS.names)
_LATE: Final = 10**30


def made(f: str, call: int, end: int, *, life: int, version: int, **columns: Any) -> Row:
    """An ok change; of a delete, `version` is the one that it ended."""
    told = {"life": life, "version": version, "zxid": columns.pop("zxid", life + version)}
    return _row(f, call, end, outcome="ok", **told, **columns)


def read(call: int, end: int, *, f: str = "read", life: int, version: int, **columns: Any) -> Row:
    return made(f, call, end, life=life, version=version, **columns)


def absent(call: int, end: int, *, f: str = "read", **columns: Any) -> Row:
    return _row(f, call, end, outcome="ok", **columns)


def refused(f: str, call: int, end: int, **columns: Any) -> Row:
    return _row(f, call, end, outcome="fail", **columns)


def crashed(f: str, call: int, **columns: Any) -> Row:
    return _row(f, call, None, outcome="info", error="CONNECTIONLOSS", **columns)


def table(*rows: Row, key: str = "/x") -> pa.Table:
    """Rows of ZNODE_OPERATIONS with indices by their calls, a process each."""
    ordered = sorted(rows, key=lambda row: row["call_ns"])
    filled = [
        {"process": number, "session": 1, "server": "s"}
        | {name: value for name, value in row.items() if value is not None}
        | {"index": number, "key": row["key"] or key}
        for number, row in enumerate(ordered)
    ]
    return pa.Table.from_pylist(filled, schema=ZNODE_OPERATIONS)


def znodes(*rows: Row) -> list[ZnodeOperation]:
    return znodes_of(table(*rows))


def by_key(**rows_of: list[Row]) -> dict[str, list[ZnodeOperation]]:
    """The operations on each znode, numbered over all of them, in the order of their calls."""
    whole = table(*(row | {"key": key} for key, rows in rows_of.items() for row in rows))
    return {key: znodes_of(whole.filter(pc.equal(whole["key"], key))) for key in rows_of}


def fits(operations: list[ZnodeOperation], *, held: frozenset[str]) -> bool:
    must = [one for one in operations if one.is_ok or one.is_refused]
    may = [one for one in operations if not (one.is_ok or one.is_refused)]
    return any(_ordered(must + some, _NOWHERE, -1, held) for some in _subsets(may))


_NOWHERE: Final = (None, 0)
"""The life, version and value that are there, or None; and the greatest life so far."""
_UNTOLD: Final = -1
"""The life of a create that crashed, until an answer names it."""


def _subsets(operations: list[ZnodeOperation]) -> list[list[ZnodeOperation]]:
    if not operations:
        return [[]]
    others = _subsets(operations[1:])
    return others + [[operations[0], *other] for other in others]


def _ordered(rest: list[ZnodeOperation], state: Any, moment: int, held: frozenset[str]) -> bool:
    if not rest:
        return True
    for place, one in enumerate(rest):
        call = -1 if one.is_read and one.f not in held else one.call
        at = max(moment, call)
        end = one.end if one.is_ok or one.is_refused else _LATE
        if at > end:
            continue
        after = _after(state, one)
        others = rest[:place] + rest[place + 1 :]
        if after is not None and _ordered(others, after, at, held):
            return True
    return False


def _after(state: Any, one: ZnodeOperation) -> Any:
    """The state after the operation; None: it would have ended otherwise."""
    there, greatest = state
    expected = one.expected is None or (there is not None and there[1] == one.expected)
    does = there is None if one.f == "create" else there is not None and expected
    if one.is_refused:
        return None if does else state
    if one.is_read and one.life is None:
        return state if there is None else None
    if one.is_read:
        return _named(there, greatest, one, one.version, one.value)
    if not does:
        return None
    if one.f == "create":
        there, version = (_UNTOLD, 0, one.value), 0
    elif one.f == "delete":
        version = there[1]
    else:
        version = there[1] + 1
        there = (there[0], version, one.value)
    if one.is_ok:
        named = _named(there, greatest, one, version, there[2])
        if named is None or one.version != version:
            return None
        there, greatest = named
    return (None, greatest) if one.f == "delete" else (there, greatest)


def _named(there: Any, greatest: int, one: ZnodeOperation, version: Any, value: Any) -> Any:
    """The state, if an answer that names this life is right."""
    if there is None or there[1] != version or there[2] != value:
        return None
    if there[0] == _UNTOLD:
        assert one.life is not None
        return ((one.life, *there[1:]), one.life) if one.life > greatest else None
    return (there, greatest) if there[0] == one.life else None


_FS: Final = (
    "create",
    "create",
    "set",
    "cas",
    "delete",
    "delete",
    "read",
    "sync-read",
    "final-read",
)


def random_history(
    random: Random, *, count_max: int = 7, crash: float = 0.2
) -> list[ZnodeOperation]:
    """At most so many operations on a real znode; mostly, an answer or a time is spoiled then."""
    free = [random.randint(0, 2) for _ in range(random.randint(1, 4))]
    drawn = []
    for value in range(1, random.randint(count_max // 2, count_max) + 1):
        process = random.randrange(len(free))
        call = free[process]
        end = call + random.choice((0, 1, 1, 2, 4, 7))
        free[process] = end + random.choice((0, 0, 1, 2))
        f = random.choice(_FS)
        row = _row(f, call, end, outcome="ok")
        if f in ("create", "set", "cas"):
            row["value"] = value
        if f == "cas" or (f == "delete" and random.random() < 0.5):
            row["expected"] = random.choice((0, 0, 1, 2))
        row["moment"] = random.randint(call, end)
        if random.random() < crash:
            row |= {"outcome": "info", "error": "CONNECTIONLOSS", "return_ns": None}
            row["moment"] = random.randint(call, call + 12)
        drawn.append(row)
    _act(drawn, random)
    for _ in range(random.choice((0, 0, 1, 2, 3))):
        _spoil(random.choice(drawn), random)
    for row in drawn:
        del row["moment"]
    return znodes(*drawn)


def _act(drawn: list[Row], random: Random) -> None:
    there: tuple[int, int, int | None] | None = None
    life = 0
    for row in sorted(drawn, key=lambda row: row["moment"]):
        if row["outcome"] == "info" and random.random() < 0.4:
            continue
        f, expected = row["f"], row["expected"]
        if f in ("read", "sync-read", "final-read"):
            if there is not None and row["outcome"] == "ok":
                row |= {"life": there[0], "version": there[1], "value": there[2]}
            continue
        right = expected is None or (there is not None and there[1] == expected)
        if not ((there is None) if f == "create" else (there is not None and right)):
            row["outcome"] = "info" if row["outcome"] == "info" else "fail"
            continue
        if f == "create":
            life += 2
            there = (life, 0, row["value"])
        elif f != "delete":
            assert there is not None
            there = (there[0], there[1] + 1, row["value"])
        if row["outcome"] == "ok":
            assert there is not None
            row |= {"life": there[0], "version": there[1]}
        if f == "delete":
            there = None


def _spoil(row: Row, random: Random) -> None:
    if row["life"] is not None and random.random() < 0.5:
        name = random.choice(("life", "version", "value"))
        if name == "value" and row["value"] is not None and row["f"].endswith("read"):
            row["value"] += random.choice((-1, 1))
        elif name == "version":
            row["version"] = max(0, row["version"] + random.choice((-1, 1)))
        elif name == "life":
            row["life"] = max(2, row["life"] + random.choice((-2, 2)))
    elif row["outcome"] == "ok" and row["f"].endswith("read") and random.random() < 0.5:
        row |= {"life": None, "version": None, "value": None}
    elif row["return_ns"] is not None:
        shift = random.choice((-3, -2, -1, 1, 2, 3))
        row["call_ns"] = max(0, row["call_ns"] + shift)
        row["return_ns"] = max(row["call_ns"], row["return_ns"] + shift)


def _row(f: str, call: int, end: int | None, **columns: Any) -> Row:
    return _EMPTY | {"f": f, "call_ns": call, "return_ns": end} | columns
