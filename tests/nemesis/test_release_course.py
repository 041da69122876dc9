"""Releases, metadata.versions and members in a play: what is read, and what cannot follow."""

import pytest

from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.play import parse_play, step_data
from fencepost.nemesis.targets import Choice, NamedNodes, Share
from fencepost.nemesis.verbs.finalise import Finalise
from fencepost.nemesis.verbs.members import AddNodes, RemoveNodes
from fencepost.nemesis.verbs.restart import Restart
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes, Play

NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
C1, B1, B2, SPARE = NODES
ALL_BROKERS = {"restart": "all brokers", "to": "4.3.1"}
EVERYBODY = ["controller-1", "broker-1", "broker-2"]
UP_TO_DATE = [{"restart": EVERYBODY, "to": "4.3.1"}]
BACK = {"restart": EVERYBODY, "to": "3.9.2"}


def stage(release: str = "3.9.2", version: str = "", *, dynamic: bool = True) -> Stage:
    return Stage(
        nodes=NODES,
        keys=("t-0",),
        broker_ids=(1, 2, 3),
        spares=frozenset({SPARE}),
        fixed=frozenset() if dynamic else frozenset({C1}),
        release=release,
        metadata_version=version,
    )


def play(*steps: object, on: Stage | None = None) -> Play:
    return parse_play(list(steps), on or stage())


def test_restarts_releases_versions_and_members_are_read_and_written_back() -> None:
    steps: list[object] = [
        ALL_BROKERS,
        {"stop": "controller-1"},
        {"start": "controller-1", "to": "path:/opt/kafka"},
        {"finalise": "4.3", "within": "20s"},
        {"add": "broker-3"},
        {"remove": ["broker-1", "broker-3"]},
    ]
    read = play(*steps)
    restart, _, start, finalise, add, remove = read
    assert isinstance(restart, OnNodes)
    assert isinstance(restart, Restart)
    assert restart.target == Choice(share=Share.ALL, role=restart.target.role)  # type: ignore[union-attr]
    assert restart.release == "4.3.1"
    assert start == Start(target=NamedNodes(nodes=(C1,)), release="path:/opt/kafka")
    assert finalise == Finalise(version="4.3", within_s=20.0)
    assert add == AddNodes(nodes=(SPARE,))
    assert remove == RemoveNodes(nodes=(B1, SPARE))
    assert play(*map(step_data, read)) == read


@pytest.mark.parametrize(
    ("steps", "path", "says"),
    [
        ([{"restart": "broker-1", "to": 4.3}], (0, "to"), "quote it: '4.3'"),
        ([{"restart": "broker-1", "to": "newest"}], (0, "to"), "expected a release"),
        ([{"restart": "broker-1", "to": "2.8.0"}], (0, "to"), "without ZooKeeper"),
        ([{"kill": "broker-1", "to": "4.3.1"}], (0, "to"), "does not go with 'kill'"),
        ([{"finalise": 4.3}], (0, "finalise"), "quote it"),
        ([{"finalise": "4.3.1"}], (0, "finalise"), "expected a metadata.version"),
        ([{"add": "broker-9"}], (0, "add"), "no such node"),
    ],
)
def test_what_is_no_release_version_or_node_is_refused_in_its_place(
    steps: list[object], path: tuple[str | int, ...], says: str
) -> None:
    with pytest.raises(SpecError, match=says) as refused:
        play(*steps)
    assert refused.value.path == path


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([{"finalise": "4.3"}], "broker-1 runs Kafka 3.9.2 at this step"),
        ([ALL_BROKERS, {"finalise": "4.3"}], "controller-1 runs Kafka 3.9.2"),
        ([{"restart": "broker-1", "to": "3.8.1"}], "does not know metadata.version 3.9.2"),
        (
            [*UP_TO_DATE, {"finalise": "4.3"}, {"restart": "broker-1", "to": "3.9.2"}],
            "does not know metadata.version 4.3, which counts",
        ),
        ([{"kill": "broker-3"}], "broker-3 is no member of the cluster"),
        ([{"add": "broker-1"}], "broker-1 is a member already"),
        ([{"remove": "broker-3"}], "broker-3 is no member"),
        ([{"remove": "broker-1"}, {"kill": "broker-1"}], "broker-1 is no member"),
        ([{"kill": "broker-1"}, {"restart": "broker-1"}], "broker-1 is down already"),
        ([{"choose": [[{"add": "broker-3"}], []]}], "leave different members"),
    ],
)
def test_a_step_that_cannot_follow_is_refused(steps: list[object], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        play(*steps)


@pytest.mark.parametrize(
    "steps",
    [
        # Back to the old binaries before anything is finalised, and up again.
        [*UP_TO_DATE, BACK, *UP_TO_DATE, {"finalise": "4.3"}],
        # Down by the metadata.version first.
        [*UP_TO_DATE, {"finalise": "4.3"}, {"finalise": "3.9"}, BACK],
        # A drawn broker may be any: nobody can say that one of them is still of the old release.
        [
            {"restart": "controller-1", "to": "4.3.1"},
            {"repeat": 4, "steps": [{"restart": "one broker", "to": "4.3.1"}]},
            {"finalise": "4.3"},
        ],
        # A build of one's own may know anything.
        [{"restart": EVERYBODY, "to": "path:/x"}, {"finalise": "9.9"}],
        # A removed node may lose its disk and be added again; a spare one is another like it.
        [{"remove": "broker-1"}, {"wipe": "broker-1"}, {"add": "broker-1"}, {"kill": "broker-1"}],
        [{"remove": "controller-1"}, {"wipe": "controller-1"}, {"add": "controller-1"}],
        [{"choose": [[{"add": "broker-3"}], [{"wait": "1s"}, {"add": "broker-3"}]]}, {"kill": B1}],
    ],
    ids=["down-and-up", "version-first", "drawn", "own-build", "removed", "controller", "chosen"],
)  # fmt: skip
def test_what_can_follow_is_read(steps: list[object]) -> None:
    assert len(play(*steps)) == len(steps)


def test_the_voters_of_a_static_quorum_are_neither_added_nor_removed() -> None:
    with pytest.raises(SpecError, match="set `quorum: dynamic`"):
        play({"remove": "controller-1"}, on=stage(dynamic=False))


def test_a_cluster_below_its_releases_own_version_may_go_down_to_it() -> None:
    step = {"restart": "broker-2", "to": "3.6.2"}
    assert play(step, on=stage(version="3.6"))
    with pytest.raises(SpecError, match=r"does not know metadata\.version 3\.7"):
        play(step, on=stage(version="3.7-IV4"))
