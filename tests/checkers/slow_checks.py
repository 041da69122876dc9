"""The checks of the data plane once more, as their definitions read: slow, and without numpy.

Works on the rows of one key as dictionaries. Each check answers a list of (allowed, proof), where a
proof is the tuple that tells one anomaly of this check from another.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fencepost.history.manifest import Readers

Row = dict[str, Any]
Found = list[tuple[bool, tuple[int, ...]]]
Wrong = Callable[[int], bool]


@dataclass
class SlowKey:
    rows: list[Row]
    final_reads: list[Row]
    """Operations: index, call_ns."""
    info_polls: set[tuple[int, int]]
    """(process, operation)."""
    idempotent: bool
    consume: str
    readers: tuple[Readers, ...] = ()

    def __post_init__(self) -> None:
        by_order = sorted(self.rows, key=lambda row: (row["operation"], row["position"]))
        self.sends = [row for row in by_order if row["f"] == "send"]
        self.reads = [row for row in by_order if row["f"] != "send"]
        self.ok_reads = [row for row in self.reads if row["outcome"] == "ok"]
        self.returned = {row["value"] for row in self.ok_reads}
        self.happened = [row for row in self.sends if self._happened(row)]
        known = [row for row in self.happened + self.reads if row["offset"] is not None]
        self.told = [row["offset"] for row in known]
        self.pairs = {(row["offset"], row["value"]) for row in known}
        self.order = sorted({offset for offset, _ in self.pairs})
        reached = [self._position(row) for row in self.ok_reads]
        self.bound = max([place for place in reached if place is not None], default=-1)

    def _happened(self, send: Row) -> bool:
        siblings = [row for row in self.sends if row["operation"] == send["operation"]]
        seen = any(row["value"] in self.returned for row in siblings)
        return send["outcome"] == "ok" or (send["outcome"] == "info" and seen)

    def _position(self, row: Row) -> int | None:
        return None if row["offset"] is None else self.order.index(row["offset"])

    def _delta(self, before: Row, after: Row) -> int:
        start, end = self._position(before), self._position(after)
        return 1 if start is None or end is None else end - start

    def _missing(self) -> Iterator[tuple[Row, int | None]]:
        """(send, lowest known position or None) of what must have happened and no read returned."""
        for send in self.happened:
            if send["value"] not in self.returned:
                rows = [send] + [row for row in self.reads if row["value"] == send["value"]]
                places = [self._position(row) for row in rows]
                yield send, min([place for place in places if place is not None], default=None)

    def _acknowledged_before_final_read(self, send: Row) -> bool:
        last = max((read["call_ns"] for read in self.final_reads), default=None)
        return send["outcome"] == "ok" and last is not None and send["return_ns"] < last

    def _looked_over(self, place: int) -> bool:
        stretches = defaultdict(list)
        for row in self.ok_reads:
            if row["offset"] is None:
                continue
            if row["f"] == "final-read":
                stretches["final", row["operation"]] += [0, self._position(row)]
                continue
            crashed = sum(
                process == row["process"] and operation < row["operation"]
                for process, operation in self.info_polls
            )
            stretch = stretches[row["process"], row["session"], crashed]
            stretch.append(self._position(row))
            if self.consume == "assign" and row["session"] == 0 and crashed == 0:
                stretch.append(0)
        return any(min(stretch) <= place <= max(stretch) for stretch in stretches.values())

    def _lost(self) -> Iterator[tuple[Row, bool]]:
        for send, place in self._missing():
            if place is not None and place <= self.bound:
                proven = self._looked_over(place) or self._acknowledged_before_final_read(send)
                yield send, proven

    def lost_write(self) -> Found:
        never_read = [(False, (send["value"],)) for send, proven in self._lost() if proven]
        return never_read + [(False, (value,)) for value in self._forgotten()]

    def _forgotten(self) -> set[int]:
        """Acknowledged, read, and missing from a complete final read called after both."""
        return {
            send["value"]
            for send in self.sends
            for final in self.final_reads
            for row in self.ok_reads
            if send["outcome"] == "ok"
            and send["return_ns"] < final["call_ns"]
            and row["value"] == send["value"]
            and row["return_ns"] < final["call_ns"]
            and not any(
                other["value"] == send["value"] and other["operation"] == final["index"]
                for other in self.reads
            )
        }

    def doubts(self) -> set[str]:
        found = set()
        if any(not proven for _, proven in self._lost()):
            found.add("lost-write")
        if not self.final_reads and any(send["outcome"] == "ok" for send in self.sends):
            found.add("unseen")
        return found

    def cases(self) -> dict[str, int]:
        """How many cases each check judges."""
        polls = sum(unbroken and _known(*pair) for *pair, unbroken in self._steps_across())
        inside = sum(_known(*pair) for pair in self._steps_inside())
        return {
            "unique-values": len(self.sends),
            "sent-values": len(self.reads),
            "lost-write": self._lost_write_cases(),
            "aborted-read": sum(row["outcome"] == "fail" for row in self.sends),
            "inconsistent-offset": sum(count > 1 for count in Counter(self.told).values()),
            "duplicate": len(self._protected()),
            "nonmonotonic-poll": polls,
            "skipped-poll": polls,
            "internal-nonmonotonic-poll": inside,
            "internal-skipped-poll": inside,
            "nonmonotonic-send": sum(len(sends) - 1 for sends in self._located().values()),
            "unseen": sum(map(self._acknowledged_before_final_read, self.sends)),
            "vanished": len(self._shown_before_final_read()),
            "passed-over": len(self._below_readers()),
        }

    def passed_over(self) -> list[tuple[bool, tuple[int, ...]]]:
        return [
            (self._may_be_lost(row["offset"], readers), (row["value"],))
            for readers, row in self._below_readers()
            if row["offset"] not in {one["offset"] for one in self._polls_of(readers)}
        ]

    def _below_readers(self) -> list[tuple[Readers, Row]]:
        last: dict[int, Row] = {}
        for row in self.reads:
            if row["f"] == "final-read" and row["outcome"] == "ok" and row["offset"] is not None:
                last.setdefault(row["offset"], row)
        return [
            (readers, row)
            for readers in self.readers
            for row in last.values()
            if any(
                one["outcome"] == "ok" and one["offset"] > row["offset"]
                for one in self._polls_of(readers)
            )
        ]

    def _may_be_lost(self, offset: int, readers: Readers) -> bool:
        crashes = [
            max(
                (one["offset"] for one in self._polls_of(readers) if one["operation"] < operation),
                default=-1,
            )
            for process, operation in self.info_polls
            if process % readers.stride in readers.processes
        ]
        return any(
            reach < offset <= reach + 2 * readers.poll_max * crashes.count(reach)
            for reach in crashes
        )

    def _polls_of(self, readers: Readers) -> list[Row]:
        return [
            row
            for row in self.rows
            if row["f"] == "poll"
            and row["process"] % readers.stride in readers.processes
            and row["offset"] is not None
        ]

    def _lost_write_cases(self) -> int:
        read = [
            row
            for row in self.sends
            if row["outcome"] == "ok"
            and row["value"] in self.returned
            and (self.final_reads or row["offset"] is not None)
        ]
        return len(read) + sum(proven for _, proven in self._lost())

    def _protected(self) -> set[int]:
        """Values of the log that may not have been appended twice."""
        values = {value for _, value in self.pairs}
        return values - self._unprotected() if self.idempotent else values

    def _shown_before_final_read(self) -> set[tuple[int | None, int]]:
        last = max((read["call_ns"] for read in self.final_reads), default=-1)
        rows = [row for row in self.ok_reads if row["return_ns"] < last]
        placed = {(row["offset"], row["value"]) for row in rows if row["offset"] is not None}
        values = {value for _, value in placed}
        return placed | {(None, row["value"]) for row in rows if row["value"] not in values}

    def aborted_read(self) -> Found:
        failed = {row["value"] for row in self.sends if row["outcome"] == "fail"}
        return [
            (False, (row["operation"], row["value"]))
            for row in self.ok_reads
            if row["value"] in failed
        ]

    def inconsistent_offset(self) -> Found:
        at = defaultdict(set)
        for offset, value in self.pairs:
            at[offset].add(value)
        return [(False, (offset, *sorted(at[offset]))) for offset in at if len(at[offset]) > 1]

    def duplicate(self) -> Found:
        at = defaultdict(set)
        for offset, value in self.pairs:
            at[value].add(offset)
        unprotected = self._unprotected()
        return [
            (not self.idempotent or value in unprotected, (value, *sorted(at[value])))
            for value in at
            if len(at[value]) > 1
        ]

    def _unprotected(self) -> set[int]:
        """Values that were under way when their process first gave up on a send."""
        gave_up_ns: dict[int, int] = {}
        for row in self.sends:
            if row["outcome"] == "info" and row["return_ns"] is not None:
                first = gave_up_ns.get(row["process"], row["return_ns"])
                gave_up_ns[row["process"]] = min(first, row["return_ns"])
        return {
            row["value"]
            for row in self.sends
            if row["process"] in gave_up_ns
            and (row["return_ns"] is None or row["return_ns"] >= gave_up_ns[row["process"]])
        }

    def _steps_across(self) -> Iterator[tuple[Row, Row, bool]]:
        """From a poll's last record to the first of the next one, and whether it is unbroken."""
        polls = defaultdict(lambda: defaultdict(list))
        for row in self.ok_reads:
            if row["f"] == "poll":
                polls[row["process"]][row["operation"]].append(row)
        for process, operations in polls.items():
            for (start, before), (end, after) in pairwise(sorted(operations.items())):
                crashed = any(
                    one == process and start < poll < end for one, poll in self.info_polls
                )
                same_session = before[-1]["session"] == after[0]["session"]
                yield before[-1], after[0], same_session and not crashed

    def _across(self, wrong: Wrong) -> Iterator[tuple[bool, tuple[int, ...]]]:
        for before, after, unbroken in self._steps_across():
            if wrong(self._delta(before, after)) and (unbroken or self.consume != "assign"):
                yield not unbroken, _pair(before, after)

    def nonmonotonic_poll(self) -> Found:
        return list(self._across(lambda delta: delta < 1))

    def skipped_poll(self) -> Found:
        return list(self._across(lambda delta: delta > 1))

    def _steps_inside(self) -> Iterator[tuple[Row, Row]]:
        for before, after in pairwise(self.ok_reads):
            if all(before[name] == after[name] for name in ("operation", "session")):
                yield before, after

    def _inside(self, wrong: Wrong) -> Iterator[tuple[bool, tuple[int, ...]]]:
        for before, after in self._steps_inside():
            if wrong(self._delta(before, after)):
                yield False, _pair(before, after)

    def internal_nonmonotonic_poll(self) -> Found:
        return list(self._inside(lambda delta: delta < 1))

    def internal_skipped_poll(self) -> Found:
        return list(self._inside(lambda delta: delta > 1))

    def nonmonotonic_send(self) -> Found:
        return [
            (not self.idempotent, _pair(before, after))
            for sends in self._located().values()
            for before, after in pairwise(sends)
            if after["offset"] < before["offset"]
        ]

    def _located(self) -> dict[int, list[Row]]:
        """The acknowledged sends that know their offset, by process."""
        by_process = defaultdict(list)
        for row in self.sends:
            if row["outcome"] == "ok" and row["offset"] is not None:
                by_process[row["process"]].append(row)
        return by_process

    def unseen(self) -> Found:
        return [
            (False, (send["value"],))
            for send, place in self._missing()
            if (place is None or place > self.bound) and self._acknowledged_before_final_read(send)
        ]

    def vanished(self) -> Found:
        gone = set()
        for final in self.final_reads:
            inside = {row["value"] for row in self.reads if row["operation"] == final["index"]}
            shown = [row["value"] for row in self.ok_reads if row["return_ns"] < final["call_ns"]]
            gone |= set(shown) - inside
        return [(False, (value,)) for value in gone]

    def unique_values(self) -> Found:
        values = [row["value"] for row in self.sends]
        return [(False, (value,)) for value in set(values) if values.count(value) > 1]

    def sent_values(self) -> Found:
        sent = {row["value"] for row in self.sends}
        return [(False, (value,)) for value in {row["value"] for row in self.reads} - sent]


def _pair(before: Row, after: Row) -> tuple[int, ...]:
    return (before["operation"], after["operation"], before["value"], after["value"])


def _known(before: Row, after: Row) -> bool:
    return before["offset"] is not None and after["offset"] is not None
