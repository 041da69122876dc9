"""The harness's handle of the proxy, which runs as a process of its own under the warden.

Every call is a question to that process, answered within milliseconds by its one loop.
"""

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.multi_node_requests import is_answered
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.networks import IsAnswered
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError, UsageError, why_full
from fencepost.history.program import command
from fencepost.nemesis.wire.control import flows_data, link_data, rule_data, status_of
from fencepost.nemesis.wire.matching import refuse_impossible
from fencepost.nemesis.wire.rules import Flow, Link, Rule
from fencepost.nemesis.wire.status import Delivery, WireStatus

_START_TIMEOUT_S: Final = 30.0
"""The bound of a start, which takes half a second; on a busy machine, several."""
_ANSWER_TIMEOUT_S: Final = 30.0
_CLOSE_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.05
_CHUNK: Final = 1 << 16
_SHORT: Final = "/tmp"  # noqa: S108  # what is made there is a directory of our own
_DIRECTORY_MAX: Final = 56
"""The longest path of the directory, in bytes; a socket's whole path has 107 at most."""


class Wire:
    """The proxy on these links. Thread-safe; a context manager, which closes it.

    `directory` is the run's raw directory: the proxy writes its tape there. `log` takes what the
    process says when it fails. `dialect`: the nodes are the reference cluster's, with messages of
    their own. `answered` sends what probes a link. Raises HarnessError, naming the address, if a
    port is in use; every method raises it, naming the log, once the process has died.
    """

    def __init__(
        self,
        links: Sequence[Link],
        *,
        warden: Warden,
        directory: Path,
        log: Path,
        clock: Clock,
        dialect: bool = False,
        answered: IsAnswered = is_answered,
    ) -> None:
        self._links: dict[Flow, Link] = {}
        for link in links:
            # Of several ports of one target the first is probed.
            self._links.setdefault((link.source, link.target), link)
        self._answered = answered
        self._log = log
        self._warden = warden
        self._lock = Lock()
        self._unread = b""
        self._closed = False
        self._failure: str | None = None
        """The reason why it answers no more; None: it answers."""
        with _meeting() as meeting:
            path = str(Path(meeting) / "control")
            config = {
                "control": path,
                "origin_ns": clock.origin_ns,
                "directory": str(directory.absolute()),
                "links": [link_data(link) for link in links],
                "dialect": dialect,
            }
            config_path = Path(meeting) / "config.json"
            config_path.write_text(json.dumps(config))
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen(1)
                self._pid = warden.spawn(
                    command("fencepost.nemesis.wire.process", str(config_path)),
                    name="the proxy",
                    log=log,
                )
                self._control = self._met(listener)
        self._control.settimeout(_ANSWER_TIMEOUT_S)
        try:
            self._answer()
        except OSError as error:
            self._control.close()
            raise HarnessError(self._obituary(error)) from error
        except HarnessError:
            self._control.close()
            raise

    @property
    def pid(self) -> int:
        """The process id of the proxy."""
        return self._pid

    def add(self, rule: Rule) -> None:
        """Lay a rule, behind those that are laid. Raises UsageError if it can concern nothing."""
        refuse_impossible(rule)
        self._refuse_unknown(frozenset(rule.match.sources), frozenset(rule.match.targets))
        self._ask("add", rule=rule_data(rule))

    def release(self, name: str) -> Delivery:
        """Remove the rule, and deliver what it holds, in the order in which it came.

        It concerns no further frame.
        """
        return Delivery(**self._ask("release", name=name))

    def discard(self, name: str) -> int:
        """Remove the rule, drop the frames it holds, and cut their connections; return how many."""
        dropped: int = self._ask("discard", name=name)
        return dropped

    def block(self, flows: Collection[Flow]) -> None:
        """Pass no bytes on from the first to the second node of each flow, whichever dialled."""
        self._ask("block", flows=flows_data(flows))

    def unblock(self, flows: Collection[Flow] | None = None) -> None:
        """Deliver in order what waited in these flows; None: in all."""
        self._ask("unblock", flows=None if flows is None else flows_data(flows))

    def cut(self, pairs: Collection[tuple[NodeName, NodeName]]) -> int:
        """Close all connections dialled from the first to the second of each; return how many."""
        cut: int = self._ask("cut", pairs=flows_data(pairs))
        return cut

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Say what topics are called: names by id, for frames that state ids alone."""
        self._ask("name_topics", names=dict(names))

    def status(self) -> WireStatus:
        """Return the status of the wire."""
        return status_of(self._ask("status"))

    def probe(self, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:
        """Return whether a request through this link gets its answer in time."""
        link = self._links[source, target]
        return self._answered(target, (link.address, link.port), timeout_s=timeout_s)

    def probe_directly(self, target: NodeName, *, timeout_s: float) -> bool:
        """Return whether such a request gets its answer where the proxy itself finds the target."""
        link = next(link for link in self._links.values() if link.target == target)
        return self._answered(target, (link.dials, link.port), timeout_s=timeout_s)

    def close(self) -> None:
        """End the proxy, and with it every connection. Idempotent.

        Raises HarnessError if it does not end, or had ended before this call: its tape is not whole
        then, even if no request was made to it since.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._failure = self._failure or "the proxy is closed"
            self._control.close()
        code = self._warden.wait(self._pid, timeout_s=_CLOSE_TIMEOUT_S)
        if code is None:
            raise HarnessError(f"the proxy (pid {self._pid}) does not end; its log: {self._log}")
        if code:
            raise HarnessError(self._ended(code))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except HarnessError as second:
            if error is None:
                raise
            error.add_note(f"and then: {second}")

    def _met(self, listener: socket.socket) -> socket.socket:
        """Return the process's connection, or its obituary."""
        listener.settimeout(_POLL_S)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            with contextlib.suppress(TimeoutError):
                return listener.accept()[0]
            if self._warden.exit_code(self._pid) is not None or time.monotonic() > deadline:
                raise HarnessError(
                    f"the proxy (pid {self._pid}) did not start: {self._last_words()}"
                )

    def _ask(self, op: str, **order: Any) -> Any:
        with self._lock:
            if self._failure is not None:
                raise HarnessError(self._failure)
            try:
                self._control.sendall(json.dumps({"op": op, **order}).encode() + b"\n")
                return self._answer()
            except OSError as error:
                self._failure = self._obituary(error)
                raise HarnessError(self._failure) from error

    def _answer(self) -> Any:
        """Return the next answer; raise HarnessError if it is a refusal, OSError if none comes."""
        while b"\n" not in self._unread:
            received = self._control.recv(_CHUNK)
            if not received:
                raise ConnectionResetError
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise HarnessError(answer["error"])
        return answer["answer"]

    def _obituary(self, error: OSError) -> str:
        if isinstance(error, TimeoutError):
            how = f"did not answer within {_ANSWER_TIMEOUT_S:.0f} s"
        else:
            code = self._warden.wait(self._pid, timeout_s=_CLOSE_TIMEOUT_S)
            if code is not None:
                return self._ended(code)
            how = "hung up"
        return f"the proxy (pid {self._pid}) {how}: {self._last_words()}"

    def _ended(self, code: int) -> str:
        return f"the proxy (pid {self._pid}) ended with exit code {code}: {self._last_words()}"

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        if why := why_full(self._log.parent):
            return why
        return f"{lines[-1] if lines else 'no output'}; its log: {self._log}"

    def _refuse_unknown(self, sources: frozenset[str], targets: frozenset[str]) -> None:
        for role, named, known in (
            ("source", sources, {link.source for link in self._links.values()}),
            ("target", targets, {link.target for link in self._links.values()}),
        ):
            if unknown := sorted(named - known):
                raise UsageError(f"no link has {', '.join(unknown)} as its {role}")


def _meeting() -> tempfile.TemporaryDirectory[str]:
    """Return a directory for a socket: not where TMPDIR says if that is too far down for one."""
    is_long = len(os.fsencode(tempfile.gettempdir())) > _DIRECTORY_MAX
    return tempfile.TemporaryDirectory(
        prefix=f"fencepost-wire-{os.getpid()}-", dir=_SHORT if is_long else None
    )
