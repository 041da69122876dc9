"""Who does not come back is started anew: nobody else, and less and less often."""

from fencepost.clusters.port import NodeName
from fencepost.harness.interpreter.recovery import Recovery

ONE, TWO = NODES = (NodeName("broker-1"), NodeName("broker-2"))


def tries(recovery: Recovery, *, until_s: int, blind_at: int = -1) -> list[tuple[int, str]]:
    """Return when which node is started anew, of a cluster in which broker-2 is never whole."""
    return [
        (now_s, node)
        for now_s in range(until_s)
        for node in recovery.stuck(
            now_s, NODES, impaired=NODES if now_s == blind_at else {TWO}, idle=True
        )
    ]


def test_a_node_that_needs_longer_than_the_limit_is_given_the_time() -> None:
    found = tries(Recovery(limit_s=10.0), until_s=100)
    assert found == [(11, TWO), (32, TWO), (73, TWO)]


def test_a_look_that_shows_nothing_makes_no_whole_node_late() -> None:
    assert tries(Recovery(limit_s=10.0), until_s=30, blind_at=11) == [(11, TWO)]


def test_who_was_whole_has_the_limit_again() -> None:
    recovery = Recovery(limit_s=10.0)
    tries(recovery, until_s=40)
    assert not recovery.stuck(40, NODES, impaired=(), idle=True)
    assert not recovery.stuck(50, NODES, impaired={TWO}, idle=True)
    assert recovery.stuck(51, NODES, impaired={TWO}, idle=True) == (TWO,)


def test_while_something_is_broken_nobody_is_late() -> None:
    recovery = Recovery(limit_s=10.0)
    assert not any(recovery.stuck(s, NODES, impaired=NODES, idle=False) for s in range(100))
    assert not recovery.stuck(109, NODES, impaired=NODES, idle=True)
    assert recovery.stuck(110, NODES, impaired=NODES, idle=True) == NODES
