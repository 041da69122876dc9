"""Versioned registers and logs: each condition by itself; and trying all orders says the same."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proving import assert_proof, proofs_in, source_of
from small_versions import Op, drawn, in_slabs, linearizable, rows_of, table, whole

from fencepost.checkers.linearizability.claims import model_rows
from fencepost.checkers.linearizability.versioned import VERSIONED, nonlinearizable
from fencepost.checkers.proof import Proof
from fencepost.history.models import Model

pytestmark = pytest.mark.slow

REGISTER, LOG = Model.VERSIONED_REGISTER, Model.LOG


def read(version: int, value: int | None, call: int, end: int) -> Op:
    return Op(f="read", call=call, end=end, version=version, value=value)


def cas(version: int, value: int, call: int, end: int) -> Op:
    return Op(f="cas", call=call, end=end, expected=version - 1, version=version, value=value)


def refused(expected: int, call: int, end: int) -> Op:
    return Op(f="cas", call=call, end=end, outcome="fail", expected=expected, value=9)


def crashed_cas(expected: int, value: int, call: int) -> Op:
    return Op(f="cas", call=call, end=None, outcome="info", expected=expected, value=value)


def crashed_write(value: int, call: int) -> Op:
    return Op(f="write", call=call, end=None, outcome="info", value=value)


def append(offset: int, value: int, call: int, end: int) -> Op:
    return Op(f="append", call=call, end=end, version=offset, value=value)


def crashed_append(value: int, call: int) -> Op:
    return Op(f="append", call=call, end=None, outcome="info", value=value)


def found(offset: int, value: int | None, call: int, end: int) -> Op:
    return Op(f="read", call=call, end=end, version=offset, value=value)


def proofs(*operations: Op, model: Model = REGISTER) -> list[tuple[tuple[int, ...], Proof]]:
    """Operations and proof of all that is wrong; checked against all orders, too."""
    wrong = nonlinearizable("k", table(list(operations)), model)
    assert (wrong.never_count == 0) == linearizable(list(operations), model)
    return [(one.operations, one) for one in proofs_in(wrong)]


def test_nothing_at_all_is_linearizable() -> None:
    assert proofs() == []
    assert proofs(model=LOG) == []


def test_an_answer_that_names_a_version_is_a_case_and_a_crash_is_none() -> None:
    stale, fresh = read(0, None, 4, 6), read(1, 5, 4, 6)
    for last in (stale, fresh):
        judged = nonlinearizable("k", table([cas(1, 5, 0, 3), last]), REGISTER)
        assert (judged.never_count, judged.case_count) == (int(last is stale), 2)
    assert nonlinearizable("k", table([refused(0, 0, 3)]), REGISTER).case_count == 1
    crashed = table([crashed_cas(0, 5, 0), crashed_write(6, 1)])
    assert nonlinearizable("k", crashed, REGISTER).case_count == 0
    assert nonlinearizable("k", table([crashed_append(5, 0)]), LOG).case_count == 0
    assert nonlinearizable("k", table([append(0, 5, 0, 1), found(0, 5, 2, 3)]), LOG).case_count == 2


def test_a_stale_read_contradicts_what_returned_before_it_was_called() -> None:
    assert proofs(cas(1, 5, 0, 3), read(0, None, 3, 6)) == []
    ((operations, proof),) = proofs(cas(1, 5, 0, 3), read(0, None, 4, 6))
    assert operations == (1, 0)
    early = {"earliest": 4, "operation": 1, "version": 0, "call": 4, "return_": 6}
    late = {"latest": 3, "chain_operation": 0, "chain_version": 1, "value": 5, "expected": 0}
    rule = "version {fault_version} appeared no earlier than {earliest} s"
    assert_proof(proof, rule, fault_version=1, **early, **late, chain_call=0, chain_return_=3)
    assert source_of(proof, "version") == "operation 1"
    assert source_of(proof, "chain_version") == "operation 0"


def test_a_read_from_the_future_contradicts_the_call_of_its_writer() -> None:
    assert proofs(read(1, 5, 0, 4), cas(1, 5, 4, 9)) == []
    assert [one for one, _ in proofs(read(1, 5, 0, 4), cas(1, 5, 5, 9))] == [(1, 0)]


def test_a_version_has_one_value_and_one_maker() -> None:
    assert [one for one, _ in proofs(cas(1, 5, 0, 3), read(1, 6, 2, 6))] == [(0, 1)]
    assert [one for one, _ in proofs(cas(1, 5, 0, 3), cas(1, 5, 2, 6))] == [(0, 1)]
    ((_, proof),) = proofs(read(0, 6, 2, 6))
    first = {"fault_version": 0, "operation": 0, "version": 0, "value": 6}
    assert_proof(proof, "{fault_version} begins with nothing and read", **first, call=2, return_=6)


def test_a_swap_makes_the_version_after_the_one_that_it_expected() -> None:
    jumped = Op(f="cas", call=0, end=9, expected=0, version=2, value=3)
    ((_, proof),) = proofs(jumped, cas(1, 5, 0, 9))
    made = {"operation": 0, "version": 2, "value": 3, "expected": 0}
    assert_proof(proof, "a cas makes the version after", **made, call=0, return_=9)


def test_a_swap_is_refused_only_if_its_version_did_not_hold() -> None:
    held = (cas(1, 5, 0, 1), read(1, 5, 9, 9))
    assert proofs(*held, refused(1, 1, 8)) == []
    assert [one for one, _ in proofs(*held, refused(1, 2, 8))] == [(1, 2, 0), (2,)]
    assert proofs(refused(7, 0, 1)) == []


def test_a_chain_of_refusals_is_told_link_by_link() -> None:
    chain = (
        cas(1, 5, 0, 2),
        cas(2, 5, 0, 9),
        cas(3, 5, 0, 9),
        refused(1, 3, 4),
        refused(2, 5, 6),
        read(2, 5, 7, 9),
    )
    assert [one for one, _ in proofs(*chain)] == [(5, 4, 3, 0)]


def test_a_refusal_may_need_a_version_that_nobody_saw() -> None:
    last = (cas(1, 5, 0, 1), refused(1, 4, 6))
    assert [one for one, _ in proofs(*last)] == [(1,)]
    assert proofs(*last, crashed_cas(1, 7, 6)) == []
    assert [one for one, _ in proofs(*last, crashed_cas(1, 7, 7))] == [(1,)]
    assert proofs(*last, crashed_write(7, 6)) == []


def test_what_was_made_by_nobody_needs_a_crash_that_fits() -> None:
    seen = read(1, 5, 3, 4)
    assert [one for one, _ in proofs(seen)] == [(0,)]
    assert proofs(seen, crashed_cas(0, 5, 4)) == []
    assert proofs(seen, crashed_write(5, 4)) == []
    for other in (crashed_cas(0, 6, 0), crashed_cas(1, 5, 0), crashed_write(5, 5)):
        assert [one for one, _ in proofs(seen, other)] == [(0,)]


def test_a_gap_takes_whatever_crashed_write_the_known_values_leave() -> None:
    gap = (cas(3, 5, 3, 6), read(1, 7, 0, 9))
    assert proofs(*gap, crashed_write(7, 0), crashed_write(8, 6)) == []
    assert len(proofs(*gap, crashed_write(8, 0), crashed_write(8, 0))) == 1
    assert len(proofs(*gap, crashed_write(7, 0), crashed_write(8, 7))) == 1


def test_a_log_keeps_what_was_found_and_fills_what_was_empty_later() -> None:
    first = append(0, 5, 2, 4)
    assert proofs(first, found(0, None, 0, 2), found(0, 5, 4, 5), model=LOG) == []
    assert [one for one, _ in proofs(first, found(0, None, 5, 6), model=LOG)] == [(1, 0)]
    assert [one for one, _ in proofs(first, found(0, 5, 0, 1), model=LOG)] == [(0, 1)]
    assert [one for one, _ in proofs(first, found(0, 6, 2, 3), model=LOG)] == [(0, 1)]
    assert [one for one, _ in proofs(first, append(0, 6, 2, 3), model=LOG)] == [(0, 1), (1, 0)]


def test_a_value_is_at_two_offsets_only_if_it_was_appended_twice() -> None:
    twice = (append(0, 5, 0, 1), found(1, 5, 2, 3))
    assert [one for one, _ in proofs(*twice, model=LOG)] == [(1,)]
    assert proofs(*twice, crashed_append(5, 0), model=LOG) == []
    assert [one for one, _ in proofs(*twice, crashed_append(6, 0), model=LOG)] == [(1,)]


def test_more_versions_than_operations_were_made_by_nobody() -> None:
    found_ = nonlinearizable("k", table([read(10**15, 5, 0, 1)]), REGISTER)
    assert found_.never_count == 1


def test_a_number_beneath_a_null_says_nothing() -> None:
    rows = table([cas(1, 5, 0, 3), crashed_cas(1, 6, 2), read(1, 5, 2, 6)])
    place = rows.column_names.index("version")
    version = pa.array(np.array([1, 2**62, 1]), mask=np.array([False, True, False]))
    dirty = rows.set_column(place, rows.schema.field(place), version)
    assert dirty.equals(rows)
    assert nonlinearizable("k", dirty, REGISTER).never_count == 0
    assert nonlinearizable("k", dirty.slice(2), REGISTER).never_count == 1


def test_what_cannot_be_understood_is_a_doubt_and_silences_nothing() -> None:
    blind = Op(f="write", call=0, end=3, value=4)
    turned = read(0, None, 5, 4)
    wrong = nonlinearizable(
        "k", table([blind, turned, cas(1, 5, 0, 3), read(0, None, 4, 6)]), REGISTER
    )
    assert wrong.never_count == 1
    assert wrong.doubt == (
        "operations without the version that they are about: 1; "
        "operations that returned before they were called: 1"
    )


def test_the_fault_is_counted_in_full_and_told_up_to_a_bound() -> None:
    operations = [cas(version, 5, 0, 9) for version in range(1, 301)]
    operations += [read(version, 6, 0, 9) for version in range(1, 301)]
    wrong = nonlinearizable("k", table(operations), REGISTER)
    assert (wrong.never_count, wrong.table.num_rows) == (300, 100)


@pytest.mark.parametrize("model", sorted(VERSIONED))
@settings(max_examples=15 * settings().max_examples)
@given(random=st.randoms(use_true_random=True), versions=st.integers(1, 4))
def test_trying_all_orders_says_the_same(model: Model, random: Random, versions: int) -> None:
    operations = drawn(random, model)
    right = linearizable(operations, model)
    at_once, cut = whole(operations, model), in_slabs(operations, model, versions=versions)
    assert (at_once.fault_count == 0) == right
    assert (cut.fault_count == 0) == right
    assert cut.case_count == at_once.case_count


@pytest.mark.parametrize("model", sorted(VERSIONED))
@settings(max_examples=2 * settings().max_examples)
@given(random=st.randoms(use_true_random=True))
def test_every_fault_of_a_table_has_a_proof_that_names_operations(
    model: Model, random: Random
) -> None:
    operations = drawn(random, model)
    wrong = nonlinearizable("k", table(operations), model)
    assert (wrong.never_count == 0) == linearizable(operations, model)
    for proof in proofs_in(wrong):
        assert proof.operations
        assert set(proof.operations) <= set(range(len(operations)))
        assert "the operations before" not in proof.rule


@pytest.mark.parametrize("model", sorted(VERSIONED))
def test_rows_become_the_same_arrays_by_either_way(model: Model) -> None:
    operations = [one for seed in range(50) for one in drawn(Random(seed), model)]
    fast, rows = rows_of(operations, model), model_rows(table(operations), model)
    for name in ("kind", "call", "end", "expected", "version", "value", "erred"):
        assert (getattr(fast, name) == getattr(rows, name)).all()
