"""Which broker id a node has, as registrations name its listeners."""

from fencepost.clusters.identities import NO_ID, Identities, node_with
from fencepost.clusters.port import NodeName

ONE, TWO, THREE, SERVER = map(NodeName, ("broker-1", "broker-2", "broker-3", "zookeeper-1"))
FIRST = {SERVER: 2001, ONE: 1, TWO: 2, THREE: 3}


def test_a_node_is_found_by_the_host_of_any_of_its_listeners() -> None:
    endpoints = ["CLIENT://127.0.0.1:9092", "REPL://broker-2.repl:9093"]
    assert node_with(endpoints, (ONE, TWO)) == TWO
    assert node_with(["CLIENT://broker-1:9092"], (ONE, TWO)) == ONE
    assert node_with(["CLIENT://elsewhere:9092"], (ONE, TWO)) is None
    assert node_with([], (ONE, TWO)) is None


def saw(ids: Identities, *registrations: tuple[int, NodeName]) -> None:
    """Registrations in the order in which they were made, the first with epoch 10."""
    epochs = {broker: epoch for epoch, (broker, _) in enumerate(registrations, 10)}
    ids.saw(dict(registrations), epochs)


def test_a_node_keeps_its_id_until_another_one_has_it() -> None:
    ids = Identities(FIRST)
    saw(ids, (1, ONE), (3, THREE))
    assert ids.now == FIRST
    assert (ids.node_of(2), ids.node_of(9)) == (TWO, None)
    saw(ids, (2, THREE))
    assert (ids.now[TWO], ids.now[THREE], ids.node_of(2)) == (NO_ID, 2, THREE)
    saw(ids, (2, THREE), (1001, TWO))
    assert ids.now == {**FIRST, TWO: 1001, THREE: 2}
    assert ids.epochs == {ONE: 10, THREE: 10, TWO: 11}


def test_of_two_registrations_of_a_node_the_later_one_counts() -> None:
    ids = Identities(FIRST)
    for _ in range(2):
        saw(ids, (2, TWO), (1001, TWO))
        assert (ids.now[TWO], ids.epochs[TWO]) == (1001, 11)


def test_who_had_several_ids_is_told_for_the_whole_run() -> None:
    ids = Identities(FIRST)
    assert (ids.of_whole_run, ids.last) == (FIRST, {})
    saw(ids, (1001, TWO))
    saw(ids, (2, TWO))
    assert ids.of_whole_run == {**FIRST, TWO: NO_ID}
    assert ids.last == {TWO: 2}
