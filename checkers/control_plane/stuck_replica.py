"""C12b stuck-replica: A replica stays out of the ISR though nothing keeps it out.

For longer than the scenario's bound a replica of any topic, at any time of the run, is assigned and
out of the ISR, whatever its log holds; all that time no fault is in effect but the end or
standstill of another process, both its broker and the leader are registered, unfenced and not in
controlled shutdown, neither registers, no reassignment is adding or removing it, and neither the
leader, its epoch nor the leader of the quorum changes. Unknown if the run ends before the bound has
passed.

A replica that is assigned, whose broker and leader live, fetches from the leader, catches up, and
is let in. The scenario states how long that may take when nothing is broken (`recovery_limit`). A
replica that is out for longer is stuck: it does not fetch, does not catch up, or is not let in.
`control_plane.absences` says when nothing is broken, and for which replicas.

Every topic is judged, at every time of the run and whatever the log ends on the disks: these are
named where they are known. `stuck-isr` (C12) judges only the end, and only replicas that have
caught up by the disks: of those it knows that the leader is to blame.

A case is an absence that ended with the replica let in, or one for which the bound passed. One that
had no such end (the topic was deleted, a fault began and the run ended) says nothing. One that the
end of the run cut off is a doubt if nothing had been broken for longer than `SETTLED_NS`.

Meaning: A replica does not fetch, does not catch up or is not let in, and the partition goes on
under-replicated.
Case: an absence of a replica from its ISR, until it was let in or the bound had passed
Source: Apache Kafka's documentation, Replication; KIP-497, KAFKA-15353
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fencepost.checkers.control_plane.stuck_isr import SETTLED_NS
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.absences import Absence, absences, calm_of, return_count
from fencepost.checkers.metadata.partition_states import PartitionHistory
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.STANDSTILL,
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name

_Rows = Mapping[tuple[str, str], Mapping[str, Any]]
"""The rows of `replicas`, by (key, node)."""


def stuck_replicas(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition of every topic. Reads `metadata_log`, `faults` and `replicas`."""
    if not seen.facts.stuck_isr_limit_ns:
        return
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    when = calm_of(tables, seen)
    rows = {(row["key"], row["node"]): row for row in tables["replicas"].to_pylist()}
    for history in seen.histories():
        judged = list(absences(history, when))
        late = [one for one in judged if one.span.length_ns > seen.facts.stuck_isr_limit_ns]
        held = return_count(history) - sum(one.returned for one in late)
        yield (
            history.key,
            spelled(
                NAME,
                history.key,
                [_proof(history, one, rows, seen.facts) for one in late],
                cases=len(late) + held,
                doubt=next(_doubts(history, [one for one in judged if one not in late]), ""),
            ),
        )


def _doubts(history: PartitionHistory, judged: list[Absence]) -> Iterator[str]:
    for one in judged:
        if one.at_the_end and one.span.length_ns > SETTLED_NS:
            yield f"{_out(history, one).sentence}, where the run ended before the bound had passed"


def _proof(history: PartitionHistory, absence: Absence, rows: _Rows, facts: Facts) -> Proof:
    return _out(history, absence).further(
        "; all that time nothing that it depends on was broken, and the bound is {limit}{log_ends}",
        durations={"limit": facts.stuck_isr_limit_ns},
        log_ends=_log_ends(history, absence, rows, facts),
    )


def _out(history: PartitionHistory, absence: Absence) -> Proof:
    last, span = absence.last, absence.span
    return Proof.of(
        "broker {broker_id} is unfenced and out of the ISR of {key} ({isr} of {replicas}, leader "
        "{leader}, metadata offset {metadata_offset}) from {since} until {until}",
        metadata_offsets={"metadata_offset": last.metadata_offset},
        values={"broker_id": absence.broker_id},
        times={"since": span.from_ns, "until": span.until_ns},
        sources=dict.fromkeys(("isr", "replicas", "leader"), "metadata_offset"),
        key=history.key,
        isr=last.isr_text,
        replicas=list(last.replicas),
        leader=last.leader,
    )


def _log_ends(history: PartitionHistory, absence: Absence, rows: _Rows, facts: Facts) -> Proof:
    """Return where the logs ended on the disks; an empty clause if it says nothing of that time."""
    nodes = facts.nodes_at_the_end()
    mine, leaders = (
        rows.get((history.key, nodes.get(one, "")))
        for one in (absence.broker_id, absence.last.leader)
    )
    if mine is None or leaders is None or not absence.at_the_end:
        return Proof.of("")
    if not {mine["topic_id"], leaders["topic_id"]} <= {None, history.topic_id}:
        return Proof.of("")
    return Proof.of(
        "; on the disks its log ends at {log_end_offset}, and that of its leader at "
        "{leaders_log_end_offset}",
        log_end_offset=mine["log_end_offset"],
        leaders_log_end_offset=leaders["log_end_offset"],
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stuck_replicas,
        split=Split.PARTITIONS,
        tables=("metadata_log", "faults", "replicas"),
    ),
)
