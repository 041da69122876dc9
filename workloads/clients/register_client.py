"""The register client: sessions with a ZooKeeper ensemble that read and write znodes on a schedule.

A schedule, drawn from the seed, says when an operation is due. It goes to any session that is
connected and has a logical client without an open operation; without one the schedule is given up
(`Pace`). A logical client ends with its first info, and another number takes its place.

With a `result` it is a final reader: it reads each key once, behind a sync, from its one server.
"""

import itertools
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from fencepost.history.atomic import write_atomically
from fencepost.history.journal import EventJournal
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.register_config import RegisterConfig, read_register_config
from fencepost.workloads.clients.shutdown import stop_on_sigterm
from fencepost.workloads.clients.znode_session import ZnodeSession
from fencepost.workloads.generators.pace import Pace
from fencepost.workloads.generators.znodes import ZnodeDraws, ZnodeF, ZnodeIntent, znode_keys

_TABLE: Final = "znode_operations"
_ROOT: Final = "/register"
_TICK_NS: Final = 2_000_000
_LOOK_S: Final = 0.002
_VALUES_A_CLIENT: Final = 1 << 40


def main(argv: Sequence[str]) -> int:
    """Do as configured until told to stop; return 0, or 1 of a final reader that did not end."""
    stopped = stop_on_sigterm()
    config = read_register_config(Path(argv[1]))
    return 0 if run_client(config, stopped) else 1


def run_client(config: RegisterConfig, stopped: Callable[[], bool]) -> bool:
    """Run until told to stop, or until every key is read; False: some could not be."""
    with EventJournal(Path(config.raw), _TABLE, writer=config.writer) as journal:
        if config.result:
            return _FinalReader(config, journal).run(stopped)
        _Client(config, journal).run(stopped)
    return True


class _Client:
    """A client that reads and writes."""

    def __init__(self, config: RegisterConfig, journal: EventJournal) -> None:
        spec = config.spec
        self._config = config
        self._clock = config.clock
        self._keys = znode_keys(spec.keys, deleted_share=spec.deleted_share)
        self._draws = ZnodeDraws(
            *self._keys,
            weights={f: getattr(spec.mix, f.name.lower()) for f in ZnodeF if f in _DRAWN},
            draw=np.random.default_rng([config.seed, config.number, config.earlier]),
        )
        self._generations = itertools.count()
        self._idle: deque[tuple[int, int]] = deque()
        self._sessions = [
            ZnodeSession(
                config.servers[place % len(config.servers) :]
                + config.servers[: place % len(config.servers)],
                timeout_ms=spec.session_timeout_ms,
                journal=journal,
                clock=config.clock,
                ended=self._ended_in(place),
                value_bytes=spec.value_bytes,
            )
            for place in range(spec.sessions)
        ]
        # Session by session, so that a client uses all of them.
        for _ in range(spec.pipeline):
            for place in range(spec.sessions):
                self._idle.append((place, self._next_process()))
        self._written = (config.earlier * _VALUES_A_CLIENT) + config.number

    def run(self, stopped: Callable[[], bool]) -> None:
        """Read and write until told to stop; wait then for what is open, for a session's time."""
        spec, clock = self._config.spec, self._clock
        for session in self._sessions:
            session.start()
        self._begin(stopped)
        pace = Pace(
            rate=spec.rate / spec.clients,
            backlog_max=spec.pipeline * spec.sessions,
            tick_ns=_TICK_NS,
            start_ns=clock.now_ns(),
        )
        while not stopped():
            for one in self._sessions:
                if one.failure is not None:
                    raise one.failure
                one.renew()
            sent = self._send(pace.due(clock.now_ns()))
            pace.take(sent, clock.now_ns())
            time.sleep(max(_LOOK_S, min(0.1, pace.wait_ns(clock.now_ns()) / 1e9)))
        deadline_s = time.monotonic() + spec.session_timeout_ms / 1000
        while any(one.open_count for one in self._sessions) and time.monotonic() < deadline_s:
            time.sleep(_LOOK_S)
        for session in self._sessions:
            session.close()

    def _begin(self, stopped: Callable[[], bool]) -> None:
        """Create the parent of all keys, and then, recorded, a share of the keys that last."""
        while not stopped() and not self._sessions[0].is_up:
            time.sleep(_LOOK_S)
        # Requests of a session are carried out in their order.
        self._sessions[0].ensure(_ROOT)
        lasting, _ = self._keys
        for key in lasting[self._config.number :: self._config.spec.clients]:
            while not stopped() and not self._give(ZnodeIntent(f=ZnodeF.CREATE, key=key)):
                time.sleep(_LOOK_S)

    def _send(self, due: int) -> int:
        """Send as many of the operations that are due as there is room for; return how many."""
        for sent in range(due):
            if not self._has_room() or not self._give(self._draws.next()):
                return sent
        return due

    def _has_room(self) -> bool:
        """Bring a logical client of a session that is up to the front, if there is one."""
        for _ in range(len(self._idle)):
            if self._sessions[self._idle[0][0]].is_up:
                return True
            self._idle.rotate(-1)
        return False

    def _give(self, intent: ZnodeIntent) -> bool:
        if not self._has_room():
            return False
        place, process = self._idle.popleft()
        self._written += self._config.spec.clients
        sent = self._sessions[place].send(process, intent, self._written)
        if not sent:
            self._idle.append((place, process))
        return sent

    def _ended_in(self, place: int) -> Callable[[int, ZnodeIntent, dict[str, Any]], None]:
        def ended(process: int, intent: ZnodeIntent, row: dict[str, Any]) -> None:
            if row.get("error") == _NO_PARENT:
                self._sessions[place].ensure(_ROOT)
            if "version" in row and intent.f is not ZnodeF.DELETE:
                self._draws.saw(intent.key, row["version"])
            crashed = row["outcome"] is Outcome.INFO
            self._idle.append((place, self._next_process() if crashed else process))

        return ended

    def _next_process(self) -> int:
        return self._config.process_of(next(self._generations))


_NO_PARENT: Final = "NONODE"
"""The error of a create whose parent is gone: the ensemble has lost what it had."""
_DRAWN: Final = frozenset(ZnodeF) - {ZnodeF.FINAL_READ}


class _FinalReader:
    """A client that reads each key once, and tries again until each was answered."""

    def __init__(self, config: RegisterConfig, journal: EventJournal) -> None:
        self._config = config
        lasting, deleted = znode_keys(config.spec.keys, deleted_share=config.spec.deleted_share)
        self._keys = (*lasting, *deleted)
        self._missing = dict.fromkeys(self._keys)
        self._asked: dict[str, None] = {}
        self._idle = deque(config.process_of(number) for number in range(config.spec.pipeline))
        self._session = ZnodeSession(
            config.servers,
            timeout_ms=config.spec.session_timeout_ms,
            journal=journal,
            clock=config.clock,
            ended=self._ended,
        )

    def run(self, stopped: Callable[[], bool]) -> bool:
        """Read until every key is read, the deadline has passed, or it is told to stop."""
        config, session = self._config, self._session
        session.start()
        while self._missing and not stopped() and config.clock.now_ns() < config.deadline_ns:
            if session.failure is not None:
                raise session.failure
            for key in itertools.islice(self._unasked(), len(self._idle)):
                if not session.is_up:
                    break
                self._asked[key] = None
                intent = ZnodeIntent(f=ZnodeF.FINAL_READ, key=key)
                if not session.send(self._idle.popleft(), intent, 0):
                    break
            time.sleep(_LOOK_S)
        complete = [key for key in self._keys if key not in self._missing]
        write_atomically(Path(config.result), json.dumps({"complete": complete}).encode())
        session.close()
        return not self._missing

    def _unasked(self) -> Iterator[str]:
        return (key for key in list(self._missing) if key not in self._asked)

    def _ended(self, process: int, intent: ZnodeIntent, row: dict[str, Any]) -> None:
        if row["outcome"] is Outcome.OK:
            self._missing.pop(intent.key, None)
        self._asked.pop(intent.key, None)
        self._idle.append(process)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
