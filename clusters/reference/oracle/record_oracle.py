"""The ghost of the partitions' logs: what was ever below a high watermark, acknowledged or read.

A leader that moves its high watermark commits what is below it: that goes into the ghost. From then
on every leader must have it, and so must every replica that joins an ISR. Acknowledged records are
held beside it, since without the rules they may never have been committed.

A disk that loses records is a fault which the protocols survive only while another member of the
ISR has them. Where every member has lost its disk since it was last seen to have left the ISR, the
partition is *excused*: what it loses is no fault of the protocol, and the run is no evidence of
anything either.

No replica may lead, join an ISR or be proposed for one that lacks what is committed; nothing may be
committed that a member of the ISR lacks; and no member may cut off what is committed. A proposal
that the controller has to refuse (with a mismatch in any epoch) is not judged.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.clusters.node_port.storage import Batch, PartitionKey
from fencepost.clusters.reference.nodes.messages.control import AlterPartitionRequest
from fencepost.clusters.reference.oracle.finding import Nodes
from fencepost.clusters.reference.oracle.metadata_oracle import Decisions, Led, Problem


@dataclass(slots=True)
class _Log:
    """The ghost of one partition."""

    committed: list[Batch] = field(default_factory=list)
    end: int = 0
    acknowledged: list[tuple[int, Batch]] = field(default_factory=list)
    """(base offset, batch), in the order in which clients heard it."""
    read_ahead: list[Batch] = field(default_factory=list)
    """The batches that were read before they were committed."""
    sequences: set[tuple[int, int, int]] = field(default_factory=set)
    leaders: dict[int, int] = field(default_factory=dict)
    """The brokers that led, by leader epoch."""
    suspects: set[int] = field(default_factory=set)
    """Members that lost their disks and have not left the ISR since."""
    excused: bool = False
    excuse: str = ""
    """The reason, in words."""


@dataclass(slots=True)
class RecordOracle:
    """The ghosts of all partitions. `min_isr` applies to topics that do not set it."""

    decided: Decisions
    nodes: Nodes
    min_isr: int = 1
    lost_disks: dict[int, int] = field(default_factory=dict)
    """Brokers whose disks lost something, with the broker epoch that they had then."""
    acknowledged_count: int = 0
    """Records that clients heard are there, with acks=all."""
    _logs: dict[PartitionKey, _Log] = field(default_factory=dict)

    @property
    def excused(self) -> tuple[PartitionKey, ...]:
        """The partitions whose losses are no fault of the protocol."""
        return tuple(key for key, log in self._logs.items() if log.excused)

    @property
    def excuses(self) -> tuple[str, ...]:
        """Why each of them is excused, in words."""
        return tuple(log.excuse for log in self._logs.values() if log.excused)

    def leads(self, node: int, key: PartitionKey, leader_epoch: int) -> Iterator[Problem]:
        """A broker begins to lead: it has to have all that was committed or acknowledged."""
        log = self._of(key)
        other = log.leaders.setdefault(leader_epoch, node)
        if other != node:
            yield (
                "two-leaders",
                f"brokers {other} and {node} both lead {key} in leader epoch {leader_epoch}",
            )
        led = self.decided.partitions.get(key)
        if led is not None and leader_epoch < led.leader_epoch:
            return  # it hears late of what is over: no replica follows it any more
        if log.excused:
            self._forget(node, key, log)
            return
        yield from self._complete(node, key, log, "unsafe-leader-candidate", "leads")
        yield from self._acknowledged(node, key, log)

    def high_watermark(
        self, node: int, key: PartitionKey, leader_epoch: int, offset: int
    ) -> Iterator[Problem]:
        """A leader moves its high watermark: what is below it is committed."""
        log = self._of(key)
        if offset <= log.end:
            return
        start = log.end
        for batch in self.nodes.records(node, key, log.end, offset):
            if batch.base_offset < log.end or batch.end_offset > offset:
                continue
            log.committed.append(batch)
            log.end = batch.end_offset
            if batch.producer_id >= 0:
                yield from _once(log, key, batch)
        if log.read_ahead:
            yield from self._compare_reads(key, log)
        led = self.decided.partitions.get(key)
        if led is not None and led.leader_epoch == leader_epoch and not log.excused:
            yield from self._had_by_all(key, log, led, start)

    def truncated(self, node: int, key: PartitionKey) -> Iterator[Problem]:
        """A broker has cut its log."""
        log, led = self._of(key), self.decided.partitions.get(key)
        if led is None or node not in led.isr or log.excused or node in log.suspects:
            return
        yield from self._complete(
            node, key, log, "truncated-below-high-watermark", "is in the isr, cuts its log"
        )

    def proposed(self, node: int, request: AlterPartitionRequest) -> Iterator[Problem]:
        """A leader asks for ISRs: those it wants in count as members from here on."""
        sender = self.decided.brokers.get(node)
        if sender is None or sender.broker_epoch != request.broker_epoch:
            return
        for item in request.items:
            led = self.decided.partitions.get(item.key)
            known = None if led is None else (led.leader, led.leader_epoch, led.partition_epoch)
            if led is None or known != (node, item.leader_epoch, item.partition_epoch):
                continue
            for member, broker_epoch in zip(item.isr, item.isr_epochs, strict=False):
                if member not in led.isr and self._may_join(member, broker_epoch):
                    yield from self._complete(
                        member,
                        item.key,
                        self._of(item.key),
                        "unsafe-leader-candidate",
                        "is proposed for the isr",
                    )

    def acknowledged(self, key: PartitionKey, base_offset: int, batch: Batch) -> Iterator[Problem]:
        """A client heard that its records are there, with acks=all."""
        log = self._of(key)
        self.acknowledged_count += batch.count
        log.acknowledged.append((base_offset, batch))
        led = self.decided.partitions.get(key)
        wanted = self._wanted(key)
        if led is None or len(led.isr) >= wanted or log.excused:
            return
        having = [
            node
            for node in led.replicas
            if any(
                one.base_offset == base_offset and _same(one, batch)
                for one in self.nodes.records(node, key, base_offset, base_offset + 1)
            )
        ]
        if len(having) < wanted:
            yield (
                "acknowledged-below-min-isr",
                (
                    f"offset {base_offset} of {key} is acknowledged and on brokers {having}, "
                    f"min.insync.replicas is {wanted}"
                ),
            )

    def read(self, key: PartitionKey, batches: tuple[Batch, ...]) -> Iterator[Problem]:
        """A client read these records."""
        log = self._of(key)
        if log.excused:
            return
        for batch in batches:
            if batch.base_offset >= log.end:
                log.read_ahead.append(batch)
                continue
            known = _at(log.committed, batch.base_offset)
            if known is not None and known is not batch and not _same(known, batch):
                yield (
                    "inconsistent-offset",
                    (
                        f"offset {batch.base_offset} of {key} was read as {batch}, "
                        f"committed is {known}"
                    ),
                )

    def disk_lost(self, node: int, keys: tuple[PartitionKey, ...] | None = None) -> None:
        """A broker's disk lost records of these partitions (None: of all)."""
        broker = self.decided.brokers.get(node)
        self.lost_disks[node] = -1 if broker is None else broker.broker_epoch
        for key, led in self.decided.partitions.items():
            if node in led.isr and (keys is None or key in keys):
                log = self._of(key)
                log.suspects.add(node)
                self._excuse(key, log, led)

    def isr_changed(self, key: PartitionKey, old: Led, new: Led) -> Iterator[Problem]:
        """The ISR of a partition was decided anew."""
        log = self._of(key)
        log.suspects.intersection_update(new.isr)
        # A member whose disk was lost while its proposal was under way joins as it was: unnoticed.
        log.suspects.update(
            member for member in set(new.isr) - set(old.isr) if self._has_lost(member)
        )
        self._excuse(key, log, new)
        if log.excused:
            return
        for member in sorted(set(new.isr) - set(old.isr)):
            # Its disk may have gone after the decision: then it is about to be fenced.
            if member in self.decided.brokers and not self._has_lost(member):
                yield from self._complete(
                    member, key, log, "unsafe-leader-candidate", "joins the isr"
                )

    def finish(self) -> Iterator[Problem]:
        """The cluster is whole and quiet: leaders have everything, and members the same."""
        for key, log in self._logs.items():
            led = self.decided.partitions.get(key)
            if led is None or log.excused or led.leader < 0:
                continue
            yield from self._acknowledged(led.leader, key, log)
            for member in led.isr:
                yield from self._complete(
                    member, key, log, "divergent-replicas", "is in the isr at the end"
                )

    def _may_join(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether the controller may let it in under this epoch."""
        broker = self.decided.brokers.get(broker_id)
        return (
            broker is not None
            and not broker.fenced
            and broker.broker_epoch == broker_epoch
            and not self._has_lost(broker_id)
        )

    def _had_by_all(self, key: PartitionKey, log: _Log, led: Led, start: int) -> Iterator[Problem]:
        """The last that was committed, from `start` on, has to be with every member."""
        if log.end == start:
            return
        last = log.committed[-1]
        for member in led.isr:
            mine = self.nodes.records(member, key, last.base_offset, log.end)
            if mine and (mine[-1] is last or _same(mine[-1], last)):
                continue
            if member not in log.suspects and not self._has_lost(member):
                found = mine[-1] if mine else None
                yield (
                    "unsafe-leader-candidate",
                    (
                        f"broker {member} is in the isr {led.isr} of {key} and has {found} "
                        f"where {last} is committed"
                    ),
                )

    def _has_lost(self, broker_id: int) -> bool:
        """Return whether a broker's disk lost something since it registered last."""
        broker = self.decided.brokers.get(broker_id)
        return broker is not None and self.lost_disks.get(broker_id) == broker.broker_epoch

    def _of(self, key: PartitionKey) -> _Log:
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = _Log()
        return log

    def _wanted(self, key: PartitionKey) -> int:
        topic = self.decided.names.get(key[0], "")
        value = self.decided.settings.get((topic, "min.insync.replicas"))
        return self.min_isr if value is None else int(value)

    def _excuse(self, key: PartitionKey, log: _Log, led: Led) -> None:
        if log.suspects.issuperset(led.isr) and not log.excused:
            topic = self.decided.names.get(key[0], str(key[0]))
            log.excused = True
            log.excuse = (
                f"{topic}-{key[1]}: every member of its ISR {list(led.isr)} had lost its disk "
                f"since it was last seen outside; {log.end} records had been committed"
            )

    def _forget(self, node: int, key: PartitionKey, log: _Log) -> None:
        """Let what an excused partition still has be all that counts from here on."""
        kept = self.nodes.records(node, key, 0, log.end)
        same = 0
        for mine, theirs in zip(log.committed, kept, strict=False):
            if not _same(mine, theirs):
                break
            same += 1
        del log.committed[same:]
        log.end = log.committed[-1].end_offset if log.committed else 0
        log.sequences = {_sequence_of(one) for one in log.committed if one.producer_id >= 0}
        log.acknowledged.clear()
        log.read_ahead.clear()

    def _complete(
        self, node: int, key: PartitionKey, log: _Log, anomaly: str, what: str
    ) -> Iterator[Problem]:
        """The first committed batch that the node's replica lacks."""
        kept = self.nodes.records(node, key, 0, log.end)
        if (
            kept
            and log.committed
            and kept[-1] is log.committed[-1]
            and len(kept) == len(log.committed)
        ):
            return
        for place, batch in enumerate(log.committed):
            mine = kept[place] if place < len(kept) else None
            if mine is None or not (mine is batch or _same(mine, batch)):
                yield (
                    anomaly,
                    f"broker {node} {what} of {key} and has {mine} where {batch} was committed",
                )
                return

    def _acknowledged(self, node: int, key: PartitionKey, log: _Log) -> Iterator[Problem]:
        """The first acknowledged batch that the leader lacks."""
        if not log.acknowledged:
            return
        end = max(offset + batch.count for offset, batch in log.acknowledged[-64:])
        kept = {one.base_offset: one for one in self.nodes.records(node, key, 0, max(end, log.end))}
        for offset, batch in log.acknowledged:
            mine = kept.get(offset)
            if mine is None or not _same(mine, batch):
                yield (
                    "lost-write",
                    (
                        f"offset {offset} of {key} was acknowledged as {batch.payload}, "
                        f"leader {node} has {mine}"
                    ),
                )
                return

    def _compare_reads(self, key: PartitionKey, log: _Log) -> Iterator[Problem]:
        ahead = [one for one in log.read_ahead if one.base_offset >= log.end]
        for batch in log.read_ahead:
            if batch.base_offset >= log.end:
                continue
            known = _at(log.committed, batch.base_offset)
            if known is not None and not _same(known, batch):
                yield (
                    "inconsistent-offset",
                    (
                        f"offset {batch.base_offset} of {key} was read as {batch}, "
                        f"committed is {known}"
                    ),
                )
        log.read_ahead = ahead


def _once(log: _Log, key: PartitionKey, batch: Batch) -> Iterator[Problem]:
    sequence = _sequence_of(batch)
    if sequence in log.sequences:
        yield "duplicate", f"{key} has {batch} for the second time"
    log.sequences.add(sequence)


def _sequence_of(batch: Batch) -> tuple[int, int, int]:
    return (batch.producer_id, batch.producer_epoch, batch.base_sequence)


def _same(one: Batch, other: Batch) -> bool:
    """Return whether they are the same records of the same producer, wherever they lie."""
    return (
        one.producer_id == other.producer_id
        and one.producer_epoch == other.producer_epoch
        and one.base_sequence == other.base_sequence
        and one.payload == other.payload
    )


def _at(batches: list[Batch], offset: int) -> Batch | None:
    """The batch that begins at the offset."""
    low, high = 0, len(batches)
    while low < high:
        middle = (low + high) // 2
        if batches[middle].base_offset < offset:
            low = middle + 1
        else:
            high = middle
    found = batches[low] if low < len(batches) else None
    return found if found is not None and found.base_offset == offset else None
