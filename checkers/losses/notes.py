"""The metadata log's statements on a partition and on the brokers of its replicas, in words."""

from collections.abc import Iterator
from typing import Final

from checkers.losses.forensics import MetadataNote
from checkers.metadata.broker_states import BrokerHistory
from checkers.metadata.partition_states import PartitionHistory
from checkers.metadata.view import View

__all__ = ["notes_between"]

_NOTES_MAX: Final = 100


def notes_between(
    history: PartitionHistory, seen: View, first_offset: int, last_offset: int
) -> tuple[MetadataNote, ...]:
    """Return the records between these offsets about the partition and its brokers."""
    replicas = {one for version in history.versions for one in version.replicas}
    brokers = [seen.brokers[one] for one in sorted(replicas) if one in seen.brokers]
    notes = [
        *_of_partition(history, seen),
        *(note for one in brokers for note in _of_broker(one, seen)),
    ]
    notes.sort(key=lambda note: note.metadata_offset)
    kept = [one for one in notes if first_offset <= one.metadata_offset <= last_offset]
    return tuple(kept[-_NOTES_MAX:])


def _of_partition(history: PartitionHistory, seen: View) -> Iterator[MetadataNote]:
    for version in history.versions:
        elr = f" ELR {list(version.elr)}" if version.elr else ""
        yield MetadataNote(
            metadata_offset=version.metadata_offset,
            time_ns=seen.facts.time_ns(version.timestamp_ms),
            text=f"{history.key} {version.cause}: leader {version.leader}, leader epoch "
            f"{version.leader_epoch}, ISR {version.isr_text}{elr}, partition epoch "
            f"{version.partition_epoch}{', unclean' if version.recovering else ''}",
        )


def _of_broker(broker: BrokerHistory, seen: View) -> Iterator[MetadataNote]:
    for version in broker.versions:
        state = "fenced" if version.fenced else "unfenced"
        if version.in_controlled_shutdown:
            state += ", in controlled shutdown"
        new = version.metadata_offset == version.registration_offset
        state = state if version.registered else "unregistered"
        what = f"registered with broker epoch {version.broker_epoch}, " if new else ""
        yield MetadataNote(
            metadata_offset=version.metadata_offset,
            time_ns=seen.facts.time_ns(version.timestamp_ms),
            text=f"broker {broker.broker_id} {what}{state}",
        )
