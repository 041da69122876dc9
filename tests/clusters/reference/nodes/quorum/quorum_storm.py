"""A storm over voters and observers: one seed draws the faults, the clients and the network."""

from random import Random
from typing import Any

from quorum_world import OBSERVERS, VOTERS, Broken, World

from fencepost.clusters.node_port.notes import COMMITTED_METADATA, QUORUM_LEADER, VOTED
from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.simulation.network import Trouble

_ACTS = 40
_HEALED_NS = 20 * S
"""A bound for what takes about one second: elections may be split again and again."""
_LEADERS_MAX = 4
"""The first one may be given up by voters that lost touch with it before the healing."""


def found(seed: int, rules: Rules, *, records_max: int = 0) -> str:
    """What the oracle saw in this seed's storm; empty: nothing."""
    try:
        storm(seed, rules, records_max=records_max)
    except Broken as broken:
        return str(broken)
    return ""


def storm(seed: int, rules: Rules | None = None, *, records_max: int = 0) -> World:
    """Faults and appends at random, then healing. Raises Broken by the oracle, also for no end.

    An answer has at most `records_max` records; 0: that is drawn, too.
    """
    bound = records_max or Random(seed).choice((1, 3, 1_000))
    world = World(seed, rules, fetch_records_max=bound)
    random = world.random
    world.simulation.network.trouble(
        Trouble(
            loss=random.choice((0.0, 0.02, 0.1)),
            duplication=random.choice((0.0, 0.1)),
            reordering=0.5,
            reordered_by_ns=random.choice((5, 20, 60)) * MS,
        )
    )
    world.ambush = random.choice(("", VOTED, QUORUM_LEADER, COMMITTED_METADATA))
    world.run(random.randrange(2 * S))
    for _ in range(_ACTS):
        _act(world)
        world.run(int(random.random() ** 2 * 400 * MS))
        _judge(world)
    world.heal()
    _recover(world)
    _judge(world)
    return world


def _judge(world: World) -> None:
    for finding in world.oracle.findings:
        raise Broken(finding.words)


def _act(world: World) -> None:
    random = world.random
    drawn = random.random()
    node_id = random.choice((*VOTERS, *OBSERVERS))
    voter = random.choice(VOTERS)
    part = world.nodes[voter].part if voter in world.nodes else None
    if drawn < 0.35:
        if part is not None and part.is_leader:
            world.append(voter, 1 + random.randrange(3))
        elif (leader := world.leader()) is not None:
            world.append(leader)
    elif drawn < 0.45:
        world.kill(node_id, power=random.random() < 0.5)
    elif drawn < 0.48:
        for one in VOTERS:
            world.kill(one, power=True)
    elif drawn < 0.75:
        world.bring_up(*random.sample(world.ids, 3))
    elif drawn < 0.8:
        _cut(world, node_id)
    elif drawn < 0.9:
        world.blocked.clear()
    elif drawn < 0.93 and part is not None and part.is_leader:
        world.resign(voter)
    elif node_id in world.nodes:
        world.snapshot(node_id)


def _cut(world: World, node_id: int) -> None:
    """Cut a node off: from all, from one, or in one direction."""
    others = [one for one in world.ids if one != node_id]
    width = world.random.choice((1, len(others)))
    for other in world.random.sample(others, width):
        ways: list[tuple[int, int]] = [(node_id, other), (other, node_id)]
        world.blocked.update(world.random.choice((ways, ways, ways[:1], ways[1:])))


def _recover(world: World) -> None:
    """Once healed, a leader commits what it appends, and everybody hears of it."""
    for _ in range(_LEADERS_MAX):
        if not world.run_until(lambda: _leads_all(world), _HEALED_NS):
            raise Broken("no leader that all follow, long after the healing")
        leader = world.leader()
        assert leader is not None
        if _is_heard(world, leader, world.append(leader)):
            break
    else:
        raise Broken("the leaders change and change, long after the healing")
    for node in world.nodes.values():
        assert node.replayer.image.offset == node.part.high_watermark


def _is_heard(world: World, leader: int, end: int) -> bool:
    """Whether all know soon that `end` is committed; false, if the leader was deposed instead."""
    epoch = world.nodes[leader].part.epoch

    def is_known() -> bool:
        return all(_high_watermark(node) >= end for node in world.nodes.values())

    def is_over() -> bool:
        return is_known() or world.nodes[leader].part.epoch != epoch

    if not world.run_until(is_over, _HEALED_NS):
        ends = {one: _high_watermark(node) for one, node in world.nodes.items()}
        raise Broken(f"{end} is not known everywhere, long after the healing: {ends}")
    return is_known()


def _high_watermark(node: Any) -> int:
    return int(node.part.high_watermark)


def _leads_all(world: World) -> bool:
    leader = world.leader()
    return leader is not None and all(
        node.part.leader_id == leader for node in world.nodes.values()
    )
