"""The world: one thread, one heap of events, one seed; every host's node is driven from here.

Nodes get ticks (TICK) at a rhythm of their own, but for those at which their alarm is not due, and
nothing would happen; witnessed worlds have them all, and see that nothing happens.

An event is (time, sequence, host, incarnation, source, kind, message). It happens to the host if
that is still the incarnation it was meant for; while the host is paused it waits in its kernel.
Nothing takes time but what goes over the network or to a disk, and the same seed gives the same
world, event by event (`digest`).

Hosts need not be nodes of a cluster: a client is one that gets no ticks and asks to be woken (WAKE)
instead, and `call` has a function of the shell's own called at a time.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from random import Random
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.alarm import NEVER_NS
from fencepost.clusters.node_port.effects import (
    ADVANCE,
    APPEND,
    CLOSE,
    CREATE,
    DELETE,
    EXIT,
    EXTEND,
    NOTE,
    RECOVER,
    RECOVERED,
    SEND,
    START,
    STOP,
    SYNC,
    SYNCED,
    TICK,
    TICK_NS,
    TRUNCATE,
    WRITE,
    Effects,
)
from fencepost.clusters.simulation.clock import HostClock
from fencepost.clusters.simulation.disk import Disk
from fencepost.clusters.simulation.host import (
    EVERY_TICK,
    Build,
    Channel,
    ProcessState,
    SimulatedHost,
)
from fencepost.clusters.simulation.kinds import NOTHING, SEEN, UNUSUAL, WANTED, table_of
from fencepost.clusters.simulation.network import RECONNECT, Latency, SimulatedNetwork
from fencepost.clusters.simulation.trace import Trace, Witnessed, proving_idle

WAKE: Final = 100
"""(WAKE, time): have a TICK at this time of the host's clock. For hosts that are no nodes."""


class Watcher(Protocol):
    """An observer that is told at once what happens. Hosts are named by their numbers."""

    def started(self, node: int) -> None:
        """A new incarnation starts."""

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        """A node notes something: the whole effect."""

    def sent(self, now: int, source: int, target: int, kind: int, message: Any) -> None:
        """A message of a kind that is watched leaves its sender."""

    def delivered(self, now: int, source: int, target: int, kind: int, message: Any) -> None:
        """Hear that a watched message arrives; the node takes it after this call."""


_SYNC_NS: Final = 1_000_000
_SYNC_SPREAD_NS: Final = 2_000_000
_START_NS: Final = 1_000_000
_CALLS: Final = -1
_IDS: Final = 1 << 128


class World:
    """Build it, add hosts, start them, and `run`.

    `witnessed`: prove of every message that no host changes it, and have the digest tell what they
    say; several times as slow. `digest`: whether there is to be one.
    """

    def __init__(
        self,
        seed: int,
        *,
        latency: Latency | None = None,
        digest: bool = True,
        witnessed: bool = False,
    ) -> None:
        self.now_ns = 0
        self.hosts: dict[int, SimulatedHost] = {}
        self.event_count = 0
        self._watcher: Watcher | None = None
        self._delivered = NOTHING
        self._sent: Callable[[int, int, int, int, Any], None] = _unseen
        self._heap: list[tuple[int, int, SimulatedHost, int, int, int, Any]] = []
        self._sequence = 0
        self._effects: Effects = []
        self._trace = Trace() if digest or witnessed else None
        self._witnessed = Witnessed(self._trace) if witnessed and self._trace else None
        # A stream for each purpose, to be repeated: draws of one leave the others as they are.
        names = ("disks", "starts", "network")
        self._disks, self._starts, net = (Random(f"{seed}/{name}") for name in names)  # noqa: S311
        self._draw = net.random
        self.network = SimulatedNetwork(
            self.hosts,
            latency=latency or Latency(),
            draw=net.random,
            push=self.push,
            now=lambda: self.now_ns,
        )
        disk, clock = Disk(net.random), HostClock()
        self._calls = SimulatedHost(_CALLS, "calls", _no_node, tick_ns=0, disk=disk, clock=clock)
        self._calls.handle = _called

    def add(self, number: int, name: str, build: Build, *, tick_ns: int = TICK_NS) -> SimulatedHost:
        """A host that is down, by a number of its own from 0 on."""
        assert number >= 0, number
        assert number not in self.hosts, number
        disk, clock = Disk(self._disks.random), HostClock()
        host = SimulatedHost(number, name, build, tick_ns=tick_ns, disk=disk, clock=clock)
        self.hosts[number] = host
        return host

    def start(self, host: SimulatedHost) -> None:
        """Start a new incarnation on the disk as it is; it takes its first event a ms later."""
        assert host.state is ProcessState.DOWN, host
        host.begin()
        self.network.begin(host)
        if self._watcher is not None:
            self._watcher.started(host.number)
        contents = host.disk.contents(self.new_id())
        at_ns = self.now_ns + _START_NS
        self.push(at_ns, host, host.number, START, contents)
        if host.tick_ns:
            host.begin_ticks(at_ns + int(self._starts.random() * host.tick_ns))
            if self._witnessed is not None and host.alarm is not EVERY_TICK:
                host.handle = proving_idle(host.handle, host.alarm)
            self.push(host.tick_at_ns, host, host.number, TICK, None)

    def kill(self, host: SimulatedHost) -> None:
        """End the process at once. What it had written stays."""
        assert host.state is not ProcessState.DOWN, host
        self._end(host)

    def cut_power(self, host: SimulatedHost) -> None:
        """End the machine: a part of what was not synced is lost, and no other host is told."""
        assert host.state is not ProcessState.DOWN, host
        host.silent = True
        self._end(host)
        host.disk.lose_power()

    def stop(self, host: SimulatedHost) -> None:
        """Ask the node to end (SIGTERM); when it has, is its own business."""
        self.push(self.now_ns, host, host.number, STOP, None)

    def pause(self, host: SimulatedHost) -> None:
        """Stop the process; what comes waits."""
        assert host.state is ProcessState.RUNNING, host
        self._tick_from(host, self.now_ns)  # whatever is due meanwhile, is when it goes on
        host.state = ProcessState.PAUSED
        host.stopped = True

    def resume(self, host: SimulatedHost) -> None:
        """Let the process go on; it gets what waited, in its order."""
        assert host.state is ProcessState.PAUSED, host
        host.state = ProcessState.RUNNING
        host.stopped = False
        waiting, host.waiting = host.waiting, []
        for source, kind, message in waiting:
            if kind == TICK:
                host.tick_at_ns = self.now_ns
            self.push(self.now_ns, host, source, kind, message)

    def drift(self, host: SimulatedHost, drift_ppm: int) -> None:
        """Let its clock gain `drift_ppm` from now on."""
        host.clock.run(drift_ppm=drift_ppm, now_ns=self.now_ns)
        if host.state is ProcessState.RUNNING:
            self._tick_from(host, self.now_ns)

    def call(self, at_ns: int, function: Callable[[], None]) -> None:
        """Have a function called at this time, between two events."""
        self.push(at_ns, self._calls, _CALLS, 0, function)

    def watch(
        self, watcher: Watcher, *, sent: Iterable[int] = (), delivered: Iterable[int] = ()
    ) -> None:
        """Tell this one from now on of starts, notes, and messages of these kinds."""
        self._watcher, self._sent = watcher, watcher.sent
        self._delivered = table_of(delivered)
        self.network.watch(
            lambda link, message: watcher.sent(
                self.now_ns, link.sender.number, link.receiver.number, message.kind, message
            ),
            table_of(sent),
        )

    def push(self, at_ns: int, host: SimulatedHost, source: int, kind: int, message: Any) -> None:
        """Have this happen to the present incarnation of a host."""
        self._sequence += 1
        incarnation = host.incarnation
        heappush(self._heap, (at_ns, self._sequence, host, incarnation, source, kind, message))

    def new_id(self) -> int:
        """Return an id of 128 bits that is used nowhere else."""
        return self._starts.randrange(1, _IDS)

    def digest(self) -> str:
        """Return the digest of all events so far; empty without one."""
        return "" if self._trace is None else self._trace.hexdigest()

    def run(self, until_ns: int) -> None:
        """Let all happen that is due by then; the time is then that.

        An error of a node ends it; a note says which, when, and by what event.
        """
        heap, effects, trace = self._heap, self._effects, self._trace
        add = None if trace is None else trace.add
        count = 0
        while heap and heap[0][0] <= until_ns:
            at_ns, _, host, incarnation, source, kind, message = heappop(heap)
            if incarnation != host.incarnation:
                continue
            if kind == TICK and host.tick_ns and not host.takes_tick(at_ns):
                continue
            if host.stopped:
                host.waiting.append((source, kind, message))
                continue
            self.now_ns = at_ns
            count += 1
            if add is not None:
                add(at_ns)
                add(host.number << 8 | kind)
            if kind == SYNCED:
                message, mark = message  # the token
                host.disk.synced(mark)
            if self._delivered[kind]:
                self._show_delivered(host, source, message)
            if self._witnessed is not None:
                self._witnessed.arrived(message)
            clock = host.clock
            local_ns = clock.read(at_ns) if clock.drift_ppm else at_ns + clock.offset_ns
            try:
                host.handle(local_ns, source, kind, message, effects)
            except Exception as error:
                error.add_note(f"{host.name} at {at_ns} ns, of {source}: {kind} {message}")
                raise
            if effects:
                self._perform(host, at_ns, effects)
                effects.clear()
            if host.tick_ns and (host.alarm.due_ns != host.due_ns or kind == TICK):
                self._set_tick(host, at_ns, local_ns, kind)
        self.now_ns = max(self.now_ns, until_ns)
        self.event_count += count
        if trace is not None:
            trace.flush()

    def _set_tick(self, host: SimulatedHost, at_ns: int, local_ns: int, kind: int) -> None:
        """Set the next tick after an event: the first of its rhythm at which its alarm is due."""
        if host.state is ProcessState.DOWN:
            return
        if kind == TICK:
            host.ticked_ns = at_ns
        host.due_ns = due_ns = host.alarm.due_ns
        if self._witnessed is not None:
            due_ns = 0  # those before their time as well
        if due_ns < NEVER_NS:
            self._tick_from(host, at_ns + host.clock.lasts(due_ns - local_ns))

    def _tick_from(self, host: SimulatedHost, from_ns: int) -> None:
        """Have a tick at the first time of the host's rhythm from then on, and after now."""
        at_ns = host.next_tick(self.now_ns, from_ns)
        if at_ns < host.tick_at_ns:
            host.tick_at_ns = at_ns
            self.push(at_ns, host, host.number, TICK, None)

    def _perform(self, host: SimulatedHost, at_ns: int, effects: Effects) -> None:
        """Do what a node asks for, in its order."""
        links, draw, heap = host.links, self._draw, self._heap
        sequence = self._sequence
        for effect in effects:
            code = effect[0]
            if code != SEND:
                if code == APPEND:
                    host.disk.append(effect[1], effect[2])
                    continue
                self._sequence = sequence
                _EFFECTS[code](self, host, effect)
                if code == EXIT:
                    return
                sequence = self._sequence
                continue
            message = effect[2]
            link = links.get(effect[1]) or self.network.link(host, effect[1])
            if link is None:
                continue
            kind, request = message.kind, None
            if link.answers is None:
                if message.correlation >= 0:
                    link.open[message.correlation << 8 | kind] = message
            else:
                request = link.answers.open.pop(message.correlation << 8 | kind - 1, None)
                if request is None:
                    continue  # this answer is not awaited any more
            if link.wanted[kind] or self._witnessed is not None:
                self._sequence = sequence
                is_sent = self._look_at(link, message, request)
                sequence = self._sequence
                if is_sent:
                    continue
            when_ns = at_ns + link.delay_ns + int(draw() * link.spread_ns)
            if when_ns < link.last_ns:  # noqa: PLR1730  # the call of max is what it costs
                when_ns = link.last_ns
            link.last_ns = when_ns
            receiver = link.receiver
            sequence += 1
            event = (when_ns, sequence, receiver, receiver.incarnation, link.signed, kind, message)
            heappush(heap, event)
        self._sequence = sequence

    def _look_at(self, link: Channel, message: Any, request: Any) -> bool:
        """Tell the watchers of a message. Return whether another party sees to it from here on."""
        wanted = link.wanted[message.kind]
        if self._witnessed is not None:
            self._witnessed.sent(message)
        elif wanted == WANTED:
            return self.network.take(link, message, request)
        elif wanted == SEEN:
            sender, receiver = link.sender.number, link.receiver.number
            self._sent(self.now_ns, sender, receiver, message.kind, message)
            return False
        elif wanted < UNUSUAL:
            return self.network.show(link, message, request)
        self.network.send(link, message, request)
        return True

    def _show_delivered(self, host: SimulatedHost, source: int, message: Any) -> None:
        assert self._watcher is not None
        sender = source if source >= 0 else self.network.number_of(source)
        self._watcher.delivered(self.now_ns, sender, host.number, message.kind, message)

    def _end(self, host: SimulatedHost) -> None:
        host.end()
        self.network.end(host)

    def _sync(self, host: SimulatedHost, names: tuple[Any, ...], token: Any) -> None:
        took_ns = _SYNC_NS + int(self._disks.random() * _SYNC_SPREAD_NS)
        host.synced_ns = max(host.synced_ns, self.now_ns + took_ns)
        self.push(host.synced_ns, host, host.number, SYNCED, (token, host.disk.mark(names)))

    def _recover(self, host: SimulatedHost) -> None:
        """The logs change by nothing but the node's own doing, which waits."""
        contents = host.disk.contents(0)
        self.push(self.now_ns + host.disk.recovery_ns, host, host.number, RECOVERED, contents)

    def _exit(self, host: SimulatedHost, reason: str) -> None:
        self._end(host)
        host.exit_reason = reason

    def _wake(self, host: SimulatedHost, effect: tuple[Any, ...]) -> None:
        true_ns = max(self.now_ns, effect[1] - host.clock.offset_ns)
        self.push(true_ns, host, host.number, TICK, None)

    def _note(self, host: SimulatedHost, note: tuple[Any, ...]) -> None:
        if self._watcher is not None:
            self._watcher.note(self.now_ns, host.number, note)


def _no_node() -> Any:
    raise AssertionError("this host has no node")


def _unseen(_now: int, _source: int, _target: int, _kind: int, _message: Any) -> None:
    raise AssertionError("nobody is told of messages")


def _called(_now: int, _source: int, _kind: int, function: Any, _effects: Effects) -> None:
    function()


_EFFECTS: Final[dict[int, Callable[[World, SimulatedHost, tuple[Any, ...]], None]]] = {
    SYNC: lambda world, host, effect: world._sync(host, effect[1], effect[2]),  # noqa: SLF001
    TRUNCATE: lambda _, host, effect: host.disk.truncate(effect[1], effect[2]),
    WRITE: lambda _, host, effect: host.disk.write(effect[1], effect[2]),
    DELETE: lambda _, host, effect: host.disk.delete(effect[1]),
    EXTEND: lambda _, host, effect: host.disk.extend(effect[1], effect[2]),
    CREATE: lambda _, host, effect: host.disk.create(effect[1], effect[2]),
    ADVANCE: lambda _, host, effect: host.disk.advance(effect[1], effect[2]),
    EXIT: lambda world, host, effect: world._exit(host, effect[1]),  # noqa: SLF001
    CLOSE: lambda world, host, effect: world.network.close(host, effect[1]),
    NOTE: World._note,  # noqa: SLF001
    RECOVER: lambda world, host, _: world._recover(host),  # noqa: SLF001
    WAKE: World._wake,  # noqa: SLF001
    RECONNECT: lambda world, host, effect: world.network.reconnect(host, effect[1]),
}
"""The rarer effects; SEND and APPEND are done in the loop itself."""
