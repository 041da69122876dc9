"""What a made-up cluster said and decided: rows of `wire` and `metadata_log`, told as a story.

`Tape` keeps the frames in the order in which they are told; `MetadataLog` the records. `STORY` is
the wiped replica that joins the ISR through a delayed AlterPartition (KAFKA-14139), with the times,
offsets and epochs that a run of it may have.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
from synthetic_run import SECOND, Fault

from fencepost.checkers.losses.forensics import (
    Acknowledgement,
    FaultAlive,
    FinalReplica,
    Forensics,
    Join,
    Loss,
    LossyElection,
    MetadataNote,
    Truncation,
    ValueFate,
)
from fencepost.history.cluster_schema import METADATA_LOG, WIRE

ORIGIN_UTC_NS = 1_772_352_000_000_000_000
NODE_IDS = {"controller-1": 1001, "broker-1": 1, "broker-2": 2}
TOPIC_ID = "tttttttttttttttttttttA"
_KEYS = {"AlterPartition": 56, "BrokerRegistration": 62, "BrokerHeartbeat": 63, "Fetch": 1}


@dataclass
class Tape:
    """Frames, numbered as they are told. Times are seconds of the run."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    _frames: Iterator[int] = field(default_factory=count)
    _connections: dict[tuple[str, str], int] = field(default_factory=dict)
    _correlations: Iterator[int] = field(default_factory=lambda: count(100))

    def asked(
        self,
        at: float,
        source: str,
        target: str,
        api: str,
        *items: dict[str, Any],
        version: int = 2,
        action: str = "forwarded",
        rule: str | None = None,
        until: float | None = ...,  # type: ignore[assignment]  # not None: never passed on
        **columns: Any,
    ) -> tuple[int, int]:
        """A request; what its answer shares with it."""
        connection = self._connections.setdefault((source, target), len(self._connections))
        exchange = (connection, next(self._correlations))
        self._add(
            at,
            (source, target),
            api,
            items,
            direction="request",
            exchange=exchange,
            api_version=version,
            action=action,
            rule=rule,
            until=at + 0.0004 if until is ... else until,
            columns=columns,
        )
        return exchange

    def answered(
        self,
        exchange: tuple[int, int],
        at: float,
        *items: dict[str, Any],
        error: str = "NONE",
        action: str = "forwarded",
        rule: str | None = None,
        **columns: Any,
    ) -> None:
        """The answer to what was asked."""
        question = next(
            row for row in self.rows if (row["connection"], row["correlation_id"]) == exchange
        )
        self._add(
            at,
            (question["source"], question["target"]),
            question["api"],
            items or ({"error": error},),
            direction="response",
            exchange=exchange,
            api_version=question["api_version"],
            action=action,
            rule=rule,
            until=at + 0.0004,
            columns=columns,
        )

    def table(self) -> pa.Table:
        """WIRE."""
        return pa.Table.from_pylist(self.rows, schema=WIRE)

    def _add(
        self,
        at: float,
        link: tuple[str, str],
        api: str,
        items: tuple[dict[str, Any], ...],
        *,
        direction: str,
        exchange: tuple[int, int],
        api_version: int,
        action: str,
        rule: str | None,
        until: float | None,
        columns: dict[str, Any],
    ) -> None:
        number = next(self._frames)
        for place, item in enumerate(items or ({},)):
            self.rows.append(
                {
                    "frame": number,
                    "item": place,
                    "connection": exchange[0],
                    "correlation_id": exchange[1],
                    "source": link[0],
                    "target": link[1],
                    "direction": direction,
                    "time_ns": round(at * SECOND),
                    "forwarded_ns": None if until is None else round(until * SECOND),
                    "action": action,
                    "rule": rule,
                    "api": api,
                    "api_key": _KEYS.get(api, 99),
                    "api_version": api_version,
                    "size_bytes": 120,
                    **columns,
                    **item,
                }
            )


@dataclass
class MetadataLog:
    """Records of one controller, from the offset that is stated on."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self, offset: int, at: float, kind: str, *, node: str = "controller-1", **columns: Any
    ) -> None:
        """A record that was appended at this second of the run."""
        if kind.startswith("Partition"):
            columns = {"topic_id": TOPIC_ID, "topic": "t", "partition": 0, **columns}
        self.rows.append(
            {
                "node": node,
                "snapshot": False,
                "metadata_offset": offset,
                "controller_epoch": 1,
                "timestamp_ms": round(ORIGIN_UTC_NS / 1e6 + at * 1000),
                "type": kind,
                "type_key": 0,
                "version": 0,
                "control": kind == "LeaderChangeMessage",
                "digest": hash((kind, repr(sorted(columns.items())))) >> 1,
                "detail": ", ".join(f"{name}={value}" for name, value in columns.items()),
                **columns,
            }
        )

    def table(self) -> pa.Table:
        """METADATA_LOG."""
        return pa.Table.from_pylist(self.rows, schema=METADATA_LOG)


def isr(*members: int, **others: Any) -> dict[str, Any]:
    """An item of AlterPartition about t-0."""
    return {"topic": "t", "partition": 0, "isr": list(members), **others}


def story_tape() -> Tape:
    """What went over the wire in the story."""
    tape = Tape()
    for broker, at, epoch in ((1, 1.10, 2), (2, 1.16, 3)):
        node = f"broker-{broker}"
        asked = tape.asked(at, node, "controller-1", "BrokerRegistration", broker_id=broker)
        tape.answered(asked, at + 0.01, broker_epoch=epoch)
    for tick in range(40):
        for broker in (1, 2):
            at = 1.5 + tick * 0.5 + broker * 0.01
            node = f"broker-{broker}"
            asked = tape.asked(at, node, "controller-1", "BrokerHeartbeat", broker_id=broker)
            tape.answered(asked, at + 0.002)
    shrink = tape.asked(
        5.402, "broker-1", "controller-1", "AlterPartition", isr(1, partition_epoch=0)
    )
    tape.answered(shrink, 5.409, isr(1, error="NONE", partition_epoch=1))
    held = tape.asked(
        6.731,
        "broker-1",
        "controller-1",
        "AlterPartition",
        isr(1, 2, partition_epoch=1, leader_epoch=1),
        action="released",
        rule="join",
        until=16.902,
        broker_id=1,
        broker_epoch=2,
    )
    for at in (10.2, 10.7, 11.2):
        refused = tape.asked(at, "broker-2", "controller-1", "BrokerRegistration", broker_id=2)
        tape.answered(refused, at + 0.004, error="DUPLICATE_BROKER_REGISTRATION")
    again = tape.asked(13.512, "broker-2", "controller-1", "BrokerRegistration", broker_id=2)
    tape.answered(again, 13.521, broker_epoch=33)
    tape.answered(held, 16.911, isr(1, 2, error="NONE", partition_epoch=2))
    back = tape.asked(19.204, "broker-1", "controller-1", "BrokerRegistration", broker_id=1)
    tape.answered(back, 19.21, broker_epoch=47)
    return tape


def story_log() -> MetadataLog:
    """What the controller decided in the story."""
    log = MetadataLog()
    log.add(0, 0.62, "LeaderChangeMessage", leader=1001)
    log.add(2, 1.105, "RegisterBrokerRecord", broker_id=1, broker_epoch=2, fenced=True)
    log.add(3, 1.165, "RegisterBrokerRecord", broker_id=2, broker_epoch=3, fenced=True)
    log.add(5, 1.31, "BrokerRegistrationChangeRecord", broker_id=1, broker_epoch=2, fenced=False)
    log.add(6, 1.33, "BrokerRegistrationChangeRecord", broker_id=2, broker_epoch=3, fenced=False)
    log.add(11, 1.72, "TopicRecord", topic="t", topic_id=TOPIC_ID)
    created = {"isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    log.add(12, 1.72, "PartitionRecord", replicas=[1, 2], **created)
    log.add(19, 5.405, "PartitionChangeRecord", isr=[1])
    log.add(20, 5.61, "BrokerRegistrationChangeRecord", broker_id=2, broker_epoch=3, fenced=True)
    log.add(21, 6.70, "BrokerRegistrationChangeRecord", broker_id=2, broker_epoch=3, fenced=False)
    log.add(28, 9.95, "BrokerRegistrationChangeRecord", broker_id=2, broker_epoch=3, fenced=True)
    log.add(33, 13.518, "RegisterBrokerRecord", broker_id=2, broker_epoch=33, fenced=True)
    log.add(34, 13.81, "BrokerRegistrationChangeRecord", broker_id=2, broker_epoch=33, fenced=False)
    log.add(36, 16.906, "PartitionChangeRecord", isr=[1, 2])
    log.add(43, 17.30, "PartitionChangeRecord", isr=[2], leader=2)
    log.add(43, 17.30, "PartitionChangeRecord", node="broker-2", isr=[2], leader=2)
    log.add(47, 19.206, "RegisterBrokerRecord", broker_id=1, broker_epoch=47, fenced=True)
    log.add(48, 19.52, "BrokerRegistrationChangeRecord", broker_id=1, broker_epoch=47, fenced=False)
    log.add(52, 20.02, "PartitionChangeRecord", isr=[2, 1])
    return log


STORY_FAULTS = (
    Fault(kind="pause", targets=("broker-2",), begin=2.61, effect=2.62, end=6.72),
    Fault(
        kind="hold",
        targets=("broker-1",),
        begin=5.51,
        effect=6.76,
        end=16.902,
        evidence="AlterPartition v2 broker-1 → controller-1, t-0 isr [1, 2]",
        heal_evidence="1 held frames delivered",
    ),
    Fault(kind="kill", targets=("broker-2",), begin=6.91, effect=6.93, end=14.02),
    Fault(kind="wipe", targets=("broker-2",), begin=10.02, effect=10.05, end=14.02),
    Fault(kind="kill", targets=("broker-1",), begin=16.80, effect=16.82, end=20.1),
)
STORY_PLAY = """\
# What was performed, at which time of the play.
- {at: 0.3s, await: {acknowledged: 500}, within: 30s}
- {at: 1.2s, pause: broker-2}
- {at: 1.25s, await: {isr: {t-0: [1]}}, within: 30s}
- {at: 4.1s, hold: {as: join, api: AlterPartition, from: broker-1, where: {isr includes: 2}}}
- {at: 4.2s, resume: broker-2}
- {at: 4.3s, await: {held: join}, within: 30s}
- {at: 5.5s, kill: broker-2}
- {at: 5.6s, await: {fenced: broker-2}, within: 30s}
- {at: 8.61s, wipe: broker-2}
- {at: 8.7s, start: broker-2}
- {at: 8.8s, await: {unfenced: broker-2}, within: 30s}
- {at: 15.39s, kill: broker-1}
- {at: 15.488s, release: join}
- {at: 15.5s, await: {leader: {t-0: 2}}, within: 30s}
- {at: 16.1s, start: broker-1}
"""


def story_forensics() -> Forensics:
    """What became of the story's records."""
    join = Join(
        broker_id=2,
        metadata_offset=36,
        partition_epoch=2,
        time_ns=round(16.906 * SECOND),
        frame=166,
        sent_ns=round(6.731 * SECOND),
        forwarded_ns=round(16.902 * SECOND),
        judged_epoch=3,
        stale=True,
        registration_offset=33,
        registered_epoch=33,
        registered_ns=round(13.518 * SECOND),
    )
    election = LossyElection(
        leader=2,
        leader_epoch=3,
        metadata_offset=43,
        time_ns=round(17.30 * SECOND),
        log_end_offset=0,
        unclean=False,
    )
    loss = Loss(
        key="t-0",
        fate=ValueFate.LOST,
        checks=("lost-write", "vanished"),
        count=1000,
        first_offset=512,
        last_offset=1511,
        values=tuple(range(70_001, 70_020)),
        operations=(401, 404),
        acknowledgements=(
            Acknowledgement(
                leader=1,
                leader_epoch=0,
                broker_epoch=2,
                isr=(1,),
                partition_epoch=1,
                metadata_offset=19,
                first_offset=512,
                last_offset=1511,
                count=1000,
                first_ns=round(5.41 * SECOND),
                last_ns=round(16.79 * SECOND),
            ),
        ),
        join=join,
        election=election,
        truncations=(
            Truncation(node="broker-2", to_offset=None, fault="wipe"),
            Truncation(node="broker-1", to_offset=0, fault=None),
        ),
        replicas=(
            _replica("broker-1", end=380, epochs=((3, 0),)),
            _replica("broker-2", end=380, epochs=((3, 0),)),
        ),
        metadata=(
            MetadataNote(metadata_offset=28, time_ns=round(9.95 * SECOND), text="broker 2 fenced"),
            MetadataNote(metadata_offset=33, time_ns=round(13.518 * SECOND), text="told anyway"),
            MetadataNote(
                metadata_offset=34, time_ns=round(13.81 * SECOND), text="broker 2 unfenced"
            ),
        ),
        faults=(
            FaultAlive(
                index=2,
                fault="kill",
                targets=("broker-2",),
                begin_ns=round(6.91 * SECOND),
                end_ns=round(14.02 * SECOND),
            ),
            FaultAlive(
                index=3,
                fault="wipe",
                targets=("broker-2",),
                begin_ns=round(10.02 * SECOND),
                end_ns=round(14.02 * SECOND),
            ),
            FaultAlive(
                index=4,
                fault="kill",
                targets=("broker-1",),
                begin_ns=round(16.8 * SECOND),
                end_ns=None,
            ),
        ),
        sentence="Broker 1 acknowledged offsets 512-1511 of t-0 in leader epoch 0 with ISR [1]; "
        "broker 2 joined the ISR at metadata offset 36 by AlterPartition frame 166, sent 6.8 s "
        "before its new registration (offset 33); broker 2 was elected at metadata offset 43 with "
        "log end 0; broker 2 lost its disk (wipe) and broker 1 truncated to 0 and no replica holds "
        "them any more.",
    )
    return Forensics(run_id="a3f09c", counts={"lost-write": 1000}, losses=(loss,))


def _replica(node: str, *, end: int, epochs: tuple[tuple[int, int], ...]) -> FinalReplica:
    return FinalReplica(
        node=node,
        log_start_offset=0,
        log_end_offset=end,
        high_watermark=end,
        leader_epochs=epochs,
        held_count=0,
        damage=None,
    )
