"""The active controller: decide, append, wait for the quorum, replay, answer.

A decision is made on what is committed, so that there is one undecided batch at a time; requests
that need records wait in a queue meanwhile, those that need none are answered at once. A leader of
the quorum becomes active once it has replayed all up to the LeaderChangeMessage that began its
epoch, and stops as soon as the quorum has another epoch: what it had appended by then may hold or
not, so no client is told anything about it.

Source: KIP-631; Kafka's `QuorumController`.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import CLOSE, NOTE, SEND, Effects
from fencepost.clusters.node_port.notes import ACTIVE, TOLD_LOWEST
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.control import alter_partition, moves, settings, topics
from fencepost.clusters.reference.nodes.control.brokers import (
    HeartbeatDecision,
    producer_ids_allocated,
    registered,
)
from fencepost.clusters.reference.nodes.control.decision import (
    Decision,
    DecisionView,
    MetadataQuorum,
)
from fencepost.clusters.reference.nodes.control.elections import UNCLEAN, Electorate
from fencepost.clusters.reference.nodes.control.features import first_features, updated
from fencepost.clusters.reference.nodes.control.partitions import elections_of_leaderless, fencing
from fencepost.clusters.reference.nodes.control.refusals import refused
from fencepost.clusters.reference.nodes.control.sessions import Sessions
from fencepost.clusters.reference.nodes.control.visibility import (
    WAITING_MAX,
    PendingAnswers,
    Waiting,
)
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.levels import METADATA_VERSION
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AlterConfigsRequest,
    AlterPartitionRequest,
    AlterReassignmentsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    UpdateFeaturesRequest,
)
from fencepost.clusters.reference.nodes.quorum.replay import Replayer
from fencepost.clusters.reference.nodes.records import ConfigRecord, MetadataRecord, NoOpRecord
from fencepost.clusters.reference.nodes.rules import Rules

_HEARTBEAT: Final = BrokerHeartbeatRequest.kind
_REGISTRATION: Final = BrokerRegistrationRequest.kind
_LIST: Final = ListReassignmentsRequest.kind
_INACTIVE: Final = -1

_DECISIONS: Final[dict[int, Callable[[DecisionView, Any], Decision]]] = {
    BrokerRegistrationRequest.kind: registered,
    AlterPartitionRequest.kind: alter_partition.altered,
    CreateTopicsRequest.kind: topics.created,
    CreatePartitionsRequest.kind: topics.grown,
    DeleteTopicsRequest.kind: topics.deleted,
    AlterConfigsRequest.kind: settings.altered,
    AlterReassignmentsRequest.kind: moves.reassigned,
    ElectLeadersRequest.kind: moves.elected,
    AllocateProducerIdsRequest.kind: producer_ids_allocated,
    UpdateFeaturesRequest.kind: updated,
}

REQUESTS: Final = frozenset({_HEARTBEAT, _LIST, *_DECISIONS})
"""The kinds of what an active controller is asked."""


class _Undecided:
    """A batch that the quorum has not committed yet, and who waits for it."""

    __slots__ = ("end_offset", "response", "waiting")

    def __init__(self, end_offset: int, waiting: Waiting | None, response: Any) -> None:
        self.end_offset = end_offset
        self.waiting = waiting
        self.response = response
        """None: it is found once the batch is replayed, as that of a heartbeat."""


class ActiveController:
    """The work of a voter, besides voting, while it leads the quorum; idle while it does not."""

    __slots__ = (
        "_alarm",
        "_answers",
        "_appended_at",
        "_configuration",
        "_epoch",
        "_rebalance_at",
        "_replayer",
        "_rules",
        "_sessions",
        "_unclean_allowed",
        "_undecided",
        "_voter",
        "_waiting",
    )

    def __init__(
        self,
        configuration: Configuration,
        rules: Rules,
        *,
        voter: MetadataQuorum,
        replayer: Replayer,
        alarm: Alarm,
    ) -> None:
        self._alarm = alarm
        self._configuration = configuration
        self._rules = rules
        self._voter = voter
        self._replayer = replayer
        self._epoch = _INACTIVE
        self._sessions = Sessions(configuration, rules, alarm)
        self._answers = PendingAnswers(rules, self._sessions.visibility, alarm)
        self._waiting: deque[Waiting] = deque()
        self._undecided: _Undecided | None = None
        self._appended_at = 0
        self._rebalance_at = 0
        self._unclean_allowed = False
        """A setting has allowed unclean elections since the last look at who leads nothing."""

    def handle(self, now: int, source: int, request: Any, effects: Effects) -> None:
        """Take one of REQUESTS; `settle` is due afterwards."""
        if self._epoch == _INACTIVE:
            answer = refused(request, Error.NOT_CONTROLLER, self._voter.leader_id)
            effects.append((SEND, source, answer))
        elif request.kind == _HEARTBEAT:
            self._heartbeat(now, source, request, effects)
        elif request.kind == _LIST:
            self._list(now, source, request, effects)
        else:
            self._queue(now, source, request, effects)

    def replayed(self, now: int, applied: Iterable[tuple[int, int, MetadataRecord]]) -> None:
        """Note that committed records were applied to the image."""
        image = self._replayer.image
        for offset, _, record in applied:
            if isinstance(record, ConfigRecord):
                self._unclean_allowed |= record.name == UNCLEAN and record.value == "true"
            else:
                self._sessions.replayed(now, image, offset, record)

    def settle(self, now: int, effects: Effects) -> bool:
        """Do what has become possible; whether a batch was appended, which may be committed."""
        if self._epoch != _INACTIVE and not self._leads():
            self.abandon(effects)
        if self._epoch == _INACTIVE and not self._activate(now, effects):
            return False
        image = self._replayer.image
        self._answers.release(image, effects)
        if self._undecided is not None:
            if image.offset < self._undecided.end_offset:
                return False
            self._decided(self._undecided, effects)
        return self._decide(now, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Give up what has waited too long; `settle` is due afterwards."""
        while self._waiting and self._waiting[0].deadline <= now:
            self._refuse(self._waiting.popleft(), Error.REQUEST_TIMED_OUT, effects)
        self._answers.expire(now, effects)
        if self._epoch != _INACTIVE:
            self._alarm.by(self._next_due())

    def abandon(self, effects: Effects) -> None:
        """Stop being active: refuse what waits, and close what was appended or is held."""
        self._epoch = _INACTIVE
        while self._waiting:
            self._refuse(self._waiting.popleft(), Error.NOT_CONTROLLER, effects)
        if self._undecided is not None and self._undecided.waiting is not None:
            effects.append((CLOSE, self._undecided.waiting.source))
        self._undecided = None
        self._answers.abandon(effects)

    def _next_due(self) -> int:
        """Return when an active controller next has something to do that no request asks for."""
        configuration = self._configuration
        due = [self._sessions.leases.none_before_ns, self._answers.next_due()]
        if self._waiting:
            due.append(self._waiting[0].deadline)
        if configuration.auto_leader_rebalance_ns:
            due.append(self._rebalance_at)
        if configuration.noop_interval_ns:
            due.append(self._appended_at + configuration.noop_interval_ns)
        return min(due)

    def _leads(self) -> bool:
        return self._voter.is_leader and self._voter.epoch == self._epoch

    def _activate(self, now: int, effects: Effects) -> bool:
        voter, image = self._voter, self._replayer.image
        if not voter.is_leader or image.offset <= voter.epoch_start:
            return False
        self._epoch = voter.epoch
        self._sessions.restart(now, image)
        self._appended_at = now
        self._rebalance_at = now + self._configuration.auto_leader_rebalance_ns
        self._unclean_allowed = True
        self._alarm.by(self._next_due())
        effects.append((NOTE, ACTIVE, self._epoch))
        return True

    def _heartbeat(
        self, now: int, source: int, request: BrokerHeartbeatRequest, effects: Effects
    ) -> None:
        image = self._replayer.image
        sessions = self._sessions
        if sessions.is_stale(image, request):
            if self._undecided is None:
                answer = refused(request, Error.STALE_BROKER_EPOCH, self._configuration.node_id)
                effects.append((SEND, source, answer))
            else:
                # Its registration may be in the batch that is undecided.
                self._queue(now, source, request, effects)
            return
        sessions.heard(now, image, request)
        wishes = sessions.wish(image, request) is not HeartbeatDecision.NOTHING
        if wishes and sessions.records(self._view(now), request, image.offset):
            self._queue(now, source, request, effects)
        else:
            self._answer_heartbeat(source, request, image.offset, effects)

    def _answer_heartbeat(
        self, source: int, request: BrokerHeartbeatRequest, committed: int, effects: Effects
    ) -> None:
        answer = self._sessions.response(self._replayer.image, request, committed)
        effects.append((SEND, source, answer))
        lowest = answer.lowest_acknowledged_offset
        if lowest >= 0:
            effects.append((NOTE, TOLD_LOWEST, request.broker_id, lowest))

    def _list(self, now: int, source: int, request: Any, effects: Effects) -> None:
        image, deadline = self._replayer.image, now + self._configuration.request_timeout_ns
        waiting = Waiting(source, request, deadline, end := image.offset)
        answer = moves.reassignments(image, request)
        self._answers.give(image, waiting, answer, end_offset=end, wrote=False, effects=effects)

    def _queue(self, now: int, source: int, request: Any, effects: Effects) -> None:
        deadline = now + self._configuration.request_timeout_ns
        waiting = Waiting(source, request, deadline, self._replayer.image.offset)
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append(waiting)
            self._alarm.by(deadline)
        else:
            self._refuse(waiting, Error.REQUEST_TIMED_OUT, effects)

    def _refuse(self, waiting: Waiting, error: Error, effects: Effects) -> None:
        answer = refused(waiting.request, error, self._voter.leader_id)
        effects.append((SEND, waiting.source, answer))

    def _view(self, now: int) -> DecisionView:
        image = self._replayer.image
        return DecisionView(
            image=image,
            rules=self._rules,
            configuration=self._configuration,
            epoch=self._epoch,
            offset=self._voter.log.end,
            leased=self._sessions.leases.lasting(now),
            expired=self._sessions.leases.over(now, image),
            in_use=self._sessions.in_use(),
        )

    def _decided(self, undecided: _Undecided, effects: Effects) -> None:
        """The batch is committed and replayed."""
        self._undecided = None
        waiting = undecided.waiting
        if waiting is None:
            return
        if undecided.response is None:
            # A heartbeat's wish may need another batch, and is answered as things are after it.
            self._waiting.appendleft(waiting)
            self._alarm.by(waiting.deadline)
            return
        self._answers.give(
            self._replayer.image,
            waiting,
            undecided.response,
            end_offset=undecided.end_offset,
            wrote=True,
            effects=effects,
        )

    def _decide(self, now: int, effects: Effects) -> bool:
        """Append the next batch, if anything needs one: the controller's own matters first."""
        own = self._own_matters(now)
        if own:
            self._append(now, own, None, None, effects)
            return True
        while self._waiting:
            if self._decide_waiting(now, self._waiting.popleft(), effects):
                return True
        interval_ns = self._configuration.noop_interval_ns
        if interval_ns and now - self._appended_at >= interval_ns:
            self._append(now, (NoOpRecord(),), None, None, effects)
            return True
        return False

    def _own_matters(self, now: int) -> tuple[MetadataRecord, ...]:
        if not self._may_have_matters(now):
            return ()
        view = self._view(now)
        features = first_features(view)
        if features:
            return features
        # Rule controller_ends_leases.
        if view.expired and self._rules.controller_ends_leases:
            return fencing(view, view.image.brokers[view.expired[0]])
        if self._unclean_allowed:
            self._unclean_allowed = False
            return tuple(elections_of_leaderless(Electorate(view=view)))
        rebalance_ns = self._configuration.auto_leader_rebalance_ns
        if rebalance_ns and now >= self._rebalance_at:
            self._rebalance_at = now + rebalance_ns
            self._alarm.by(self._rebalance_at)
            return tuple(moves.preferred_elections(view))
        return ()

    def _may_have_matters(self, now: int) -> bool:
        """Return whether to look closer: in nearly all steps there is nothing to be seen."""
        image = self._replayer.image
        rebalances = self._configuration.auto_leader_rebalance_ns > 0
        return (
            self._unclean_allowed
            or METADATA_VERSION not in image.features
            or (rebalances and now >= self._rebalance_at)
            or bool(self._sessions.leases.over(now, image))
        )

    def _decide_waiting(self, now: int, waiting: Waiting, effects: Effects) -> bool:
        """Decide a request; whether its batch was appended, else it is answered."""
        request = waiting.request
        if request.kind == _REGISTRATION:
            self._sessions.asked_for(now, self._replayer.image, request)
        view = self._view(now)
        if request.kind == _HEARTBEAT:
            return self._decide_heartbeat(now, view, waiting, effects)
        decision = _DECISIONS[request.kind](view, request)
        if decision.records:
            self._append(now, decision.records, waiting, decision.response, effects)
            return True
        self._answers.give(
            view.image,
            waiting,
            decision.response,
            end_offset=view.image.offset,
            wrote=False,
            effects=effects,
        )
        return False

    def _decide_heartbeat(
        self, now: int, view: DecisionView, waiting: Waiting, effects: Effects
    ) -> bool:
        request = waiting.request
        if self._sessions.is_stale(view.image, request):
            self._refuse(waiting, Error.STALE_BROKER_EPOCH, effects)
            return False
        if self._sessions.leases.is_over(now, request.broker_id):
            # It waited for so long that it says nothing any more of whether the broker lives.
            self._refuse(waiting, Error.REQUEST_TIMED_OUT, effects)
            return False
        records = self._sessions.records(view, request, waiting.committed)
        if records:
            self._append(now, records, waiting, None, effects)
            return True
        self._answer_heartbeat(waiting.source, request, waiting.committed, effects)
        return False

    def _append(
        self,
        now: int,
        records: tuple[MetadataRecord, ...],
        waiting: Waiting | None,
        response: Any,
        effects: Effects,
    ) -> None:
        end_offset = self._voter.append(now, records, effects)
        self._appended_at = now
        if self._configuration.noop_interval_ns:
            self._alarm.by(now + self._configuration.noop_interval_ns)
        # Rule answer_after_commit.
        if waiting is not None and response is not None and not self._rules.answer_after_commit:
            self._answers.send(
                waiting, response, end_offset=end_offset, wrote=True, effects=effects
            )
            waiting = None
        self._undecided = _Undecided(end_offset, waiting, response)
