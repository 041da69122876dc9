"""C11: steps of the metadata log that no rule of the controller allows."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metadata_logs import (
    FACTS,
    ON_ZOOKEEPER,
    asked,
    doubts,
    facts,
    metadata_log,
    never,
    proofs,
    tables,
)
from proving import assert_proof, only, source_of

from fencepost.checkers.control_plane.illegal_transition import illegal_transitions
from fencepost.checkers.proof import Proof

BEGIN = """
    0 leader 1000
    1 feature metadata.version 17
    2 register 1
    3 unfence 1
    4 register 2
    5 unfence 2
    6 topic t
    7 partition t-0 replicas 1,2,3 isr 1,2 leader 1
"""
ELR = BEGIN + "8 feature eligible.leader.replicas.version 1\n"


def steps(log: str, before: str = BEGIN) -> list[Proof]:
    judged = proofs(asked(illegal_transitions, tables(before + log), FACTS))
    return [proof for key in sorted(judged) for proof in judged[key]]


def assert_wrong(log: str, rule: str, *, before: str = BEGIN, **facts: object) -> None:
    (proof,) = steps(log, before)
    assert_proof(proof, rule, **facts)


def test_a_log_that_follows_the_rules_is_not_accused() -> None:
    assert not steps(
        """
        10 change t-0 isr 1
        11 fence 2
        12 register 2
        13 unfence 2 epoch-is 12
        14 change t-0 isr 1,2
        15 stopping 1
        16 change t-0 isr 2 leader 2
        17 producer-ids 1000 for 2 epoch-is 12
        18 producer-ids 2000 for 2
        19 change t-0 isr 2 leader -1
        20 fence 2
        21 delete t
        22 topic t as id-2
        """
    )


def test_the_proof_names_the_offset_and_the_rule() -> None:
    judged = proofs(asked(illegal_transitions, tables(BEGIN + "10 unfence 2 epoch-is 3"), FACTS))
    proof = only(judged, "broker 2")
    assert_proof(
        proof,
        "a {type} names broker {broker_id} with broker epoch {broker_epoch}, which has",
        metadata_offset=10,
        type="BrokerRegistrationChangeRecord",
        broker_id=2,
        broker_epoch=3,
        had_broker_epoch=4,
    )
    assert source_of(proof, "broker_epoch") == "metadata offset 10"
    assert source_of(proof, "had_broker_epoch") == ""


@pytest.mark.parametrize(
    ("bad", "good", "rule", "facts"),
    [
        ("10 unfence 3", "9 register 3\n10 unfence 3", "which is not registered", {"broker_id": 3}),
        (
            "10 fence 2 epoch-is 3",
            "10 fence 2 epoch-is 4",
            "which has",
            {"broker_epoch": 3, "had_broker_epoch": 4},
        ),
        ("10 register 2 unfenced", "10 register 2", "registers unfenced", {"broker_id": 2}),
        (
            "10 register 2 supports kraft.version=0..1,metadata.version=1..16",
            "10 register 2 supports kraft.version=0..1,metadata.version=1..17",
            "supports metadata.version levels",
            {"least": 1, "most": 16, "had_level": 17},
        ),
        (
            "10 register 2 epoch-is 3",
            "10 register 2 epoch-is 10",
            "which is not above",
            {"had_broker_epoch": 4},
        ),
        (
            "10 register 3 epoch-is 11",
            "10 register 3 epoch-is 10",
            "a later offset",
            {"broker_epoch": 11},
        ),
        (
            "10 register 3 epoch-is 7",
            "10 register 3 epoch-is 8",
            "of an earlier",
            {"broker_epoch": 7},
        ),
        (
            "10 fence 1",
            "9 change t-0 isr 2 leader 2\n10 fence 1",
            "is fenced, and still leads",
            {"broker_id": 1, "had_key": "t-0"},
        ),
        (
            "10 topic t as id-2",
            "9 delete t\n10 topic t as id-2",
            "there is one of that name",
            {"topic": "t"},
        ),
        (
            "9 delete t\n10 topic t as id-t",
            "9 delete t\n10 topic t as id-3",
            "a second time",
            {"topic_id": "id-t"},
        ),
        (
            "10 partition u-0 replicas 1 isr 1 leader 1",
            "10 topic u",
            "which does not exist",
            {"topic_id": "id-u"},
        ),
        (
            "9 delete t\n10 change t-0 isr 1",
            "10 change t-0 isr 1",
            "no such partition",
            {"key": "t-0"},
        ),
        (
            "10 partition t-0 replicas 1 isr 1 leader 1",
            "10 partition t-1 replicas 1 isr 1 leader 1",
            "there is such a partition",
            {"key": "t-0"},
        ),
        (
            "10 partition t-1 replicas 1 isr 1 leader 1 leader-epoch 3",
            "10 partition t-1 replicas 1 isr 1 leader 1 leader-epoch 0",
            "begins with leader epoch",
            {"key": "t-1", "leader_epoch": 3, "partition_epoch": 0},
        ),
        (
            "9 fence 2\n10 partition t-1 replicas 1,2 isr 1,2 leader 1",
            "9 fence 2\n10 partition t-1 replicas 1,2 isr 1 leader 1",
            "begins with {member} in its ISR",
            {"member": 2, "had_state": "fenced"},
        ),
        (
            "9 stopping 2\n10 change t-0 leader 2",
            "10 change t-0 leader 2",
            "is elected the leader of {key}, and is",
            {"leader": 2, "had_state": "in controlled shutdown"},
        ),
        (
            "9 change t-0 isr 1\n10 change t-0 isr 2 leader 2",
            "9 change t-0 isr 1\n10 change t-0 isr 2 leader 2 recovering",
            "is not recorded as unclean",
            {"leader": 2, "had_isr": "[1]", "had_elr": "[]"},
        ),
        (
            "9 fence 2\n10 change t-0 isr 3 leader 3 recovering",
            "8 register 3\n9 unfence 3\n10 change t-0 isr 3 leader 3 recovering",
            "is made the leader of {key}, and is not registered",
            {"leader": 3, "key": "t-0"},
        ),
        (
            "10 change t-0 isr 1 recovering",
            "10 change t-0 isr 1",
            "without an election",
            {"key": "t-0"},
        ),
        (
            "10 change t-0 isr 1,2 leader 2 recovering",
            "10 change t-0 isr 2 leader 2 recovering",
            "recovers from an unclean election with the ISR",
            {"isr": "[1, 2]"},
        ),
        (
            "10 change t-0 adding 4",
            "10 change t-0 adding 4 replicas 1,2,3,4",
            "and no replicas",
            {"strange": "[4]"},
        ),
        (
            "10 change t-0 adding 3 removing 3",
            "10 change t-0 removing 3",
            "are both added and removed",
            {"both": "[3]"},
        ),
        ("10 change t-0 isr 1,1", "10 change t-0 isr 1,2", "name one twice", {"isr": "[1, 1]"}),
        (
            "10 change t-0 replicas none",
            "10 change t-0 replicas 1,2",
            "without replicas",
            {"key": "t-0"},
        ),
        (
            "10 feature metadata.version 0",
            "10 feature metadata.version 16",
            "becomes",
            {"level": 0},
        ),
        ("10 feature group.version -1", "10 feature group.version 0", "becomes", {"level": -1}),
        (
            "9 producer-ids 2000 for 1\n10 producer-ids 2000 for 2",
            "9 producer-ids 2000 for 1\n10 producer-ids 3000 for 2",
            "next producer id becomes",
            {"producer_id": 2000, "had_producer_id": 2000},
        ),
        ("10 producer-ids 1 for 3", "10 producer-ids 1 for 2", "not registered", {"broker_id": 3}),
        (
            "9 begin\n10 begin\n11 end",
            "9 begin\n10 end\n11 begin\n12 end",
            "inside another one",
            {},
        ),
        ("10 end", "9 begin\n10 end", "had not begun", {}),
        (
            "9 feature metadata.version 6\n10 stopping 2",
            "9 feature metadata.version 7\n10 stopping 2",
            "is written at metadata.version level",
            {"had_level": 6, "needed": 7},
        ),
    ],
)
def test_a_step_is_illegal_and_the_nearest_one_is_not(
    bad: str, good: str, rule: str, facts: dict[str, object]
) -> None:
    assert_wrong(bad, rule, **facts)
    assert not steps(good)


def test_the_elr_is_fed_from_the_isr_where_the_feature_is_on() -> None:
    shrink = "10 change t-0 isr 1 elr 2"
    assert_wrong(shrink, "eligible.leader.replicas.version is off", elr="[2]")
    assert not steps(shrink, ELR)
    assert_wrong("10 change t-0 isr 1 elr 3", "come into the ELR", before=ELR, strangers="[3]")
    assert not steps(shrink + "\n11 change t-0 isr 2 leader 2 elr none", ELR)
    cleared = shrink + "\n11 clear-elr t\n12 change t-0 isr 2 leader 2"
    assert_wrong(cleared, "not recorded as unclean", before=ELR, leader=2, had_isr="[1]")


def test_a_registration_is_amended_under_its_epoch_and_changes_nothing_else() -> None:
    log = BEGIN.replace("4 register 2", "4 register 2 incarnation b")
    amended = "10 register 2 incarnation b epoch-is 4"
    assert not steps(amended + " unfenced", log)
    states = {"state": "fenced", "had_state": "unfenced"}
    assert_wrong(amended, "amends its registration", before=log, broker_epoch=4, **states)
    assert_wrong("10 register 2 incarnation c epoch-is 4", "not above", before=log, broker_epoch=4)


def test_a_registration_may_stand_behind_what_its_own_decision_wrote() -> None:
    log = "8 change t-0 isr 1 at 700\n9 register 3 epoch-is 8 at {}"
    assert not steps(log.format(700))
    assert_wrong(log.format(701), "the offset of an earlier decision", broker_epoch=8)


def test_the_control_record_of_a_term_is_not_counted() -> None:
    assert not steps("1 register 3 epoch-is 0", "0 leader 1000")


def test_a_completed_reassignment_elects_whom_it_adds() -> None:
    begin = "9 register 3\n10 unfence 3\n"
    assert not steps(begin + "11 change t-0 replicas 3 isr 3 leader 3")
    assert_wrong(begin + "11 change t-0 isr 3 leader 3", "not recorded as unclean", leader=3)


def test_what_was_aborted_or_never_decided_is_no_step() -> None:
    assert not steps("9 begin\n10 unfence 9\n11 abort")
    assert not steps("9 begin\n10 unfence 9")  # the controller crashed before its end
    logs = metadata_log(
        controller_1=BEGIN + "10 unfence 9", controller_2=BEGIN, controller_3=BEGIN + "10 noop"
    )
    assert not proofs(asked(illegal_transitions, tables(logs), facts(controllers=3)))


def test_a_snapshot_is_what_the_log_goes_on_from() -> None:
    log = """
        snapshot 9 register 2 unfenced epoch-is 4
        snapshot 9 topic t
        snapshot 9 partition t-0 replicas 1,2 isr 1,2 leader 1 leader-epoch 5 partition-epoch 8
        10 fence 1
    """
    assert_wrong("", "is fenced, and still leads", before=log, broker_id=1, had_key="t-0")
    assert not steps("", log.replace("fence 1", "fence 3"))  # the snapshot may be cut


def test_where_zookeeper_has_the_metadata_a_dead_broker_may_still_lead() -> None:
    dead = metadata_log(zookeeper_1=BEGIN + "10 fence 1\n11 change t-0 isr 2 leader 2")
    assert not never(asked(illegal_transitions, tables(dead), ON_ZOOKEEPER))
    # Nor does its controller know at once.
    for step in (
        "11 change t-0 leader 2",
        "11 topic u\n12 partition u-0 replicas 2 isr 2 leader 2",
    ):
        unknown = metadata_log(zookeeper_1=f"{BEGIN}10 fence 2\n{step}")
        assert not never(asked(illegal_transitions, tables(unknown), ON_ZOOKEEPER))
        assert steps(f"10 fence 2\n{step}")
    twice = metadata_log(zookeeper_1=BEGIN + "10 topic t as id-2")
    assert never(asked(illegal_transitions, tables(twice), ON_ZOOKEEPER))


def test_without_a_log_of_record_nothing_is_judged() -> None:
    assert (
        "controllers left a metadata log"
        in doubts(asked(illegal_transitions, tables(""), FACTS))["metadata"]
    )


WISHES = st.lists(st.sampled_from(["fence", "return", "shrink", "grow", "ids"]), max_size=12)


@given(WISHES, st.data())
def test_what_a_controller_writes_is_legal_and_one_forged_step_is_not(
    wishes: list[str], data: st.DataObject
) -> None:
    log, end = _played(wishes)
    assert not steps(log)
    forged = [f"unfence 1 epoch-is {end.epochs[1] - 1}", "fence 7", "change u-0 isr 1"]
    forged += [f"fence {end.leader}"] if end.leader != -1 else []
    forged += [f"change t-0 leader {one}" for one in end.fenced]
    forged += ["producer-ids 1000 for 1"] if end.given_out else []
    assert steps(f"{log}\n900 {data.draw(st.sampled_from(forged))}")


@dataclass
class Controller:
    """Of one partition on brokers 1 and 2."""

    fenced: set[int] = field(default_factory=set)
    isr: list[int] = field(default_factory=lambda: [1, 2])
    leader: int = 1
    given_out: int = 0
    epochs: dict[int, int] = field(default_factory=lambda: {1: 2, 2: 4})
    lines: list[str] = field(default_factory=list)

    def write(self, words: str) -> int:
        """The offset it stands at."""
        offset = 10 + len(self.lines)
        self.lines.append(f"{offset} {words}")
        return offset

    def lead(self, leader: int) -> None:
        self.leader = leader
        self.write(f"change t-0 isr {','.join(map(str, self.isr))} leader {leader}")

    def fence(self, one: int) -> None:
        left = [other for other in self.isr if other != one]
        if one in self.isr and left:
            self.isr = left
            self.lead(next((other for other in left if other not in self.fenced), -1))
        elif self.leader == one:
            self.lead(-1)
        self.write(f"fence {one}")
        self.fenced.add(one)

    def welcome(self, one: int) -> None:
        self.epochs[one] = self.write(f"register {one}")
        self.write(f"unfence {one} epoch-is {self.epochs[one]}")
        self.fenced.discard(one)
        if self.leader == -1 and one in self.isr:
            self.lead(one)


def _played(wishes: list[str]) -> tuple[str, Controller]:
    """The log of a controller that follows the rules, and how it ends."""
    end = Controller()
    for number, wish in enumerate(wishes):
        one = 1 + number % 2
        if wish == "fence" and one not in end.fenced:
            end.fence(one)
        elif wish == "return" and one in end.fenced:
            end.welcome(one)
        elif wish == "grow" and end.leader != -1 and not end.fenced:
            end.isr = [1, 2]
            end.write("change t-0 isr 1,2")
        elif wish == "shrink" and end.leader != -1:
            end.isr = [end.leader]
            end.write(f"change t-0 isr {end.leader}")
        elif wish == "ids":
            end.given_out += 1000
            end.write(f"producer-ids {end.given_out} for 1")
    return "\n".join(end.lines), end
