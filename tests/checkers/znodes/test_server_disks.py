"""Disks of servers that contradict each other are told from those that merely end elsewhere."""

from random import Random

import pyarrow as pa
from ensemble_disks import Row, disk, disks, fault, logged, stored
from metadata_logs import FACTS, asked, never, told
from proving import assert_proof

from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableKernel
from fencepost.checkers.znodes.server_disks import (
    divergent_transactions,
    divergent_trees,
    orphan_ephemerals,
)

ONE, TWO, THREE = "server-1", "server-2", "server-3"
WHOLE = (disk(ONE, last=9), disk(TWO, last=9))
SAME = tuple(stored(node, "/a", value=b"1", version=3, mzxid=8) for node in (ONE, TWO))


def found(kernel: TableKernel, *rows: Row) -> list[Proof]:
    return told(asked(kernel, disks(*rows), FACTS))[0]


def cases(kernel: TableKernel, *rows: Row) -> int:
    return told(asked(kernel, disks(*rows), FACTS))[1]


def test_two_transactions_of_one_zxid_are_told_by_their_requests() -> None:
    rows = (
        logged(ONE, 0x100000005, "setData", "/a", content=1),
        logged(TWO, 0x100000005, "create", "/b", content=2, session=8, cxid=4),
        logged(THREE, 0x100000005, "setData", "/a", content=1),
    )
    (proof,) = found(divergent_transactions, *rows)
    one = {"node": ONE, "type": "setData", "path": "/a", "session": 7, "cxid": 1}
    other = {"node": TWO, "type": "create", "path": "/b", "session": 8, "cxid": 4}
    others = {f"other_{name}": value for name, value in other.items()}
    assert_proof(proof, "in the log of {node}", zxid=0x100000005, **one, **others)
    assert cases(divergent_transactions, *rows) == 1
    assert found(divergent_transactions, *rows, fault("rollback")) == []
    assert found(divergent_transactions, *rows, fault("wipe")) != []


def test_equal_transactions_and_the_items_of_one_are_no_divergence() -> None:
    rows = (
        logged(ONE, 5, "create", "/a", content=1),
        logged(ONE, 5, "create", "/b", content=1, item=1),
        logged(TWO, 5, "create", "/a", content=1),
        logged(TWO, 5, "create", "/b", content=1, item=1),
        logged(ONE, 6, "setData", "/a", content=2),
        logged(TWO, 7, "setData", "/a", content=3),
    )
    assert found(divergent_transactions, *rows) == []
    assert cases(divergent_transactions, *rows) == 1
    assert cases(divergent_transactions, *rows[:2]) == 0


def test_a_znode_of_other_data_is_told_with_both_values() -> None:
    other = stored(TWO, "/a", value=b"2", version=4, mzxid=9)
    (proof,) = found(divergent_trees, *WHOLE, SAME[0], other)
    one = {"node": ONE, "data": "'1'", "version": 3, "mzxid": 8}
    others = {"other_node": TWO, "other_data": "'2'", "other_version": 4, "other_mzxid": 9}
    assert_proof(proof, "{path} is {data}, version {version}", zxid=9, path="/a", **one, **others)
    assert found(divergent_trees, *WHOLE, *SAME) == []
    assert cases(divergent_trees, *WHOLE, *SAME) == 1


def test_a_znode_that_only_one_server_has_is_told() -> None:
    extra = stored(TWO, "/b", value=b"\xff", version=1, mzxid=9)
    (proof,) = found(divergent_trees, *WHOLE, *SAME, extra)
    there = {"other_node": TWO, "data": r"'\xff'", "version": 1, "mzxid": 9}
    assert_proof(proof, "{path} is not there on {node}", zxid=9, path="/b", node=ONE, **there)
    assert found(divergent_trees, *WHOLE, *SAME, extra, fault("flip_bit")) == []


def test_what_one_server_has_behind_the_end_of_another_is_not_compared() -> None:
    shorter = (disk(ONE, last=9), disk(TWO, last=7))
    later = logged(ONE, 8, "setData", "/a")
    behind = stored(TWO, "/a", value=b"0", version=2, mzxid=6)
    assert found(divergent_trees, *shorter, later, SAME[0], behind) == []
    earlier = logged(ONE, 7, "setData", "/a")
    assert len(found(divergent_trees, *shorter, earlier, SAME[0], behind)) == 1
    elsewhere = logged(ONE, 8, "setData", "/a/b")
    assert found(divergent_trees, *shorter, elsewhere, SAME[0], behind) == []


def test_the_end_of_a_session_touches_what_it_owned_and_the_parents() -> None:
    shorter = (disk(ONE, last=8), disk(TWO, last=7))
    ended = logged(ONE, 8, "closeSession", session=7)
    owned = stored(TWO, "/p/e", ephemeral_owner=7)
    parents = stored(ONE, "/p", pzxid=8), stored(TWO, "/p", pzxid=5)
    assert found(divergent_trees, *shorter, ended, owned, *parents) == []
    another = stored(TWO, "/q/e", ephemeral_owner=9)
    assert len(found(divergent_trees, *shorter, ended, owned, *parents, another)) == 1


def test_servers_of_an_earlier_epoch_and_ones_own_znodes_are_not_compared() -> None:
    other = stored(TWO, "/a", value=b"2")
    late = (disk(ONE, epoch=3, last=9), disk(TWO, epoch=2, last=9))
    assert cases(divergent_trees, *late, SAME[0], other) == 0
    assert found(divergent_trees, *late, SAME[0], other) == []
    unstated = (disk(ONE, epoch=3, last=9), disk(TWO, epoch=None, last=9))
    assert found(divergent_trees, *unstated, SAME[0], other) == []
    third = (*late, disk(THREE, epoch=3, last=9), stored(THREE, "/a", value=b"3"))
    assert len(found(divergent_trees, *third, SAME[0], other)) == 1
    own = stored(ONE, "/zookeeper/config", mzxid=1), stored(TWO, "/zookeeper/config", mzxid=2)
    assert found(divergent_trees, *WHOLE, *own) == []


def test_every_column_of_a_stat_counts() -> None:
    for name in ("czxid", "pzxid", "ctime_ms", "mtime_ms", "cversion", "aversion"):
        rows = stored(ONE, "/a"), stored(TWO, "/a", **{name: 1})
        assert len(found(divergent_trees, *WHOLE, *rows)) == 1
    rows = stored(ONE, "/a"), stored(TWO, "/a", acl="auth::1")
    assert len(found(divergent_trees, *WHOLE, *rows)) == 1


def test_an_ephemeral_znode_without_its_session_is_told() -> None:
    kept = stored(ONE, "/e", ephemeral_owner=0x17, session_open=False, czxid=0x30)
    (proof,) = found(orphan_ephemerals, kept)
    assert_proof(proof, "which is not open", node=ONE, path="/e", czxid=0x30, session=0x17)
    lives = stored(ONE, "/e", ephemeral_owner=0x17, session_open=True)
    assert found(orphan_ephemerals, lives, stored(ONE, "/a")) == []
    assert cases(orphan_ephemerals, lives, stored(ONE, "/a")) == 1


def test_a_session_that_ended_with_ephemeral_znodes_is_a_case_on_each_server() -> None:
    ended = [
        logged(node, 8, "closeSession", path, session=0x17, item=item)
        for node in (ONE, TWO)
        for item, path in enumerate(("/e", "/f"))
    ]
    assert found(orphan_ephemerals, *ended, stored(ONE, "/a")) == []
    assert cases(orphan_ephemerals, *ended) == 2
    bare = logged(ONE, 9, "closeSession", session=0x18)
    assert cases(orphan_ephemerals, *ended, bare) == 2
    kept = stored(TWO, "/f", ephemeral_owner=0x17, session_open=False, czxid=0x30)
    (proof,) = found(orphan_ephemerals, *ended, kept)
    assert_proof(proof, "which is not open", node=TWO, path="/f")
    assert cases(orphan_ephemerals, *ended, kept) == 3


def test_random_trees_differ_where_a_plain_comparison_says_so() -> None:
    for seed in range(60):
        random = Random(seed)
        trees: dict[str, dict[str, int]] = {
            node: {
                path: random.choice((0, 0, 0, 1))
                for path in ("/a", "/b", "/c")
                if random.random() < 0.9
            }
            for node in (ONE, TWO, THREE)
        }
        rows = [
            stored(node, path, version=version)
            for node, tree in trees.items()
            for path, version in tree.items()
        ]
        ends = [disk(node, last=5) for node in trees]
        slow = {
            path
            for path in ("/a", "/b", "/c")
            if len({tree.get(path) for tree in trees.values()}) > 1
        }
        judged = asked(divergent_trees, disks(*ends, *rows), FACTS)
        paths = {one.proof.fact("path") for of_key in never(judged).values() for one in of_key}
        assert paths == slow


def test_tables_without_rows_are_judged_as_nothing() -> None:
    assert all(isinstance(one, pa.Table) for one in disks().values())
    for kernel in (divergent_transactions, divergent_trees, orphan_ephemerals):
        assert cases(kernel) == 0
