"""States are written over the version that was read; who finds another one looks, and goes on."""

from control_desk import Desk

from fencepost.clusters.node_port.zookeeper import Operation, SetData
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.control.job_queue import PLANS_MAX
from fencepost.clusters.reference.zk.znodes import PartitionStateInfo, state_path


def between(desk: Desk, state: PartitionStateInfo, *, times: int = 1) -> list[Operation]:
    """Another hand writes the state of t-0 just before the controller does, that often."""
    seen: list[Operation] = []

    def write(operation: Operation) -> None:
        if operation.path == state_path("t", 0) and len(seen) < times:
            seen.append(operation)
            desk.double.on_write = lambda _: None
            desk.overwrite(state)
            desk.double.on_write = write

    desk.double.on_write = write
    return seen


def test_a_state_that_a_leader_wrote_meanwhile_is_read_and_decided_upon() -> None:
    desk = Desk()
    desk.create("t", (2, 1, 3))
    seen = between(desk, PartitionStateInfo(1, 2, 0, (2, 3)))
    desk.kill(2)
    assert len(seen) == 1
    assert (desk.state().leader, desk.state().isr) == (3, (3,))
    assert desk.led(1).leader == 3


def test_without_the_rule_the_controller_writes_over_what_it_has_not_seen() -> None:
    desk = Desk(3, "state_written_by_version")
    desk.create("t", (2, 1, 3))
    between(desk, PartitionStateInfo(1, 2, 0, (2, 3)))
    desk.kill(2)
    assert (desk.state().leader, desk.state().isr) == (1, (1, 3))
    assert desk.image().partition_epoch == desk.double.version(state_path("t", 0))


def test_a_write_whose_answer_was_lost_is_found_to_be_done() -> None:
    desk = Desk()
    desk.create("t", (2, 1, 3))
    lost: list[object] = []

    def loses(request: object) -> bool:
        operations = request.operations  # type: ignore[attr-defined]
        is_first = any(isinstance(one, SetData) for one in operations) and not lost
        lost.extend([request] * is_first)
        return is_first

    desk.double.loses = loses
    assert desk.isr_change(2, (2, 1)).results[0][0] == Error.NONE
    assert lost
    assert desk.double.version(state_path("t", 0)) == 1
    assert desk.image().partition_epoch == 1
    assert desk.image().isr == (2, 1)


def test_one_that_is_always_overtaken_gives_up_with_an_error() -> None:
    desk = Desk()
    desk.create("t", (2, 1, 3))
    seen = between(desk, PartitionStateInfo(1, 2, 0, (2, 3)), times=1_000)
    answer = desk.isr_change(2, (2, 1))
    assert answer.error == Error.UNKNOWN_SERVER_ERROR
    assert len(seen) == PLANS_MAX
