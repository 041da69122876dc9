from dataclasses import replace

import pytest

from fencepost.clusters.abilities import Skew
from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.play import parse_play, step_data
from fencepost.nemesis.steps import prerequisites_of
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.skew import SkewClock
from fencepost.nemesis.verbs.squeeze import Squeeze
from fencepost.nemesis.verbs.step import OnNodes, Play
from fencepost.nemesis.verbs.throttle import Throttle

STAGE = Stage(
    nodes=tuple(map(NodeName, ("controller-1", "broker-1"))), keys=("t-0",), broker_ids=(1,)
)


def play(*steps: object) -> Play:
    return parse_play(list(steps), STAGE)


NOBODY = NamedNodes(nodes=())


@pytest.mark.parametrize(
    ("step", "hardship"),
    [
        ({"skew": "broker-1", "jump": "-60s"}, SkewClock(target=NOBODY, by=Skew(jump_s=-60))),
        ({"skew": "broker-1", "jump": "500ms"}, SkewClock(target=NOBODY, by=Skew(jump_s=0.5))),
        ({"skew": "broker-1", "drift": 1.05}, SkewClock(target=NOBODY, by=Skew(rate=1.05))),
        ({"skew": "broker-1", "drift": 0}, SkewClock(target=NOBODY, by=Skew(rate=0))),
        ({"skew": "broker-1", "strobe": "2s"}, SkewClock(target=NOBODY, by=Skew(strobe_s=2))),
        (
            {"skew": "broker-1", "strobe": "-2s", "every": "50ms"},
            SkewClock(target=NOBODY, by=Skew(strobe_s=-2, every_s=0.05)),
        ),
        ({"throttle": "broker-1", "cpu": "10%"}, Throttle(target=NOBODY, of_a_core=0.1)),
        ({"throttle": "broker-1", "cpu": "150%"}, Throttle(target=NOBODY, of_a_core=1.5)),
        ({"squeeze": "broker-1", "room": "16MiB"}, Squeeze(target=NOBODY, room_bytes=16 << 20)),
    ],
)
def test_a_hardship_is_read_as_written_and_written_as_read(
    step: dict[str, object], hardship: OnNodes
) -> None:
    (act,) = play(step)
    assert act == replace(hardship, target=NamedNodes(nodes=(NodeName("broker-1"),)))
    assert play(step_data(act)) == (act,)


@pytest.mark.parametrize(
    ("step", "path", "says"),
    [
        ({"skew": "broker-1"}, (0, "skew"), "needs one of 'jump', 'drift' and 'strobe'"),
        ({"skew": "broker-1", "jump": "1s", "drift": 2}, (0, "skew"), "needs one of"),
        ({"skew": "broker-1", "jump": "10ms"}, (0, "jump"), "too small to be observed"),
        ({"skew": "broker-1", "jump": "soon"}, (0, "jump"), "not a duration"),
        ({"skew": "broker-1", "jump": "1s", "every": "1s"}, (0, "every"), "'strobe' only"),
        ({"skew": "broker-1", "drift": 1.001}, (0, "drift"), "0.005 away from 1"),
        ({"skew": "broker-1", "drift": "fast"}, (0, "drift"), "e.g. 1.05"),
        ({"skew": "broker-1", "strobe": "1s", "every": "1ms"}, (0, "every"), "10ms or more"),
        ({"throttle": "broker-1"}, (0, "throttle"), "needs 'cpu'"),
        ({"throttle": "broker-1", "cpu": 10}, (0, "cpu"), "e.g. 10%"),
        ({"squeeze": "broker-1", "room": "16"}, (0, "room"), "e.g. 16MiB"),
        ({"kill": "broker-1", "cpu": "10%"}, (0, "cpu"), "does not go with 'kill'"),
    ],
)
def test_a_hardship_that_cannot_be_is_refused_at_its_place(
    step: dict[str, object], path: tuple[object, ...], says: str
) -> None:
    with pytest.raises(SpecError, match=says) as raised:
        play(step)
    assert raised.value.path == path


def test_who_is_down_has_no_clock_to_be_seen_wrong() -> None:
    with pytest.raises(SpecError, match="down already"):
        play({"kill": "broker-1"}, {"skew": "broker-1", "jump": "1s"})


def test_the_words_of_a_play_are_those_of_its_loops_too() -> None:
    steps = play({"repeat": 2, "steps": [{"skew": "broker-1", "jump": "1s"}, {"heal": "all"}]})
    assert prerequisites_of(steps) == {Prerequisite.CLOCKS}
