"""The wire of a simulated cluster: what `nemesis.wire.wire.Wire` offers, inside the sends.

The rules are the very values that a proxy takes, and mean the same here: a rule concerns the frame
that is being sent, at that moment. A connection is a link of the simulated network, of which each
kind of request has one to itself, so that what is held holds up nothing of another kind.

What cannot be said of messages is refused: there are no versions to lower in them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from clusters.kafka_port import Role, role_of
from clusters.observation import RuleCounts
from clusters.port import CLIENTS, NodeName
from clusters.simulation.host import Channel
from clusters.simulation.kinds import KIND_COUNT, NOTHING, table_of
from clusters.simulation.world import World
from history.failure import HarnessError, UsageError
from nemesis.simulated.data_frames import ClientsData, DataFrames, FollowersData
from nemesis.simulated.frames import (
    TAPED_KINDS,
    MessageFrame,
    answer_read,
    direction_of,
    frame_of,
    kinds_of,
)
from nemesis.simulated.parties import SimulatedParties
from nemesis.wire.answers import error_response
from nemesis.wire.carried import NO_VERSIONS
from nemesis.wire.frame import Frame, TopicNames
from nemesis.wire.matching import refuse_impossible
from nemesis.wire.rulebook import LaidRule, Rulebook
from nemesis.wire.rules import (
    Answer,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Flow,
    Hold,
    LowerVersion,
    Match,
    Reorder,
    Rule,
    Stall,
    Watch,
)
from nemesis.wire.rules import Link as WireLink
from nemesis.wire.status import Delivery, WireStatus
from nemesis.wire.tape import FrameFate, Journal, Tape

__all__ = ["SimulatedWire"]

_TAPED: Final = table_of(TAPED_KINDS)
_ALL: Final = bytes([1]) * KIND_COUNT


@dataclass(slots=True, eq=False)
class _Held:
    """A frame that waits for its rule."""

    link: Channel
    message: Any
    request: Any
    incarnation: int
    """The incarnation of its receiver when it was sent."""
    number: int
    """Its number on the tape."""
    fate: FrameFate
    passed: bool = False
    """It was passed on: only what follows it waits."""


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
        self._tape = None if journal is None else Tape(journal)
        self._taped = NOTHING if journal is None else _TAPED
        """For each kind, whether it is on the tape."""
        self._book: Rulebook[_Held] = Rulebook()
        self._names = TopicNames()
        self._data: dict[int, DataFrames] = {}
        """The frames of data that the tape has, by connection."""
        self._stalled: dict[tuple[int, bool], list[_Held]] = {}
        """The frames behind a stalled frame, by connection and by whether it is an answer."""
        self._late_ns: dict[tuple[int, int], int] = {}
        """The time at which the last delayed frame of a connection and kind is passed on."""
        self._flows: set[Flow] = set()
        self._network.intercept(self)

    # Called by the harness.

    def add(self, rule: Rule) -> None:
        """Lay a rule, behind those that are laid. Raises UsageError if it can concern nothing."""
        refuse_impossible(rule)
        if isinstance(rule.action, LowerVersion):
            raise UsageError(f"rule {rule.name}: {NO_VERSIONS}")
        self._book.add(rule)
        self._network.refresh()

    def release(self, name: str) -> Delivery:
        """Remove the rule, and deliver what it holds, in the order in which it came."""
        entry = self._removed(name)
        for held in list(entry.held):
            self._let_go(entry, held)
        return Delivery(delivered=entry.delivered_count, undeliverable=entry.undeliverable_count)

    def discard(self, name: str) -> int:
        """Remove the rule, drop the frames it holds, and cut their connections; return how many."""
        entry = self._removed(name)
        count = len(entry.held)
        for held in list(entry.held):
            entry.let_go(held, delivered=False)
            if not held.passed:
                self._change(held.number, FrameFate.DROPPED)
            self._break(held)
        return count

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
        return WireStatus(rules=self._book.statuses(), withheld_bytes={}, connection_count={})

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
            if _place(link) in self._stalled:
                return _ALL
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
        if data is not None and kind in data.kinds:
            taped = data.tells(message, self._world.now_ns)
            if not (taped or self._stalled or kind in data.ruled):
                return False  # Nearly all are such: nothing more is made of them.
        else:
            data = None
        party = self._parties.link(link)
        if party is None:
            if taped:
                self._overhear(link, message, request)
            return False
        if self._follows_stalled(link, message, request):
            return True
        frame = self._frame(link, party, message, request)
        judgement = self._book.judge(frame)
        if judgement.entry is not None:
            held = _Held(link, message, request, link.receiver.incarnation, -1, FrameFate.RELEASED)
            self._act(frame, held, judgement.entry)
            return True
        if taped or judgement.rule is not None:
            self._record(frame, judgement.rule, FrameFate.FORWARDED)
            if data is not None:
                data.told(message)
        return False

    def _overhear(self, link: Channel, message: Any, request: Any) -> None:
        party = self._parties.overheard(link) if self._overhears else None
        if party is not None:
            self._record(self._frame(link, party, message, request), None, FrameFate.FORWARDED)

    def _wanted_by_rules(self, party: WireLink, direction: Direction) -> Iterator[int]:
        for entry in self._book.laid:
            match = entry.rule.match
            if match.direction is direction and _concerns(match, party):
                yield from kinds_of(match.api, direction)

    def _act(self, frame: MessageFrame, held: _Held, entry: LaidRule[_Held]) -> None:
        """Do what the rule says to a frame that is being sent."""
        match entry.rule.action:
            case Hold():
                self._keep(frame, held, entry, FrameFate.HELD)
            case Delay(min_ms=low, max_ms=high):
                self._delay(frame, held, entry, entry.random.uniform(low, high))
            case Reorder():
                self._reorder(frame, held, entry)
            case Drop():
                self._record(frame, entry.rule.name, FrameFate.DROPPED, passed=False)
                self._break(held)
            case Cut(passed_on=passed_on):
                self._cut(frame, held, entry, passed_on=passed_on)
            case Duplicate():
                self._pass_twice(frame, held, entry)
            case Answer(error=error):
                self._answer(frame, held, entry, error)
            case Stall():
                self._stall(frame, held, entry)
            case LowerVersion() | Watch() as action:
                raise AssertionError(action)  # refused when laid; it decides nothing
            case action:
                assert_never(action)

    def _answer(self, frame: MessageFrame, held: _Held, entry: LaidRule[_Held], error: str) -> None:
        asked = frame.header.answered
        response = error_response(frame, error) if asked else None
        fate = FrameFate.DROPPED if asked and response is None else FrameFate.ANSWERED
        self._record(frame, entry.rule.name, fate, passed=False)
        if not asked:
            return
        node = held.link.receiver.number
        message = None if response is None else answer_read(frame, response, node=node)
        if message is None:
            self._break(held)
        else:
            self._network.answer(held.link, held.message, message)

    def _cut(self, frame: Frame, held: _Held, entry: LaidRule[_Held], *, passed_on: bool) -> None:
        self._record(frame, entry.rule.name, FrameFate.CUT, passed=passed_on)
        if passed_on:
            self._pass(held)
        else:
            self._break(held)
        self._network.cut(held.link)

    def _pass_twice(self, frame: Frame, held: _Held, entry: LaidRule[_Held]) -> None:
        for _ in range(2):
            self._record(frame, entry.rule.name, FrameFate.DUPLICATED, passed=True)
            self._pass(held)

    def _keep(self, frame: Frame, held: _Held, entry: LaidRule[_Held], fate: FrameFate) -> None:
        held.number = self._record(frame, entry.rule.name, fate, passed=False)
        entry.keep(held)

    def _delay(self, frame: Frame, held: _Held, entry: LaidRule[_Held], delay_ms: float) -> None:
        """Delay a frame; later ones of its kind on its connection come behind it."""
        place = (held.link.connection, held.message.kind)
        due_ns = max(self._late_ns.get(place, 0), self._world.now_ns + round(delay_ms * 1e6))
        self._late_ns[place] = due_ns
        held.fate = FrameFate.DELAYED
        self._keep(frame, held, entry, FrameFate.DELAYED)
        self._world.call(due_ns, lambda: self._due(entry, held))

    def _due(self, entry: LaidRule[_Held], held: _Held) -> None:
        if held in entry.held:
            self._let_go(entry, held)

    def _reorder(self, frame: Frame, held: _Held, entry: LaidRule[_Held]) -> None:
        overtaken = entry.overtaken.pop(frame.link, None)
        if overtaken is None:
            held.fate = FrameFate.REORDERED
            self._keep(frame, held, entry, FrameFate.REORDERED)
            entry.overtaken[frame.link] = held
            return
        self._record(frame, entry.rule.name, FrameFate.FORWARDED, passed=True)
        self._pass(held)
        self._let_go(entry, overtaken)

    def _stall(self, frame: Frame, held: _Held, entry: LaidRule[_Held]) -> None:
        held.number = self._record(frame, entry.rule.name, FrameFate.FORWARDED, passed=True)
        self._pass(held)
        held.passed = True
        entry.keep(held)
        self._stalled.setdefault(_place(held.link), [])
        self._network.look_at(held.link)

    def _follows_stalled(self, link: Channel, message: Any, request: Any) -> bool:
        behind = self._stalled.get(_place(link))
        if behind is None:
            return False
        incarnation = link.receiver.incarnation
        behind.append(_Held(link, message, request, incarnation, -1, FrameFate.FORWARDED))
        return True

    def _let_go(self, entry: LaidRule[_Held], held: _Held) -> None:
        if held.passed:
            entry.let_go(held, delivered=True)
            for behind in self._stalled.pop(_place(held.link), []):
                self._pass(behind)
            self._network.look_at(held.link)
            return
        delivered = self._pass(held)
        entry.let_go(held, delivered=delivered)
        fate = held.fate if delivered else FrameFate.UNDELIVERABLE
        self._change(held.number, fate, passed=delivered)

    def _pass(self, held: _Held) -> bool:
        return self._network.transmit(held.link, held.message, incarnation=held.incarnation)

    def _break(self, held: _Held) -> None:
        """Lose a frame with its connection; the party that asked hears of it."""
        if held.link.answers is None:
            self._network.refuse(held.link, held.message)
        else:
            self._network.refuse(held.link.answers, held.request)

    def _record(
        self, frame: Frame, rule: str | None, fate: FrameFate, *, passed: bool = True
    ) -> int:
        """Write it on the tape, if there is one; return its number there."""
        if self._tape is None:
            return -1
        forwarded_ns = self._world.now_ns if passed else None
        return self._tape.record(frame, fate, forwarded_ns=forwarded_ns, rule=rule)

    def _change(self, number: int, fate: FrameFate, *, passed: bool = False) -> None:
        if self._tape is not None:
            forwarded_ns = self._world.now_ns if passed else None
            self._tape.change(number, fate, forwarded_ns=forwarded_ns)

    def _removed(self, name: str) -> LaidRule[_Held]:
        entry = self._book.remove(name)
        if entry is None:
            raise HarnessError(f"there is no rule {name}")
        self._network.refresh()
        return entry

    # The identities of parties.

    def _frame(self, link: Channel, party: WireLink, message: Any, request: Any) -> MessageFrame:
        now_ns = self._world.now_ns
        return frame_of(link, party, message, request, time_ns=now_ns, names=self._names)

    def _data_of(self, link: Channel, party: WireLink) -> DataFrames | None:
        """Return what the tape has of the data on this link; None: nothing."""
        if self._tape is None or role_of(party.target) is not Role.BROKER:
            return None
        if party.source == CLIENTS:
            return self._data.setdefault(link.connection, ClientsData())
        if link.answers is not None:
            return None
        return self._data.setdefault(link.connection, FollowersData())


def _place(link: Channel) -> tuple[int, bool]:
    return link.connection, link.answers is not None


def _concerns(match: Match, party: WireLink) -> bool:
    return (not match.sources or party.source in match.sources) and (
        not match.targets or party.target in match.targets
    )
