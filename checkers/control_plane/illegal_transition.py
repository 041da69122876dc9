"""C11 illegal-transition: the log of record, replayed through a model of the controller's rules.

The model (`checkers.metadata.state`, `checkers.control_plane.metadata_rules`) is given one record
after the other; each is judged as a step from the state that the records before it add up to, and
then applied, wrong or not, so that a wrong step is told once.

Sound because only what the quorum decided is judged (`checkers.metadata.log_of_record`), because
records of an aborted transaction are not in it, and because a snapshot's records are the state that
the log goes on from and no steps. A log that begins with a snapshot is not accused of what only the
absence of something could prove.

A new broker epoch is the offset at which the controller was going to write its decision. What the
same decision writes first (4.x takes a broker that went down uncleanly out of its ELRs) stands
between, with the same timestamp; so does, in 3.4.1, the control record that began its term, which
it does not count.

It cannot see what a step was asked for, only what it did: that is C1's, C2's and C13's.

Source: see the rules.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from checkers.control_plane.breach import Breach
from checkers.control_plane.metadata_rules import breaches
from checkers.entry import Entry, Kind, Strength
from checkers.facts import Judged, Tables
from checkers.metadata.log_of_record import LogOfRecord
from checkers.metadata.records import MetadataRecord
from checkers.metadata.state import MetadataState
from checkers.metadata.view import METADATA, View, spelled
from checkers.proof import Proof
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "NAME", "illegal_transitions"]

NAME: Final = "illegal-transition"


def illegal_transitions(_: Tables, seen: View) -> Judged:
    """Find steps that no rule allows, by partition or broker. Reads `metadata_log`."""
    log = seen.log
    found: dict[str, list[Proof]] = {METADATA: []}
    case_counts: Counter[str] = Counter()
    for breaches_of_step in _judged(log):
        case_counts[breaches_of_step[0][0] if breaches_of_step else METADATA] += 1
        for key, proof in breaches_of_step:
            found.setdefault(key, []).append(proof)
    for key in sorted(found):
        doubt = log.doubt if key == METADATA else ""
        yield key, spelled(NAME, key, found[key], cases=case_counts[key], doubt=doubt)


def _judged(log: LogOfRecord) -> Iterator[list[tuple[str, Proof]]]:
    """Yield for each step, in order, the breaches: (key, proof)."""
    state, earlier = MetadataState(), _last_of_earlier_batches(log)
    for record in log.records:
        if not record.snapshot and not record.control:
            wrong = [
                *breaches(record, state, whole=not log.begins_with_snapshot),
                *_old_epochs(record, state, earlier),
            ]
            yield [(breach.key or METADATA, _proof(record, breach)) for breach in wrong]
        state.apply(record)


def _last_of_earlier_batches(log: LogOfRecord) -> Mapping[int, int]:
    """Return for each offset, the last one before it of another batch, control records left out."""
    rows = log.rows.select(
        ["snapshot", "control", "metadata_offset", "timestamp_ms", "controller_epoch"]
    )
    found: dict[int, int] = {}
    earlier, last, batch = -1, -1, (-1, -1)
    for row in rows.to_pylist():
        if row["snapshot"] or row["control"]:
            continue
        mine = (row["timestamp_ms"], row["controller_epoch"])
        if mine != batch:
            earlier, batch = last, mine
        last = row["metadata_offset"]
        found[last] = earlier
    return found


def _old_epochs(
    record: MetadataRecord, state: MetadataState, earlier: Mapping[int, int]
) -> Iterator[Breach]:
    """A new broker epoch is an offset that no earlier decision was written at."""
    epoch = record.broker_epoch
    if record.type != "RegisterBrokerRecord" or epoch is None or record.broker_id is None:
        return
    before = state.brokers.get(record.broker_id)
    new = before is None or epoch > before.broker_epoch
    if new and epoch <= earlier.get(record.metadata_offset, -1):
        yield Breach(
            key=f"broker {record.broker_id}",
            words=f"broker {record.broker_id} registers with broker epoch {epoch}, which is the "
            "offset of an earlier decision",
            values=(epoch,),
        )


def _proof(record: MetadataRecord, breach: Breach) -> Proof:
    return Proof.of(
        "at metadata offset {metadata_offset} {words}",
        metadata_offsets={"metadata_offset": record.metadata_offset},
        values=breach.values,
        words=breach.words,
    )


CHECKS: Final = (
    TableCheck(
        entry=Entry(
            id="C11",
            name=NAME,
            title="The metadata log makes a step that no rule allows",
            kind=Kind.ANOMALY,
            rule="The log of record is replayed, record by record, through a model of the "
            "controller's rules: who is registered, at which level, fenced, unfenced or amended, "
            "and under which broker epoch; who may be elected, how an unclean election is "
            "recorded, and who may be in the ISR meanwhile; who comes into the ELR; what a "
            "reassignment may name; topics, partitions and producer ids are given out once; "
            "features, and what their levels allow to be written; transactions of the log. No "
            "record may break one.",
            meaning="The controller has decided what its own rules forbid, and every broker "
            "follows it.",
            case="a record of the metadata log that says anything",
            source="KIP-455, KIP-584, KIP-631, KIP-704, KIP-730, KIP-841, KIP-868, KIP-966",
            strength=Strength.NEVER,
            needs=("metadata_log",),
        ),
        kernel=illegal_transitions,
    ),
)
