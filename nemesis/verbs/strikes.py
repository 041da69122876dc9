"""Faults that wait for the protocol, as a mix draws them: strikes in the middle of a message.

Single messages are held, dropped, delayed, sent twice or out of order; or nodes are struck while
one is held or as soon as one is seen. Each is a schedule of `nemesis.schedules` around a partition,
with the broker that leads it then.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from fencepost.clusters.kafka_port import ClusterView, Role
from fencepost.nemesis.messages import MESSAGES, drawn_message
from fencepost.nemesis.schedules import late_messages, relays
from fencepost.nemesis.schedules.deeds import DelayOf
from fencepost.nemesis.schedules.draws import Drawn
from fencepost.nemesis.schedules.schedule import Let, OneOf, Option, Schedule, then
from fencepost.nemesis.schedules.scope import Scope
from fencepost.nemesis.schedules.windows import MIX_STRIKES, WINDOW, message_fault, window
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.verbs.episode import Begun, Episode, EpisodeWindow, Opening
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import Play, Step
from fencepost.nemesis.wire.rules import Action, Clause, Drop, Duplicate, Hold, Operator, Reorder

_MOVE_S: Final = 2.0


def _around(draft: Opening, key: str, replicas: tuple[int, ...]) -> Scope:
    scene = draft.scene
    scope = Scope.around(
        draft.draw, key=key, replicas=replicas, nodes=scene.nodes, roles=scene.roles
    )
    scope.faults = draft.faults
    return scope


def _begin_at_message(draft: Opening, *, kind: str, schedule: OneOf, opens: bool) -> Begun | None:
    """Begin a schedule of a drawn message. `opens`: a window opens by it."""
    scene = draft.scene
    message = drawn_message(draft.draw, nodes=scene.nodes, roles=scene.roles, among=draft.messages)
    key = _key(draft, message)
    first, replicas = _over_a_link(draft, message, key, _led_first(draft, key, replicas_min=2))
    if message is None or not replicas:
        return None
    part = next(one.part for one in schedule.options if one.label == message)
    steps = (*first, *part.unfold(_around(draft, key, replicas)))
    strikes = kind in _FORMS
    of_none = strikes and MESSAGES[message].sender is Role.CONTROLLER
    return _begun(draft, steps, form=kind, key=None if of_none else key, rule=WINDOW, opens=opens)


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


def _begin_play(
    draft: Opening,
    *,
    form: str,
    schedule: Schedule,
    replicas_min: int,
    rule: str = "",
    followers_go: bool = False,
) -> Begun | None:
    """Begin a play around a partition. `followers_go`: it takes away all of its followers."""
    key = draft.draw.choice(draft.keys)
    replicas = _led_first(draft, key, replicas_min=replicas_min)
    if not replicas or (followers_go and not _voters_may_go(draft, replicas[1:])):
        return None
    play = tuple(schedule.unfold(_around(draft, key, replicas)))
    return _begun(draft, play, form=form, key=key, rule=rule)


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


def _of_messages(drawn: Mapping[str, Schedule]) -> OneOf:
    """Return one of the schedules, by the weight of its message."""
    weighed = ((message, MESSAGES[message].weight) for message in drawn)
    return OneOf(tuple(Option(drawn[one], weight, label=one) for one, weight in weighed))


def _at_message(kind: str, schedule: OneOf, meaning: str, *, opens: bool) -> Episode:
    return Episode(
        kind=kind,
        schedule=schedule,
        begin=partial(_begin_at_message, kind=kind, schedule=schedule, opens=opens),
        prerequisite=Prerequisite.PROXY,
        strikes=meaning,
    )


def _around_partition(
    kind: str,
    schedule: Schedule,
    meaning: str,
    *,
    replicas_min: int,
    rule: str = "",
    followers_go: bool = False,
) -> Episode:
    begin = partial(
        _begin_play,
        form=kind,
        schedule=schedule,
        replicas_min=replicas_min,
        rule=rule,
        followers_go=followers_go,
    )
    return Episode(
        kind=kind,
        schedule=schedule,
        begin=begin,
        prerequisite=Prerequisite.PROXY,
        strikes=meaning,
    )


_DRAWN_DELAY: Final = Drawn("delay")
_SINGLE: Final[Mapping[str, tuple[Action | Drawn, str]]] = {
    "hold": (Hold(), "a message is held for a while"),
    "drop": (Drop(), "messages are dropped, and their connections cut"),
    "delay_rpc": (_DRAWN_DELAY, "messages come up to four seconds later"),
    "duplicate": (Duplicate(), "requests arrive twice"),
    "reorder": (Reorder(), "requests are overtaken by the next ones"),
}
"""The faults of single messages, and what each does, in words."""
_LET_DELAY: Final = Let(_DRAWN_DELAY.name, DelayOf((50.0, 200.0, 1000.0, 4000.0)))
"""Of a single message: up to longer than a session."""
_FORMS: Final = {
    "window": "a message is held; nodes are struck, lose a disk, come back; then it arrives",
    "ambush": "nodes are struck as soon as a message was seen, which is passed on",
}


def _single(message: str, action: Action | Drawn) -> Schedule:
    fault = message_fault(message, action)
    return then(_LET_DELAY, fault) if action is _DRAWN_DELAY else fault


EPISODES = (
    *(
        _at_message(
            kind,
            _of_messages({one: _single(one, action) for one in MESSAGES}),
            meaning,
            opens=kind == "hold",
        )
        for kind, (action, meaning) in _SINGLE.items()
    ),
    *(
        _at_message(
            kind,
            _of_messages(
                {one: window(one, strikes=MIX_STRIKES, passes=kind == "ambush") for one in MESSAGES}
            ),
            meaning,
            opens=True,
        )
        for kind, meaning in _FORMS.items()
    ),
    _around_partition(
        "relay",
        relays.RELAY,
        "a leadership goes round while replicas do not hear each other (three replicas)",
        replicas_min=relays.REPLICAS_MIN,
    ),
    _around_partition(
        "late_fetch",
        late_messages.LATE_FETCH,
        "a Fetch arrives after its sender lost its disk and came back (three replicas)",
        replicas_min=late_messages.REPLICAS_MIN,
        rule=late_messages.LATE,
        followers_go=True,
    ),
)
