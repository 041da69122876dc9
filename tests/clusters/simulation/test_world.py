"""The world: what happens when, to whom, and what of it survives an end."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from world_toys import ANSWERED, ASKED, REFUSED, STARTED, Stage, Told, Toy

from fencepost.clusters.node_port.effects import CLOSE, EXIT, NOTE, SEND, STOP, WRITE
from fencepost.clusters.simulation.host import ProcessState
from fencepost.clusters.simulation.trace import MutatedMessageError
from fencepost.clusters.simulation.world import WAKE, World


def test_a_request_is_answered_to_who_asked() -> None:
    stage = Stage()
    stage.ask(0, 1, 1, "hello")
    stage.run(5)
    assert stage.words(1) == ["hello"]
    assert stage.words(0, ANSWERED) == ["hello"]


def test_frames_of_a_link_keep_their_order() -> None:
    stage = Stage()
    sent = [str(number) for number in range(200)]
    for number, words in enumerate(sent):
        stage.ask(0, 1, number, words)
    stage.run(5)
    assert stage.words(1) == sent
    assert stage.words(0, ANSWERED) == sent


def test_a_paused_host_gets_what_waited_in_its_order_when_it_goes_on() -> None:
    stage = Stage()
    stage.world.pause(stage.hosts[1])
    for number in range(3):
        stage.ask(0, 1, number, str(number))
    stage.run(1000)
    assert stage.heard[1] == []
    stage.world.resume(stage.hosts[1])
    stage.run(5)
    assert stage.words(1) == ["0", "1", "2"]
    assert len(stage.words(0, ANSWERED)) == 3


def test_a_request_to_a_host_that_is_down_comes_back_unreachable() -> None:
    stage = Stage()
    stage.world.kill(stage.hosts[1])
    stage.ask(0, 1, 1, "hello")
    stage.run(5)
    assert stage.kinds(0) == [REFUSED]


def test_a_request_that_is_not_answered_when_its_receiver_dies_comes_back_unreachable() -> None:
    stage = Stage(quiet=(1,))
    stage.ask(0, 1, 1, "parked")
    stage.run(5)
    stage.world.kill(stage.hosts[1])
    stage.run(5)
    assert stage.words(1) == ["parked"]
    assert stage.words(0, REFUSED) == ["parked"]


def test_who_asked_a_host_that_lost_its_power_hears_nothing_until_it_is_back() -> None:
    stage = Stage(quiet=(1,))
    stage.ask(0, 1, 1)
    stage.run(5)
    stage.world.cut_power(stage.hosts[1])
    stage.run(500)
    assert stage.heard[0] == []
    stage.world.start(stage.hosts[1])
    stage.run(5)
    assert stage.kinds(0) == [REFUSED]


def test_what_is_under_way_survives_the_death_of_its_sender() -> None:
    stage = Stage()
    stage.ask(0, 1, 1, "last words")
    stage.world.kill(stage.hosts[0])
    stage.run(5)
    assert stage.words(1) == ["last words"]


def test_what_is_under_way_dies_with_the_incarnation_of_its_receiver() -> None:
    stage = Stage()
    stage.ask(0, 1, 1, "to the old one")
    stage.world.kill(stage.hosts[1])
    stage.world.start(stage.hosts[1])
    stage.run(5)
    assert stage.kinds(1) == [STARTED]
    assert stage.kinds(0) == [REFUSED]


def test_an_answer_to_the_dead_incarnation_never_passes_for_one_to_the_living() -> None:
    stage = Stage(quiet=(1,))
    sources: list[int] = []
    stage.hosts[1].handle = lambda _now, source, kind, *_: (
        sources.append(source) if kind == ASKED else None
    )
    stage.ask(0, 1, 1, "of the old one")
    stage.run(5)
    stage.world.kill(stage.hosts[0])
    stage.world.start(stage.hosts[0])
    stage.run(5)
    stage.ask(0, 1, 1, "of the new one")  # by the same correlation
    stage.run(5)
    old, new = sources
    stage.forget()
    stage.do(1, (SEND, old, Told(1, "for the old one")), (SEND, new, Told(1, "for the new one")))
    stage.run(5)
    assert stage.words(0, ANSWERED) == ["for the new one"]


def test_a_connection_that_is_closed_refuses_what_was_asked_over_it() -> None:
    stage = Stage(quiet=(1,))
    stage.ask(0, 1, 1)
    stage.run(5)
    stage.do(1, (CLOSE, stage.hosts[0].alias))
    stage.run(5)
    assert stage.kinds(0) == [REFUSED]
    stage.ask(0, 1, 2, "again")
    stage.run(5)
    assert stage.words(1)[-1] == "again"


def test_nothing_is_performed_after_the_exit() -> None:
    stage = Stage()
    watcher = Watcher()
    stage.world.watch(watcher)
    stage.do(0, (NOTE, "before"), (EXIT, "why"), (NOTE, "after"), (WRITE, "file", 1))
    assert watcher.told == [("note", 0, "before")]
    assert stage.hosts[0].state is ProcessState.DOWN
    assert stage.hosts[0].exit_reason == "why"


def test_a_stop_is_the_business_of_the_node() -> None:
    stage = Stage()
    stage.world.stop(stage.hosts[0])
    stage.run(5)
    assert stage.kinds(0) == [STOP]
    assert stage.hosts[0].state is ProcessState.RUNNING


def test_ticks_come_at_their_interval_and_a_phase_of_the_hosts_own() -> None:
    world = World(3)
    ticks: dict[int, list[int]] = {0: [], 1: []}
    for number, found in ticks.items():
        host = world.add(number, str(number), lambda: Toy([]), tick_ns=20_000_000)
        world.start(host)
        host.handle = lambda now, _s, kind, _m, _e, found=found: (
            found.append(now) if kind == 1 else None
        )
    world.run(1_000_000_000)
    for found in ticks.values():
        assert len(found) == 50
        assert {after - before for before, after in pairwise(found)} == {20_000_000}
    assert ticks[0][0] != ticks[1][0]


def test_who_asks_to_be_woken_is_woken_then() -> None:
    world = World(3)
    host = world.add(0, "client", lambda: Toy([]), tick_ns=0)
    world.start(host)
    world.run(5_000_000)
    woken: list[int] = []
    host.handle = lambda now, *_: woken.append(now)
    world._perform(host, world.now_ns, [(WAKE, 30_000_000), (WAKE, 70_000_000)])
    world.run(1_000_000_000)
    assert woken == [30_000_000, 70_000_000]


def test_a_clock_that_drifts_goes_on_from_what_it_showed_and_never_back() -> None:
    stage = Stage()
    shown: list[int] = []
    stage.hosts[0].handle = lambda now, *_: shown.append(now)
    stage.hosts[0].clock.jump(5_000_000_000)
    stage.hosts[0].clock.run(drift_ppm=-500, now_ns=stage.world.now_ns)
    stage.run(100_000)
    assert shown == sorted(shown)
    assert shown[0] > 5_000_000_000
    gained = (shown[-1] - shown[0]) / 20_000_000 - (len(shown) - 1)
    assert gained / len(shown) == pytest.approx(-500e-6, rel=0.01)


def test_the_same_seed_gives_the_same_events_and_another_one_others() -> None:
    def digest(seed: int) -> str:
        world = World(seed)
        for number in range(2):
            world.start(world.add(number, str(number), lambda: Toy([])))
        world.run(200_000_000)
        return world.digest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


_PROGRAM = """
from world_toys import Stage
stage = Stage(3)
for n in range(50):
    stage.ask(n % 3, (n + 1) % 3, n, str({str(n), "x", "y"} & {str(n)}))
    stage.run(1)
print(stage.world.digest())
"""


@pytest.mark.parametrize("witnessed", [False, True], ids=["plain", "witnessed"])
def test_the_digest_is_the_same_under_any_hash_seed(*, witnessed: bool) -> None:
    program = _PROGRAM.replace("Stage(3)", f"Stage(3, witnessed={witnessed})")
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parent,
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1


def test_whoever_changes_a_message_under_way_is_found_out() -> None:
    stage = Stage(witnessed=True)
    message = stage.ask(0, 1, 1, "as it was")
    message.words = "as it is not"
    with pytest.raises(MutatedMessageError, match="as it was"):
        stage.run(5)


def test_an_error_of_a_node_says_which_when_and_by_what() -> None:
    stage = Stage()

    def fail(*_: object) -> None:
        raise ValueError("broken")

    stage.hosts[1].handle = fail
    stage.ask(0, 1, 1, "the last straw")
    with pytest.raises(ValueError, match="broken") as caught:
        stage.run(30)
    assert caught.value.__notes__[0].startswith("toy-1 at ")


def test_a_call_of_the_shell_happens_at_its_time_between_events() -> None:
    stage = Stage()
    called: list[int] = []
    stage.world.call(50_000_000, lambda: called.append(stage.world.now_ns))
    stage.run(100)
    assert called == [50_000_000]


def test_an_answer_that_nobody_waits_for_goes_nowhere() -> None:
    stage = Stage(quiet=(1,))
    stage.do(1, (SEND, stage.hosts[0].alias, Told(5)))
    stage.run(5)
    assert stage.words(0, ANSWERED) == []


def test_a_watcher_hears_of_starts_notes_and_the_kinds_that_it_watches_and_of_no_others() -> None:
    stage, watcher = Stage(), Watcher()
    stage.world.watch(watcher, sent=[ASKED], delivered=[ANSWERED])
    stage.ask(0, 1, 1)
    stage.run(5)
    stage.do(1, (NOTE, "noted"))
    stage.world.kill(stage.hosts[1])
    stage.world.start(stage.hosts[1])
    assert watcher.told == [
        ("sent", 0, 1, ASKED),
        ("delivered", 1, 0, ANSWERED),
        ("note", 1, "noted"),
        ("started", 1),
    ]


class Watcher:
    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def started(self, node: int) -> None:
        self.told.append(("started", node))

    def note(self, _now: int, node: int, note: tuple[Any, ...]) -> None:
        self.told.append(("note", node, *note[1:]))

    def sent(self, _now: int, source: int, target: int, kind: int, _message: Any) -> None:
        self.told.append(("sent", source, target, kind))

    def delivered(self, _now: int, source: int, target: int, kind: int, _message: Any) -> None:
        self.told.append(("delivered", source, target, kind))
