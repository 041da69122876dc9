"""Random small histories of one key: a true log and honest clients, then a few lies.

Half of them stay as they are, half are damaged in up to four places: a value or a tail hidden from
some or all readers, rows dropped, doubled, swapped, moved to another offset or session, outcomes
changed. Times come from a small range, so that many are equal and operations overlap.
"""

from collections.abc import Callable
from typing import Any

from histories import History, built
from hypothesis import strategies as st

Draw = Callable[..., Any]
Operation = dict[str, Any]

KEY = "t-0"
_OUTCOMES = ("ok", "fail", "info")
_LIES = ("lose", "drop", "double", "swap", "offset", "value", "outcome", "session")


@st.composite
def histories(draw: Draw) -> History:
    """Up to eight sends, five polls and two final reads."""
    log = _log(draw)
    operations = [*_sends(draw, log), *_polls(draw, log), *_final_reads(draw, log)]
    for _ in range(draw(st.sampled_from([4, 3, 2, 1, 0]))):
        draw(st.sampled_from([_damage, _damage, _hide]))(draw, operations)
    return built(operations)


def _log(draw: Draw) -> list[Operation]:
    """Values 1, 2, … at ascending offsets, with gaps."""
    gaps = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 8)))]
    offset, log = -1, []
    for number, gap in enumerate(gaps):
        offset += gap
        log.append({"key": KEY, "value": number + 1, "offset": offset, "session": 0})
    return log


def _times(draw: Draw, *, earliest: int = 0) -> Operation:
    call = draw(st.integers(earliest, earliest + 12))
    return {"call_ns": call, "return_ns": call + draw(st.integers(0, 6))}


def _sends(draw: Draw, log: list[Operation]) -> list[Operation]:
    sends, rows = [], list(log)
    while rows:
        size = 2 if draw(st.integers(0, 9)) == 0 else 1
        outcome = draw(st.sampled_from(["ok", "ok", "ok", "info"]))
        known = outcome == "ok" and draw(st.integers(0, 9)) > 0
        sent, rows = rows[:size], rows[size:]
        sends.append(
            _operation(
                draw,
                "send",
                outcome,
                process=f"p{draw(st.integers(1, 2))}",
                earliest=draw(st.sampled_from([0, 3, 13, 13])) * len(sends) // 8,
            )
            | {"rows": [row | {"offset": row["offset"] if known else None} for row in sent]}
        )
    for number in range(draw(st.integers(0, 2))):
        row = {"key": KEY, "value": 20 + number, "offset": None, "session": 0}
        outcome = draw(st.sampled_from(["fail", "info"]))
        sends.append(_operation(draw, "send", outcome, process="p1") | {"rows": [row]})
    return sends


def _polls(draw: Draw, log: list[Operation]) -> list[Operation]:
    places = {"c1": 0, "c2": draw(st.integers(0, len(log)))}
    sessions = dict.fromkeys(places, 0)
    polls = []
    for _ in range(draw(st.integers(0, 5))):
        process = draw(st.sampled_from(sorted(places)))
        if draw(st.integers(0, 5)) == 0:
            sessions[process] += 1
            places[process] = draw(st.integers(0, len(log)))
        end = min(len(log), places[process] + draw(st.integers(0, 4)))
        rows = [row | {"session": sessions[process]} for row in log[places[process] : end]]
        places[process] = end
        outcome = draw(st.sampled_from(["ok", "ok", "ok", "ok", "info"]))
        poll = _operation(draw, "poll", outcome, process=process, earliest=4 * len(polls))
        polls.append(poll | {"rows": rows})
    return polls


def _final_reads(draw: Draw, log: list[Operation]) -> list[Operation]:
    reads = []
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        outcome = draw(st.sampled_from(["ok", "ok", "info"]))
        read = _operation(draw, "final-read", outcome, process="r1", earliest=16)
        reads.append(read | {"key": KEY, "rows": [dict(row) for row in log]})
    return reads


def _operation(draw: Draw, f: str, outcome: str, *, process: str, earliest: int = 0) -> Operation:
    times = _times(draw, earliest=earliest)
    if outcome == "info" and draw(st.booleans()):
        times["return_ns"] = None
    key = KEY if f == "send" else None
    return {"process": process, "f": f, "key": key, "outcome": outcome} | times


def _hide(draw: Draw, operations: list[Operation]) -> None:
    """Somebody is not shown a value, or nothing from it on."""
    value, tail = draw(st.integers(1, 8)), draw(st.booleans())
    hidden_from = draw(st.sampled_from([("poll", "final-read"), ("final-read",), ("poll",)]))
    for operation in operations:
        if operation["f"] in hidden_from:
            operation["rows"] = [
                row
                for row in operation["rows"]
                if (row["value"] < value if tail else row["value"] != value)
            ]


def _damage(draw: Draw, operations: list[Operation]) -> None:
    shown = [operation for operation in operations if operation["rows"]]
    if not shown:
        return
    operation = draw(st.sampled_from(shown))
    rows = operation["rows"]
    lie = draw(st.sampled_from(_LIES))
    if lie == "outcome" and operation["return_ns"] is not None:
        operation["outcome"] = draw(st.sampled_from(_OUTCOMES))
    elif operation["f"] == "send" and lie != "offset":
        return
    elif lie == "lose":
        rows.clear()
    elif lie == "drop":
        rows.pop(draw(st.integers(0, len(rows) - 1)))
    elif lie == "double":
        rows.append(dict(draw(st.sampled_from(rows))))
    elif lie == "swap":
        rows.insert(0, rows.pop())
    elif lie == "session":
        draw(st.sampled_from(rows))["session"] += 1
    else:
        highest = 12 if lie == "offset" else 22
        number = draw(st.one_of(st.none(), st.integers(0, highest)))
        draw(st.sampled_from(rows))[lie] = number if number is not None or lie == "offset" else 99
