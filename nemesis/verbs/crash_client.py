"""A client crashes: its process is killed with operations open, and comes back as a new process.

- crash_client: one producer

Open operations may have happened. The new process is another client: it has a name, a process
number and, if it produces with idempotence, a producer id of its own. With a transactional id it
fences the one that crashed, whose open transaction is aborted.
"""

from dataclasses import dataclass

from fencepost.nemesis.clients import ClientChoice
from fencepost.nemesis.schedules.schedule import Do, one_of
from fencepost.nemesis.verbs.episode import on_cluster
from fencepost.nemesis.verbs.on_clients import OnClients, client_verb
from fencepost.nemesis.verbs.predicted_state import PredictedState


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashClient(OnClients):
    """Kill the clients, and start a new process for each."""


_SCHEDULE = one_of(
    *(Do(CrashClient(clients=ClientChoice(text=text))) for text in ("one producer", "one consumer"))
)


def _follow(step: CrashClient, predicted: PredictedState) -> None:
    if step.clients.names_one:  # the new process of it is paused no more
        predicted.forget_paused(step.clients)


VERBS = (
    client_verb(
        "crash_client",
        ("crash_client: producer-0",),
        CrashClient,
        lambda clients, name: clients.crash(name),
        follow=_follow,
        then=lambda clients, name: clients.come_back(name),
        episodes=(on_cluster("crash_client", _SCHEDULE),),
        tones=("#9d174d", "#e58ab0"),
    ),
)
