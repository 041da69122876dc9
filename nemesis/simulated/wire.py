"""The wire of a simulated cluster: what `nemesis.wire.wire.Wire` offers, inside the sends.

The rules are the very values that a proxy takes, and the same state machine of a connection does
what they say (`nemesis.wire.sessions`); its effects are done to links of the simulated network. A
rule concerns the frame that is being sent, at that moment.

What cannot be said of messages is refused: there are no versions to lower in them.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, assert_never

from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.observation import RuleCounts
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.simulation.host import Channel, ProcessState
from fencepost.clusters.simulation.kinds import NOTHING, table_of
from fencepost.clusters.simulation.world import World
from fencepost.history.failure import HarnessError, UsageError
from fencepost.nemesis.simulated.connections import Messages, SimulatedConnections
from fencepost.nemesis.simulated.data_frames import ClientsData, DataFrames, FollowersData
from fencepost.nemesis.simulated.frames import (
    API_NAMES,
    TAPED_KINDS,
    MessageFrame,
    direction_of,
    frame_of,
    kinds_of,
)
from fencepost.nemesis.simulated.parties import SimulatedParties
from fencepost.nemesis.wire.actions import let_go
from fencepost.nemesis.wire.carried import why_not_simulated
from fencepost.nemesis.wire.effects import (
    Broken,
    Effect,
    Finish,
    ProxyRequest,
    Reset,
    Resumed,
    Send,
    Side,
    Wake,
)
from fencepost.nemesis.wire.frame import TopicNames
from fencepost.nemesis.wire.matching import refuse_impossible
from fencepost.nemesis.wire.pipe import HeldFrame
from fencepost.nemesis.wire.rulebook import Judgement, LaidRule, Rulebook
from fencepost.nemesis.wire.rules import Direction, Flow, Match, Rule
from fencepost.nemesis.wire.rules import Link as WireLink
from fencepost.nemesis.wire.sessions import Common, Session
from fencepost.nemesis.wire.status import Delivery, WireStatus
from fencepost.nemesis.wire.tape import FrameFate, Journal, Tape, Tapes, Untaped

_TAPED: Final = table_of(TAPED_KINDS)
_KNOWN: Final = table_of(one for kind in API_NAMES for one in (kind, kind + 1))
"""The kinds that have a name: all that can be behind one another."""
_NOTES_MAX: Final = 100


class SimulatedWire:
    """An interceptor of a world's network. `client_from`: numbers from here on are clients'.

    `harness_from`: from here on they are the harness's own, which no rule concerns. `clients`:
    whether the links of clients are on the wire, too. `overhears`: what they say is taped, though
    they are not. Without a `journal` there is no tape, and only what a rule asks for is looked at.
    """

    def __init__(
        self,
        world: World,
        *,
        journal: Journal | None,
        clients_from: int,
        harness_from: int,
        clients: bool = False,
        overhears: bool = False,
    ) -> None:
        self._overhears = overhears
        self._world = world
        self._network = world.network
        self._parties = SimulatedParties(
            world, clients_from=clients_from, harness_from=harness_from, clients=clients
        )
        self._tape: Tapes = Untaped() if journal is None else Tape(journal)
        self._is_taped = journal is not None
        self._taped = NOTHING if journal is None else _TAPED
        """For each kind, whether it is on the tape."""
        self._book: Rulebook[HeldFrame] = Rulebook()
        self._names = TopicNames()
        self._connections = SimulatedConnections()
        self._common = Common(book=self._book, tape=self._tape, names=self._names, act=self._do)
        self._broken: deque[str] = deque(maxlen=_NOTES_MAX)
        self._data: dict[int, DataFrames] = {}
        """The frames of data that the tape has, by connection."""
        self._flows: set[Flow] = set()
        self._network.intercept(self)

    # Called by the harness.

    def add(self, rule: Rule) -> None:
        """Lay a rule, behind those that are laid. Raises UsageError if it can concern nothing."""
        refuse_impossible(rule)
        unfit = why_not_simulated(rule.action, rule.match)
        if unfit is not None:
            raise UsageError(f"rule {rule.name}: {unfit}")
        self._book.add(rule)
        self._network.refresh()

    def release(self, name: str) -> Delivery:
        """Remove the rule, and deliver what it holds, in the order in which it came."""
        entry = self._removed(name)
        before = entry.delivered_count, entry.undeliverable_count
        for held in tuple(entry.held):
            let_go(held, self._world.now_ns)
        self._settle()
        return Delivery(
            delivered=entry.delivered_count - before[0],
            undeliverable=entry.undeliverable_count - before[1],
        )

    def discard(self, name: str) -> int:
        """Remove the rule, drop the frames it holds, and cut their connections; return how many."""
        entry = self._removed(name)
        dropped = entry.forget()
        for held in dropped:
            held.connection.discard(held)
        self._settle()
        return len(dropped)

    def block(self, flows: Collection[Flow]) -> None:
        """Pass nothing on from the first to the second node of each flow, whichever dialled."""
        self._flows |= set(flows)
        self._network.block([pair for flow in flows for pair in self._parties.numbers(flow)])

    def unblock(self, flows: Collection[Flow] | None = None) -> None:
        """Deliver in order what waited in these flows; None: in all."""
        freed = sorted(self._flows if flows is None else flows)
        self._flows -= set(freed)
        self._network.unblock([pair for flow in freed for pair in self._parties.numbers(flow)])

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Say what topics are called: names by id, for frames that state ids alone."""
        self._names.by_id.update(names)

    @property
    def rules(self) -> Mapping[str, RuleCounts]:
        """The counts of every rule there was, by its name: live, so that a look makes no copy."""
        return self._book.known

    def status(self) -> WireStatus:
        """Return the status of the rules."""
        return WireStatus(
            rules=self._book.statuses(),
            withheld_bytes={},
            connection_count={},
            broken=tuple(self._broken),
            broken_count=len(self._broken),
        )

    def probe(self, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:  # noqa: ARG002
        """Return whether a request through this link would get its answer."""
        ways = [*self._parties.numbers((source, target)), *self._parties.numbers((target, source))]
        return self._parties.runs(target) and not any(map(self._network.is_blocked, ways))

    def probe_directly(self, target: NodeName, *, timeout_s: float) -> bool:  # noqa: ARG002
        """Return whether the target's process runs."""
        return self._parties.runs(target)

    # Called by the network.

    def wanted(self, link: Channel) -> bytes | bytearray:
        """Return for each kind whether the tape or a rule wants to see frames of this link."""
        party, more = self._parties.link(link), []
        if party is not None:
            if self._connections.concern(link):
                return _KNOWN
            more = list(self._wanted_by_rules(party, direction_of(link)))
        elif self._overhears:
            party = self._parties.overheard(link)
        if party is None:
            return NOTHING
        data = self._data_of(link, party)
        if data is not None:
            answers = link.answers is not None  # a kind is odd if it answers
            data.ruled = {one for one in data.ruled if one % 2 != answers}
            data.ruled |= data.kinds & set(more)
            more += data.kinds
        if not more:
            return self._taped
        table = bytearray(self._taped)
        for kind in more:
            table[kind] = 1
        return table

    def take(self, link: Channel, message: Any, request: Any) -> bool:
        """Judge a frame, tape it if that is wanted, and do to it what its rule says."""
        kind = message.kind
        taped = bool(self._taped[kind])
        data = self._data.get(link.connection)
        concerned = self._connections.concern(link)
        if data is not None and kind in data.kinds:
            taped = data.tells(message, self._world.now_ns)
            if not (taped or concerned or kind in data.ruled):
                return False  # Fast path: most frames match no rule and are not recorded.
        else:
            data = None
        party = self._parties.link(link)
        if party is None:
            if taped:
                self._overhear(link, message, request)
            return False
        session = self._connected(link, message, request) if concerned else None
        frame = self._frame(link, party, message, request)
        if session is not None:
            side = Side.NEAR if request is None else Side.FAR
            session.receive(side, (frame, taped, data), self._world.now_ns)
            self._settle()
            return True
        # No rule waits for what can go nowhere; that it was asked is seen.
        is_down = link.receiver.state is ProcessState.DOWN
        judgement = self._book.judge(frame, only_watched=is_down)
        if judgement.entry is not None:
            self._begin(link, frame, judgement, taped=taped)
            return True
        if taped or judgement.rule is not None:
            now_ns = self._world.now_ns
            fate, rule = FrameFate.FORWARDED, judgement.rule
            self._tape.record(frame, fate, forwarded_ns=now_ns, rule=rule)
            if data is not None:
                data.told(message)
        return False

    def left(self, link: Channel) -> None:
        """Take note that who asks over this link connects anew for its next request."""
        self._connections.leave(link)

    # The connections in which something waits.

    def _connected(self, link: Channel, message: Any, request: Any) -> Session | None:
        """Return the connection of a message, if something waits in it."""
        if request is not None:
            return self._connections.of_answer(request)
        of_client = not self._parties.is_node(link.sender)
        return self._connections.of_request(link, message, of_client=of_client)

    def _begin(
        self, link: Channel, frame: MessageFrame, judgement: Judgement[HeldFrame], *, taped: bool
    ) -> None:
        """Do to a frame what its rule says; its connection is told apart while something waits."""
        asked = link.answers or link
        request = frame.message if frame.request is None else frame.request
        of_client = not self._parties.is_node(asked.sender)
        messages = self._connections.begun(
            asked, frame.link, self._common, request, of_client=of_client
        )
        messages.begin(frame, judgement, taped=taped)
        self._look_at(asked)
        self._settle()

    def _do(self, session: Session, effect: Effect) -> None:
        """Do what a session asks for: what a proxy does to sockets, to links."""
        match effect:
            case Send(side=side, data=frame):
                self._pass(self._connections.content(session), side, frame)
            case ProxyRequest(frame=frame, copy=copy):
                assert isinstance(frame, MessageFrame)
                if copy:
                    now_ns = self._world.now_ns
                    self._tape.record(frame, FrameFate.DUPLICATED, forwarded_ns=now_ns)
                self._network.transmit(frame.way, frame.message)
            case Reset(side=Side.NEAR) | Finish(side=Side.NEAR):
                messages = self._connections.content(session)
                self._connections.end(session)
                for lost in messages.broken_off():
                    self._network.refuse(messages.link, lost)
            case Wake(at_ns=at_ns):
                self._world.call(at_ns, lambda: self._wake_up(session))
            case Broken(reason=reason):
                self._broken.append(f"{self._world.now_ns / 1e9:.3f} s: {reason}")
            case Reset() | Finish() | Resumed():
                pass  # Who is asked hears nothing of an end, and nothing is ever read too early.
            case effect:
                assert_never(effect)

    def _pass(self, messages: Messages, side: Side, frame: Any) -> None:
        """Pass a frame on, to the incarnation that was connected."""
        if side is Side.NEAR:
            messages.passed_back(frame.request)
            if frame.data:
                self._network.answer(messages.link, frame.request, frame.message)
                return
        incarnation = messages.sent_to(side)
        self._network.transmit(frame.way, frame.message, incarnation=incarnation)

    def _wake_up(self, session: Session) -> None:
        session.due(self._world.now_ns)
        self._settle()

    def _settle(self) -> None:
        """Look no longer at connections in which nothing waits any more."""
        for messages in tuple(self._connections.ended()):
            self._look_at(messages.link)

    def _look_at(self, link: Channel) -> None:
        back = link.receiver.links.get(link.signed)
        for one in (link,) if back is None else (link, back):
            self._network.look_at(one)

    def _overhear(self, link: Channel, message: Any, request: Any) -> None:
        party = self._parties.overheard(link) if self._overhears else None
        if party is not None:
            frame, now_ns = self._frame(link, party, message, request), self._world.now_ns
            self._tape.record(frame, FrameFate.FORWARDED, forwarded_ns=now_ns)

    def _wanted_by_rules(self, party: WireLink, direction: Direction) -> Iterator[int]:
        for entry in self._book.laid:
            match = entry.rule.match
            if match.direction is direction and _concerns(match, party):
                yield from kinds_of(match.api, direction)

    def _removed(self, name: str) -> LaidRule[HeldFrame]:
        entry = self._book.remove(name)
        if entry is None:
            raise HarnessError(self._book.why_not_active(name))
        self._network.refresh()
        return entry

    # The identities of parties.

    def _frame(self, link: Channel, party: WireLink, message: Any, request: Any) -> MessageFrame:
        now_ns = self._world.now_ns
        return frame_of(link, party, message, request, time_ns=now_ns, names=self._names)

    def _data_of(self, link: Channel, party: WireLink) -> DataFrames | None:
        """Return what the tape has of the data on this link; None: nothing."""
        if not self._is_taped or role_of(party.target) is not Role.BROKER:
            return None
        if party.source == CLIENTS:
            return self._data.setdefault(link.connection, ClientsData())
        if link.answers is not None:
            return None
        return self._data.setdefault(link.connection, FollowersData())


def _concerns(match: Match, party: WireLink) -> bool:
    return (not match.sources or party.source in match.sources) and (
        not match.targets or party.target in match.targets
    )
