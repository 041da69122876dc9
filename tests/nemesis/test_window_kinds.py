"""What a mix could do in windows is what its plays draw: no less, and no more."""

import random
from collections.abc import Callable, Iterable

import pytest

from fencepost.clusters.port import NodeName
from fencepost.nemesis.messages import MESSAGES
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.schedules.late_messages import LATE_FETCH
from fencepost.nemesis.schedules.relays import RELAY
from fencepost.nemesis.schedules.schedule import unfolded
from fencepost.nemesis.schedules.scope import Scope
from fencepost.nemesis.schedules.windows import window
from fencepost.nemesis.targets import ByRole
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.registry import STRIKES, is_fault, verb_of
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import OnNodes, Play
from fencepost.nemesis.window_kinds import (
    CHANGES_CONTROLLER,
    asked_messages,
    asked_strikes,
    asked_windows,
)

ONE = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
THREE = (*map(NodeName, ("controller-2", "controller-3")), *ONE)
QUORUM = ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch")


WINDOWS = {message: window(message) for message in MESSAGES}


def around(draw: random.Random) -> Scope:
    return Scope.around(draw, key="t-0", replicas=(1, 2, 3), nodes=THREE)


def of_a_window(draw: random.Random) -> Play:
    message = draw.choice(list(MESSAGES))
    return unfolded(WINDOWS[message], around(draw))


def of_a_relay(draw: random.Random) -> Play:
    return unfolded(RELAY, around(draw))


def of_a_late_fetch(draw: random.Random) -> Play:
    return unfolded(LATE_FETCH, around(draw))


def strikes_of(play: Play) -> Iterable[str]:
    for step in play:
        if isinstance(step, OnNodes) and is_fault(step):
            on_controller = isinstance(step.target, ByRole)
            yield CHANGES_CONTROLLER if on_controller else verb_of(step).word
        elif isinstance(step, MoveLeader):
            yield verb_of(step).word


@pytest.mark.parametrize(
    ("draws", "faults", "rule"),
    [
        (of_a_window, ("window", "cut_power"), "window"),
        (of_a_relay, ("relay",), ""),
        (of_a_late_fetch, ("late_fetch",), "late"),
    ],
)
def test_all_that_plays_draw_is_asked_for_and_nothing_else(
    draws: Callable[[random.Random], Play], faults: tuple[str, ...], rule: str
) -> None:
    plays = [draws(random.Random(seed)) for seed in range(600)]
    spec = MixSpec(faults=faults)
    assert {strike for play in plays for strike in strikes_of(play)} == {*asked_strikes(spec)}
    laid = [
        step for play in plays for step in play if isinstance(step, Lay) and rule in ("", step.name)
    ]
    kinds = {f"{lay.match.api} {lay.match.direction}" for lay in laid}
    assert kinds <= {*asked_windows(spec, nodes=THREE)}
    assert {kind.split()[0] for kind in kinds} == {*asked_messages(spec, nodes=THREE)}


def test_power_is_cut_in_windows_only_where_the_mix_cuts_it_too() -> None:
    assert "cut_power" not in asked_strikes(MixSpec(faults=("window", "kill")))
    assert "cut_power" in asked_strikes(MixSpec(faults=("ambush", "cut_power")))


def test_a_mix_waits_for_the_messages_that_it_states_and_that_its_nodes_send() -> None:
    spec = MixSpec(faults=("kill", "window"), windows=("Vote", "Fetch"))
    assert asked_messages(spec, nodes=THREE) == ("Fetch", "Vote")
    assert asked_messages(spec, nodes=ONE) == ("Fetch",)
    of_any = MixSpec(faults=("hold",))
    assert {*asked_messages(of_any, nodes=THREE)} - {*asked_messages(of_any, nodes=ONE)} == {
        *QUORUM
    }
    assert asked_windows(spec, nodes=ONE) == ("Fetch request", "Fetch response")


def test_a_mix_without_windows_asks_for_none() -> None:
    without = MixSpec(faults=("kill", "drop", "delay_rpc"))
    assert (asked_windows(without, nodes=THREE), asked_strikes(without)) == ((), ())


def test_every_kind_with_windows_is_a_strike_by_its_name() -> None:
    known = [kind for kind in STRIKES if asked_windows(MixSpec(faults=(kind,)), nodes=THREE)]
    assert {*known} == {"window", "ambush", "relay", "late_fetch", "hold"}
