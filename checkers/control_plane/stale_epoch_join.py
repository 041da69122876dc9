"""C2 stale-epoch-join: A replica joined the ISR on the word of an earlier incarnation.

A replica joins the ISR at metadata offset m by its leader's request. The broker epoch that the
request names for it (version 3), if it names one, is not the one that it registered with last
before m; or, if it names none, the registration in force at m was answered only after the request
had been sent, or by then no Fetch of a connection that began to fetch after that answer had been
passed on to the leader. A join whose request alone is not on the tape is unknown. Where ZooKeeper
has the metadata, neither fetches nor what is not on the tape are asked about.

A replica that loses its disk comes back empty, with a new registration. A leader that judged it in
sync before that must not bring it into the ISR afterwards.

A broker fetches once its registration was answered. A request that was sent before that answer was
sent on the fetches of an earlier incarnation, and so was one before which no fetch had been passed
on to the leader of a connection that began to fetch after that answer.

All times are of one clock, and each errs on the side of no accusation: the request was sent earlier
than it arrived at the proxy, and the broker saw the answer later than it arrived there. Without the
answer on the tape, the time at which the controller appended the registration stands for it, which
is earlier still. The leader heard a fetch after it was passed on. Fetches are judged where the link
is on the tape. A leader that takes the right epoch from elsewhere than from a fetch is not seen:
that is unfetched-epoch's.

A registration that the same incarnation repeats takes nothing from its disk: below version 3 the
first registration of an incarnation counts. Where ZooKeeper has the metadata, a broker registers
anew with each session, and goes on with the connections that it has; nothing tells a new process
from an old one. So there only requests that were sent before the registration are found. And the
active controller is a broker, whose own requests cross no link: joins that are not on the tape are
left out there.

Only joins by AlterPartition or IsrChange are judged. Elections bring a leader into the ISR, too
(uncleanly, or out of the ELR); those change the leader, as does an AlterPartition that completes a
reassignment, so there only requests count that did or may have done that. A join under an unchanged
leader whose request is not on the tape is a doubt; an empty tape judges nothing. If several
requests may have made the change, all of them have to be stale. On ZooKeeper one that was granted
need not have made it: it may have asked for what another one had made before. And as a request
names no version there, an old one that was never answered would stand in for one that is missing:
the tape has to be whole.

Meaning: A broker that came back without its data counts as in sync. When it is elected,
acknowledged records are gone, and the other replicas truncate theirs.
Case: a replica that joined an ISR by a request that is on the tape
Source: KIP-903; KAFKA-14139, KAFKA-14617
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerVersion
from fencepost.checkers.metadata.follower_fetches import FollowerFetches, follower_fetches
from fencepost.checkers.metadata.isr_changes import (
    ISR_CHANGE,
    NO_REQUESTS,
    IsrDecisions,
    VersionProposals,
    isr_changes,
    proposals,
    requests_by_partition,
)
from fencepost.checkers.metadata.partition_states import Cause, PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.rpcs import Rpc, accepted_registrations
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, has_rows, source_of, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    culprit=("{api}:leader→controller",),
    variants={
        "under {named_epoch}": "no-epoch-named",
        "when it had ": "sent-before-registration",
        "had heard no fetch": "no-fetch-of-it-heard",
        "by an {api}": "named-epoch-older",
    },
    rests_on_zookeeper=("whole-tape",),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name
_UNCHECKED: Final = -1

_Answers = Mapping[tuple[int, int], Rpc]
"""The first answer to a registration, by (broker id, broker epoch)."""


class Word(Enum):
    """The source from which it is known on which epoch the leader judged."""

    NAMED = auto()
    """The request names it."""
    SENT_BEFORE = auto()
    """The request was sent before the registration was answered."""
    UNHEARD = auto()
    """The leader had heard no fetch of the incarnation that was registered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleJoin:
    """A replica that joined on an earlier incarnation's word, and the request that let it in."""

    version: PartitionVersion
    broker_id: int
    request: Rpc
    judged_epoch: int | None
    """None: of a registration that the log does not have any more."""
    word: "Word"
    registration: BrokerVersion
    """The one in force when it joined."""
    registered_ns: int
    """The time when it was answered, or else appended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedJoins:
    """The joins of one partition."""

    history: PartitionHistory
    stale: tuple[StaleJoin, ...]
    """The stale joins, in order."""
    judged_count: int
    """Replicas that joined, stale or not, by a request that is on the tape."""
    doubt: str
    """The reason why others cannot be judged; empty without one."""


def stale_epoch_joins(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every replica that joined an ISR, by partition. Reads `metadata_log` and `wire`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    for joins in stale_joins(streamed(tables, "wire"), seen, seen.histories()):
        key, proofs = joins.history.key, [_proof(joins.history, join) for join in joins.stale]
        yield key, spelled(NAME, key, proofs, cases=joins.judged_count, doubt=joins.doubt)


def stale_joins(
    wire: pa.Table | Source, seen: MetadataView, histories: Iterable[PartitionHistory]
) -> Iterator[JudgedJoins]:
    """Yield the judged joins of each of these partitions."""
    requests = requests_by_partition(wire, seen.partitions)
    changes = requests_by_partition(wire, seen.partitions, api=ISR_CHANGE)
    told = _Told(accepted_registrations(wire), follower_fetches(wire))
    taped = has_rows(source_of(wire)) and not seen.facts.on_zookeeper
    for history in histories:
        place = (history.topic_id, history.partition)
        mine, asked = requests.get(place, NO_REQUESTS), changes.get(place, NO_REQUESTS)
        decisions, joins = IsrDecisions(history, seen.facts), list[StaleJoin]()
        judged_count, doubt = 0, ""
        for before, version in history.steps():
            joined = [one for one in version.isr if one not in before.isr]
            if version.cause is not Cause.CHANGED or not joined:
                continue
            made, by_change = proposals(version, mine), isr_changes(version, asked, seen, decisions)
            if version.leader != before.leader:
                if not (made.sure or (made.possible and _is_completed(before, version))):
                    continue
                by_change = VersionProposals(sure=(), possible=())
            candidates = _makers(made, by_change, seen)
            if not candidates:
                doubt = doubt or (_unseen(history, version, joined) if taped else "")
                continue
            for broker_id in joined:
                judged_count += _is_known(broker_id, version, seen)
                stale = [_stale(one, broker_id, version, seen, told) for one in candidates]
                if all(stale):
                    joins += [one for one in stale[:1] if one is not None]
        yield JudgedJoins(
            history=history, stale=tuple(joins), judged_count=judged_count, doubt=doubt
        )


def _is_completed(before: PartitionVersion, version: PartitionVersion) -> bool:
    """Return whether a reassignment was completed by this version."""
    moving = (*before.adding, *before.removing)
    return bool(moving) and not (*version.adding, *version.removing)


def _makers(
    made: VersionProposals, by_change: VersionProposals, seen: MetadataView
) -> tuple[Rpc, ...]:
    """Return all requests that may have made a version.

    A controller on ZooKeeper grants what is so already: there an answer without an error does not
    prove that no other request made it.
    """
    if made.sure and not seen.facts.on_zookeeper:
        return made.sure
    return (*made.sure, *by_change.sure, *made.possible, *by_change.possible)


def _is_known(broker_id: int, version: PartitionVersion, seen: MetadataView) -> bool:
    registration = seen.broker_before(broker_id, version.metadata_offset)
    return registration is not None and registration.registered


def _stale(
    request: Rpc, broker_id: int, version: PartitionVersion, seen: MetadataView, told: "_Told"
) -> StaleJoin | None:
    """Return the join, if this request judged an earlier incarnation in sync."""
    history = seen.brokers.get(broker_id)
    registration = history.before(version.metadata_offset) if history else None
    if history is None or registration is None or not registration.registered:
        return None
    first = history.first_of_incarnation(registration)
    registered_ns = told.registered_ns(first, broker_id, seen)
    epoch = _named_epoch(request, broker_id)
    if epoch == registration.broker_epoch:
        return None
    word: Word | None = Word.NAMED
    if epoch == _UNCHECKED:
        link = (seen.facts.nodes().get(broker_id, ""), request.source)
        word = None if first.snapshot else told.word(request, link, registered_ns)
        if word is Word.UNHEARD and seen.facts.on_zookeeper:
            return None
    if word is None:
        return None
    judged_epoch: int | None = epoch
    if epoch == _UNCHECKED:
        earlier = history.registration_before(first)
        judged_epoch = None if earlier is None else earlier.broker_epoch
    return StaleJoin(
        version=version,
        broker_id=broker_id,
        request=request,
        judged_epoch=judged_epoch,
        word=word,
        registration=registration,
        registered_ns=registered_ns,
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """The tape's account of registrations and fetches."""

    answers: _Answers
    fetches: FollowerFetches

    def registered_ns(self, first: BrokerVersion, broker_id: int, seen: MetadataView) -> int:
        """Return when an incarnation's first registration was answered, or its earliest time."""
        answer = self.answers.get((broker_id, first.broker_epoch))
        if answer is None or answer.answered_ns is None:
            return seen.facts.earliest_ns(first.timestamp_ms)
        return answer.answered_ns

    def word(self, request: Rpc, link: tuple[str, str], registered_ns: int) -> Word | None:
        """Return why a request without an epoch goes by an older incarnation's fetches, or None."""
        if registered_ns > request.asked_ns:
            return Word.SENT_BEFORE
        if link not in self.fetches.links:
            return None
        heard_ns = self.fetches.heard_ns(link, since_ns=registered_ns)
        return None if heard_ns is not None and heard_ns <= request.asked_ns else Word.UNHEARD


def _named_epoch(request: Rpc, broker_id: int) -> int:
    """Return the broker epoch under which the request names this member; -1 if it names none."""
    epochs = request.of("isr_epochs")
    members = request.of("isr") or ()
    if not epochs or broker_id not in members:
        return _UNCHECKED
    return int(epochs[list(members).index(broker_id)])


def _proof(history: PartitionHistory, join: StaleJoin) -> Proof:
    request, version, registration = join.request, join.version, join.registration
    judged = "an epoch that is no longer in the log"
    if join.judged_epoch is not None:
        judged = "broker epoch {judged_epoch}"
    told: dict[str, Any] = {"source": request.source} if join.word is Word.UNHEARD else {}
    named = ""
    if request.of("isr_epochs") and join.word is not Word.NAMED:
        # It could have named the epoch.
        told["named_epoch"], named = _named_epoch(request, join.broker_id), " under {named_epoch}"
    how = {
        Word.NAMED: f"under {judged}",
        Word.SENT_BEFORE: f"when it had {judged}",
        Word.UNHEARD: f"on the word of {judged}, as {{source}} had heard no fetch of a later one",
    }[join.word]
    return Proof.of(
        "broker {broker_id} joined the ISR of {key} at metadata offset "
        "{metadata_offset} by an {api} sent at {asked} (frame {frame})"
        f"{named} {how}; at offset {{registration_offset}} ({{registered}}) it had registered "
        "with {broker_epoch}",
        metadata_offsets={
            "registration_offset": registration.registration_offset,
            "metadata_offset": version.metadata_offset,
        },
        values={"judged_epoch": join.judged_epoch, "broker_epoch": registration.broker_epoch},
        frames={"frame": request.frame, "answer_frame": request.answer_frame},
        times={"asked": request.asked_ns, "registered": join.registered_ns},
        sources={"asked": "frame", "source": "frame", "broker_epoch": "registration_offset"}
        | ({"judged_epoch": "frame"} if join.word is Word.NAMED else {}),
        broker_id=join.broker_id,
        key=history.key,
        api=request.api,
        **told,
    )


def _unseen(history: PartitionHistory, version: PartitionVersion, joined: list[int]) -> str:
    return (
        f"broker {joined[0]} joined the ISR of {history.key} at metadata offset "
        f"{version.metadata_offset}, and the AlterPartition that let it in is not on the tape"
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stale_epoch_joins,
        split=Split.PARTITIONS,
    ),
)
