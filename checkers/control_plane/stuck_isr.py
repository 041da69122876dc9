"""C12 stuck-isr: A replica that has caught up is left out of the ISR.

At the end of the run, with the scenario's bound since the last heal passed, a replica is out of the
ISR that has been unfenced and led by another for 10 s, and whose log ends where its leader's does;
none that is being removed. Unknown if the bound had not passed and no later ISR has the replica, or
if the disks do not tell.

After healing, a replica that is unfenced and has what its leader has comes back into the ISR by the
leader's next look at it. The scenario states a bound, counted from when the last fault was healed.
One that a reassignment is removing need not come back.

A replica that the same leader brings in even later, while the brokers are leaving, is slow and not
stuck: the disks are read afterwards, and say nothing of when it had caught up.

A replica whose log is behind its leader's has not caught up, and partitions that are not the run's
left nothing to compare: both are `stuck-replica`'s (C12b).

A case is a replica that was out of its ISR at some time: it is back in the end, or it is judged as
said.

Meaning: The partition goes on with fewer copies than it could have, until somebody notices.
Case: a replica that was out of its ISR, at the end of the run
Source: KIP-497; KAFKA-15353 for a leader that never asks again
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.absences import LEAVING_NS
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.STANDSTILL,
    needs=("metadata_log", "replicas"),
)
NAME: Final = ENTRY.name
SETTLED_NS: Final = 10_000_000_000
"""Many times what a leader takes to bring a replica back that has caught up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """The evidence that decides, in addition to the partition itself."""

    seen: MetadataView
    healed_ns: int
    end_ns: int
    """The end of the run, or of the log if that is earlier: states are known until here."""
    rows: Mapping[tuple[str, str], Mapping[str, Any]]
    """The rows of `replicas`, by (key, node)."""


def stuck_isrs(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition of the run. Reads `metadata_log`, `replicas` and `faults`."""
    if not seen.facts.stuck_isr_limit_ns:
        return
    if seen.log.doubt or seen.facts.healed_ns is None:
        yield from doubtful(NAME, seen.log.doubt or "the run does not say when it was healed")
        return
    log_end_ns = seen.known_until_ns
    course = _Course(
        seen=seen,
        healed_ns=max([0, *filter(None, tables["faults"]["end_ns"].to_pylist())]),
        end_ns=min(log_end_ns, seen.facts.end_ns or log_end_ns) - LEAVING_NS,
        rows={(row["key"], row["node"]): row for row in tables["replicas"].to_pylist()},
    )
    for history in seen.histories():
        if not history.deleted and history.key in seen.facts.keys:
            versions = _until(history.versions, seen.facts, course.end_ns)
            later = history.versions[len(versions) :]
            found = list(_outsiders(history, versions, _before(later, course)))
            proofs = [one for one in found if isinstance(one, Proof)]
            doubt = next((one for one in found if isinstance(one, str)), "")
            cases = _back_count(versions) + sum(not isinstance(one, str) for one in found)
            yield history.key, spelled(NAME, history.key, proofs, cases=cases, doubt=doubt)


def _before(later: Sequence[PartitionVersion], course: _Course) -> _Course:
    """Return a course that ends before any of these can have been made."""
    begins_ns = (course.seen.facts.earliest_ns(one.timestamp_ms) for one in later)
    return replace(course, end_ns=min((course.end_ns, *begins_ns)))


def _back_count(versions: Sequence[PartitionVersion]) -> int:
    """Return how many replicas are in the ISR in the end and were out of it before."""
    out = {one for version in versions for one in version.replicas if one not in version.isr}
    return len(out & {*versions[-1].isr}) if versions else 0


def _outsiders(
    history: PartitionHistory, versions: list[PartitionVersion], course: _Course
) -> Iterator[Proof | str | None]:
    """Yield for each replica that may be stuck a proof, a doubt, or None if it is not."""
    seen = course.seen
    if not versions or versions[-1].leader == NO_LEADER:
        return
    last = versions[-1]
    for broker_id in sorted({*last.replicas} - {*last.isr, *last.removing, last.leader}):
        broker = seen.brokers.get(broker_id)
        since_ns = _eligible_ns(broker, seen.facts, course.end_ns) if broker else None
        if since_ns is None or _joins_later(history, last, broker_id):
            continue
        since_ns = max(since_ns, seen.facts.latest_ns(_out_since_ms(versions, broker_id)))
        yield _judged(history, last, broker_id, since_ns, course)


def _judged(
    history: PartitionHistory,
    last: PartitionVersion,
    broker_id: int,
    since_ns: int,
    course: _Course,
) -> Proof | str | None:
    limit_ns = course.seen.facts.stuck_isr_limit_ns
    behind = _behind(history, last, broker_id, course)
    out = Proof.of(
        "broker {broker_id} is unfenced and out of the ISR of {key} ({isr}, metadata offset "
        "{metadata_offset}) from {since} until {until}",
        metadata_offsets={"metadata_offset": last.metadata_offset},
        values={"broker_id": broker_id},
        times={"since": since_ns, "until": course.end_ns},
        sources={"isr": "metadata_offset"},
        key=history.key,
        isr=last.isr_text,
    )
    if course.end_ns - course.healed_ns <= limit_ns or course.end_ns - since_ns <= SETTLED_NS:
        if _is_in_later(history, last, broker_id):
            return None
        return f"{out.sentence}, and the bound has not passed"
    if behind is None:
        return f"{out.sentence}, and the disks do not tell whether it has caught up"
    if behind:
        return None
    return out.further(
        ", though its log ends where that of leader {leader} does; the last fault was healed at "
        "{healed}, and the bound is {limit}",
        times={"healed": course.healed_ns},
        durations={"limit": limit_ns},
        leader=last.leader,
    )


def _until(versions: list[PartitionVersion], facts: Facts, end_ns: int) -> list[PartitionVersion]:
    """Return those that were surely made by then, and so were all before them."""
    return list(takewhile(lambda one: facts.latest_ns(one.timestamp_ms) <= end_ns, versions))


def _is_in_later(history: PartitionHistory, last: PartitionVersion, broker_id: int) -> bool:
    """Return whether it is in a later ISR, under any leader: then nothing is left to wait for."""
    later = (one for one in history.versions if one.metadata_offset > last.metadata_offset)
    return any(broker_id in one.isr for one in later)


def _joins_later(history: PartitionHistory, last: PartitionVersion, broker_id: int) -> bool:
    """Return whether the same leader brings it in later; another leader proves nothing here."""
    later = [one for one in history.versions if one.metadata_offset > last.metadata_offset]
    under = takewhile(lambda one: one.leader == last.leader, later)
    return any(broker_id in one.isr for one in under)


def _eligible_ns(broker: BrokerHistory, facts: Facts, end_ns: int) -> int | None:
    """Return since when it is unfenced and not stopping; None if it is not, or not surely."""
    since: BrokerVersion | None = None
    for version in broker.versions:
        if facts.earliest_ns(version.timestamp_ms) > end_ns:
            break
        if not version.eligible:
            since = None
        elif since is None:
            since = version
    since_ns = None if since is None else facts.latest_ns(since.timestamp_ms)
    return since_ns if since_ns is not None and since_ns < end_ns else None


def _out_since_ms(versions: list[PartitionVersion], broker_id: int) -> int:
    """Return when it left the ISR for good, or when its leader last changed."""
    since = versions[-1]
    for version in reversed(versions):
        if broker_id in version.isr or version.leader != versions[-1].leader:
            break
        since = version
    return since.timestamp_ms


def _behind(
    history: PartitionHistory,
    last: PartitionVersion,
    broker_id: int,
    course: _Course,
) -> int | None:
    """Return how many records of its leader's log it lacks; None if the disks do not tell."""
    nodes = course.seen.facts.nodes_at_the_end()
    mine = course.rows.get((history.key, nodes.get(broker_id, "")))
    leaders = course.rows.get((history.key, nodes.get(last.leader, "")))
    if mine is None or leaders is None or mine["damage"] or leaders["damage"]:
        return None
    return abs(int(leaders["log_end_offset"]) - int(mine["log_end_offset"]))


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stuck_isrs,
        split=Split.PARTITIONS,
        tables=("metadata_log", "replicas", "faults"),
    ),
)
