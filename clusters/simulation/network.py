"""The network between hosts: its connections, its latency, and the fate of requests.

A host that asks another has a connection to it: one link for its requests, one back for the
answers. Frames of a link arrive in their order, each after a delay of its own draw. Then:

- What is under way survives the death of its sender, and dies with the incarnation of its receiver.
- A host that has asked one that ends, or asks one that is down, gets UNREACHABLE with its request.
  A host that lost its power is silent instead, until it starts again.
- A blocked flow passes nothing on; what is sent into it waits and goes on in its order when it is
  free again, as bytes do in the buffers of kernels and proxies. Lost frames are lost for good.
- An interceptor is asked inside the send, so that what it does to a frame (keep it, lose it) holds
  for the very frame that it saw.

The loop of the world itself sends the frames that no interceptor wants (`Link.wanted`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.effects import UNREACHABLE
from fencepost.clusters.simulation.host import Channel, ProcessState, SimulatedHost
from fencepost.clusters.simulation.kinds import EVERYTHING, NOTHING, wanted_by

STREAMED_FROM: Final = 100
"""Kinds from here on are of TCP's streams: what is lost of them is late, and none comes twice."""
RECONNECT: Final = 101
"""(RECONNECT, host): ask it over another connection from now on. An effect of hosts that are no
nodes; those tell by asking again.
"""
_SENT_AGAIN_NS: Final = 200_000_000
Push = Callable[[int, SimulatedHost, int, int, Any], None]
"""(time, host, source, kind, message): have it happen to the present incarnation."""
Flow = tuple[int, int]
"""(sender, receiver): numbers of hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The time that a frame is under way: `delay_ns` at least, up to `spread_ns` more."""

    delay_ns: int = 200_000
    spread_ns: int = 400_000
    """Together what loopback and the scheduler of a machine that is not idle come to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Shares of frames, from 0 to 1, to which a bad network does something."""

    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    reordered_by_ns: int = 20_000_000
    """The longest extra delay of a reordered frame."""


class Interceptor(Protocol):
    """Sees frames as they are sent, before they are."""

    def wanted(self, link: Channel) -> bytes | bytearray:
        """Return, by kind, whether it wants frames of this link; asked when the link begins."""

    def left(self, link: Channel) -> None:
        """Take note that who asks over this link connects anew for its next request."""

    def take(self, link: Channel, message: Any, request: Any) -> bool:
        """Look at a frame. True: the interceptor has taken it, and the network does not send it.

        `request`: what an answer is to; None for a request.
        """


class SimulatedNetwork:
    """The links of all hosts. `draw` gives numbers from 0 to 1; `push` adds an event."""

    def __init__(
        self,
        hosts: Mapping[int, SimulatedHost],
        *,
        latency: Latency,
        draw: Callable[[], float],
        push: Push,
        now: Callable[[], int],
    ) -> None:
        self._hosts = hosts
        self._latency = latency
        self._draw = draw
        self._push = push
        self._now = now
        self._asked: dict[tuple[int, int], Channel] = {}
        """The links of requests, by (alias of the asker, number of who is asked)."""
        self._alias_count = 0
        self._connection_count = 0
        self._numbers: dict[int, int] = {}
        self._interceptor: Interceptor | None = None
        self.take: Callable[[Channel, Any, Any], bool] = _untaken
        """The interceptor's, for frames that concern it alone (`WANTED`)."""
        self._seen: Callable[[Channel, Any], None] = _unseen
        self._seen_kinds = self._seen_alone = NOTHING
        self._trouble: Trouble | None = None
        self._blocked: dict[Flow, list[tuple[Channel, Any, int, tuple[Any] | None]]] = {}
        """(link, frame, incarnation of the receiver, what it answers unless it was seen already).

        Without a frame: that the receiver of the link is gone.
        """

    # Questions of the world's loop.

    def link(self, sender: SimulatedHost, target: int) -> Channel | None:
        """Make a link from a host to another by its number, or back to an asker by its alias.

        None: no host has this number, or the asker is gone.
        """
        if target < 0:
            asked = self._asked.get((target, sender.number))
            return None if asked is None else self._begin_answers(sender, target, asked)
        receiver = self._hosts.get(target)
        return None if receiver is None else self._begin_requests(sender, receiver)

    def send(self, link: Channel, message: Any, request: Any = None) -> None:
        """Send a frame of an unusual link: a request, or an answer to the `request`."""
        if self._seen_kinds[message.kind]:
            self._seen(link, message)
        flow = (link.sender.number, link.receiver.number)
        if flow in self._blocked:
            self._blocked[flow].append((link, message, link.receiver.incarnation, (request,)))
        elif not self._is_taken(link, message, request):
            self.transmit(link, message)

    def show(self, link: Channel, message: Any, request: Any) -> bool:
        """Show a frame of a link as usual to whom it concerns; whether it is theirs now."""
        if self._seen_kinds[message.kind]:
            self._seen(link, message)
        return self._is_taken(link, message, request)

    def _is_taken(self, link: Channel, message: Any, request: Any) -> bool:
        return (
            self._interceptor is not None
            and link.table[message.kind] != 0
            and self._interceptor.take(link, message, request)
        )

    def number_of(self, alias: int) -> int:
        """Return the number of the host whose alias it is, or was."""
        return self._numbers[alias]

    # The parts of faults.

    def transmit(
        self, link: Channel, message: Any, *, incarnation: int | None = None, delay_ns: int = 0
    ) -> bool:
        """Pass a frame on, so much later. False: its receiver is gone.

        `incarnation`: the receiver's that it was sent to; None: the present one.
        """
        receiver = link.receiver
        sent_to = receiver.incarnation if incarnation is None else incarnation
        if sent_to != receiver.incarnation or receiver.state is ProcessState.DOWN:
            if not receiver.silent:
                self._refuse(link, message)
            return False
        flow = (link.sender.number, receiver.number)
        if flow in self._blocked:
            self._blocked[flow].append((link, message, sent_to, None))
            return True
        late_ns = delay_ns + link.delay_ns + int(self._draw() * link.spread_ns)
        if self._trouble is None:
            link.last_ns = max(link.last_ns, self._now() + late_ns)
            self._deliver(link, message, link.last_ns)
        else:
            self._transmit_badly(link, message, self._trouble, late_ns)
        return True

    def intercept(self, interceptor: Interceptor | None) -> None:
        """Let the interceptor see what it wants from now on."""
        self._interceptor = interceptor
        self.take = _untaken if interceptor is None else interceptor.take
        self.refresh()

    def watch(self, seen: Callable[[Channel, Any], None], kinds: bytes) -> None:
        """Tell of each message of these kinds as it is sent, from now on."""
        self._seen, self._seen_kinds = seen, kinds
        self._seen_alone = wanted_by(NOTHING, kinds)
        self.refresh()

    def trouble(self, trouble: Trouble | None) -> None:
        """Make the network this bad from now on; None: it is good."""
        self._trouble = trouble
        self.refresh()

    def block(self, flows: Collection[Flow]) -> None:
        """Pass nothing on from the first to the second of each."""
        for flow in flows:
            self._blocked.setdefault(flow, [])
        self._look_at_flows(flows)

    def unblock(self, flows: Collection[Flow]) -> None:
        """Pass on what waited, in its order."""
        freed = [(flow, self._blocked.pop(flow)) for flow in flows if flow in self._blocked]
        self._look_at_flows(flows)
        for _, frames in freed:
            for link, message, incarnation, unseen in frames:
                if message is None:
                    self._refuse_all(link)
                elif unseen is None or incarnation != link.receiver.incarnation:
                    self.transmit(link, message, incarnation=incarnation)
                elif not self._is_taken(link, message, *unseen):
                    self.transmit(link, message)

    def waiting_count(self, flow: Flow) -> int:
        """Return the number of frames that wait in a blocked flow."""
        return len(self._blocked.get(flow, ()))

    def is_blocked(self, flow: Flow) -> bool:
        """Return whether nothing is passed on there."""
        return flow in self._blocked

    def close(self, host: SimulatedHost, source: int) -> None:
        """End the connection by which this asker came: what it had asked is not answered."""
        asked = self._asked.get((source, host.number))
        if asked is not None:
            self._refuse_all(asked)

    def refuse(self, link: Channel, request: Any) -> None:
        """Let the asker of a link hear that a request of his will not be answered."""
        link.open.setdefault(open_key(request), request)
        self._refuse(link, request)

    def answer(self, link: Channel, request: Any, response: Any) -> None:
        """Answer an open request in the place of who was asked, behind what that has answered."""
        if link.open.pop(open_key(request), None) is None:
            return
        back = link.receiver.links.get(link.signed) or self.link(link.receiver, link.signed)
        if back is not None:
            self.transmit(back, response)

    def reconnect(self, host: SimulatedHost, target: int) -> None:
        """Let the interceptor know that a host has given its connection to another one up."""
        link = host.links.get(target)
        if link is not None and self._interceptor is not None:
            self._interceptor.left(link)

    def refresh(self) -> None:
        """See anew what of which link has to be looked at."""
        for host in self._hosts.values():
            for link in host.links.values():
                self.look_at(link)

    def look_at(self, link: Channel) -> None:
        """See anew what of this link has to be looked at."""
        link.table = NOTHING if self._interceptor is None else self._interceptor.wanted(link)
        flow = (link.sender.number, link.receiver.number)
        unusual = (
            self._trouble is not None
            or flow in self._blocked
            or link.receiver.state is ProcessState.DOWN
        )
        if unusual:
            link.wanted = EVERYTHING
        elif self._seen_kinds is NOTHING:
            link.wanted = link.table
        elif link.table is NOTHING:
            link.wanted = self._seen_alone
        else:
            link.wanted = wanted_by(link.table, self._seen_kinds)

    def _look_at_flows(self, flows: Collection[Flow]) -> None:
        wanted = frozenset(flows)
        for host in self._hosts.values():
            for link in host.links.values():
                if (host.number, link.receiver.number) in wanted:
                    self.look_at(link)

    # The parts of starts and ends of hosts.

    def begin(self, host: SimulatedHost) -> None:
        """An incarnation starts: it can be asked, and asks by an alias of its own."""
        self._alias_count += 1
        host.alias = -self._alias_count
        self._numbers[host.alias] = host.number
        if host.silent:
            host.silent = False
            self._refuse_askers(host)
        for link in self._links_to(host):
            self.look_at(link)

    def end(self, host: SimulatedHost) -> None:
        """An incarnation is gone (its state is DOWN): so are all its connections."""
        for link in host.outgoing:
            link.open.clear()
            self._asked.pop((host.alias, link.receiver.number), None)
        for other in self._hosts.values():
            other.links.pop(host.alias, None)
        host.links.clear()
        host.outgoing.clear()
        for link in self._links_to(host):
            self.look_at(link)
        if not host.silent:
            self._refuse_askers(host)

    def _refuse_askers(self, host: SimulatedHost) -> None:
        """Tell the hosts that had asked this one that it is gone; they connect anew."""
        asking, host.incoming = host.incoming, []
        for link in asking:
            self._refuse_all(link)
            if link.sender.links.get(host.number) is link:
                del link.sender.links[host.number]
                link.sender.outgoing.remove(link)
            self._asked.pop((link.signed, host.number), None)

    def _links_to(self, host: SimulatedHost) -> list[Channel]:
        found = (other.links.get(host.number) for other in self._hosts.values())
        return [link for link in found if link is not None]

    def _begin_requests(self, sender: SimulatedHost, receiver: SimulatedHost) -> Channel:
        self._connection_count += 1
        link = Channel(sender, receiver, signed=sender.alias, connection=self._connection_count)
        sender.links[receiver.number] = link
        sender.outgoing.append(link)
        receiver.incoming.append(link)
        self._asked[sender.alias, receiver.number] = link
        return self._made(link)

    def _begin_answers(self, sender: SimulatedHost, target: int, asked: Channel) -> Channel:
        link = Channel(sender, asked.sender, signed=sender.number, connection=asked.connection)
        link.answers = asked
        sender.links[target] = link
        return self._made(link)

    def _made(self, link: Channel) -> Channel:
        link.delay_ns, link.spread_ns = self._latency.delay_ns, self._latency.spread_ns
        self.look_at(link)
        return link

    def _refuse_all(self, link: Channel) -> None:
        for message in list(link.open.values()):
            self._refuse(link, message)

    def _refuse(self, link: Channel, message: Any) -> None:
        """Tell who sent this request that its receiver is gone; an answer is merely lost."""
        if link.answers is not None:
            return
        back = (link.receiver.number, link.sender.number)
        if back in self._blocked:
            self._blocked[back].append((link, None, 0, None))
        elif link.open.pop(open_key(message), None) is not None:
            self._tell(link, UNREACHABLE, message)

    def _tell(self, link: Channel, kind: int, message: Any) -> None:
        """Have the asker of a link hear this from who was asked, if it is the one that asked."""
        asker = link.sender
        late_ns = link.delay_ns + int(self._draw() * link.spread_ns)
        if asker.alias == link.signed and asker.state is not ProcessState.DOWN:
            self._push(self._now() + late_ns, asker, link.receiver.number, kind, message)

    def _transmit_badly(self, link: Channel, message: Any, bad: Trouble, late_ns: int) -> None:
        at_ns = self._now() + late_ns
        if bad.loss and self._draw() < bad.loss:
            if message.kind < STREAMED_FROM:
                return
            at_ns += _SENT_AGAIN_NS
        if bad.reordering and self._draw() < bad.reordering:
            at_ns += int(self._draw() * bad.reordered_by_ns)
        else:
            at_ns = link.last_ns = max(link.last_ns, at_ns)
        self._deliver(link, message, at_ns)
        copied = bad.duplication if message.kind < STREAMED_FROM else 0
        if copied and self._draw() < copied:
            self._deliver(link, message, at_ns + int(self._draw() * bad.reordered_by_ns))

    def _deliver(self, link: Channel, message: Any, at_ns: int) -> None:
        self._push(at_ns, link.receiver, link.signed, message.kind, message)


def _unseen(_link: Channel, _message: Any) -> None: ...


def _untaken(_link: Channel, _message: Any, _request: Any) -> bool:
    return False


def open_key(message: Any) -> int:
    """Return the key that tells the requests of a connection apart."""
    return int(message.correlation << 8 | message.kind)
