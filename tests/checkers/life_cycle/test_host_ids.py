"""Broker ids by host name: what the procedure gives, what ZooKeeper keeps, and what is garbage."""

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa
import pytest
from metadata_logs import ON_ZOOKEEPER, asked, case_count, metadata_log, told
from proving import assert_proof
from replica_disks import faults as disk_faults

from fencepost.checkers.life_cycle.host_ids import host_garbage, wrong_ids, wrong_mappings
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableKernel
from fencepost.history.clock import ClockSkew
from fencepost.history.cluster_schema import METADATA_LOG, NODE_SETTINGS
from fencepost.history.schema import FAULTS

MS = 1_000_000


def settings(*, adopts: str | None, disks: Mapping[str, str], **more: str) -> pa.Table:
    names = {"broker-1": {"host.name": "h1"}, "broker-2": {"host.name": "h2"}}
    rows = [
        {"node": node, "name": name, "value": value}
        for node, one in names.items()
        for name, value in {
            **one,
            **{key.replace("_", "."): text for key, text in more.items()},
            **({} if adopts is None else {"fencepost.broker.id.adopt.missing": adopts}),
            **({"fencepost.disk.broker.id": disks[node]} if node in disks else {}),
        }.items()
    ]
    return pa.Table.from_pylist(rows, schema=NODE_SETTINGS)


def wipe(node: str, at_ms: int) -> pa.Table:
    times = {"begin_ns": at_ms * MS, "end_ns": (at_ms + 1) * MS}
    row = {"index": 0, "fault": "wipe", "targets": [node], **times}
    return pa.Table.from_pylist([row], schema=FAULTS)


def found(
    kernel: TableKernel,
    log: str,
    *,
    faults: pa.Table | None = None,
    adopts: str | None = None,
    disks: Mapping[str, str] = MappingProxyType({}),
    ahead_ms: int = 0,
    settings_: pa.Table | None = None,
    **more: str,
) -> tuple[list[Proof], int]:
    """The proofs, and how many cases were judged.

    `ahead_ms`: by how much the clock that stamps records can be ahead, or right; or behind.
    """
    given = {
        "metadata_log": metadata_log(zookeeper_1=log),
        "node_settings": settings_ or settings(adopts=adopts, disks=disks, **more),
        "faults": FAULTS.empty_table() if faults is None else faults,
    }
    wrong = ClockSkew(
        node="zookeeper-1",
        from_ns=0,
        until_ns=100_000 * MS,
        ahead_min_ns=ahead_ms * MS,
        ahead_max_ns=ahead_ms * MS,
    )
    run = replace(ON_ZOOKEEPER, skews=(wrong,) if ahead_ms else ())
    return told(asked(kernel, given, run))


def assert_wrong(proof: Proof, source: str, right: str, **named: object) -> None:
    assert_proof(proof, f"the id that {source} is: {{right}}", right=right, **named)


TWO = "1 runs-on 1 h1 at 1000\n2 keeps h1 1 at 1001\n3 runs-on 2 h2 at 1100\n4 keeps h2 2 at 1101\n"
TOPIC = TWO + "5 topic t at 1200\n6 partition t-0 replicas 1,2 isr 1,2 leader 1 at 1201\n"
AWAY = TOPIC + "7 session-ends 1 at 30000\n"


def test_a_host_that_lost_its_disk_has_the_id_that_is_kept_for_it() -> None:
    lost = wipe("broker-1", 31_000)
    assert found(wrong_ids, AWAY + "8 runs-on 1 h1 at 50000", faults=lost) == ([], 2)
    (proof,), count = found(wrong_ids, AWAY + "8 runs-on 3 h1 at 50000", faults=lost)
    named = {"host": "h1", "broker_id": 3, "metadata_offset": 8, "missing": "1"}
    assert_wrong(proof, "ZooKeeper keeps for its host", "1", **named)
    assert count == 2


def test_a_host_with_a_disk_has_the_id_on_it_whatever_zookeeper_keeps() -> None:
    kept = AWAY + "8 keeps h1 7 at 40000\n"
    assert found(wrong_ids, kept + "9 runs-on 1 h1 at 60000") == ([], 2)
    (proof,), _ = found(wrong_ids, kept + "9 runs-on 7 h1 at 60000")
    assert_wrong(proof, "its disk has", "1")


def test_a_disk_may_have_an_id_before_the_first_registration() -> None:
    new = "0 topic t at 1\n1 runs-on 1001 h1 at 1000"
    (proof,), _ = found(wrong_ids, new, disks={"broker-1": "1"})
    assert_wrong(proof, "its disk has", "1")
    assert found(wrong_ids, new) == ([], 1)
    assert found(wrong_ids, new.replace("1001", "1"), disks={"broker-1": "1"}) == ([], 1)
    lost = wipe("broker-1", 500)
    assert found(wrong_ids, new, disks={"broker-1": "1"}, faults=lost) == ([], 1)


def test_an_id_that_is_kept_but_anothers_is_not_taken_again() -> None:
    stolen = AWAY + "8 runs-on 1 h2 at 31000\n"
    lost = wipe("broker-1", 30_500)
    (proof,), _ = found(wrong_ids, stolen + "9 runs-on 9 h1 at 60000", faults=lost)
    # h2 had id 2 on its disk when it took the id of h1.
    named = {"host": "h2", "broker_id": 1, "metadata_offset": 8, "missing": "1"}
    assert_wrong(proof, "its disk has", "2", **named)


def test_of_several_missing_ids_none_is_taken() -> None:
    gone = TOPIC.replace("replicas 1,2", "replicas 1,2,5") + "7 session-ends 1 at 30000\n"
    unknown = gone + "8 forgets h1 at 30001\n9 runs-on 1 h1 at 60000"
    lost = wipe("broker-1", 31_000)
    (proof,), _ = found(wrong_ids, unknown, faults=lost, adopts="true")
    source = "topics name and no broker has registered"
    assert_wrong(proof, source, "none of those in use", missing="1, 5")
    alone = AWAY + "8 forgets h1 at 30001\n9 runs-on 1 h1 at 60000"
    assert found(wrong_ids, alone, faults=lost, adopts="true") == ([], 2)
    (proof,), _ = found(wrong_ids, alone, faults=lost)
    assert_wrong(proof, "was never used (a new one)", "none of those in use")


def test_an_id_is_right_if_it_was_so_a_moment_before() -> None:
    """Two brokers that start at once may both read that one id is missing."""
    both = TOPIC + "7 session-ends 1 at 30000\n8 session-ends 2 at 30001\n9 forgets h1 at 30002\n"
    raced = both + "10 runs-on 2 h2 at 40000\n11 runs-on 1 h1 at 40005"
    lost = wipe("broker-1", 30_500)
    assert found(wrong_ids, raced, faults=lost, adopts="true")[0] == []


@pytest.mark.parametrize(("wiped_ms", "is_right"), [(30_500, True), (33_000, False)])
def test_a_broker_reads_nothing_before_its_disk_is_wiped(wiped_ms: int, *, is_right: bool) -> None:
    """Id 1 alone is missing for a second, and then both are."""
    gone = "7 forgets h1 at 29000\n8 session-ends 1 at 30000\n9 session-ends 2 at 31000\n"
    log = TOPIC + gone + "10 runs-on 1 h1 at 35000"
    proofs, _ = found(wrong_ids, log, faults=wipe("broker-1", wiped_ms), adopts="true")
    assert (not proofs) is is_right


def test_a_configured_id_comes_first() -> None:
    (proof,), _ = found(wrong_ids, "0 topic t at 1\n1 runs-on 4 h1 at 1000", broker_id="3")
    assert_wrong(proof, "its configuration has", "3")
    assert found(wrong_ids, "0 topic t at 1\n1 runs-on 3 h1 at 1000", broker_id="3") == ([], 1)


def test_a_configured_id_that_contradicts_the_disk_is_never_right() -> None:
    new = "0 topic t at 1\n1 runs-on {} h1 at 1000"
    for broker_id in (2, 7):
        given = new.format(broker_id)
        (proof,), _ = found(wrong_ids, given, broker_id="7", disks={"broker-1": "2"})
        assert_wrong(proof, "its configuration and its disk agree on", "none of those in use")
    assert found(wrong_ids, new.format(7), broker_id="7", disks={"broker-1": "7"}) == ([], 1)
    lost = wipe("broker-1", 500)
    given = new.format(7)
    assert found(wrong_ids, given, broker_id="7", disks={"broker-1": "2"}, faults=lost) == ([], 1)


def test_what_a_broker_read_before_it_stood_still_counts() -> None:
    """Id 1 alone is missing until broker-2's session ends, and then both are."""
    gone = "7 forgets h1 at 29000\n8 session-ends 1 at 30000\n9 session-ends 2 at 31000\n"
    log = TOPIC + gone + "10 runs-on 1 h1 at 55000"
    lost = wipe("broker-1", 29_500)
    assert len(found(wrong_ids, log, faults=lost, adopts="true")[0]) == 1
    paused = disk_faults(("pause", "broker-1", 30_500)).set_column(
        FAULTS.get_field_index("end_ns"), "end_ns", pa.array([54_900 * MS], pa.int64())
    )
    both = pa.concat_tables([lost, paused.cast(FAULTS)])
    assert found(wrong_ids, log, faults=both, adopts="true")[0] == []
    fault = FAULTS.get_field_index("fault")
    killed = both.set_column(fault, "fault", pa.array(["wipe", "kill"]))
    assert len(found(wrong_ids, log, faults=killed, adopts="true")[0]) == 1


def test_an_id_is_kept_for_the_host_that_registered_it() -> None:
    lasts = "9 topic u at 60000"
    assert found(wrong_mappings, TWO + lasts) == ([], 2)
    (proof,), _ = found(wrong_mappings, TWO.replace("2 keeps h1 1", "2 keeps h1 9") + lasts)
    assert_proof(
        proof,
        "later ZooKeeper keeps id",
        host="h1",
        broker_id=1,
        metadata_offset=1,
        grace=10_000,
        kept_id=9,
    )
    # A log that ends within the grace says nothing.
    assert found(wrong_mappings, TWO.replace("2 keeps h1 1", "2 keeps h1 9")) == ([], 0)


def test_no_bound_passes_while_zookeeper_is_down() -> None:
    wrong = TWO.replace("2 keeps h1 1", "2 keeps h1 9") + "9 topic u at 60000"
    garbage = "1 keeps g 1 at 1000\n2 runs-on 1 h1 at 2000\n3 keeps h1 1 at 2001\n"
    garbage += "4 forgets g at 75000\n5 topic t at 200000"
    for target, accused in (("zookeeper-1", False), ("broker-2", True)):
        down = disk_faults(("kill", target, 5_000))
        assert bool(found(wrong_mappings, wrong, faults=down)[0]) is accused, target
        down = disk_faults(("kill", target, 40_000))
        assert bool(found(host_garbage, garbage, faults=down)[0]) is accused, target


def test_an_entry_of_another_host_is_garbage_after_the_next_scan() -> None:
    moved = "1 keeps g 1 at 1000\n2 runs-on 1 h1 at 2000\n3 keeps h1 1 at 2001\n"
    assert found(host_garbage, moved + "4 forgets g at 60000\n5 topic t at 200000") == ([], 1)
    (proof,), _ = found(host_garbage, moved + "4 forgets g at 75000\n5 topic t at 200000")
    assert_proof(
        proof,
        "the entry of host {host}",
        host="g",
        broker_id=1,
        other="h1",
        metadata_offset=2,
        bound=70_000,
    )
    assert found(host_garbage, moved + "5 topic t at 200000")[1] == 1
    assert found(host_garbage, moved + "5 topic t at 20000") == ([], 0)


def test_hosts_that_were_told_no_name_are_not_judged() -> None:
    given = {
        "metadata_log": metadata_log(zookeeper_1=TWO),
        "node_settings": NODE_SETTINGS.empty_table(),
        "faults": FAULTS.empty_table(),
    }
    kernels = (wrong_ids, wrong_mappings, host_garbage)
    assert [case_count(asked(one, given, ON_ZOOKEEPER)) for one in kernels] == [0, 0, 0]


def test_a_node_is_told_from_others_by_its_listeners_and_judged_by_what_it_was_told_last() -> None:
    def judged(kernel: TableKernel, log: str, *given_later: dict[str, object]) -> list[Proof]:
        rows = [{"node": "broker-1", "name": "host.name", "value": "h1"}, *given_later]
        names = ("broker-1", "broker-2")
        made = metadata_log(zookeeper_1=log).to_pylist()
        listeners = {1: names[0], 2: names[1], 9: names[0]}
        for row in made:
            if row["type"] == "BrokerInfoRecord":
                host = f"{listeners[row['broker_id']]}.repl"
                row |= {"detail": json.dumps({"endpoints": [f"REPL://{host}:9000"]})}
        given = {
            "metadata_log": pa.Table.from_pylist(made, schema=METADATA_LOG),
            "node_settings": pa.Table.from_pylist(rows, schema=NODE_SETTINGS),
            "faults": FAULTS.empty_table(),
        }
        return told(asked(kernel, given, ON_ZOOKEEPER))[0]

    moved = {"node": "broker-1", "name": "host.name", "value": "h9", "since_ns": 35_000 * MS}
    shared = {"node": "broker-2", "name": "host.name", "value": "h9"}
    # Its disk goes with it to another host, where another broker is.
    back = AWAY + "8 runs-on {} h9 at 60000"
    assert judged(wrong_ids, back.format(1), moved, shared) == []
    (proof,) = judged(wrong_ids, back.format(9), moved, shared)
    assert_wrong(proof, "its disk has", "1")


def test_of_two_brokers_on_a_host_the_last_to_register_has_its_entry() -> None:
    both = "1 runs-on 1 h1 at 1000\n2 keeps h1 1 at 1001\n3 runs-on 2 h1 at 1100\n"
    lasts = "9 topic u at 60000"
    assert found(wrong_mappings, both + "4 keeps h1 2 at 1101\n" + lasts) == ([], 2)
    # The second did not write it.
    (proof,), count = found(wrong_mappings, both + lasts)
    assert_proof(proof, "later ZooKeeper keeps id", host="h1", broker_id=2)
    assert count == 2


def test_a_controller_that_never_scans_leaves_garbage_by_right() -> None:
    stays = TWO + "5 keeps g 1 at 2000\n6 topic u at 200000"
    assert found(host_garbage, stays)[1] == 1
    assert found(host_garbage, stays, fencepost_host_garbage_interval_ms="0") == ([], 0)


def test_a_disk_that_was_wiped_before_its_host_registered_has_its_id_by_a_wrong_clock_too() -> None:
    """Wiped 10 s before the clock shows its registration, which may be ahead by 14 s."""
    late = TWO.replace("3 runs-on 2 h2 at 1100", "3 runs-on 2 h2 at 20000")
    log = late.replace("1101", "20001") + "5 keeps h2 7 at 21000\n6 runs-on {} h2 at 60000"
    wiped = wipe("broker-2", 10_000)
    for broker_id, wrong_by in ((2, ()), (7, (0,)), (9, (0, 14_000))):
        for ahead_ms in (0, 14_000):
            proofs, _ = found(wrong_ids, log.format(broker_id), faults=wiped, ahead_ms=ahead_ms)
            assert bool(proofs) is (ahead_ms in wrong_by)


def test_a_host_is_judged_by_all_settings_that_it_can_have_read_by_a_wrong_clock() -> None:
    log = "0 topic t at 1\n1 runs-on {} h1 at 25000"
    rows = [
        {"node": "broker-1", "name": name, "value": value, "since_ns": since_s * 1000 * MS}
        for since_s, name, value in ((0, "host.name", "h1"), (0, "broker.id", "3"))
    ]
    rows.append({**rows[1], "value": "4", "since_ns": 20_000 * MS})
    for broker_id, wrong_by in ((4, ()), (3, (0,)), (5, (0, 14_000))):
        for ahead_ms in (0, 14_000):
            told_so = pa.Table.from_pylist(rows, schema=NODE_SETTINGS)
            given = log.format(broker_id)
            proofs, _ = found(wrong_ids, given, settings_=told_so, ahead_ms=ahead_ms)
            assert bool(proofs) is (ahead_ms in wrong_by)


@pytest.mark.parametrize("ahead_ms", [-14_000, 0])
def test_what_has_its_time_may_have_begun_later_by_a_wrong_clock(ahead_ms: int) -> None:
    unkept = "1 runs-on 1 h1 at 1000\n2 topic t at 20000"
    assert bool(found(wrong_mappings, unkept, ahead_ms=ahead_ms)[0]) is (not ahead_ms)
    assert found(wrong_mappings, unkept.replace("20000", "26000"), ahead_ms=ahead_ms)[0]
    stolen = TWO + "5 runs-on 1 h2 at 2000\n6 topic t at {}"
    scans = {"fencepost_host_garbage_interval_ms": "1000"}
    assert bool(found(host_garbage, stolen.format(20_000), ahead_ms=ahead_ms, **scans)[0]) is (
        not ahead_ms
    )
    assert found(host_garbage, stolen.format(40_000), ahead_ms=ahead_ms, **scans)[0]
