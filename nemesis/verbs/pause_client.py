"""A zombie: a client is paused, past its session and its transaction's end, and goes on as before.

- pause_client: one producer
- wait: 70s                       # its transaction timed out, and perhaps another took its place
- resume_client: one producer     # of those that are paused

It still believes in its producer epoch, its assignment and its connections; that brokers do not is
what keeps it from writing into a transaction that has ended.
"""

from dataclasses import dataclass

from fencepost.nemesis.clients import ClientChoice
from fencepost.nemesis.schedules.schedule import Do, lasting
from fencepost.nemesis.verbs.episode import on_cluster
from fencepost.nemesis.verbs.on_clients import OnClients, client_verb

_ZOMBIE = "one producer"


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseClient(OnClients):
    """Stop every thread of the clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeClient(OnClients):
    """Let the clients go on."""


_WHO = ClientChoice(text=_ZOMBIE)
_SCHEDULE = lasting(Do(PauseClient(clients=_WHO)), healed=Do(ResumeClient(clients=_WHO)))

VERBS = (
    client_verb(
        "pause_client",
        ("pause_client: producer-0",),
        PauseClient,
        lambda clients, name: clients.pause(name),
        healed_by="resume_client",
        follow=lambda step, predicted: predicted.paused_clients.add(step.clients),
        episodes=(on_cluster("pause_client", _SCHEDULE),),
        tones=("#854d0e", "#dcb45c"),
    ),
    client_verb(
        "resume_client",
        ("pause_client: producer-0", "resume_client: producer-0"),
        ResumeClient,
        lambda clients, name: clients.resume(name),
        follow=lambda step, predicted: predicted.resume(step.clients, word="resume_client"),
    ),
)
