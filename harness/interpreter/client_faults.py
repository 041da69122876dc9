"""The performance of faults of client processes, and the books of these.

A crash is over when the new process has recorded an operation; a pause, when the process is seen to
go on. All that is paused goes on when everything is healed.
"""

import random
from dataclasses import replace

from fencepost.harness.interpreter.books import FaultBook, Played
from fencepost.history.failure import HarnessError
from fencepost.nemesis.clients import ClientChoice, ControlsClients
from fencepost.nemesis.verbs.on_clients import OnClients
from fencepost.nemesis.verbs.registry import VERBS, kind_of, verb_of
from fencepost.nemesis.verbs.verb import OnClient


class ClientFaults:
    """The faults of clients during a run. `clients` None: they are no processes."""

    def __init__(
        self, clients: ControlsClients | None, *, journal: FaultBook, played: Played
    ) -> None:
        self._clients = clients
        self._journal = journal
        self._played = played
        self._open: dict[str, tuple[int, OnClients]] = {}
        """The row of each client's fault, and the step that began it, by client."""

    @property
    def open_labels(self) -> tuple[str, ...]:
        """The open faults, e.g. `pause_client producer-0`."""
        return tuple(f"{verb_of(step).word} {name}" for name, (_, step) in self._open.items())

    def perform(
        self,
        step: OnClients,
        do: OnClient,
        then: OnClient | None,
        *,
        draw: random.Random,
        now_s: float,
    ) -> None:
        """Perform the step on each client that it targets, and see its effect."""
        if self._clients is None:
            raise HarnessError(
                "the clients of this run are not processes, and cannot be killed or paused"
            )
        for name in self._names(step, draw):
            one = replace(step, clients=ClientChoice(text=name), at_s=now_s)
            self._played.note(one)
            if verb_of(step).fault:
                self._break(one, name, do, then)
            else:
                index, _ = self._open.pop(name)
                self._journal.end(index, do(self._clients, name))

    def heal_all(self) -> list[OnClients]:
        """Return the steps that end the open faults."""
        return [
            VERBS[verb_of(step).healed_by].step(clients=ClientChoice(text=name))
            for name, (_, step) in self._open.items()
        ]

    def _names(self, step: OnClients, draw: random.Random) -> tuple[str, ...]:
        """Return the clients that it is done to: of a healing step, those with an open fault."""
        assert self._clients is not None
        verb = verb_of(step)
        if verb.fault:
            return step.clients.resolve(self._clients, draw)
        return tuple(
            name
            for name, (_, broken) in self._open.items()
            if verb_of(broken).healed_by == verb.word and step.clients.covers(name)
        )

    def _break(self, step: OnClients, name: str, do: OnClient, then: OnClient | None) -> None:
        assert self._clients is not None
        verb = verb_of(step)
        index = self._journal.begin(verb.word, [name], kind=kind_of(step))
        self._journal.effect(index, do(self._clients, name))
        if name in self._open:
            self._journal.end(self._open.pop(name)[0], f"{verb.word} came before it was healed")
        if then is not None:
            self._journal.end(index, then(self._clients, name))
        else:
            self._open[name] = (index, step)
