"""Disks of servers that contradict each other are told from those that merely end elsewhere."""

from random import Random

import pyarrow as pa
from ensemble_disks import Row, disk, disks, fault, logged, stored
from metadata_logs import FACTS, asked, case_count, never, proofs

from checkers.table_check import TableKernel
from checkers.znodes.server_disks import (
    divergent_transactions,
    divergent_trees,
    orphan_ephemerals,
)

ONE, TWO, THREE = "server-1", "server-2", "server-3"
WHOLE = (disk(ONE, last=9), disk(TWO, last=9))
SAME = tuple(stored(node, "/a", value=b"1", version=3, mzxid=8) for node in (ONE, TWO))


def sentences(kernel: TableKernel, *rows: Row) -> list[str]:
    return [
        one.sentence
        for of_key in proofs(asked(kernel, disks(*rows), FACTS)).values()
        for one in of_key
    ]


def only(found: list[str]) -> str:
    (sentence,) = found
    return sentence


def cases(kernel: TableKernel, *rows: Row) -> int:
    return case_count(asked(kernel, disks(*rows), FACTS))


def test_two_transactions_of_one_zxid_are_told_by_their_requests() -> None:
    rows = (
        logged(ONE, 0x100000005, "setData", "/a", content=1),
        logged(TWO, 0x100000005, "create", "/b", content=2, session=8, cxid=4),
        logged(THREE, 0x100000005, "setData", "/a", content=1),
    )
    assert only(sentences(divergent_transactions, *rows)) == (
        "transaction 0x100000005 is a setData of /a (session 0x7, request 1) in the log of "
        "server-1, and a create of /b (session 0x8, request 4) in that of server-2"
    )
    assert cases(divergent_transactions, *rows) == 1
    assert sentences(divergent_transactions, *rows, fault("rollback")) == []
    assert sentences(divergent_transactions, *rows, fault("wipe")) != []


def test_equal_transactions_and_the_items_of_one_are_no_divergence() -> None:
    rows = (
        logged(ONE, 5, "create", "/a", content=1),
        logged(ONE, 5, "create", "/b", content=1, item=1),
        logged(TWO, 5, "create", "/a", content=1),
        logged(TWO, 5, "create", "/b", content=1, item=1),
        logged(ONE, 6, "setData", "/a", content=2),
        logged(TWO, 7, "setData", "/a", content=3),
    )
    assert sentences(divergent_transactions, *rows) == []
    assert cases(divergent_transactions, *rows) == 1
    assert cases(divergent_transactions, *rows[:2]) == 0


def test_a_znode_of_other_data_is_told_with_both_values() -> None:
    other = stored(TWO, "/a", value=b"2", version=4, mzxid=9)
    assert only(sentences(divergent_trees, *WHOLE, SAME[0], other)) == (
        "up to 0x9, which both have, /a is '1', version 3, mzxid 0x8 on server-1, and '2', "
        "version 4, mzxid 0x9 on server-2"
    )
    assert sentences(divergent_trees, *WHOLE, *SAME) == []
    assert cases(divergent_trees, *WHOLE, *SAME) == 1


def test_a_znode_that_only_one_server_has_is_told() -> None:
    extra = stored(TWO, "/b", value=b"\xff", version=1, mzxid=9)
    assert only(sentences(divergent_trees, *WHOLE, *SAME, extra)) == (
        "up to 0x9, which both have, /b is not there on server-1, and '\\xff', version 1, mzxid "
        "0x9 on server-2"
    )
    assert sentences(divergent_trees, *WHOLE, *SAME, extra, fault("flip_bit")) == []


def test_what_one_server_has_behind_the_end_of_another_is_not_compared() -> None:
    shorter = (disk(ONE, last=9), disk(TWO, last=7))
    later = logged(ONE, 8, "setData", "/a")
    behind = stored(TWO, "/a", value=b"0", version=2, mzxid=6)
    assert sentences(divergent_trees, *shorter, later, SAME[0], behind) == []
    earlier = logged(ONE, 7, "setData", "/a")
    assert len(sentences(divergent_trees, *shorter, earlier, SAME[0], behind)) == 1
    elsewhere = logged(ONE, 8, "setData", "/a/b")
    assert sentences(divergent_trees, *shorter, elsewhere, SAME[0], behind) == []


def test_the_end_of_a_session_touches_what_it_owned_and_the_parents() -> None:
    shorter = (disk(ONE, last=8), disk(TWO, last=7))
    ended = logged(ONE, 8, "closeSession", session=7)
    owned = stored(TWO, "/p/e", ephemeral_owner=7)
    parents = stored(ONE, "/p", pzxid=8), stored(TWO, "/p", pzxid=5)
    assert sentences(divergent_trees, *shorter, ended, owned, *parents) == []
    another = stored(TWO, "/q/e", ephemeral_owner=9)
    assert len(sentences(divergent_trees, *shorter, ended, owned, *parents, another)) == 1


def test_servers_of_an_earlier_epoch_and_ones_own_znodes_are_not_compared() -> None:
    other = stored(TWO, "/a", value=b"2")
    late = (disk(ONE, epoch=3, last=9), disk(TWO, epoch=2, last=9))
    assert cases(divergent_trees, *late, SAME[0], other) == 0
    assert sentences(divergent_trees, *late, SAME[0], other) == []
    unstated = (disk(ONE, epoch=3, last=9), disk(TWO, epoch=None, last=9))
    assert sentences(divergent_trees, *unstated, SAME[0], other) == []
    third = (*late, disk(THREE, epoch=3, last=9), stored(THREE, "/a", value=b"3"))
    assert len(sentences(divergent_trees, *third, SAME[0], other)) == 1
    own = stored(ONE, "/zookeeper/config", mzxid=1), stored(TWO, "/zookeeper/config", mzxid=2)
    assert sentences(divergent_trees, *WHOLE, *own) == []


def test_every_column_of_a_stat_counts() -> None:
    for name in ("czxid", "pzxid", "ctime_ms", "mtime_ms", "cversion", "aversion"):
        rows = stored(ONE, "/a"), stored(TWO, "/a", **{name: 1})
        assert len(sentences(divergent_trees, *WHOLE, *rows)) == 1
    rows = stored(ONE, "/a"), stored(TWO, "/a", acl="auth::1")
    assert len(sentences(divergent_trees, *WHOLE, *rows)) == 1


def test_an_ephemeral_znode_without_its_session_is_told() -> None:
    kept = stored(ONE, "/e", ephemeral_owner=0x17, session_open=False, czxid=0x30)
    assert sentences(orphan_ephemerals, kept) == [
        "server-1 has /e, made by transaction 0x30 for session 0x17, which is not open"
    ]
    lives = stored(ONE, "/e", ephemeral_owner=0x17, session_open=True)
    assert sentences(orphan_ephemerals, lives, stored(ONE, "/a")) == []
    assert cases(orphan_ephemerals, lives, stored(ONE, "/a")) == 1


def test_a_session_that_ended_with_ephemeral_znodes_is_a_case_on_each_server() -> None:
    ended = [
        logged(node, 8, "closeSession", path, session=0x17, item=item)
        for node in (ONE, TWO)
        for item, path in enumerate(("/e", "/f"))
    ]
    assert sentences(orphan_ephemerals, *ended, stored(ONE, "/a")) == []
    assert cases(orphan_ephemerals, *ended) == 2
    bare = logged(ONE, 9, "closeSession", session=0x18)
    assert cases(orphan_ephemerals, *ended, bare) == 2
    kept = stored(TWO, "/f", ephemeral_owner=0x17, session_open=False, czxid=0x30)
    assert only(sentences(orphan_ephemerals, *ended, kept)).startswith("server-2 has /f")
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
        told = {one.proof.fact("path") for of_key in never(judged).values() for one in of_key}
        assert told == slow


def test_tables_without_rows_are_judged_as_nothing() -> None:
    assert all(isinstance(one, pa.Table) for one in disks().values())
    for kernel in (divergent_transactions, divergent_trees, orphan_ephemerals):
        assert cases(kernel) == 0
