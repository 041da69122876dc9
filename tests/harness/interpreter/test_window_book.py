"""The rows of `windows`: what opened, what struck it, and when it closed."""

from collections.abc import Mapping

from fencepost.clusters.port import NodeName
from fencepost.harness.interpreter.window_book import WindowBook
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.verbs.episode import EpisodeWindow
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.verbs.wipe import Wipe
from fencepost.nemesis.wire.rules import Hold, Match
from fencepost.nemesis.wire.status import RuleStatus, WireStatus

CONTROLLER, BROKER = NodeName("controller-1"), NodeName("broker-1")
SCENE = Scene(
    nodes=(CONTROLLER, BROKER), broker_ids={BROKER: 1}, view=None, active_controller=CONTROLLER
)
WINDOW = EpisodeWindow(
    name="mix-2",
    rule="mix-2-window",
    kind="AlterPartition request",
    form="window",
    key="t-0",
)
LAY = Lay(name="mix-2-window", action=Hold(), match=Match(api="AlterPartition"))


class Journal:
    def __init__(self) -> None:
        self.rows: dict[object, dict[str, object]] = {}

    def add(self, row: Mapping[str, object]) -> None:
        self.rows[row["index"]] = dict(row)


class Ticks:
    def __init__(self) -> None:
        self.now = 0

    def now_ns(self) -> int:
        self.now += 10
        return self.now


def held(name: str) -> WireStatus:
    rule = RuleStatus(
        matched_count=1,
        held_count=1,
        held_now=1,
        delivered_count=0,
        undeliverable_count=0,
        first="a frame",
        first_ns=12,
    )
    return WireStatus(rules={name: rule}, withheld_bytes={}, connection_count={})


def rows_of(*steps: Step, opens_after: int | None = 1) -> list[dict[str, object]]:
    journal = Journal()
    book = WindowBook(journal, Ticks())
    book.announce([WINDOW])
    for number, step in enumerate(steps):
        if number == opens_after:
            book.settle(lambda: held("mix-2-window"))
        book.performed(step, SCENE)
    return list(journal.rows.values())


def test_strikes_count_from_the_first_message_until_the_rule_is_lifted() -> None:
    target = NamedNodes(nodes=(BROKER,))
    (row,) = rows_of(
        LAY,
        Kill(target=target),
        Wipe(target=target),
        Start(target=target),
        MoveLeader(leaders={"t-0": 2}),
        Kill(target=NamedNodes(nodes=(CONTROLLER,))),
        Lift(name="mix-2-window"),
        Kill(target=target),
    )
    assert row["struck"] == ["kill", "wipe", "move_leader", "change_controller"]
    times = [row[name] for name in ("begin_ns", "held_ns", "strike_ns", "end_ns")]
    assert times == [10, 12, 20, 60]
    assert (row["window"], row["form"], row["key"]) == ("mix-2", "window", "t-0")


def test_a_window_that_met_no_message_closes_unused() -> None:
    kill = Kill(target=NamedNodes(nodes=(BROKER,)))
    (row,) = rows_of(LAY, kill, Lift(name="mix-2-window"), opens_after=None)
    assert "held_ns" not in row
    assert row["struck"] == []
    assert "end_ns" in row


def test_a_rule_that_was_not_announced_is_no_window() -> None:
    assert rows_of(Lay(name="other", action=Hold(), match=Match(api="Fetch"))) == []


def test_what_is_still_laid_in_the_end_is_closed() -> None:
    journal = Journal()
    book = WindowBook(journal, Ticks())
    book.announce([WINDOW])
    book.performed(LAY, SCENE)
    book.close()
    assert journal.rows[0]["end_ns"] == 20
