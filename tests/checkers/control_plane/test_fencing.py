"""C8: brokers are fenced when their sessions have ended, and not before."""

from itertools import accumulate, pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from metadata_logs import asked, case_count, doubts, facts, proofs, tables
from proving import assert_proof, only

from fencepost.checkers.anomaly import Found
from fencepost.checkers.control_plane.fencing import SLACK_NS, fenced_too_early, fenced_too_late
from fencepost.checkers.facts import Judged
from fencepost.checkers.proof import Proof
from fencepost.history.clock import ClockSkew
from fencepost.history.cluster_schema import NODE_SETTINGS

TIMEOUT_MS = 3000
SLACK_MS = SLACK_NS // 1_000_000
FACTS = facts(controllers=1)
BEGIN = """
    0 leader 1000 at 0
    1 register 1 at 100
    2 unfence 1 at 200
"""


def settings(**others: str) -> pa.Table:
    own = {"broker.session.timeout.ms": str(TIMEOUT_MS), **others}
    rows = [{"node": "controller-1", "name": name, "value": own[name]} for name in own]
    return pa.Table.from_pylist(rows, schema=NODE_SETTINGS)


def early(log: str, frames: str) -> dict[str, list[Proof]]:
    given_tables = tables(BEGIN + log, frames, node_settings=settings())
    return proofs(asked(fenced_too_early, given_tables, FACTS))


def late(
    log: str, frames: str, *, end_ms: int = 30_000, step_ms: int = 500, epoch: int = 1
) -> list[Proof]:
    first = 1 + max([2, *(int(line.split()[0]) for line in log.split("\n") if line.strip())])
    beats = [
        f"{first + number} noop epoch {epoch} at {at}"
        for number, at in enumerate(range(10_000, end_ms + 1, step_ms))
    ]
    given_tables = tables(BEGIN + log + "\n" + "\n".join(beats), frames, node_settings=settings())
    return proofs(asked(fenced_too_late, given_tables, FACTS)).get("broker 1", [])


def test_a_broker_is_fenced_within_its_session() -> None:
    frames = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    assert_proof(
        only(early("3 fence 1 at 7800", frames), "broker 1"),
        "was fenced at metadata offset {metadata_offset}, at most {silent} after",
        broker_id=1,
        metadata_offset=3,
        silent=2907.8,
        node="controller-1",
        reached=5000,
        frame=0,
        timeout=3000,
    )
    assert not early("3 fence 1 at 8000", frames)
    assert not early("3 register 1 at 7800", frames)


def test_a_broker_that_registers_anew_gives_its_old_registration_up() -> None:
    late_beat = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    begin = "\n3 register 1 incarnation x at 300\n4 unfence 1 at 400\n"
    beat = late_beat.replace("epoch 1", "epoch 3")
    anew = begin + "5 fence 1 at 5500\n6 register 1 incarnation {} at {}"
    assert not early(anew.format("x", 5500), beat)
    assert early(anew.format("x", 5501), beat)
    assert early(anew.format("y", 5500), beat)


def test_only_what_the_controller_surely_accepted_keeps_a_session() -> None:
    fence = "3 fence 1 at 7800"
    for answer in (
        "nothing",
        "STALE_BROKER_EPOCH at 5002",
        "ok at 7790",
        "ok at 5001 by the proxy",
    ):
        assert not early(fence, f"at 5000 broker-1 heartbeat epoch 1 -> {answer}"), answer
    assert not early(fence, "at 5000 broker-1 heartbeat epoch 0 -> ok at 5002")
    assert not early(fence, "at 5000 held broker-1 heartbeat epoch 1 -> nothing")
    assert not early(fence, "at 5000 broker-1 to controller-2 heartbeat epoch 1 -> ok at 5002")


def test_a_session_is_of_one_term() -> None:
    frames = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    log = "3 leader 1000 epoch 2 at 5500\n4 fence 1 epoch 2 at 7800"
    assert not early(log, frames)
    # One that was sent before the term and reached the controller in it is of the term.
    held = "at 5000 passed {} broker-1 heartbeat epoch 1 -> ok at 5702"
    assert not early(log, held.format(5605))
    assert early(log, held.format(5606))


def test_a_broker_that_leaves_or_asks_for_it_is_fenced() -> None:
    fence = "3 fence 1 at 5003"
    for wish in ("leave", "fenced"):
        frames = f"""
            at 4000 broker-1 heartbeat epoch 1 -> ok at 4002
            at 5000 broker-1 heartbeat epoch 1 asking {wish} -> ok told leave at 5010
        """
        assert not early(fence, frames)
        assert early(fence, frames.replace(f" asking {wish}", ""))
    before = """
        at 60 broker-1 heartbeat epoch 1 asking fenced -> ok at 65
        at 4000 broker-1 heartbeat epoch 1 -> ok at 4002
    """
    assert early(fence, before)  # it asked before it was unfenced


def test_a_wish_counts_from_when_it_reaches_the_controller() -> None:
    accepted = "at 4000 broker-1 heartbeat epoch 1 -> ok at 4002\n"
    for wish in ("leave", "fenced"):
        held = f"at {{}} passed {{}} broker-1 heartbeat epoch 1 asking {wish} -> {{}}"
        # It was sent before the broker was unfenced, and taken afterwards.
        for answer in ("ok at 4510", "nothing"):
            assert not early("3 fence 1 at 5003", accepted + held.format(60, 4500, answer))
        assert early("3 fence 1 at 5003", accepted + held.format(3000, 9000, "ok at 9002"))


def test_a_silent_broker_stays_unfenced() -> None:
    frames = """
        at 5000 broker-1 heartbeat epoch 1 -> ok at 5002
        at 14000 broker-1 heartbeat epoch 1 -> ok at 14002
    """
    found = late("", frames)
    assert len(found) == 2
    assert_proof(
        found[0],
        "cannot have heard of it from {begin}",
        broker_id=1,
        metadata_offset=2,
        node="controller-1",
        begin=5002,
        frame=0,
        end=14_000,
        silent=8998,
        timeout=3000,
    )
    assert_proof(found[1], "cannot have heard of it from {begin}", begin=14_002, frame=10)
    assert not late("3 fence 1 at 12900", frames.replace("14000", "12999"))
    assert not late("", frames.replace("14000", "13001"), end_ms=21_000)


def test_a_heartbeat_that_others_overtook_makes_no_silence() -> None:
    held = "at 12000 passed 26000 broker-1 heartbeat epoch 1 -> ok at 26002\n"
    times = range(11_000, 30_000, 500)
    others = [f"at {ms} broker-1 heartbeat epoch 1 -> ok at {ms + 2}" for ms in times]
    assert not late("", held + "\n".join(others))
    assert late("", held + others[0])


def test_a_controller_that_may_not_have_lived_is_not_accused() -> None:
    frames = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    assert late("", frames)
    assert not late("", frames, step_ms=2100)
    assert not late("", frames, end_ms=12_000)


def test_a_controller_whose_clock_was_wrong_meanwhile_is_not_accused() -> None:
    frames = """
        at 5000 broker-1 heartbeat epoch 1 -> ok at 5002
        at 14000 broker-1 heartbeat epoch 1 -> ok at 14002
    """
    skew = ClockSkew(
        node="controller-1",
        from_ns=11_000_000_000,
        until_ns=40_000_000_000,
        ahead_min_ns=-1_000_000_000,
        ahead_max_ns=0,
    )
    beats = "\n".join(f"{3 + n} noop at {at}" for n, at in enumerate(range(10_000, 30_001, 500)))
    given_tables = tables(BEGIN + beats, frames, node_settings=settings())
    assert proofs(asked(fenced_too_late, given_tables, FACTS))["broker 1"]
    assert not proofs(asked(fenced_too_late, given_tables, facts(1, skews=(skew,)))).get("broker 1")


def test_a_request_without_an_answer_may_have_been_taken_at_any_time() -> None:
    answered = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002\n"
    assert not late("", answered + "at 6000 broker-1 heartbeat epoch 1 -> nothing")
    assert late("", answered + "at 6000 held broker-1 heartbeat epoch 1 -> nothing")
    assert late("", answered + "at 6000 broker-1 heartbeat epoch 0 -> nothing")


def test_a_broker_whose_heartbeats_are_not_on_the_tape_is_not_judged() -> None:
    assert not late("", "at 14000 broker-1 heartbeat epoch 1 -> ok at 14002", end_ms=15_000)


def test_a_new_controller_begins_anew() -> None:
    frames = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    (found,) = late("3 leader 1000 epoch 2 at 9000", frames, epoch=2)
    assert_proof(found, "(last heartbeat: frame {frame})", begin=9109, frame=0, end=29_870)
    assert not late("3 leader 1000 epoch 2 at 22000", frames, epoch=2)


def test_a_log_that_tells_of_no_term_judges_no_session() -> None:
    silent = BEGIN.replace("0 leader 1000", "0 noop") + "3 fence 1 at 7800\n4 noop at 30000"
    beat = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    for kernel in (fenced_too_early, fenced_too_late):
        judged = list(asked(kernel, tables(silent, beat, node_settings=settings()), FACTS))
        assert not case_count(judged)
        assert not proofs(judged)


def test_without_a_log_or_settings_no_session_is_judged() -> None:
    for kernel in (fenced_too_early, fenced_too_late):
        empty = NODE_SETTINGS.empty_table()
        assert doubts(asked(kernel, tables("", node_settings=settings()), FACTS))
        assert (
            "settings"
            in doubts(asked(kernel, tables(BEGIN, node_settings=empty), FACTS))["metadata"]
        )


def test_a_setting_that_was_not_made_is_the_release_s_own() -> None:
    own = settings()
    unset = own.set_column(1, own.schema.field("name"), pa.array(["node.id"]))
    frames = "at 1000 broker-1 heartbeat epoch 1 -> ok at 1002"
    log = BEGIN + "3 fence 1 at {}"
    for at_ms, bad in ((9800, True), (10_000, False)):
        judged = asked(
            fenced_too_early, tables(log.format(at_ms), frames, node_settings=unset), FACTS
        )
        assert bool(proofs(judged)) == bad


GAPS = st.one_of(st.integers(1, 1_500), st.integers(1, 9_000))
HELD = st.one_of(st.just(0), st.integers(8_000, 16_000))
TAKEN = st.lists(st.tuples(GAPS, HELD), min_size=1, max_size=20)
"""How long after the one before each heartbeat reaches the controller, and for how long it was
under way, in ms."""


@given(TAKEN, st.integers(300, 26_000))
def test_what_is_early_and_what_is_late_agree_with_a_slow_look_at_every_millisecond(
    heartbeats: list[tuple[int, int]], fenced_ms: int
) -> None:
    """Heartbeats are answered as soon as they are taken, so the bounds differ by the clocks' alone.

    One that is under way for long is overtaken by others.
    """
    at = [300 + ms for ms in accumulate(gap for gap, _ in heartbeats)]
    ways = zip(at, (held for _, held in heartbeats), strict=True)
    sent = sorted((max(taken - held, 300), taken) for taken, held in ways)
    frames = "\n".join(
        f"at {ms} passed {taken} broker-1 heartbeat epoch 1 -> ok at {taken}" for ms, taken in sent
    )
    beats = "\n".join(f"{10 + n} noop at {ms}" for n, ms in enumerate(range(400, fenced_ms, 400)))
    log = f"{BEGIN}\n{beats}\n{999} fence 1 at {fenced_ms}\n1000 noop at {fenced_ms}"
    given_tables = tables(log, frames, node_settings=settings())
    slack_ms = 100 + fenced_ms / 1000
    heard = [ms for ms in at if ms < fenced_ms - slack_ms]
    expected = bool(heard) and fenced_ms + slack_ms - heard[-1] < TIMEOUT_MS
    assert _found(asked(fenced_too_early, given_tables, FACTS)) == expected
    known = [ms for ms in at if ms < fenced_ms - slack_ms]
    steps = pairwise([*known, fenced_ms - slack_ms])
    silent = any(end - begin > TIMEOUT_MS + SLACK_MS for begin, end in steps)
    assert _found(asked(fenced_too_late, given_tables, FACTS)) == silent


def _found(judged: Judged) -> bool:
    found: list[Found] = [one for _, one in judged]
    return any(one.never_count for one in found)


def test_what_was_appended_to_a_batch_long_after_its_beginning_is_no_early_fencing() -> None:
    # The controller stands still from 499.07 s to 504.01 s, with the batch of 499.062 s open.
    frames = "at 498300 broker-1 heartbeat epoch 1 -> ok at 498302"

    def accused(next_batch_ms: int) -> bool:
        log = f"3 noop at 499000\n4 noop at 499062\n5 fence 1 at 499062\n6 noop at {next_batch_ms}"
        given_tables = tables(BEGIN + log, frames, node_settings=settings())
        return bool(proofs(asked(fenced_too_early, given_tables, FACTS, lingering=True)))

    assert not accused(504_512)
    assert accused(499_600)


def test_the_end_of_the_last_batch_is_not_known() -> None:
    frames = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    log, next_batch = BEGIN + "3 fence 1 at 7800", "\n4 noop at 7825"
    for text, found in ((log, False), (log + next_batch, True)):
        given_tables = tables(text, frames, node_settings=settings())
        assert bool(proofs(asked(fenced_too_early, given_tables, FACTS, lingering=True))) is found
