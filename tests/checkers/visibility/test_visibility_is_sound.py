"""Property tests: a topic that behaves is never accused, and the kernels agree with plain loops."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_histories import a_read, a_write, numbered, of_clients

from fencepost.checkers.visibility.stale import backward_sessions, nonrepeatable_reads, stale_reads

pytestmark = pytest.mark.slow

NODES = ("broker-1", "broker-2")
FS = ("create-topic", "alter-config", "delete-topic")
OPEN = 10**9

Rows = list[dict[str, Any]]


@st.composite
def noise(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Writes and reads that have nothing to do with each other."""
    times = st.tuples(st.integers(0, 30), st.integers(1, 12))
    writes, reads = [], []
    for number in range(draw(st.integers(0, 6))):
        call_ns, length = draw(times)
        write = a_write(
            draw(st.sampled_from(FS)),
            call_ns,
            call_ns + length,
            outcome=draw(st.sampled_from(["ok", "ok", "info", "fail"])),
            topic_id="ABCDEF"[number],
            number=number,
        )
        if write["f"] != "create-topic":
            write["topic_id"] = None
        if write["f"] == "delete-topic":
            write["config_value"] = None
        writes.append(write)
    shown = st.sampled_from(["none", *"ABCDEF", *(f"={number}" for number in range(7))])
    for _ in range(draw(st.integers(0, 6))):
        call_ns, length = draw(times)
        reads.append(a_read(draw(st.sampled_from(NODES)), draw(shown), call_ns, call_ns + length))
    return writes, reads


@st.composite
def honest(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """What clients see of one topic in one place: every operation takes effect at one moment.

    Times are even and odd by turns, so that an effect never falls on a call or a return.
    """
    writes, reads, moments = [], [], []
    for number in range(draw(st.integers(1, 6))):
        call_ns = 4 * draw(st.integers(0, 15))
        at_ns = call_ns + 2 * draw(st.integers(0, 4)) + 1
        f, outcome = draw(st.sampled_from(FS)), draw(st.sampled_from(["ok", "ok", "info"]))
        # What has no clear end may take effect when no client waits for it any more.
        return_ns = at_ns + 1 if outcome == "ok" else max(call_ns, at_ns - 7)
        moments.append((at_ns, draw(st.integers()), "write", len(writes)))
        writes.append(
            a_write(
                f, call_ns, return_ns, outcome=outcome, topic_id="ABCDEF"[number], number=number
            )
        )
    for _ in range(draw(st.integers(1, 8))):
        call_ns = 4 * draw(st.integers(0, 20))
        at_ns = call_ns + 2 * draw(st.integers(0, 4)) + 1
        moments.append((at_ns, draw(st.integers()), "read", len(reads)))
        reads.append(a_read(draw(st.sampled_from(NODES)), "none", call_ns, at_ns + 1))
    _take_place(writes, reads, sorted(moments), settings_read=draw(st.booleans()))
    return [write for write in writes if write["outcome"] != "fail"], reads


def _take_place(writes: Rows, reads: Rows, moments: Any, *, settings_read: bool) -> None:
    """One register: what is there, and the errors of what cannot be done."""
    topic_id: str | None = None
    number: int | None = None
    for _, _, what, place in moments:
        if what == "read":
            shown = "none" if topic_id is None else f"={number}" if settings_read else topic_id
            old = reads[place]
            reads[place] = a_read(old["node"], shown, old["call_ns"], old["return_ns"])
            continue
        write = writes[place]
        possible = (topic_id is None) == (write["f"] == "create-topic")
        if not possible:
            # Refused: a clear no, or a write without a known end.
            write["outcome"] = "info" if write["outcome"] == "info" else "fail"
        elif write["f"] == "create-topic":
            topic_id, number = "ABCDEF"[place], place
        elif write["f"] == "alter-config":
            number = place
        else:
            topic_id = number = None
        if write["f"] != "create-topic":
            write["topic_id"] = None
        if write["f"] == "delete-topic":
            write["config_value"] = None


@settings(max_examples=4 * settings().max_examples)
@given(honest())
def test_what_takes_effect_at_one_moment_is_never_accused(history: tuple[Rows, Rows]) -> None:
    told = of_clients(numbered(*history))
    for check in (stale_reads, nonrepeatable_reads, backward_sessions):
        assert check(told).table.to_pylist() == []


@settings(max_examples=4 * settings().max_examples)
@given(noise())
def test_the_kernels_find_what_plain_loops_find(history: tuple[Rows, Rows]) -> None:
    tables = numbered(*history)
    writes, reads = (tables[name].to_pylist() for name in ("metadata_writes", "describes"))
    told = of_clients(tables)
    assert _found(stale_reads(told)) == _slow_stale(writes, reads)
    assert _found(nonrepeatable_reads(told)) == _slow_backward(writes, reads, across=True)
    assert _found(backward_sessions(told)) == _slow_backward(writes, reads, across=False)


def _found(found: Any) -> dict[int, int]:
    assert len(found.table) <= found.judged_count
    return {row["read"]: row["known_ns"] for row in found.table.to_pylist()}


def _slow_stale(writes: Rows, reads: Rows) -> dict[int, int]:
    found: dict[int, int] = {}
    for read in reads:
        known = [
            write["return_ns"]
            for write in writes
            if write["outcome"] == "ok"
            and write["return_ns"] < read["call_ns"]
            and _outdates(write, read, writes)
        ]
        if known:
            found[read["read"]] = min(known)
    return found


def _slow_backward(writes: Rows, reads: Rows, *, across: bool) -> dict[int, int]:
    found: dict[int, int] = {}
    for second in reads:
        known = [
            first["return_ns"]
            for first in reads
            if (first["node"] != second["node"]) is across
            and first["return_ns"] < second["call_ns"]
            and first["error"] == "NONE"
            for write in _makers(first, writes)
            if _outdates(write, second, writes)
        ]
        if known:
            found[second["read"]] = min(known)
    return found


def _outdates(write: dict[str, Any], read: dict[str, Any], writes: Rows) -> bool:
    """Everything that can have made what the read shows had ended when the write was called."""
    seen = "none" if read["error"] != "NONE" else "id" if read["topic_id"] else "number"
    able = {
        "create-topic": ("none", "id", "number"),
        "alter-config": ("none", "number"),
        "delete-topic": ("id", "number"),
    }[write["f"]]
    makers = _makers(read, writes)
    if seen not in able or (seen != "none" and not makers):
        return False
    ends = [one["return_ns"] if one["outcome"] == "ok" else OPEN for one in makers]
    return all(end < write["call_ns"] for end in ends)


def _makers(read: dict[str, Any], writes: Rows) -> Rows:
    happened = [write for write in writes if write["outcome"] != "fail"]
    if read["error"] != "NONE":
        return [
            one
            for one in happened
            if one["f"] == "delete-topic" and one["call_ns"] <= read["return_ns"]
        ]
    name = "topic_id" if read["topic_id"] else "config_value"
    return [one for one in happened if one[name] == read[name]]
