"""Faults that wait for the protocol, as a mix draws them: strikes in the middle of a message.

Single messages are held, dropped, delayed, sent twice or out of order; or nodes are struck while
one is held or as soon as one is seen. Each is a play of `nemesis.windows`, `relays` or
`late_messages` around a partition, with the broker that leads it then. Strikes are what nodes of
any cluster can suffer; power is cut where the mix cuts power, too.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from clusters.kafka_port import ClusterView, Role
from nemesis import relays
from nemesis.late_messages import REPLICAS_MIN as LATE_FETCH_REPLICAS_MIN
from nemesis.late_messages import drawn_late_fetch
from nemesis.messages import MESSAGES, drawn_message
from nemesis.relays import drawn_relay
from nemesis.targets import Scene
from nemesis.verbs.cut_power import CutPower
from nemesis.verbs.episode import Begun, Episode, EpisodeWindow, Opening
from nemesis.verbs.kill import Kill
from nemesis.verbs.move_leader import MoveLeader
from nemesis.verbs.pause import Pause
from nemesis.verbs.prerequisite import Prerequisite
from nemesis.verbs.rule import Lay
from nemesis.verbs.step import Play, Step
from nemesis.verbs.stop import ShutDown
from nemesis.windows import drawn_message_fault, drawn_window
from nemesis.wire.rules import Action, Clause, Delay, Drop, Duplicate, Hold, Operator, Reorder

_STRIKES: Final = (Kill, Kill, Kill, Pause, ShutDown)
"""A node that loses its disk was killed: that is what most strikes are."""
_MOVE_S: Final = 2.0
_DELAYS_MS: Final = (50.0, 200.0, 1000.0, 4000.0)
"""Of a single message: up to longer than a session."""


def _begin_window(draft: Opening, *, form: str) -> Begun | None:
    message = _message(draft)
    key = _key(draft, message)
    first, replicas = _over_a_link(draft, message, key, _led_first(draft, key, replicas_min=2))
    if message is None or not replicas:
        return None
    play = drawn_window(
        draft.draw,
        key=key,
        replicas=replicas,
        nodes=draft.scene.nodes,
        roles=draft.scene.roles,
        strikes=(*_STRIKES, CutPower) if "cut_power" in draft.faults else _STRIKES,
        message=message,
        passes=form == "ambush",
    )
    of_quorum = MESSAGES[message].sender is Role.CONTROLLER
    key_or_none = None if of_quorum else key
    return _begun(draft, (*first, *play), form=form, key=key_or_none, rule="window")


def _key(draft: Opening, message: str | None) -> str:
    """Draw the partition; if its leader sends this message over no link, take the next one."""
    drawn, view = draft.draw.choice(draft.keys), draft.scene.view
    asks_itself = _elected_broker(draft.scene)
    if message is None or not MESSAGES[message].to_controller or not asks_itself or view is None:
        return drawn
    at = draft.keys.index(drawn)
    for key in (*draft.keys[at:], *draft.keys[:at]):
        shown = view.partitions.get(key)
        if shown is not None and shown.leader not in (None, asks_itself):
            return key
    return drawn


def _over_a_link(
    draft: Opening, message: str | None, key: str, replicas: tuple[int, ...]
) -> tuple[Play, tuple[int, ...]]:
    """Return what is done first so that the message goes over a link, and who then leads first.

    The broker that is never struck comes to be the controller, and to lead all partitions.
    """
    asks_itself = _elected_broker(draft.scene)
    if message is None or not MESSAGES[message].to_controller or asks_itself is None:
        return (), replicas
    if replicas[:1] != (asks_itself,):
        return (), replicas
    led = (*replicas[1:], asks_itself)
    return (MoveLeader(leaders={key: led[0]}, within_s=_MOVE_S),), led


def _elected_broker(scene: Scene) -> int | None:
    """Return the broker that is the controller by election, where there are no controllers."""
    active = scene.active_controller
    if active is None or Role.CONTROLLER in scene.roles.of(active):
        return None
    return scene.broker_ids.get(active)


def _message(draft: Opening) -> str | None:
    scene = draft.scene
    return drawn_message(draft.draw, nodes=scene.nodes, roles=scene.roles, among=draft.messages)


def _begin_single(draft: Opening, *, form: str, action: Callable[[Random], Action]) -> Begun | None:
    message = _message(draft)
    key = _key(draft, message)
    first, replicas = _over_a_link(draft, message, key, _led_first(draft, key, replicas_min=2))
    if message is None or not replicas:
        return None
    play = drawn_message_fault(
        draft.draw,
        key=key,
        replicas=replicas,
        nodes=draft.scene.nodes,
        roles=draft.scene.roles,
        message=message,
        action=action(draft.draw),
    )
    steps = (*first, *play)
    return _begun(draft, steps, form=form, key=key, rule="window", opens=form == "hold")


def _begin_play(
    draft: Opening,
    *,
    form: str,
    drawn: Callable[..., Play],
    replicas_min: int,
    rule: str = "",
    followers_go: bool = False,
) -> Begun | None:
    """Begin a play around a partition. `followers_go`: it takes away all of its followers."""
    key = draft.draw.choice(draft.keys)
    replicas = _led_first(draft, key, replicas_min=replicas_min)
    if not replicas or (followers_go and not _voters_may_go(draft, replicas[1:])):
        return None
    return _begun(
        draft, drawn(draft.draw, key=key, replicas=replicas), form=form, key=key, rule=rule
    )


def _voters_may_go(draft: Opening, brokers: Collection[int]) -> bool:
    """Return whether the budget lets those of these brokers go together that are controllers, too.

    Without a majority of them nobody is fenced, and nobody is registered.
    """
    ids, roles = draft.scene.broker_ids, draft.scene.roles
    voters = tuple(
        node for node, number in ids.items() if number in brokers and node in roles.second
    )
    return len(draft.free(voters)) == len(voters)


def _begun(
    draft: Opening, play: Play, *, form: str, key: str | None, rule: str = "", opens: bool = True
) -> Begun:
    """Begin the play; its window, if it opens one, is that of this rule, or of the first."""
    play = tuple(_by_own_name(step, draft.own_names) for step in play)
    if draft.scene.roles.second:
        play = tuple(map(_of_records, play))
    laid = [step for step in play if isinstance(step, Lay) and rule in ("", step.name)]
    if not laid or not opens:
        return Begun(nodes=(), due=[], play=play)
    window = EpisodeWindow(
        name=draft.name,
        rule=f"{draft.name}-{laid[0].name}",
        kind=f"{laid[0].match.api} {laid[0].match.direction}",
        form=form,
        key=key,
    )
    return Begun(nodes=(), due=[], play=play, window=window)


def _by_own_name(step: Step, names: Mapping[str, str]) -> Step:
    """Return the step, with the message by the name that it has in this system."""
    if not isinstance(step, Lay):
        return step
    api = step.match.api
    return replace(step, match=replace(step.match, api=names.get(api or "", api)))


def _of_records(step: Step) -> Step:
    """Return the step without the Fetches of the metadata log, which a leader may be asked for."""
    if not isinstance(step, Lay) or step.match.api != "Fetch":
        return step
    records = Clause(field="metadata", operator=Operator.IS, value=False)
    return replace(step, match=replace(step.match, where=(*step.match.where, records)))


def _led_first(draft: Opening, key: str, *, replicas_min: int) -> tuple[int, ...]:
    """Return the replicas of the key, its leader first; none if no play can begin with them."""
    view: ClusterView | None = draft.scene.view
    shown = None if view is None else view.partitions.get(key)
    if shown is None or shown.leader is None or len(shown.replicas) < replicas_min:
        return ()
    busy = {draft.scene.broker_ids.get(node) for node in draft.busy}
    if Role.BROKER not in draft.roles or busy.intersection(shown.replicas):
        return ()
    return (shown.leader, *(one for one in shown.replicas if one != shown.leader))


def _delay(draw: Random) -> Delay:
    low, high = sorted(draw.choices(_DELAYS_MS, k=2))
    return Delay(min_ms=low, max_ms=high)


_SINGLE: Final[Mapping[str, tuple[Callable[[Random], Action], str]]] = {
    "hold": (lambda _draw: Hold(), "a message is held for a while"),
    "drop": (lambda _draw: Drop(), "messages are dropped, and their connections cut"),
    "delay_rpc": (_delay, "messages come up to four seconds later"),
    "duplicate": (lambda _draw: Duplicate(), "requests arrive twice"),
    "reorder": (lambda _draw: Reorder(), "requests are overtaken by the next ones"),
}
"""The faults of single messages, and what each does, in words."""
_FORMS: Final = {
    "window": "a message is held; nodes are struck, lose a disk, come back; then it arrives",
    "ambush": "nodes are struck as soon as a message was seen, which is passed on",
}

EPISODES = (
    *(
        Episode(
            kind=form,
            begin=partial(_begin_single, form=form, action=action),
            prerequisite=Prerequisite.PROXY,
            strikes=meaning,
        )
        for form, (action, meaning) in _SINGLE.items()
    ),
    *(
        Episode(
            kind=form,
            begin=partial(_begin_window, form=form),
            prerequisite=Prerequisite.PROXY,
            strikes=meaning,
        )
        for form, meaning in _FORMS.items()
    ),
    Episode(
        kind="relay",
        begin=partial(
            _begin_play, form="relay", drawn=drawn_relay, replicas_min=relays.REPLICAS_MIN
        ),
        prerequisite=Prerequisite.PROXY,
        strikes="a leadership goes round while replicas do not hear each other (three replicas)",
    ),
    Episode(
        kind="late_fetch",
        begin=partial(
            _begin_play,
            form="late_fetch",
            drawn=drawn_late_fetch,
            replicas_min=LATE_FETCH_REPLICAS_MIN,
            rule="late",
            followers_go=True,
        ),
        prerequisite=Prerequisite.PROXY,
        strikes="a Fetch arrives after its sender lost its disk and came back (three replicas)",
    ),
)
