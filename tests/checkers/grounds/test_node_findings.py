"""G4 and G5: what the logs of the nodes say of their processes."""

import pyarrow as pa
from metadata_logs import asked
from proving import assert_proof

from fencepost.checkers.anomaly import Found, anomalies_of
from fencepost.checkers.facts import Facts
from fencepost.checkers.grounds.node_logs import fatal_faults, sick_processes, unreadable_disks
from fencepost.history.schema import FAULTS, TABLES

FACTS = Facts(node_ids={"controller-1": 1001, "broker-1": 1, "broker-2": 2})


def tables(
    *findings: tuple[str, str],
    faults: tuple[tuple[str, str], ...] = (),
    begin_ns: int = 0,
    text: str = "Encountered it",
) -> dict[str, pa.Table]:
    """Findings as (node, finding), logged at 1.5 s; faults as (fault, target), from `begin_ns`."""
    rows = [
        {
            "node": node,
            "file": "server.log",
            "line": 7 + number,
            "time_ns": 1_500_000_000,
            "finding": finding,
            "text": text,
        }
        for number, (node, finding) in enumerate(findings)
    ]
    broken = [
        {"index": number, "fault": fault, "targets": [target], "begin_ns": begin_ns}
        for number, (fault, target) in enumerate(faults)
    ]
    return {
        "log_findings": pa.Table.from_pylist(rows, schema=TABLES["log_findings"]),
        "faults": pa.Table.from_pylist(broken, schema=FAULTS),
    }


def fatal(given: dict[str, pa.Table]) -> dict[str, Found]:
    return dict(asked(fatal_faults, given, FACTS))


def test_a_fatal_fault_is_told_with_its_place() -> None:
    found = fatal(tables(("broker-1", "fatal-fault")))
    assert {node: one.never_count for node, one in found.items()} == {
        "broker-1": 1,
        "broker-2": 0,
        "controller-1": 0,
    }
    (one,) = anomalies_of(found["broker-1"].table)
    named = {"node": "broker-1", "logged": 1500, "file": "server.log", "line": 7}
    assert_proof(one, "logged at {logged}", **named, text="Encountered it")


def test_a_node_that_was_killed_or_says_other_things_has_none() -> None:
    found = fatal(tables(("broker-1", "out-of-memory"), faults=(("kill", "broker-1"),)))
    assert not any(one.never_count + one.allowed_count for one in found.values())


def test_a_fatal_fault_is_allowed_where_its_own_or_a_controller_s_disk_was_changed() -> None:
    for fault, target, allowed in (
        ("wipe", "broker-1", True),
        ("rollback", "controller-1", True),
        ("wipe", "broker-2", False),
        ("kill", "controller-1", False),
        # What was synced is there: neither the node's own disk nor a controller's says otherwise.
        ("cut_power", "broker-1", False),
        ("cut_power", "controller-1", False),
    ):
        one = fatal(tables(("broker-1", "fatal-fault"), faults=((fault, target),)))["broker-1"]
        assert (one.never_count, one.allowed_count) == (not allowed, allowed), (fault, target)


def test_a_fatal_fault_is_allowed_where_its_own_disk_refused_it_alone() -> None:
    for target, allowed in (("broker-1", True), ("controller-1", False)):
        given = tables(("broker-1", "fatal-fault"), faults=(("fill_disk", target),))
        one = fatal(given)["broker-1"]
        assert (one.never_count, one.allowed_count) == (not allowed, allowed), target


def test_a_fault_of_a_disk_excuses_nothing_that_was_logged_before_it() -> None:
    for kernel, finding in ((fatal_faults, "fatal-fault"), (unreadable_disks, "unreadable-disk")):
        for begin_ns, allowed in ((1_000_000_000, True), (60_000_000_000, False)):
            given = tables(
                ("broker-1", finding), faults=(("flip_bit", "broker-1"),), begin_ns=begin_ns
            )
            one = dict(asked(kernel, given, FACTS))["broker-1"]
            assert (one.never_count, one.allowed_count) == (not allowed, allowed), finding


def test_a_node_has_to_start_on_what_a_loss_of_power_leaves() -> None:
    for faults, allowed in (
        ((), False),
        ((("wipe", "broker-1"), ("cut_power", "broker-1")), False),
        ((("cut_power", "broker-1"), ("flip_bit", "broker-1")), True),
        ((("flip_bit", "broker-2"),), False),
    ):
        given = tables(("broker-1", "unreadable-disk"), faults=faults)
        one = dict(asked(unreadable_disks, given, FACTS))["broker-1"]
        assert (one.never_count, one.allowed_count) == (not allowed, allowed), faults


def test_a_full_disk_excuses_a_start_that_fails_for_want_of_room() -> None:
    load = "Unable to load database on disk"
    for text, allowed in (
        (f"{load} | java.io.IOException: No space left on device", True),
        (f"{load} | java.io.EOFException: null", False),
        (f"{load} | java.io.IOException: The accepted epoch, 2 is less than the current", False),
        # A run of an earlier version does not say why.
        (load, True),
    ):
        faults = (("fill_disk", "broker-1"),)
        given = tables(("broker-1", "unreadable-disk"), faults=faults, text=text)
        one = dict(asked(unreadable_disks, given, FACTS))["broker-1"]
        assert (one.never_count, one.allowed_count) == (not allowed, allowed), text


def test_a_jvm_in_trouble_is_no_ground_for_a_verdict() -> None:
    given = tables(
        ("broker-1", "out-of-memory"), ("broker-2", "jvm-crash"), ("broker-2", "fatal-fault")
    )
    found = dict(asked(sick_processes, given, FACTS))
    assert {node: one.never_count for node, one in found.items()} == {
        "broker-1": 1,
        "broker-2": 1,
        "controller-1": 0,
    }


def test_each_node_is_one_case_whatever_its_log_says() -> None:
    given = tables(("broker-1", "fatal-fault"), ("broker-1", "fatal-fault"))
    for kernel in (fatal_faults, unreadable_disks, sick_processes):
        assert [one.case_count for _, one in asked(kernel, given, FACTS)] == [1, 1, 1]


def test_of_a_node_that_logged_nothing_nobody_knows() -> None:
    given = tables(("broker-1", "silent"), ("broker-2", "fatal-fault"))
    for kernel in (fatal_faults, unreadable_disks, sick_processes):
        found = dict(asked(kernel, given, FACTS))
        assert (found["broker-1"].case_count, bool(found["broker-1"].doubt)) == (0, True)
        assert not found["controller-1"].doubt
    assert fatal(given)["broker-2"].never_count == 1
