"""Which disks may be lost: the last member of an ISR keeps its own, and one loss is enough."""

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.port import NodeName
from fencepost.nemesis.disks import LostDisks
from fencepost.nemesis.targets import Scene

CONTROLLER, ONE, TWO, THREE = map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3"))
IDS = {ONE: 1, TWO: 2, THREE: 3}


def scene(*isr: int, up: tuple[int, ...] = (1, 2, 3)) -> Scene:
    partition = PartitionView(leader=isr[0], isr=isr, replicas=(1, 2, 3))
    view = ClusterView(
        time_ns=0, brokers=frozenset(up), serving=frozenset(up), partitions={"t-0": partition}
    )
    return Scene(nodes=(CONTROLLER, *IDS), broker_ids=IDS, view=view, active_controller=CONTROLLER)


def test_a_member_may_lose_its_disk_if_another_one_goes_on() -> None:
    assert LostDisks().may_lose(TWO, scene(1, 2), gone=())
    assert not LostDisks().may_lose(TWO, scene(1, 2), gone=(ONE,))
    assert not LostDisks().may_lose(TWO, scene(1, 2, up=(2, 3)), gone=())
    assert not LostDisks().may_lose(TWO, scene(2), gone=())


def test_a_replica_out_of_the_isr_may_be_lost_whoever_is_down() -> None:
    assert LostDisks().may_lose(TWO, scene(1, up=(2,)), gone=(ONE, THREE))


def test_where_nothing_is_shown_nothing_may_be_lost() -> None:
    blind = Scene(nodes=(), broker_ids=IDS, view=None, active_controller=None)
    assert not LostDisks().may_lose(TWO, blind, gone=())


def look(
    disks: LostDisks, seen: Scene, count: int, *, registered: int = 5, impaired: tuple[int, ...]
) -> None:
    names = {number: node for node, number in IDS.items()}
    disks.look(
        seen,
        look_count=count,
        registrations=lambda node: registered if node == TWO else 0,
        impaired={names[number] for number in impaired},
    )


def test_a_lost_disk_is_pending_until_a_later_look_shows_it_out_of_every_isr() -> None:
    disks = LostDisks()
    disks.lose(TWO, look_count=7, registrations=5)
    look(disks, scene(1, 3), 8, impaired=(2,))  # it may have begun before the loss
    assert set(disks.pending) == {TWO}
    look(disks, scene(1, 2, 3), 9, impaired=(2,))
    assert set(disks.pending) == {TWO}
    look(disks, scene(1, 3), 10, impaired=(2,))
    assert not disks.pending


def test_a_registration_since_the_loss_counts_whoever_saw_the_isr() -> None:
    """Killed, wiped and started within a second, it is out of the ISRs between two looks."""
    disks = LostDisks()
    disks.lose(TWO, look_count=7, registrations=5)
    look(disks, scene(1, 2, 3), 30, registered=5, impaired=())
    assert set(disks.lost) == {TWO}
    look(disks, scene(1, 2, 3), 31, registered=6, impaired=())
    assert not disks.pending
    assert not disks.lost


def test_a_registration_counts_only_if_a_later_look_shows_that_the_node_takes_part() -> None:
    """Looks may be late to see the registration before the loss."""
    disks = LostDisks()
    disks.lose(TWO, look_count=7, registrations=5)
    look(disks, scene(1, 2, 3), 8, registered=6, impaired=())
    look(disks, scene(1, 2, 3, up=(1, 3)), 9, registered=6, impaired=(2,))
    assert set(disks.pending) == {TWO}


def test_a_member_that_is_the_last_of_its_isr_stays_one_though_it_registers_anew() -> None:
    disks = LostDisks()
    disks.lose(TWO, look_count=7, registrations=5)
    look(disks, scene(2), 9, registered=6, impaired=(1, 3))
    look(disks, scene(2, 3, up=(1, 2)), 10, registered=6, impaired=(1, 3))
    assert set(disks.pending) == {TWO}
    look(disks, scene(2, 3), 11, registered=6, impaired=(1,))
    assert not disks.pending


def test_a_second_disk_is_lost_only_when_the_first_is_whole_again() -> None:
    disks = LostDisks()
    disks.lose(TWO, look_count=0, registrations=0)
    look(disks, scene(1, 3), 2, impaired=(2,))
    assert not disks.may_lose(THREE, scene(1, 3), gone={TWO})
    assert disks.may_lose(TWO, scene(1, 3), gone={TWO})
    look(disks, scene(1, 2, 3), 4, impaired=())
    assert not disks.lost
    assert disks.may_lose(THREE, scene(1, 2, 3), gone=())
