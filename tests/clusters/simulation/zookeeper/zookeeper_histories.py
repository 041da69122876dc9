"""One random history for two ensembles, real and modelled; what they answered is compared.

Steps are drawn from a seed. After each of them every client is asked for all that it has been told
by then, so that neither side has anything under way when the next one begins.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.zookeeper import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    SetData,
    Sync,
    WatchType,
    Write,
    ZkOutcome,
    ZkResponse,
)

Event = tuple[WatchType, str]
Heard = ZkResponse | Event

CLIENTS: Final = 5
"""The first of them is always there."""
ROOT: Final = "/t"
_COUNTED: Final = (
    *("requests", "operations", "errors", "events"),
    *("open", "close", "reconnect", "expire", "restart"),
)
_NAMES: Final = ("a", "b", "c")
_BAD: Final = ("/t/", "t", "/t//a", "/t/./a", "/t/a/..")


class Side(Protocol):
    """An ensemble and its clients, of which each has a session or not."""

    sessions: list[int]
    """The id of each client's session; 0: none."""

    def open(self, client: int) -> None:
        """Open a session."""

    def close(self, client: int) -> None:
        """Close it."""

    def ask(self, client: int, requests: list[tuple[Operation, ...]]) -> None:
        """Send requests, one behind the other."""

    def reconnect(self, client: int) -> None:
        """Drop the connection, and go on with the session on another one."""

    def expire(self, clients: list[int]) -> None:
        """Let these sessions expire."""

    def restart(self) -> None:
        """Kill the servers and start them; all clients go on with their sessions."""

    def flush(self) -> list[list[Heard]]:
        """Return what each client has heard since the last call."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a history."""

    what: str
    clients: tuple[int, ...] = ()
    requests: tuple[tuple[Operation, ...], ...] = ()


class Script:
    """Draws steps; it knows which clients have sessions."""

    def __init__(self, seed: int, *, expiries: float, restarts: float) -> None:
        self._random = Random(seed)
        self._open = {0}
        self._rates = {"expire": expiries, "restart": restarts}
        self.begin = Step("ask", (0,), ((Create(ROOT, b""),),))

    def step(self) -> Step:
        draw = self._random
        for what, rate in self._rates.items():
            if draw.random() < rate:
                return self._rare(what)
        absent = [one for one in range(CLIENTS) if one not in self._open]
        if absent and draw.random() < 0.2:
            self._open.add(client := draw.choice(absent))
            return Step("open", (client,))
        others = sorted(self._open - {0})
        roll = draw.random()
        if others and roll < 0.02:
            self._open.discard(client := draw.choice(others))
            return Step("close", (client,))
        client = draw.choice(sorted(self._open))
        if roll < 0.05:
            return Step("reconnect", (client,))
        count = 1 if draw.random() < 0.7 else draw.randint(2, 6)
        return Step("ask", (client,), tuple(self._request() for _ in range(count)))

    def _rare(self, what: str) -> Step:
        others = sorted(self._open - {0})
        if what == "restart":
            return Step("restart")
        gone = tuple(self._random.sample(others, min(2, len(others))))
        self._open -= set(gone)
        return Step("expire", gone) if gone else self.step()

    def _request(self) -> tuple[Operation, ...]:
        draw = self._random
        if draw.random() < 0.5:
            watch = draw.random() < 0.5
            kind = draw.choice((GetData, Exists, GetChildren))
            return (kind(self._path(), watch),)
        if draw.random() < 0.05:
            return (Sync(ROOT),)
        if draw.random() < 0.7:
            return (self._write(draw.choice((Create, Create, Create, SetData, Delete))),)
        kinds = (Create, Create, SetData, Delete, Check)
        return tuple(self._write(draw.choice(kinds)) for _ in range(draw.randint(2, 5)))

    def _write(self, kind: type[Write]) -> Write:
        draw = self._random
        path = draw.choice(_BAD) if draw.random() < 0.02 else self._path()
        data = draw.randbytes(draw.randint(0, 4))
        if kind is Create:
            sequential = draw.random() < 0.3
            name = f"{path}n-" if sequential else path
            return Create(name, data, draw.random() < 0.4, sequential)
        version = -1 if draw.random() < 0.7 else draw.randint(0, 3)
        if kind is SetData:
            return SetData(path, data, version)
        return Delete(path, version) if kind is Delete else Check(path, version)

    def _path(self) -> str:
        draw = self._random
        parts = [draw.choice(_NAMES) for _ in range(draw.choice((1, 1, 2, 2, 3)))]
        return "/".join((ROOT, *parts))


class DifferenceError(AssertionError):
    """The two sides did not tell the same."""


class Comparison:
    """Carries a script out on both sides. Counts what was compared."""

    def __init__(self, script: Script, real: Side, model: Side) -> None:
        self._script = script
        self._sides = (real, model)
        self._owners: tuple[dict[int, int], dict[int, int]] = ({}, {})
        """The sessions of each side, numbered in the order in which they were opened."""
        self.counts = dict.fromkeys(_COUNTED, 0)

    def run(self, goes_on: Callable[[dict[str, int]], bool]) -> None:
        """Go on until told otherwise. Raises DifferenceError."""
        self._carry_out(Step("open", (0,)))
        self._carry_out(self._script.begin)
        while goes_on(self.counts):
            self._carry_out(self._script.step())

    def _carry_out(self, step: Step) -> None:
        heard = []
        for side, owners in zip(self._sides, self._owners, strict=True):
            _act(side, step)
            for session in side.sessions:
                if session:
                    owners.setdefault(session, len(owners) + 1)
            heard.append([[_seen(one, owners) for one in part] for part in side.flush()])
        if step.what != "ask":
            self.counts[step.what] += max(1, len(step.clients))
        if step.what in ("expire", "close"):
            # The znodes of a session end in any order.
            heard = [[sorted(part, key=repr) for part in side] for side in heard]
        if heard[0] != heard[1]:
            lines = [f"{step}"]
            for client, (real, model) in enumerate(zip(*heard, strict=True)):
                if real != model:
                    lines += [f"client {client}", f" real  {real}", f" model {model}"]
            raise DifferenceError("\n".join(lines))
        self._count(step, heard[0])

    def _count(self, step: Step, heard: list[list[Any]]) -> None:
        self.counts["requests"] += len(step.requests)
        self.counts["operations"] += sum(map(len, step.requests))
        answers = [one for part in heard for one in part if isinstance(one, ZkResponse)]
        self.counts["errors"] += sum(1 for one in answers if one.error)
        self.counts["events"] += sum(map(len, heard)) - len(answers)


def _act(side: Side, step: Step) -> None:
    if step.what == "ask":
        side.ask(step.clients[0], list(step.requests))
    elif step.what == "expire":
        side.expire(list(step.clients))
    elif step.what == "restart":
        side.restart()
    elif step.what == "open":
        side.open(step.clients[0])
    elif step.what == "close":
        side.close(step.clients[0])
    else:
        side.reconnect(step.clients[0])


def _seen(heard: Heard, owners: dict[int, int]) -> Heard:
    """Return it with sessions by their order, and without the client's own number."""
    if not isinstance(heard, ZkResponse):
        return heard
    outcomes = tuple(_owned(one, owners) for one in heard.outcomes)
    return ZkResponse(0, heard.error, heard.zxid, outcomes)


def _owned(outcome: ZkOutcome, owners: dict[int, int]) -> ZkOutcome:
    stat = outcome.stat
    if stat is None or not stat.ephemeral_owner:
        return outcome
    return replace(outcome, stat=replace(stat, ephemeral_owner=owners[stat.ephemeral_owner]))
