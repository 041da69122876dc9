"""Other times, in the same order where order counts.

What wall clocks told is tied to the run's clock at its zero, and the longer that is ago, the
further apart both may have drifted (`checkers.facts`). So another date changes no answer, and an
earlier zero may cost cases: of checks that compare a time of a log with one of the run's clock.
"""

from functools import partial
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.history.schema import TABLES

_SHIFT_NS: Final = 3_600_000_000_000
_DAY_MS: Final = 86_400_000
_SKEW_MS: Final = 30
_LATE_SHARE: Final = 0.2
_LATE_NS: Final = 200_000_000
_OF_LEASES: Final = ("BrokerHeartbeat", "BrokerRegistration", "MetadataHeartbeat")
_OF_WALL_CLOCKS: Final = {
    "metadata_log": ("timestamp_ms",),
    "replica_records": ("timestamp_ms",),
    "transaction_log": ("timestamp_ms",),
    "znodes": ("ctime_ms", "mtime_ms"),
}
_OF_CLOCK: Final = ("healed_ns", "end_ns")


def on_another_day(run: CopiedRun, draw: Random) -> bool:
    """Let it have been another day by all wall clocks; the run's own clock tells what it told."""
    days = draw.choice([-1, 1]) * draw.randint(1, 400)
    for name, columns in _OF_WALL_CLOCKS.items():
        if run.has(name):
            run.change(name, partial(_later_ms, columns=columns, add_ms=days * _DAY_MS))
    run.state(origin_utc_ns=run.manifest.origin_utc_ns + days * _DAY_MS * 1_000_000)
    return True


def _later_ms(rows: pa.Table, *, columns: tuple[str, ...], add_ms: int) -> pa.Table:
    for column in columns:
        place = rows.schema.get_field_index(column)
        told = [one + add_ms if one > 0 else one for one in rows[column].to_pylist()]
        rows = rows.set_column(place, rows.schema.field(place), pa.array(told, pa.int64()))
    return rows


def begun_earlier(run: CopiedRun, draw: Random) -> bool:
    """Let the run's clock have begun an hour earlier; wall clocks tell what they told."""
    del draw
    for name in run.tables:
        times = [field.name for field in TABLES[name] if field.name.endswith("_ns")]

        def later(rows: pa.Table, times: list[str] = times) -> pa.Table:
            for column in times:
                place = rows.schema.get_field_index(column)
                rows = rows.set_column(
                    place, rows.schema.field(place), pc.add(rows[column], _SHIFT_NS)
                )
            return rows

        run.change(name, later)

    def told_later(content: dict[str, Any]) -> dict[str, Any]:
        for field in _OF_CLOCK:
            if content[field] is not None:
                content[field] += _SHIFT_NS
        content["origin_utc_ns"] -= _SHIFT_NS
        content["origin_ns"] -= _SHIFT_NS
        for one in (*content["changes"], *content["not_whole"]):
            one["time_ns"] += _SHIFT_NS
        for one in content["clock_skews"]:
            for field in ("from_ns", "until_ns"):
                one[field] += _SHIFT_NS
        if content["nemesis"]:
            content["nemesis"]["idle_at_s"] += _SHIFT_NS / 1e9
        return content

    run.rewrite_manifest(told_later)
    return True


def clocks_apart(run: CopiedRun, draw: Random) -> bool:
    """Let each controller's wall clock be wrong by up to 30 ms, either way."""
    if not run.has("metadata_log"):
        return False
    epochs = set(run.table("metadata_log")["controller_epoch"].to_pylist())
    skew_ms = {epoch: draw.randint(-_SKEW_MS, _SKEW_MS) for epoch in sorted(epochs)}

    def told(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("timestamp_ms")
        both = zip(
            rows["timestamp_ms"].to_pylist(), rows["controller_epoch"].to_pylist(), strict=True
        )
        times = [time_ms if time_ms <= 0 else time_ms + skew_ms[epoch] for time_ms, epoch in both]
        return rows.set_column(place, rows.schema.field(place), pa.array(times, pa.int64()))

    return run.change("metadata_log", told)


def answers_late(run: CopiedRun, draw: Random) -> bool:
    """Let the proxy keep an answer back: for 0.2 s, or until its connection's next frame passes.

    Not one that begins or renews a lease: a broker that had it later would have served later, and
    the history would be another one.
    """

    def held(rows: pa.Table) -> pa.Table:
        frame = rows["frame"].to_numpy()
        time_ns = rows["time_ns"].to_numpy()
        order = np.lexsort((frame, time_ns, rows["connection"].to_numpy()))
        connection = rows["connection"].to_numpy()[order]
        following = np.full(len(rows), -1, dtype=np.int64)
        same = connection[:-1] == connection[1:]
        following[order[:-1][same]] = order[1:][same]
        answers = pc.and_(
            pc.and_(pc.equal(rows["direction"], "response"), pc.equal(rows["action"], "forwarded")),
            pc.invert(pc.is_in(rows["api"], pa.array(_OF_LEASES))),
        ).to_pylist()
        forwarded = rows["forwarded_ns"].to_pylist()
        late: dict[int, int] = {}
        for place, is_answer in enumerate(answers):
            after = following[place]
            if not is_answer or after < 0 or frame[after] == frame[place]:
                continue
            number = int(frame[place])
            if number not in late and draw.random() < _LATE_SHARE and forwarded[place] is not None:
                until_ns = min(int(time_ns[after]) - 1, forwarded[place] + _LATE_NS)
                late[number] = max(forwarded[place], until_ns)
        told = [late.get(int(one), time) for one, time in zip(frame, forwarded, strict=True)]
        place = rows.schema.get_field_index("forwarded_ns")
        return rows.set_column(place, rows.schema.field(place), pa.array(told, pa.int64()))

    return run.has("wire") and run.change("wire", held)
