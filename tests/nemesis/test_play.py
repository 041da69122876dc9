import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.kafka_conditions import Fenced, Isr
from fencepost.clusters.observation import AllRecovered
from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.play import parse_play, step_data
from fencepost.nemesis.steps import prerequisites_of, uses_clients
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.heal import Heal
from fencepost.nemesis.verbs.pause import Resume
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.snapshot import TakeSnapshot
from fencepost.nemesis.verbs.step import OnNodes, Parties, Play
from fencepost.nemesis.verbs.wait import Wait
from fencepost.nemesis.wire.rules import Clause, Direction, Hold, Match, Operator

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
    assert steps[3] == Resume(target=NamedNodes(nodes=(NodeName("broker-2"),)), at_s=12.5)
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
        ([{"flip_bit": "broker-1", "in": "logs"}], (0, "in"), "allowed: index, metadata, segment"),
        ([{"cut_power": "broker-1", "torn": "yes"}], (0, "torn"), "expected true or false"),
        ([{"await": {"isrs": {}}}], (0, "await", "isrs"), "did you mean 'isr'"),
        ([{"await": {}}], (0, "await"), "one condition"),
        ([{"kill": "broker-1", "start": "broker-1"}], (0,), "exactly one word"),
        (["kill"], (0,), "a step is a word and its operand"),
        ([{"heal": "alone"}], (0, "heal"), "no earlier step began 'alone'"),
        ([{"heal": 3}], (0, "heal"), "heal takes 'all' or the name of a partition"),
        ([{"hold": "AlterPartition"}], (0, "hold"), "hold takes a rule"),
        (
            [{"hold": {"api": "AlterPartitions"}}],
            (0, "hold", "api"),
            "did you mean 'AlterPartition'",
        ),
        ([{"hold": {"form": "broker-1"}}], (0, "hold", "form"), "did you mean 'from'"),
        ([{"hold": {"from": "broker-9"}}], (0, "hold", "from"), "broker-1"),
        (
            [{"hold": {"api": "Fetch", "where": {"isr contains": 2}}}],
            (0, "hold", "where", "isr contains"),
            "unknown field",
        ),
        ([{"hold": {"of": "reply"}}], (0, "hold", "of"), "request or response"),
        ([{"hold": {"version": "new"}}], (0, "hold", "version"), ">=3"),
        ([{"hold": {"times": 0}}], (0, "hold", "times"), "1 or more"),
        ([{"answer": {"with": "NOPE"}}], (0, "answer", "with"), "unknown error"),
        (
            [{"answer": {"of": "response", "with": "NONE"}}],
            (0, "answer", "of"),
            "applies to requests",
        ),
        ([{"delay": {"by": "[1, 2, 3]"}}], (0, "delay", "by"), "expected 20ms"),
        ([{"release": "join"}], (0, "release"), "no earlier step began 'join'"),
        ([{"await": {"held": "join"}}], (0, "await"), "no earlier step began 'join'"),
        ([{"partition": "broker-1"}], (0, "partition"), "a partition is one of"),
        ([{"partition": {"isolate": "broker-1", "by": "post"}}], (0, "partition", "by"), "packets"),
        ([{"bandwidth": "broker-1"}], (0, "bandwidth"), "{of: broker-1, rate: 1Mbit}"),
        ([{"bandwidth": {"of": "broker-9", "rate": "1Mbit"}}], (0, "bandwidth", "of"), "broker-1"),
        ([{"bandwidth": {"of": "broker-1", "rate": 10}}], (0, "bandwidth", "rate"), "found 10"),
        ([{"partition": {"shape": "thirds"}}], (0, "partition", "shape"), "halves"),
        ([{"partition": {"isolate": "broker-9"}}], (0, "partition", "isolate"), "broker-1"),
        ([{"move_leader": {"t-0": 7}}], (0, "move_leader"), "no such broker: 7"),
        ([{"create_topic": {"partitions": 2}}], (0, "create_topic"), "needs a name"),
        (
            [{"create_topic": {"name": "u", "replicas": [[1, 7]]}}],
            (0, "create_topic"),
            "no such broker: 7",
        ),
        (
            [{"create_topic": {"name": "u", "replicas": [1]}}],
            (0, "create_topic", "replicas"),
            "the brokers of each partition",
        ),
        (
            [{"create_topic": {"name": "u", "replicas": [[1]], "partitions": 1}}],
            (0, "create_topic", "partitions"),
            "`replicas` implies",
        ),
        ([{"delete_topic": "u"}], (0, "delete_topic"), "no such topic: 'u'"),
        ([{"delete_topic": "t"}], (0, "delete_topic"), "start_clients: all"),
        ([{"await": {"deleted": 1}}], (0, "await", "deleted"), "the name of a topic"),
        ([{"start_clients": "one"}], (0, "start_clients"), "takes 'all'"),
        (
            [{"start_clients": "all"}, {"start_clients": "all"}],
            (1, "start_clients"),
            "begun already",
        ),
        (
            [{"start_clients": "all"}, {"delete_topic": "t"}],
            (1, "delete_topic"),
            "clients write to t",
        ),
        (
            [{"await": {"acknowledged": 1}}, {"start_clients": "all"}],
            (0, "await"),
            "start_clients comes later",
        ),
        (
            [{"pause_client": "producer-0"}, {"start_clients": "all"}],
            (0, "pause_client"),
            "start_clients comes later",
        ),
        ([{"repeat": 2}], (0, "repeat"), "repeat needs 'steps'"),
        (
            [{"repeat": 2, "steps": [{"kil": "broker-1"}]}],
            (0, "steps", 0, "kil"),
            "did you mean 'kill'",
        ),
        (
            [{"choose": [[{"kill": "broker-1"}], [{"kil": "broker-1"}]]}],
            (0, "choose", 1, 0, "kil"),
            "did you mean 'kill'",
        ),
        ([{"hold": {"where": {"isr includes": "2"}}}], (0, "hold"), "isr is a number, found '2'"),
        ([{"hold": {"where": {"committed": 1}}}], (0, "hold"), "committed is true or false"),
        ([{"hold": {"where": {"partition": [1]}}}], (0, "hold"), "partition is a number"),
        (
            [{"hold": {"api": "Metadata", "where": {"topic": "t"}}}],
            (0, "hold"),
            "the proxy reads only the header of Metadata",
        ),
        ([{"hold": {"api": "ACK", "of": "response"}}], (0, "hold"), "ACK is never a response"),
        ([{"hold": {"to": "clients"}}], (0, "hold", "to"), "no link leads to clients"),
        ([{"partition": {"as": 5, "isolate": "broker-1"}}], (0, "partition", "as"), "found 5"),
        (
            [{"partition": {"as": "all", "isolate": "broker-1"}}],
            (0, "partition", "as"),
            "heal: all",
        ),
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
        ([{"mend_disk": "broker-1"}], "no earlier step made its disk fail"),
        ([{"flip_bit": "broker-1"}], "broker-1 is up at this step"),
        ([{"kill": "broker-1"}, {"rollback": "broker-1"}], "no earlier step takes a snapshot"),
        (
            [{"hold": {"as": "a"}}, {"hold": {"as": "a"}}],
            "a rule named 'a' is active already",
        ),
        (
            [{"hold": {"as": "a"}}, {"release": "a"}, {"release": "a"}],
            "no earlier step began 'a'",
        ),
        (
            [{"repeat": 2, "steps": [{"partition": {"isolate": "broker-1"}}]}],
            "a partition named 'partition' is active already",
        ),
        ([{"repeat": 2, "steps": [{"kill": "broker-1"}]}], "broker-1 is down already"),
        (
            [{"choose": [[{"hold": {"as": "a"}}], []]}, {"heal": "all"}, {"release": "a"}],
            "no earlier step began 'a'",
        ),
        ([{"resume_client": "producer-0"}], "no earlier step paused producer-0"),
        (
            [{"pause_client": "producer-0"}, {"resume_client": "all consumers"}],
            "no earlier step paused all consumers",
        ),
        (
            [{"pause_client": "producer-0"}, *[{"resume_client": "producer-0"}] * 2],
            "no earlier step paused producer-0",
        ),
        (
            [
                {"pause_client": "producer-0"},
                {"crash_client": "producer-0"},
                {"resume_client": "one producer"},
            ],
            "no earlier step paused one producer",
        ),
    ],
)
def test_a_step_that_contradicts_an_earlier_one_is_refused(steps: list[object], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        play(*steps)


def test_clients_that_may_be_paused_may_be_resumed() -> None:
    paused = {"pause_client": "one producer"}
    assert len(play(paused, {"crash_client": "producer-0"}, {"resume_client": "producer-1"})) == 3
    assert len(play({"pause_client": "producer-0"}, {"resume_client": "all producers"})) == 2


def test_a_target_known_only_at_run_time_leaves_later_steps_unjudged() -> None:
    assert len(play({"kill": "leader of t-0"}, {"wipe": "broker-1"})) == 2


def test_after_a_choice_nothing_is_certain_and_either_rule_may_be_released() -> None:
    steps = play(
        {"choose": [[{"kill": "broker-1"}, {"hold": {"as": "a"}}], [{"hold": {"as": "b"}}]]},
        {"await": {"held": "b"}},
        {"release": "a"},
        {"wipe": "broker-1"},
    )
    assert len(steps) == 4


def test_a_hold_is_read_with_all_that_it_states() -> None:
    (step,) = play(
        {
            "hold": {
                "as": "join",
                "api": "AlterPartition",
                "from": "broker-1",
                "to": "controllers",
                "version": ">=2",
                "where": {"isr includes": 2, "partition epoch": 3, "topic": "t"},
                "skip": 1,
                "times": 2,
            }
        }
    )
    assert isinstance(step, Lay)
    assert step.action == Hold()
    assert step.source == Parties(target=NamedNodes(nodes=(NodeName("broker-1"),)))
    assert step.match == Match(
        api="AlterPartition",
        version_min=2,
        where=(
            Clause(field="isr", operator=Operator.INCLUDES, value=2),
            Clause(field="partition_epoch", operator=Operator.IS, value=3),
            Clause(field="topic", operator=Operator.IS, value="t"),
        ),
        skip=1,
        times=2,
    )


def test_a_message_that_goes_one_way_needs_no_direction() -> None:
    steps = play({"hold": {"api": "COMMIT"}}, {"watch": {"api": "ACK"}}, {"drop": {"api": "PING"}})
    directions = [step.match.direction for step in steps if isinstance(step, Lay)]
    assert directions == [Direction.RESPONSE, Direction.REQUEST, Direction.REQUEST]


WIRE_STEPS = (
    {"hold": {"as": "h", "api": "Fetch", "of": "response", "where": {"key": "t-0"}}},
    {"delay": {"as": "slow", "from": "brokers", "by": ["5ms", "40ms"]}},
    {"delay": {"as": "late", "by": ["5ms", "40ms"], "seed": 7}},
    {"answer": {"as": "no", "api": "BrokerHeartbeat", "with": "NOT_CONTROLLER"}},
    {"lower_version": {"as": "old", "api": "AlterPartition", "to_version": 2}},
    {"cut": {"as": "lost", "api": "AlterPartition", "times": 1, "passed_on": False}},
    {"watch": {"as": "reg", "api": "BrokerRegistration", "client": "2"}},
    {"hold": {"as": "txn", "api": "EndTxn", "from": "clients", "where": {"committed": True}}},
    {"partition": {"as": "p1", "isolate": ["broker-1", "clients"]}},
    {"partition": {"as": "p6", "isolate": ["active controller"], "among": "controllers"}},
    {"partition": {"as": "p7", "isolate": ["broker-1"], "by": "packets"}},
    {"bandwidth": {"as": "b1", "of": "broker-1", "rate": "1500kbit"}},
    {"partition": {"as": "p2", "groups": [["broker-1"], "controllers"]}},
    {"partition": {"as": "p3", "from": "leader of t-0", "to": ["controllers"]}},
    {"partition": {"as": "p4", "shape": "majority-ring", "among": "brokers"}},
    {"partition": {"as": "p5", "flows": ["broker-1 > broker-2"]}},
    {"create_topic": {"name": "u", "via": "broker-1"}, "within": "5s"},
    {"create_topic": {"name": "v", "replicas": [[1, 2], [2]]}},
    {"delete_topic": "t"},
    {"await": {"deleted": "t"}},
    {"start_clients": "all"},
    {"move_leader": {"t-0": 2}},
    {"reassign": {"t-1": [1, 2]}},
    {"reassign": {"t-1": [2, 3]}, "awaited": False},
    {"repeat": 2, "steps": [{"kill": "broker-1"}, {"start": "broker-1"}]},
    {"choose": [[{"wait": "1s"}], []]},
    {"kill": "broker-2"},
    {"wipe": "broker-2", "keep_directory_id": True},
    {"heal": "p1"},
    {"discard": "h"},
)

DISK_STEPS = (
    {"cut_power": ["broker-1", "broker-2"]},
    {"start": "all brokers"},
    {"cut_power": "one broker", "torn": True, "seed": 7},
    {"flip_bit": "broker-1", "in": "metadata", "seed": 8},
    {"wipe": "broker-2", "by_tool": True},
    {"fill_disk": "broker-1"},
    {"lock_disk": "broker-2"},
    {"fail_disk": "broker-3"},
    {"stall_disk": "leader of t-0"},
    {"slow_disk": "controller-1", "by": "0.3s"},
    {"mend_disk": "all brokers"},
)


def test_every_word_of_disks_written_down_is_read_back_the_same() -> None:
    steps = play(*DISK_STEPS)
    assert play(*[step_data(step) for step in steps]) == steps
    assert [step_data(step) for step in steps] == list(DISK_STEPS)


def test_a_play_says_whether_it_needs_disks_of_the_nodes_own() -> None:
    assert not prerequisites_of(
        play({"kill": "broker-1"}, {"wipe": "broker-1"}, {"flip_bit": "broker-1"})
    )
    filled = play({"choose": [[{"fill_disk": "broker-1"}], []]})
    assert prerequisites_of(filled) == {Prerequisite.DISK_IMAGES}
    assert prerequisites_of(play({"cut_power": "broker-1"})) == {Prerequisite.DISKS}


def test_a_node_that_was_seen_to_be_down_may_be_wiped() -> None:
    assert len(play({"await": {"down": "broker-1"}}, {"wipe": "broker-1"})) == 2


def test_a_node_on_a_disk_in_trouble_may_have_died_of_it() -> None:
    steps = play(
        {"fail_disk": "broker-1"},
        {"stop": "broker-1"},
        {"mend_disk": "broker-1"},
        {"kill": "broker-1"},
    )
    assert len(steps) == 4


def test_every_word_of_the_wire_written_down_is_read_back_the_same() -> None:
    steps = play(*WIRE_STEPS)
    assert play(*[step_data(step) for step in steps]) == steps
    assert {next(iter(set(step_data(step)) - MODIFIERS)) for step in steps} == {
        next(iter(set(step) - MODIFIERS)) for step in WIRE_STEPS
    }


MODIFIERS = {"at", "within", "steps", "keep_directory_id"}


def test_a_play_says_whether_it_concerns_the_links_of_clients() -> None:
    assert not uses_clients(play({"hold": {"as": "a", "from": "broker-1"}}))
    assert uses_clients(play({"choose": [[{"hold": {"as": "a", "from": "clients"}}]]}))
    assert uses_clients(play({"partition": {"groups": ["clients", "brokers"]}}))


NODES = st.lists(st.sampled_from(STAGE.nodes), min_size=1, max_size=3, unique=True)
SECONDS = st.integers(0, 3_600_000).map(lambda ms: ms / 1000)
STEPS = st.one_of(
    st.builds(
        lambda nodes, at_s: TakeSnapshot(
            target=NamedNodes(nodes=tuple(nodes)), label="x", at_s=at_s
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
def test_a_play_written_down_is_read_back_the_same(
    steps: list[OnNodes | Wait | Await | Heal],
) -> None:
    assert play(*[step_data(step) for step in steps]) == tuple(steps)
