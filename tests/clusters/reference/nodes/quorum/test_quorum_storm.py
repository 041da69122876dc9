import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from quorum_storm import found, storm
from quorum_world import World

from fencepost.clusters.node_port.notes import QUORUM_LEADER
from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.nodes.rules import Rules

pytestmark = pytest.mark.slow

_SEEDS_TO_FIND = {
    "one_vote": 100,
    "vote_for_longest": 50,
    "commit_by_majority": 50,
    "append_synced": 50,
    "metadata_divergence_found": 50,
    "replay_committed_only": 50,
}
"""Within how many seeds the storm finds each bug; a few times what it takes."""
_RARE = {
    "vote_synced": range(600),
    "stale_epoch_refused": range(200),
    "commit_in_own_epoch": range(2_080, 2_100),
}
"""Seeds among which is one that finds it; the last one is found by one seed of a thousand."""

_DIGEST = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
from quorum_storm import storm
world = storm(5)
print(hashlib.sha256(repr((world.notes, world.now)).encode()).hexdigest())
"""


def test_storms_leave_one_leader_an_epoch_and_every_committed_record() -> None:
    broken = {seed: what for seed in range(100) if (what := found(seed, Rules()))}
    assert not broken


def test_two_thousand_storms_leave_every_committed_record(fuzz_seeds: range) -> None:
    broken = {seed: what for seed in fuzz_seeds[:2_000] if (what := found(seed, Rules()))}
    assert not broken


def test_storms_are_no_calm() -> None:
    worlds = [storm(seed) for seed in range(20)]
    assert sum(len(world.noted(QUORUM_LEADER)) for world in worlds) > 60
    assert sum(world.oracle.decided.offset for world in worlds) > 200
    assert sum(world.host(one).incarnation for world in worlds for one in world.ids) > 400
    starts = [node.part.log.start for world in worlds for node in world.nodes.values()]
    assert sum(start > 0 for start in starts) > 20


@pytest.mark.parametrize("rule", _SEEDS_TO_FIND)
def test_storms_find_the_bug_of_each_rule_that_is_switched_off(rule: str) -> None:
    rules = Rules().without(rule)
    assert any(found(seed, rules) for seed in range(_SEEDS_TO_FIND[rule])), rule


@pytest.mark.parametrize("rule", _RARE)
def test_storms_find_the_rarer_bugs_too(rule: str) -> None:
    rules = Rules().without(rule)
    assert any(found(seed, rules, records_max=1) for seed in _RARE[rule]), rule


def test_a_storm_is_the_same_from_the_same_seed_whatever_the_hash_seed() -> None:
    here = Path(__file__)
    paths = tuple(str(here.parents[up]) for up in (0, 1, 3, 5))
    digests = {
        subprocess.run(
            [sys.executable, "-c", _DIGEST, *paths],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


def test_commit_in_own_epoch_an_older_record_on_a_majority_may_still_be_overwritten() -> None:
    """Figure 8 of the Raft paper, by three voters and with one record in an answer."""
    assert not _figure_8(Rules())
    assert _figure_8(Rules().without("commit_in_own_epoch")).startswith("at offset 1 ")


def _figure_8(rules: Rules) -> str:
    world = World(3, rules, observers=(), fetch_records_max=1)
    first = _elected(world, ())
    _until(world, lambda: all(one.part.high_watermark == 1 for one in world.nodes.values()))
    _apart(world, first)
    world.append(first)
    second = _elected(world, (first,))
    third = next(one for one in world.voters if one not in {first, second})
    _apart(world, second)
    assert _elected(world, (second,)) == first
    # The first voter's old record is on a majority now, and nothing of its new epoch is.
    leadership = world.nodes[first].part._quorum.leadership
    world.catches = lambda s, t, _: (s, t) == (first, third) and leadership.voters[third].end == 2
    _until(world, lambda: world.held)
    world.catches = None
    assert world.nodes[third].part.log.end == 2
    _apart(world, first)
    assert _elected(world, (first,)) == second
    world.blocked.clear()
    world.run(3 * S)
    assert world.oracle.decided.offset > 2
    return world.oracle.findings[0].words if world.oracle.findings else ""


def _apart(world: World, node_id: int) -> None:
    """Cut this voter off, and nobody else."""
    world.blocked.clear()
    world.cut([node_id], world.voters)


def _elected(world: World, others_than: tuple[int, ...]) -> int:
    """Whoever is elected next, of all but these; as soon as it is."""
    before = len(world.notes)

    def winners() -> list[int]:
        return [
            node_id
            for node_id, subject, *_ in world.notes[before:]
            if subject == QUORUM_LEADER and node_id not in others_than
        ]

    _until(world, winners)
    return winners()[0]


def _until(world: World, holds: Callable[[], Any]) -> None:
    until = world.now + 10 * S
    while not holds():
        assert world.now < until
        world.run(MS // 20)


def test_a_voter_alone_serves_its_observers_and_keeps_what_it_committed() -> None:
    world = World(1, voters=(1001,), observers=(1, 2))
    world.run(500 * MS)
    end = world.append(1001, 3)
    world.run(200 * MS)
    assert {node.part.high_watermark for node in world.nodes.values()} == {end}
    world.kill(1001, power=True)
    world.start(1001)
    world.run(S)
    assert world.nodes[1001].part.epoch == 2
    assert world.append(1001) == end + 2
    world.run(500 * MS)
    assert {node.part.high_watermark for node in world.nodes.values()} == {end + 2}
