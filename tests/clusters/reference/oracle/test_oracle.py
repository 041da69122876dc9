"""The oracle by hand: the smallest story that breaks an invariant, and the nearest good one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.clusters.node_port import notes
from fencepost.clusters.node_port.effects import NOTE
from fencepost.clusters.node_port.storage import Batch, MetadataBatch, PartitionKey
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from fencepost.clusters.reference.nodes.messages.data import ProduceResponse
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from fencepost.clusters.reference.oracle.oracle import Oracle

CONTROLLER, OTHER, CLIENT = 1001, 1002, 1 << 20
KEY = (77, 0)
MS = 1_000_000
LEASE = 2_000 * MS


@dataclass
class Disks:
    """What lies on the nodes' disks, and what their processes have applied."""

    metadata_of: dict[int, list[MetadataBatch]] = field(default_factory=dict)
    records_of: dict[tuple[int, PartitionKey], list[Batch]] = field(default_factory=dict)
    applied_of: dict[int, int] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)

    def metadata(self, node: int, start: int, end: int) -> Sequence[MetadataBatch]:
        batches = self.metadata_of.get(node, [])
        return [one for one in batches if one.end_offset > start and one.base_offset < end]

    def records(self, node: int, key: PartitionKey, start: int, end: int) -> Sequence[Batch]:
        batches = self.records_of.get((node, key), [])
        return [one for one in batches if one.end_offset > start and one.base_offset < end]

    def applied(self, node: int) -> int:
        return self.applied_of.get(node, -1)

    def level(self, node: int) -> int:
        return self.levels.get(node, 0)

    def incarnation(self, node: int) -> int:
        return 10 * node


class Story:
    """An oracle and what happens before it."""

    def __init__(self) -> None:
        self.disks = Disks()
        self.oracle = Oracle(self.disks, lease_ns=LEASE)
        self.now = 0
        self.end = 0

    @property
    def found(self) -> list[str]:
        return list(dict.fromkeys(one.anomaly for one in self.oracle.findings))

    def note(self, node: int, subject: str, *rest: object) -> None:
        self.oracle.note(self.now, node, (NOTE, subject, *rest))

    def commit(self, *records: Any, node: int = CONTROLLER, epoch: int = 1) -> None:
        batch = MetadataBatch(self.end, epoch, records)
        self.disks.metadata_of.setdefault(node, []).append(batch)
        self.end = batch.end_offset
        self.note(node, notes.COMMITTED_METADATA, self.end)

    def begin(self, *brokers: int, isr: tuple[int, ...] = (1, 2), level: int = 2) -> None:
        """Brokers are registered with epochs 100 n and unfenced, and one partition is there."""
        self.note(CONTROLLER, notes.ACTIVE, 1)
        self.commit(FeatureLevelRecord("metadata.version", level))
        for one in brokers or (1, 2, 3):
            self.commit(registration(one, 100 * one))
            self.commit(BrokerRegistrationChangeRecord(one, 100 * one, fenced=False))
        self.commit(TopicRecord("t", 77), PartitionRecord(77, 0, (1, 2, 3), isr, isr[0], 0, 0))

    def change(self, **what: Any) -> None:
        self.commit(PartitionChangeRecord(77, 0, **what))

    def fence(self, broker: int, epoch: int = 0) -> BrokerRegistrationChangeRecord:
        return BrokerRegistrationChangeRecord(broker, epoch or 100 * broker, fenced=True)

    def appended(self, *nodes: int, value: int, base: int, leader_epoch: int = 0) -> Batch:
        one = batch(value, base=base, leader_epoch=leader_epoch)
        for node in nodes:
            self.disks.records_of.setdefault((node, KEY), []).append(one)
        return one


def registration(broker: int, epoch: int, incarnation: int | None = None) -> RegisterBrokerRecord:
    incarnation = 10 * broker if incarnation is None else incarnation
    return RegisterBrokerRecord(broker, epoch, incarnation, True, (), (("metadata.version", 1, 3),))


def batch(value: int, *, base: int, leader_epoch: int = 0) -> Batch:
    return Batch(base, leader_epoch, 1, 5, 0, value, (value,))


def test_a_cluster_that_keeps_the_rules_is_not_accused() -> None:
    story = Story()
    story.begin()
    story.change(isr=(1, 2, 3))
    story.commit(story.fence(1), PartitionChangeRecord(77, 0, isr=(2, 3), leader=2))
    assert story.found == []


def test_two_voters_that_are_elected_in_one_epoch_are_two_leaders() -> None:
    story = Story()
    story.note(CONTROLLER, notes.QUORUM_LEADER, 1)
    story.note(OTHER, notes.QUORUM_LEADER, 2)
    assert story.found == []
    story.note(OTHER, notes.QUORUM_LEADER, 1)
    assert story.found == ["two-leaders"]


def test_another_record_at_a_committed_offset_is_a_divergence() -> None:
    story = Story()
    story.commit(TopicRecord("t", 1))
    same = MetadataBatch(0, 1, (TopicRecord("t", 1),))
    story.disks.metadata_of[OTHER] = [same]
    story.note(OTHER, notes.COMMITTED_METADATA, 1)
    assert story.found == []
    story.oracle.started(OTHER)
    story.disks.metadata_of[OTHER] = [MetadataBatch(0, 2, (TopicRecord("u", 1),))]
    story.note(OTHER, notes.COMMITTED_METADATA, 1)
    assert story.found == ["metadata-divergence"]


def test_an_isr_keeps_its_last_member_and_no_fenced_one_beside_it() -> None:
    story = Story()
    story.begin(isr=(1, 2))
    story.commit(story.fence(2))
    assert story.found == ["ineligible-member"]
    last = Story()
    last.begin(isr=(1,))
    last.commit(last.fence(1), PartitionChangeRecord(77, 0, leader=-1))
    assert last.found == []
    last.change(isr=())
    assert last.found == ["empty-isr"]


def test_a_leader_is_unfenced_and_of_the_isr() -> None:
    story = Story()
    story.begin(isr=(1,))
    story.commit(story.fence(1))
    assert story.found == ["illegal-transition"]
    unclean = Story()
    unclean.begin(isr=(1,))
    unclean.commit(unclean.fence(1), PartitionChangeRecord(77, 0, isr=(2,), leader=2))
    assert unclean.found == ["two-leaders"]


def test_an_epoch_that_does_not_grow_went_back() -> None:
    story = Story()
    story.begin()
    story.now += 2 * LEASE
    story.commit(registration(3, 300, 999))
    assert "epoch-went-back" in story.found


def test_a_registration_over_a_live_one_shares_its_identity() -> None:
    story = Story()
    story.begin(isr=(1,))
    story.oracle.delivered(story.now, 3, CONTROLLER, 22, heartbeat(3, 300))
    story.now += LEASE // 2
    story.commit(registration(3, 301, 999))
    assert story.found == ["shared-identity"]
    later = Story()
    later.begin(isr=(1,))
    later.oracle.delivered(later.now, 3, CONTROLLER, 22, heartbeat(3, 300))
    later.now += 2 * LEASE
    later.commit(registration(3, 301, 999))
    assert later.found == []


def test_a_controller_that_slept_through_its_succession_renews_nothing() -> None:
    for epoch, expected in ((2, ["shared-identity"]), (0, [])):
        story = Story()
        story.begin(isr=(1,))
        story.note(OTHER, notes.ACTIVE, epoch)
        story.oracle.delivered(story.now, 3, OTHER, 22, heartbeat(3, 299))
        story.oracle.sent(story.now, OTHER, 3, 23, heartbeat_answer())
        assert story.found == expected


def test_a_member_judged_by_another_epoch_joins_by_a_stale_one() -> None:
    for fetched, expected in ((300, []), (299, ["stale-epoch-join"])):
        story = Story()
        story.begin()
        story.note(1, notes.PROPOSED, KEY, (1, 2, 3), 0, (-1, 200, fetched))
        story.change(isr=(1, 2, 3))
        assert story.found == expected


def test_a_proposal_with_a_stale_epoch_that_is_accepted_passed_by_the_check() -> None:
    for epoch, expected in ((300, []), (299, ["epoch-check-bypassed"])):
        story = Story()
        story.begin()
        asked = proposal((1, 2, 3), (100, 200, epoch))
        story.oracle.delivered(story.now, 1, CONTROLLER, 24, asked)
        answer = AlterPartitionResponse(asked.correlation, 0, asked.items)
        story.oracle.sent(story.now, CONTROLLER, 1, 25, answer)
        assert story.found == expected


def test_a_proposal_of_who_does_not_lead_must_be_refused() -> None:
    story = Story()
    story.begin()
    asked = proposal((1, 2), (), sender=2)
    story.oracle.delivered(story.now, 2, CONTROLLER, 24, asked)
    refused = AlterPartitionResponse(asked.correlation, 77, ())
    story.oracle.sent(story.now, CONTROLLER, 2, 25, refused)
    assert story.found == []
    story.oracle.delivered(story.now, 2, CONTROLLER, 24, asked)
    taken = AlterPartitionResponse(asked.correlation, 0, asked.items)
    story.oracle.sent(story.now, CONTROLLER, 2, 25, taken)
    assert story.found == ["two-leaders"]


def test_a_new_leader_has_what_was_committed() -> None:
    story = Story()
    story.begin()
    story.appended(1, 2, value=1, base=0)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
    story.note(2, notes.LEADS, KEY, 1, 1)
    assert story.found == []
    story.note(3, notes.LEADS, KEY, 2, 0)
    assert story.found == ["unsafe-leader-candidate"]


def test_who_hears_late_that_it_leads_an_epoch_that_is_over_is_no_candidate() -> None:
    story = Story()
    story.begin()
    story.appended(1, 2, value=1, base=0)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
    story.change(leader=2)
    story.change(leader=1)
    story.note(3, notes.LEADS, KEY, 1, 0)
    assert story.found == []
    story.note(3, notes.LEADS, KEY, 2, 0)
    assert story.found == ["unsafe-leader-candidate"]


def test_what_is_committed_is_with_every_member_of_the_isr() -> None:
    for having, expected in (((1, 2), []), ((1,), ["unsafe-leader-candidate"])):
        story = Story()
        story.begin(isr=(1, 2))
        story.appended(*having, value=1, base=0)
        story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
        assert story.found == expected


def test_who_led_an_earlier_epoch_commits_for_whoever_was_in_the_isr_then() -> None:
    story = Story()
    story.begin(isr=(1, 2))
    story.change(leader=2)
    story.appended(1, value=1, base=0)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
    assert story.found == []


def test_a_member_whose_disk_was_lost_need_not_have_what_is_committed() -> None:
    story = Story()
    story.begin(isr=(1, 2))
    story.oracle.disk_lost(2)
    story.appended(1, value=1, base=0)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
    assert story.found == []


def test_a_member_cuts_nothing_off_that_is_committed() -> None:
    for left, expected in ((1, []), (0, ["truncated-below-high-watermark"])):
        story = Story()
        story.begin(isr=(1, 2))
        story.appended(1, 2, value=1, base=0)
        story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
        del story.disks.records_of[2, KEY][left:]
        story.note(2, notes.TRUNCATED, KEY, left, 2)
        assert story.found == expected


def test_who_is_out_of_the_isr_may_cut_its_log_anywhere() -> None:
    story = Story()
    story.begin(isr=(1, 2))
    story.appended(1, 2, value=1, base=0)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
    story.note(3, notes.TRUNCATED, KEY, 0, 2)
    assert story.found == []


def test_whoever_is_proposed_has_what_is_committed() -> None:
    for having, expected in (((1, 2, 3), []), ((1, 2), ["unsafe-leader-candidate"])):
        story = Story()
        story.begin(isr=(1, 2))
        story.appended(*having, value=1, base=0)
        story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
        asked = proposal((1, 2, 3), (100, 200, 300))
        story.oracle.sent(story.now, 1, CONTROLLER, 24, asked)
        assert story.found == expected


def test_a_proposal_that_has_to_be_refused_is_not_judged() -> None:
    story = Story()
    story.begin(isr=(1, 2))
    story.appended(1, 2, value=1, base=0)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
    for asked in (proposal((1, 2, 3), (100, 200, 299)), proposal((1, 3), (100, 300), sender=2)):
        story.oracle.sent(story.now, asked.broker_id, CONTROLLER, 24, asked)
    story.change(leader=2)
    story.oracle.sent(story.now, 1, CONTROLLER, 24, proposal((1, 2, 3), (100, 200, 300)))
    assert story.found == []


def test_two_leaders_in_one_leader_epoch() -> None:
    story = Story()
    story.begin()
    story.note(1, notes.LEADS, KEY, 1, 0)
    story.note(1, notes.LEADS, KEY, 1, 0)
    assert story.found == []
    story.note(2, notes.LEADS, KEY, 1, 0)
    assert story.found == ["two-leaders"]


def test_an_acknowledged_record_that_the_next_leader_lacks_is_lost() -> None:
    story = Story()
    story.begin(isr=(1, 2))
    one = story.appended(1, value=1, base=0)
    story.note(CLIENT, notes.ACKNOWLEDGED, KEY, 0, one)
    story.note(1, notes.LEADS, KEY, 0, 1)
    assert story.found == []
    story.note(2, notes.LEADS, KEY, 1, 0)
    assert story.found == ["lost-write"]


def test_what_the_last_members_disk_lost_is_excused() -> None:
    story = Story()
    story.begin(isr=(1,))
    one = story.appended(1, value=1, base=0)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
    story.note(CLIENT, notes.ACKNOWLEDGED, KEY, 0, one)
    story.oracle.disk_lost(1)
    story.disks.records_of.clear()
    story.note(1, notes.LEADS, KEY, 1, 0)
    assert story.found == []
    assert story.oracle.records.excused == (KEY,)
    (why,) = story.oracle.records.excuses
    assert why.endswith(
        "-0: every member of its ISR [1] had lost its disk since it was last seen outside; "
        "1 records had been committed"
    )


def test_what_another_member_still_had_is_not_excused() -> None:
    story = Story()
    story.begin(isr=(1, 2))
    story.appended(1, 2, value=1, base=0)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
    story.oracle.disk_lost(1)
    story.disks.records_of[1, KEY] = []
    story.note(1, notes.LEADS, KEY, 1, 0)
    assert story.found == ["unsafe-leader-candidate"]
    assert story.oracle.records.excused == ()


def test_a_sequence_that_is_committed_twice_is_a_duplicate() -> None:
    story = Story()
    story.begin()
    story.appended(1, 2, value=1, base=0)
    story.appended(1, 2, value=2, base=1)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 2)
    assert story.found == []
    story.appended(1, 2, value=1, base=2)
    story.note(1, notes.HIGH_WATERMARK, KEY, 0, 3)
    assert story.found == ["duplicate"]


def test_what_was_read_ahead_and_came_out_otherwise_is_inconsistent() -> None:
    for committed, expected in ((1, []), (2, ["inconsistent-offset"])):
        story = Story()
        story.begin()
        story.note(CLIENT, notes.READ_RECORDS, KEY, (batch(1, base=0),))
        story.appended(1, 2, value=committed, base=0)
        story.note(1, notes.HIGH_WATERMARK, KEY, 0, 1)
        assert story.found == expected


def test_an_acknowledgement_below_min_isr() -> None:
    for having, expected in (((1, 2), []), ((1,), ["acknowledged-below-min-isr"])):
        story = Story()
        story.begin(isr=(1,))
        story.oracle.records.min_isr = 2
        one = story.appended(*having, value=1, base=0)
        story.note(CLIENT, notes.ACKNOWLEDGED, KEY, 0, one)
        assert story.found == expected


def test_a_broker_serves_as_long_as_its_lease_runs() -> None:
    story = Story()
    story.note(1, notes.BROKER_STATE, BrokerState.RUNNING, 100)
    story.oracle.sent(story.now, 1, CONTROLLER, 22, heartbeat(1, 100))
    story.oracle.delivered(story.now + MS, CONTROLLER, 1, 23, heartbeat_answer())
    story.oracle.sent(LEASE, 1, CLIENT, 53, ProduceResponse(1, ()))
    assert story.found == []
    story.oracle.sent(LEASE + 300 * MS, 1, CLIENT, 53, ProduceResponse(1, ()))
    assert story.found == ["served-while-fenced"]


def test_a_silent_broker_is_fenced_while_others_are_decided_about() -> None:
    story = Story()
    story.begin(1, isr=(1,))
    story.oracle.delivered(story.now, 1, CONTROLLER, 22, heartbeat(1, 100))
    story.now += LEASE // 2
    for number in range(6):
        story.commit(TopicRecord(f"x{number}", number))
    assert story.found == []
    story.now += LEASE
    for number in range(6):
        story.commit(TopicRecord(f"y{number}", 10 + number))
    assert story.found == ["fencing-too-late"]


def test_brokers_that_fell_silent_at_once_are_fenced_one_after_the_other() -> None:
    story = Story()
    story.begin(1, 2, 3, 4)
    story.now += 2 * LEASE
    story.commit(TopicRecord("asked-for-before", 1))
    for broker in (1, 2, 3, 4):
        story.commit(story.fence(broker))
    assert "fencing-too-late" not in story.found


def test_what_a_new_controller_commits_before_it_is_active_fences_nobody() -> None:
    for active, expected in ((False, []), (True, ["fencing-too-late"])):
        story = Story()
        story.begin(1, isr=(1,))
        story.note(CONTROLLER, notes.QUORUM_LEADER, 2)
        if active:
            story.note(CONTROLLER, notes.ACTIVE, 2)
        story.now += 2 * LEASE
        for number in range(6):
            story.commit(TopicRecord(f"x{number}", number), epoch=2)
        assert story.found == expected


def test_who_leads_may_not_go() -> None:
    for broker, expected in ((2, []), (1, ["unsafe-shutdown"])):
        story = Story()
        story.begin(isr=(1, 2))
        story.oracle.delivered(story.now, broker, CONTROLLER, 22, heartbeat(broker, 100 * broker))
        go = heartbeat_answer(next_state=BrokerState.NOT_RUNNING)
        story.oracle.sent(story.now, CONTROLLER, broker, 23, go)
        assert story.found == expected


def test_the_lowest_acknowledged_offset_is_what_all_have_and_never_goes_back() -> None:
    story = Story()
    story.begin(1, 2, level=3)
    story.disks.applied_of |= {1: 9, 2: 7}
    story.note(CONTROLLER, notes.TOLD_LOWEST, 1, 7)
    assert story.found == []
    story.note(CONTROLLER, notes.TOLD_LOWEST, 1, 8)
    assert story.found == ["false-lowest-acknowledged-offset"]
    back = Story()
    back.begin(1, 2, level=3)
    back.note(CONTROLLER, notes.TOLD_LOWEST, 1, 5)
    back.note(OTHER, notes.ACTIVE, 0)
    back.note(OTHER, notes.TOLD_LOWEST, 1, 4)  # of a controller that was deposed: not believed
    assert back.found == []
    back.note(CONTROLLER, notes.TOLD_LOWEST, 1, 4)
    assert back.found == ["false-lowest-acknowledged-offset"]


def test_v03_reads_through_two_brokers_do_not_go_back() -> None:
    story = Story()
    story.begin(1, 2, level=3)
    story.note(CONTROLLER, notes.TOLD_LOWEST, 1, 2)  # the level is in force
    story.note(CLIENT, notes.READ_BEGAN, 1)
    story.note(CLIENT, notes.READ_BEGAN, 2)
    story.note(CLIENT, notes.READ_METADATA, 1, 1, 6)
    story.note(CLIENT, notes.READ_METADATA, 2, 2, 5)  # began before the other one ended
    assert story.found == []
    story.note(CLIENT, notes.READ_BEGAN, 3)
    story.note(CLIENT, notes.READ_METADATA, 3, 2, 5)
    assert story.found == ["nonrepeatable-read"]


def test_v03_a_read_after_an_acknowledged_write_shows_it() -> None:
    for shown, expected in ((6, []), (5, ["stale-read-after-write"])):
        story = Story()
        story.begin(1, 2, level=3)
        story.note(CONTROLLER, notes.TOLD_LOWEST, 1, 2)
        story.note(CONTROLLER, notes.ACKNOWLEDGED_METADATA, 6, 26, "")
        story.note(CLIENT, notes.READ_BEGAN, 1)
        story.note(CLIENT, notes.READ_METADATA, 1, 1, shown)
        assert story.found == expected


def test_below_level_three_reads_promise_nothing() -> None:
    story = Story()
    story.begin(1, 2, level=2)
    story.note(CLIENT, notes.READ_BEGAN, 1)
    story.note(CLIENT, notes.READ_METADATA, 1, 1, 6)
    story.note(CLIENT, notes.READ_BEGAN, 2)
    story.note(CLIENT, notes.READ_METADATA, 2, 2, 3)
    assert story.found == []


def test_a_write_acknowledged_before_it_was_committed_must_come_to_be() -> None:
    for epoch, expected in ((1, []), (2, ["lost-metadata-write"])):
        story = Story()
        story.begin()
        waiting = MetadataBatch(story.end, 1, (TopicRecord("x", 5),))
        story.disks.metadata_of[CONTROLLER].append(waiting)
        story.note(CONTROLLER, notes.ACKNOWLEDGED_METADATA, waiting.end_offset, 26, "")
        story.disks.metadata_of[CONTROLLER].pop()
        story.commit(TopicRecord("x", 5), epoch=epoch)
        assert story.found == expected


def heartbeat(broker: int, epoch: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(4, broker, epoch, 0, BrokerState.RUNNING, 2)


def heartbeat_answer(*, next_state: BrokerState = BrokerState.RUNNING) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(4, 0, CONTROLLER, next_state, True, 2000, -1)


def proposal(
    isr: tuple[int, ...], epochs: tuple[int, ...], *, sender: int = 1
) -> AlterPartitionRequest:
    item = AlterPartitionItem(KEY, 0, 0, isr, epochs)
    return AlterPartitionRequest(9, sender, 100 * sender, 3, (item,))
