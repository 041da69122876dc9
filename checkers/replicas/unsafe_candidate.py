"""C10 unsafe-leader-candidate: whoever may be elected has every committed record.

The controller elects out of the ISR, and on newer clusters out of the eligible leader replicas
(KIP-966). A replica's checkpointed high watermark says that all records below it were committed. So
when all is over, each member of a partition's last ISR and ELR must reach the highest high
watermark that any replica of it has checkpointed. After an election that was recorded as unclean
this is legal. Of the run's own partitions, a member whose log could not be read whole is a doubt.

A case is such a member whose log was read.

Source: KIP-966; Kafka's documentation, Replication.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from checkers.anomaly import Proof
from checkers.control_plane.view import View, doubtful, spelled, view
from checkers.kernels.facts import Facts, Judged, Tables
from checkers.kernels.partition_states import PartitionHistory

__all__ = ["NAME", "unsafe_candidates"]

NAME: Final = "unsafe-leader-candidate"


def unsafe_candidates(tables: Tables, facts: Facts) -> Judged:
    """Of each partition that is there in the end. Reads `metadata_log` and `replicas`."""
    seen = view(tables, facts)
    if doubt := seen.doubt_at_the_end():
        yield from doubtful(NAME, doubt)
        return
    rows = tables["replicas"].to_pylist()
    for history in seen.histories():
        mine = [row for row in rows if _is_of(row, history)]
        if (mine or history.key in facts.keys) and not history.deleted:
            answers = list(_candidates(history, mine, seen))
            proofs = [answer for answer in answers if answer is not None]
            legal = len(proofs) if history.elected_uncleanly else 0
            doubt = _unread(history, mine, seen)
            yield (
                history.key,
                spelled(
                    NAME,
                    history.key,
                    proofs,
                    cases=len(answers),
                    doubt=doubt,
                    allowed_count=legal,
                ),
            )


def _is_of(row: Mapping[str, Any], history: PartitionHistory) -> bool:
    return bool(row["key"] == history.key and row["topic_id"] == history.topic_id)


def _unread(history: PartitionHistory, rows: Sequence[Mapping[str, Any]], seen: View) -> str:
    nodes = seen.facts.nodes()
    whole = {row["node"] for row in rows if not row["damage"]}
    unread = [one for one in (*history.last.isr, *history.last.elr) if nodes.get(one) not in whole]
    if not unread:
        return ""
    return f"the log of broker {unread[0]}, a candidate of {history.key}, could not be read whole"


def _candidates(
    history: PartitionHistory, rows: Sequence[Mapping[str, Any]], seen: View
) -> Iterator[Proof | None]:
    """Of each member: the proof that it lacks a record, or None."""
    last = history.last
    marked = [row for row in rows if row["high_watermark"] is not None]
    highest = max(marked, key=lambda row: row["high_watermark"], default=None)
    for row in rows:
        broker_id = seen.facts.node_ids.get(row["node"], -1)
        among = "ISR" if broker_id in last.isr else "ELR" if broker_id in last.elr else ""
        if not among or highest is None or row["damage"]:
            continue
        if row["log_end_offset"] >= highest["high_watermark"]:
            yield None
        else:
            yield Proof(
                operations=(),
                offsets=(row["log_end_offset"], highest["high_watermark"]),
                values=(broker_id,),
                detail=f"{row['node']} is in the {among} of {history.key} at metadata offset "
                f"{last.metadata_offset}, and its log ends at {row['log_end_offset']}, below the "
                f"high watermark {highest['high_watermark']} that {highest['node']} has "
                "checkpointed",
            )
