"""L7 incarnation-went-back: An incarnation took the place of one that came after it.

In the registrations of a broker id, no incarnation comes again after another one; and none comes
after another by a request that had arrived at the proxy earlier than that one's. One that does
takes nobody's place: until another one registers it is one finding, and the incarnation that it put
out may register again.

Each process start of a broker has an incarnation id of its own. It may register several times in a
row (4.x amends a registration that way), but once another incarnation holds the id, it is dead or
must learn that it is no longer meant: a registration of it that is accepted then comes from the
past, as one that lay in the network does.

It may as well lie there before it was ever accepted: the process died, the next one registered, and
the request arrives when the session of that one is over, or before it has one. Nothing in a
registration says how old it is. The tape tells: the request that was accepted later had arrived at
the proxy earlier than the one that had been accepted before it.

An incarnation from the past is not the rightful holder of an id. Where the log shows an id going to
and fro and the tape lacks the answer that tells which request was accepted, the incarnation whose
requests had all been sent before is the one named; without a tape it is the one that comes again.

Exact: the log of record has the registrations in the order in which they were decided, and a
request is known by the broker epoch that its answer gave it.

Meaning: A registration out of the past replaces the broker that lives now.
Case: a registration of a broker id after its first one
Source: KIP-631, "Incarnation id"; `ClusterControlManager.registerBroker`
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.rpcs import Rpc, accepted_registrations, rpcs
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.outages import with_refused_heartbeats
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REGISTRATION,
    culprit=("BrokerRegistration:broker→controller", "{was}"),
    tells_outages=True,
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name
_ON_ITS_WAY: Final = "was on its way"
"""The state of a late request in which the network alone had made it late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tape:
    """The registrations on the tape, and the heartbeats of brokers that were put out."""

    accepted: Mapping[tuple[int, int], Rpc]
    """The requests by which brokers registered, by (broker id, broker epoch)."""
    reached: Mapping[str, Sequence[Rpc]]
    """The requests that reached a controller, by incarnation id, as they were sent."""
    wire: Source


def incarnations_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Find registrations out of the past, by broker. Reads `metadata_log` and `wire`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    tape = _tape(streamed(tables, "wire"))
    for broker in seen.brokers.values():
        key = f"broker {broker.broker_id}"
        yield key, counted(NAME, key, _Judgement(broker=broker, tape=tape).cases())


def _tape(wire: Source) -> _Tape:
    reached: dict[str, list[Rpc]] = {}
    for rpc in rpcs(wire, "BrokerRegistration"):
        if rpc.reached_ns is not None and rpc.of("incarnation_id") is not None:
            reached.setdefault(rpc.of("incarnation_id"), []).append(rpc)
    return _Tape(accepted=accepted_registrations(wire), reached=reached, wire=wire)


@dataclass(slots=True, kw_only=True)
class _Judgement:
    """The registrations of one broker id, one after the other."""

    broker: BrokerHistory
    tape: _Tape
    held: list[BrokerVersion] = field(default_factory=list)
    """The registrations of the incarnation that holds the id rightfully, the last one last."""
    replaced: dict[str, BrokerVersion] = field(default_factory=dict)
    """The registration that took an incarnation's place rightfully, by incarnation id."""

    def cases(self) -> Iterator[Proof | None]:
        """Yield of each registration after the first the proof that it is from the past, or None.

        Of one that such a registration repeats, or that follows it, None.
        """
        before = None
        for version in self.broker.registrations():
            if version.incarnation_id is None:
                continue
            if not self.held:
                self.held.append(version)
            elif version.incarnation_id == self.held[-1].incarnation_id:
                self.held.append(version)
                yield None
            elif before is not None and version.incarnation_id == before.incarnation_id:
                yield None
            else:
                yield self._of_another(version)
            before = version

    def _of_another(self, version: BrokerVersion) -> Proof | None:
        """Judge a registration of another incarnation than the one that holds the id."""
        holder = self.held[-1]
        assert version.incarnation_id is not None
        assert holder.incarnation_id is not None
        if proof := self._overtaken(version, holder):
            self.replaced.setdefault(version.incarnation_id, holder)
            return self._with_outage(proof)
        by = self.replaced.get(version.incarnation_id)
        if by is None:
            self._take_over(version, instead_of=holder)
            return None
        if proof := self._sent_before(holder, version):
            between = self.held[0]
            self._take_over(version, instead_of=between)
            return proof
        return self._with_outage(_came_again(self.broker, version, by))

    def _take_over(self, version: BrokerVersion, *, instead_of: BrokerVersion) -> None:
        assert instead_of.incarnation_id is not None
        assert version.incarnation_id is not None
        self.replaced[instead_of.incarnation_id] = version
        self.replaced.pop(version.incarnation_id, None)
        self.held = [version]

    def _overtaken(self, version: BrokerVersion, holder: BrokerVersion) -> Proof | None:
        """Return the proof that the request for a registration is older than the holder's."""
        mine = self._request(version)
        before = self._request(holder)
        if mine is None or before is None or mine.asked_ns >= before.asked_ns:
            return None
        return _late(self.broker, version, holder, mine=mine, before=before)

    def _sent_before(self, between: BrokerVersion, again: BrokerVersion) -> Proof | None:
        """Return the proof that `between` is older than the one that comes again after it.

        All its requests that reached a controller had been sent before the first of the other's.
        """
        assert between.incarnation_id is not None
        assert again.incarnation_id is not None
        older = self.tape.reached.get(between.incarnation_id, ())
        newer = self.tape.reached.get(again.incarnation_id, ())
        if not older or not newer or older[-1].asked_ns >= newer[0].asked_ns:
            return None
        return _late(self.broker, self.held[0], again, mine=older[-1], before=newer[0])

    def _request(self, version: BrokerVersion) -> Rpc | None:
        return self.tape.accepted.get((self.broker.broker_id, version.broker_epoch))

    def _with_outage(self, proof: Proof) -> Proof:
        """Return the proof with the heartbeats of the rightful holder that were refused."""
        epochs = [one.broker_epoch for one in self.held]
        return with_refused_heartbeats(proof, self.tape.wire, self.broker.broker_id, epochs=epochs)


def _late(
    broker: BrokerHistory, version: BrokerVersion, holder: BrokerVersion, *, mine: Rpc, before: Rpc
) -> Proof:
    return Proof.of(
        "incarnation {incarnation_id} registered as broker {broker_id} at metadata offset "
        "{version_metadata_offset} by a request sent at {asked} (frame {frame}), and took the "
        "place of incarnation {by_incarnation_id}, which had registered at metadata offset "
        "{metadata_offset} by one sent later, at {before_asked} (frame {before_frame}); when that "
        "was sent, the earlier one {was}",
        metadata_offsets={
            "metadata_offset": holder.metadata_offset,
            "version_metadata_offset": version.metadata_offset,
        },
        values={"broker_epoch": holder.broker_epoch, "version_broker_epoch": version.broker_epoch},
        frames={"frame": mine.frame, "before_frame": before.frame},
        times={"asked": mine.asked_ns, "before_asked": before.asked_ns},
        sources={"asked": "frame", "before_asked": "before_frame"}
        | dict.fromkeys(("by_incarnation_id", "broker_epoch"), "metadata_offset")
        | dict.fromkeys(("incarnation_id", "version_broker_epoch"), "version_metadata_offset"),
        incarnation_id=version.incarnation_id,
        broker_id=broker.broker_id,
        by_incarnation_id=holder.incarnation_id,
        was=_ON_ITS_WAY if _was_on_its_way(mine, before) else "had reached a controller",
    )


def _was_on_its_way(mine: Rpc, before: Rpc) -> bool:
    return mine.reached_ns is None or mine.reached_ns > before.asked_ns


def _came_again(broker: BrokerHistory, version: BrokerVersion, by: BrokerVersion) -> Proof:
    return Proof.of(
        "incarnation {incarnation_id} registered as broker {broker_id} at metadata "
        "offset {version_metadata_offset}, after incarnation {by_incarnation_id} had "
        "taken its place at metadata offset {metadata_offset}",
        metadata_offsets={
            "metadata_offset": by.metadata_offset,
            "version_metadata_offset": version.metadata_offset,
        },
        values={"broker_epoch": by.broker_epoch, "version_broker_epoch": version.broker_epoch},
        sources=dict.fromkeys(("by_incarnation_id", "broker_epoch"), "metadata_offset")
        | dict.fromkeys(("incarnation_id", "version_broker_epoch"), "version_metadata_offset"),
        incarnation_id=version.incarnation_id,
        broker_id=broker.broker_id,
        by_incarnation_id=by.incarnation_id,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=incarnations_that_went_back,
        split=Split.BROKERS,
        apis=("BrokerRegistration", "BrokerHeartbeat"),
        tables=("metadata_log", "wire"),
    ),
)
