"""The membership client: movers that reassign partitions, one at a time each, until told to stop.

A mover looks where its next partition is, asks one broker after the other to have it elsewhere (or
the controller, where brokers pass nothing on to it: `workloads.generators.asked`), and waits until
the move is over. A move is cancelled if it was meant to be called off, if it is not
over within its bound, or if it is under way when the client is told to stop. So is a move that no
mover waits for: a write without an answer may have begun it.

A write is on disk before it is sent. The end of a move is what the controller and a broker say
(`clusters.kafka.describing`), at most `_LOOK_S` after it happened, and is recorded with the write.
"""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.random import Generator

from fencepost.clusters.kafka.admin_requests import Write, ask_broker, cancel_reassignment, reassign
from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.kafka.describing import Placement, ask_overview, ask_placement
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.history.journal import EventJournal
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.membership_config import MembershipConfig, read_membership_config
from fencepost.workloads.clients.places import places_of
from fencepost.workloads.clients.shutdown import stop_on_sigterm
from fencepost.workloads.clients.threads import await_due, run_threads, steady_pace
from fencepost.workloads.generators.asked import Asked
from fencepost.workloads.generators.keys import KeyCycle

_LOOK_S: Final = 0.05
_LOOK_TIMEOUT_S: Final = 1.0
_ATTEMPT_S_MIN: Final = 0.5
_END_SLACK_S: Final = 1.0
_NOTHING_TO_CANCEL: Final = "NO_REASSIGNMENT_IN_PROGRESS"
_LOOK: Final = "list-reassignments"
_OF_TURNS: Final = 1
"""The random stream that draws the turns, apart from the stream that draws the moves."""
T = TypeVar("T")
Replicas = tuple[int, ...]
"""Broker ids, the preferred leader first."""


def main(argv: Sequence[str]) -> int:
    """Move partitions as configured; return 0 when told to stop, 1 if a mover failed."""
    stopped = stop_on_sigterm()
    return 0 if run_client(read_membership_config(Path(argv[1])), stopped) else 1


def run_client(config: MembershipConfig, stopped: Callable[[], bool]) -> bool:
    """Run until told to stop, or until a mover fails: then return False."""
    beginning = threading.Lock()
    # The time of a write, then of its cancellation and of the looks after it.
    end_s_max = 2 * config.spec.write_timeout_ms / 1000 + 2 * _LOOK_TIMEOUT_S + _END_SLACK_S
    with EventJournal(Path(config.raw), "partition_writes", writer=config.client) as journal:
        runs = [
            _Mover(config, number, journal, beginning).run for number in range(config.spec.movers)
        ]
        return run_threads(runs, stopped=stopped, end_s_max=end_s_max)


class _Mover:
    """One logical client: moves one of its partitions after the other."""

    def __init__(
        self,
        config: MembershipConfig,
        number: int,
        journal: EventJournal,
        beginning: threading.Lock,
    ) -> None:
        spec = config.spec
        self._config = config
        self._number = number
        self._process = config.process + number
        self._journal = journal
        self._beginning = beginning
        self._clock = config.clock
        self._timeout_s = spec.write_timeout_ms / 1000
        self._places = places_of(config.keys)
        self._moves = Moves(
            keys=range(number, len(config.keys), spec.movers),
            broker_ids=config.broker_ids,
            replicas_min=spec.replicas_min,
            replicas_max=spec.replicas_max or len(config.broker_ids),
            moves_max=spec.moves_of(number),
            cancel_share=spec.cancel_share,
            cancel_after_s_max=spec.cancel_after_max_ms / 1000,
            draw=np.random.default_rng([config.seed, self._process]),
        )

    def run(self, ending: threading.Event) -> None:
        """Move partitions until told to end, or until the budget is used up."""
        spec = self._config.spec
        pace = steady_pace(spec.rate / spec.movers, self._clock, share=self._number / spec.movers)
        with ExitStack() as stack:
            client_id = self._config.client
            brokers = _Brokers(
                self._config.brokers,
                {
                    name: stack.enter_context(NodeConnection(address, client_id=client_id))
                    for name, address in self._config.brokers.items()
                },
                np.random.default_rng([self._config.seed, self._process, _OF_TURNS]),
            )
            while not self._moves.is_over and await_due(pace, self._clock, ending):
                self._move(self._moves.next_key(), brokers, ending)
                pace.take(1, self._clock.now_ns())

    def _move(self, key: int, brokers: "_Brokers", ending: threading.Event) -> None:
        placement = self._look(key, brokers)
        if placement is None:
            return
        if placement.is_moving:
            self._cancel(key, brokers)
            return
        move = self._moves.next(placement.replicas)
        topic, partition = self._places[key]
        write = reassign(topic, partition, move.replicas, timeout_s=self._timeout_s)
        asked = {"replicas_before": placement.replicas, "replicas": move.replicas}
        number, outcome, _ = self._write(
            "reassign", key, write, brokers, timeout_s=self._timeout_s, columns=asked
        )
        if outcome is not Outcome.OK:
            self._journal.end(number, {"outcome": outcome})
            if outcome is Outcome.INFO:
                self._cancel(key, brokers)
            return
        limit_s = self._config.spec.completion_limit_ms / 1000
        patience_s = limit_s if move.cancel_after_s is None else min(limit_s, move.cancel_after_s)
        is_over = self._await_over(key, move.replicas, brokers, patience_s, ending)
        self._journal.end(number, self._over(is_over=is_over))
        if not is_over:
            self._cancel(key, brokers)

    def _cancel(self, key: int, brokers: "_Brokers") -> None:
        """Ask one broker after the other, within the time-out of a write."""
        topic, partition = self._places[key]
        deadline_s = time.monotonic() + self._timeout_s
        attempt_s = max(_ATTEMPT_S_MIN, self._timeout_s / len(self._config.brokers))
        while (left_s := deadline_s - time.monotonic()) > 0:
            timeout_s = min(left_s, attempt_s)
            write = cancel_reassignment(topic, partition, timeout_s=timeout_s)
            number, outcome, error = self._write(
                "cancel-reassignment", key, write, brokers, timeout_s=timeout_s, columns={}
            )
            if outcome is Outcome.OK:
                is_over = self._await_over(key, None, brokers, left_s, threading.Event())
                self._journal.end(number, self._over(is_over=is_over))
                return
            self._journal.end(number, {"outcome": outcome})
            if error == _NOTHING_TO_CANCEL:
                return
            time.sleep(_LOOK_S)

    def _write(
        self,
        f: str,
        key: int,
        write: Write,
        brokers: "_Brokers",
        *,
        timeout_s: float,
        columns: Mapping[str, object],
    ) -> tuple[int, Outcome, str | None]:
        """Ask the next broker; return the write's number, still to be ended, and how it went."""
        broker, connection = brokers.next(f)
        topic, partition = self._places[key]
        begun = {"f": f, "node": broker, "topic": topic, "partition": partition, **columns}
        with self._beginning:  # numbers follow times
            times = {"process": self._process, "call_ns": self._clock.now_ns()}
            number = self._journal.begin(begun | times)
        answer = ask_broker(connection, write, timeout_s=timeout_s)
        brokers.answered(f, broker, answer.error)
        ended = {"outcome": answer.outcome, "error": answer.error}
        # A client that is killed while it waits for the move has had its answer all the same.
        self._journal.note(number, ended | {"return_ns": self._clock.now_ns()})
        return number, answer.outcome, answer.error

    def _over(self, *, is_over: bool) -> dict[str, object]:
        over_ns = self._clock.now_ns() if is_over else None
        return {"outcome": Outcome.OK, "over_ns": over_ns}

    def _await_over(
        self,
        key: int,
        replicas: Replicas | None,
        brokers: "_Brokers",
        limit_s: float,
        ending: threading.Event,
    ) -> bool:
        """Return whether no move is left within the bound, at these replicas (None: any)."""
        deadline_s = time.monotonic() + limit_s
        while not ending.is_set():
            found = self._look(key, brokers)
            if found is not None and found.is_still_at(replicas):
                return True
            if time.monotonic() > deadline_s:
                return False
            ending.wait(_LOOK_S)
        return False

    def _look(self, key: int, brokers: "_Brokers") -> Placement | None:
        broker, connection = brokers.next(_LOOK)
        topic, partition = self._places[key]
        found, error = ask_placement(connection, topic, partition, timeout_s=_LOOK_TIMEOUT_S)
        brokers.answered(_LOOK, broker, error)
        return found


class _Brokers:
    """The brokers, all in a drawn order, then all again in another; and the controller among them.

    In a fixed order the same step of each move would come to the same broker, and if that one
    hears nothing, no move would ever get beyond it.
    """

    def __init__(
        self,
        addresses: Mapping[NodeName, Address],
        connections: Mapping[NodeName, NodeConnection],
        draw: np.random.Generator,
    ) -> None:
        self._names = {address: name for name, address in addresses.items()}
        self._connections = dict(connections)
        self._draw = draw
        self._order: list[int] = []
        self._asked = Asked(self._turn)

    def next(self, kind: str) -> tuple[NodeName, NodeConnection]:
        """Return the broker to send a request of this kind to."""
        if self._asked.needs_look:
            self._look()
        name = self._asked.next(kind)
        return name, self._connections[name]

    def answered(self, kind: str, broker: NodeName, error: str | None) -> None:
        """Take the error with which a broker answered, or that stands for its silence."""
        self._asked.answered(kind, broker, error)

    def _look(self) -> None:
        connection = self._connections[self._turn()]
        try:
            controller = ask_overview(connection, timeout_s=_LOOK_TIMEOUT_S).controller
        except NoAnswerError:
            controller = None
        self._asked.named(None if controller is None else self._names.get(controller))

    def _turn(self) -> NodeName:
        if not self._order:
            self._order = self._draw.permutation(len(self._connections)).tolist()
        return list(self._connections)[self._order.pop()]


class ReplicaChange(StrEnum):
    """The effect of a move on the set of replicas."""

    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One reassignment to ask for."""

    change: ReplicaChange
    replicas: Replicas
    """The replicas after the move."""
    cancel_after_s: float | None
    """Call it off so long after it began, if it is not over by then; None: not by intent."""


class Moves:
    """The moves of one client, over the keys that are its own, from a seed. Keys are indices.

    A move adds a replica, removes one, or puts one on another broker; where that makes a different
    broker the first of them, the preferred leader changes, too. No move leaves fewer or more
    replicas than the bounds say, and the budget limits the number of moves. It knows no cluster: it
    is told where a partition is and names where it is to be, so that its moves are legal whatever
    became of the moves before.

    `moves_max`: None: no end. `cancel_share`: of the moves, how many are to be called off, each
    after a time of up to `cancel_after_s_max`. ValueError if nothing could ever move.
    """

    def __init__(
        self,
        *,
        keys: Sequence[int],
        broker_ids: Sequence[int],
        replicas_min: int,
        replicas_max: int,
        moves_max: int | None,
        cancel_share: float,
        cancel_after_s_max: float,
        draw: Generator,
    ) -> None:
        if not 1 <= replicas_min <= replicas_max <= len(broker_ids):
            raise ValueError(
                f"{replicas_min} to {replicas_max} replicas on {len(broker_ids)} brokers"
            )
        if replicas_min == len(broker_ids):
            raise ValueError(
                f"{replicas_min} replicas on as many brokers leave none to move a replica to"
            )
        self._broker_ids = tuple(broker_ids)
        self._replicas_min = replicas_min
        self._replicas_max = replicas_max
        self._moves_left = moves_max
        self._cancel_share = cancel_share
        self._cancel_after_s_max = cancel_after_s_max
        self._draw = draw
        self._keys = KeyCycle(keys, draw)

    @property
    def is_over(self) -> bool:
        """Return whether the budget is used up."""
        return self._moves_left == 0

    def next_key(self) -> int:
        """Return the key to move now: each equally often."""
        return int(self._keys.take(1)[0])

    def next(self, replicas: Replicas) -> Move:
        """Return the next move of a partition with these replicas; it counts against the budget."""
        assert not self.is_over, "a move beyond the budget"
        if self._moves_left is not None:
            self._moves_left -= 1
        change = self._one_of(self._possible(replicas))
        return Move(
            change=change, replicas=self._changed(replicas, change), cancel_after_s=self._cancel()
        )

    def _possible(self, replicas: Replicas) -> tuple[ReplicaChange, ...]:
        """Return the possible changes; outside the bounds, those that lead towards them."""
        count, spare = len(replicas), self._spare(replicas)
        if count > self._replicas_max:
            return (ReplicaChange.REMOVE,)
        if count < self._replicas_min:
            return (ReplicaChange.ADD,)
        possible = {
            ReplicaChange.ADD: bool(spare) and count < self._replicas_max,
            ReplicaChange.REMOVE: count > self._replicas_min,
            ReplicaChange.REPLACE: bool(spare),
        }
        return tuple(change for change, can in possible.items() if can)

    def _changed(self, replicas: Replicas, change: ReplicaChange) -> Replicas:
        if change is ReplicaChange.ADD:
            place = int(self._draw.integers(len(replicas) + 1))
            return (*replicas[:place], self._one_of(self._spare(replicas)), *replicas[place:])
        place = int(self._draw.integers(len(replicas)))
        instead = (self._one_of(self._spare(replicas)),) if change is ReplicaChange.REPLACE else ()
        return (*replicas[:place], *instead, *replicas[place + 1 :])

    def _cancel(self) -> float | None:
        # Both are drawn each time, so that one share more or less leaves the other draws alone.
        drawn, after = self._draw.random(2).tolist()
        return after * self._cancel_after_s_max if drawn < self._cancel_share else None

    def _spare(self, replicas: Replicas) -> Replicas:
        return tuple(one for one in self._broker_ids if one not in replicas)

    def _one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self._draw.integers(len(choices)))]


if __name__ == "__main__":
    sys.exit(main(sys.argv))
