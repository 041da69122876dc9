import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.port import NodeName
from history.failure import SpecError
from nemesis.conditions import AllRecovered, Fenced, Isr
from nemesis.play import Act, Await, Heal, Play, Stage, Wait, Word, parse_play, step_data
from nemesis.targets import NamedNodes

STAGE = Stage(
    nodes=tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3"))),
    keys=("t-0", "t-1"),
    broker_ids=(1, 2, 3),
)


def play(*steps: object) -> Play:
    return parse_play(list(steps), STAGE)


def test_a_play_of_every_word_is_read_as_written() -> None:
    steps = play(
        {"snapshot": "broker-1", "as": "before"},
        {"pause": "broker-2"},
        {"await": {"isr": {"t-0": [1, 3]}}, "within": "20s"},
        {"resume": "broker-2", "at": "12.5s"},
        {"await": {"unfenced": "broker-2"}},
        {"kill": "broker-1"},
        {"rollback": "broker-1", "to": "before"},
        {"start": "broker-1"},
        {"stop": ["broker-2", "broker-3"]},
        {"wait": "500ms"},
        {"heal": "all"},
        {"await": "recovered"},
    )
    assert steps[2] == Await(condition=Isr(members={"t-0": frozenset({1, 3})}), within_s=20.0)
    assert steps[3] == Act(
        word=Word.RESUME, target=NamedNodes(nodes=(NodeName("broker-2"),)), at_s=12.5
    )
    assert steps[4] == Await(condition=Fenced(node=NodeName("broker-2"), fenced=False))
    assert steps[9:] == (Wait(for_s=0.5), Heal(), Await(condition=AllRecovered()))


@pytest.mark.parametrize(
    ("steps", "path", "says"),
    [
        ([{"kil": "broker-1"}], (0, "kil"), "did you mean 'kill'"),
        ([{"kill": "broker-9"}], (0, "kill"), "nodes: controller-1, broker-1"),
        ([{"kill": "leader of x-0"}], (0, "kill"), "there are: t-0, t-1"),
        ([{"wait": "soon"}], (0, "wait"), "is not a duration"),
        ([{"kill": "broker-1", "within": "3s"}], (0, "within"), "does not go with 'kill'"),
        ([{"await": {"isr": {"t-0": [4]}}}], (0, "await", "isr"), "no such broker: 4"),
        ([{"await": {"leader": {"t-9": 1}}}], (0, "await", "leader"), "no such partition"),
        ([{"await": {"unfenced": "controller-1"}}], (0, "await", "unfenced"), "broker-1"),
        ([{"await": {"acknowledged": 0}}], (0, "await", "acknowledged"), "1 or more"),
        ([{"await": {"isrs": {}}}], (0, "await", "isrs"), "did you mean 'isr'"),
        ([{"await": {}}], (0, "await"), "one condition"),
        ([{"kill": "broker-1", "start": "broker-1"}], (0,), "exactly one word"),
        (["kill"], (0,), "a step is a word and its operand"),
        ([{"heal": "broker-1"}], (0, "heal"), "heal takes 'all'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    steps: list[object], path: tuple[str | int, ...], says: str
) -> None:
    with pytest.raises(SpecError) as refused:
        play(*steps)
    assert refused.value.path == path
    assert says in refused.value.message


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([{"wipe": "broker-1"}], "broker-1 is up at this step"),
        ([{"kill": "broker-1"}, {"pause": "broker-1"}], "broker-1 is down already"),
        ([{"resume": "broker-1"}], "broker-1 is up at this step; pause it first"),
        ([{"pause": "broker-1"}, {"wipe": "broker-1"}], "broker-1 is paused at this step"),
        ([{"kill": "broker-1"}, {"rollback": "broker-1"}], "no earlier step takes a snapshot"),
    ],
)
def test_a_step_that_contradicts_an_earlier_one_is_refused(steps: list[object], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        play(*steps)


def test_a_target_known_only_at_run_time_leaves_later_steps_unjudged() -> None:
    assert len(play({"kill": "leader of t-0"}, {"wipe": "broker-1"})) == 2


NODES = st.lists(st.sampled_from(STAGE.nodes), min_size=1, max_size=3, unique=True)
SECONDS = st.integers(0, 3_600_000).map(lambda ms: ms / 1000)
STEPS = st.one_of(
    st.builds(
        lambda nodes, at_s: Act(
            word=Word.SNAPSHOT, target=NamedNodes(nodes=tuple(nodes)), label="x", at_s=at_s
        ),
        NODES,
        SECONDS | st.none(),
    ),
    st.builds(lambda for_s, at_s: Wait(for_s=for_s, at_s=at_s), SECONDS, SECONDS | st.none()),
    st.builds(
        lambda ids, within_s: Await(
            condition=Isr(members={"t-1": frozenset(ids)}), within_s=within_s
        ),
        st.sets(st.sampled_from([1, 2, 3])),
        SECONDS,
    ),
    st.just(Heal()),
)


@given(st.lists(STEPS, max_size=8))
def test_a_play_written_down_is_read_back_the_same(steps: list[Act | Wait | Await | Heal]) -> None:
    assert play(*[step_data(step) for step in steps]) == tuple(steps)
