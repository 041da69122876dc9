"""The sentence of a loss: all that is known of it is said, and nothing that is not."""

from dataclasses import replace

import pytest
from metadata_logs import sentence

from fencepost.checkers.losses.forensics import (
    Acknowledgement,
    EarlyRead,
    FinalReplica,
    Join,
    Loss,
    LossyElection,
    Truncation,
    ValueFate,
    sentence_of,
)

NS = 1_000_000_000
FIRST = Acknowledgement(
    leader=1,
    leader_epoch=0,
    broker_epoch=1,
    isr=(1, 2),
    partition_epoch=0,
    metadata_offset=6,
    first_offset=0,
    last_offset=0,
    count=1,
    first_ns=0,
    last_ns=NS,
)
JOIN = Join(
    broker_id=2,
    metadata_offset=36,
    partition_epoch=2,
    time_ns=22 * NS,
    frame=20,
    sent_ns=98 * NS // 10,
    forwarded_ns=None,
    stale=True,
    judged_epoch=3,
    registration_offset=33,
    registered_epoch=33,
    registered_ns=20 * NS,
)
ELECTION = LossyElection(
    leader=2, leader_epoch=2, metadata_offset=43, time_ns=0, log_end_offset=0, unclean=False
)
LOSS = Loss(
    key="t-0",
    fate=ValueFate.LOST,
    checks=("unseen",),
    count=3,
    first_offset=0,
    last_offset=2,
    values=(17, 18, 19),
    operations=(0, 1, 2),
    acknowledgements=(FIRST, replace(FIRST, leader_epoch=1, isr=(1,))),
    join=JOIN,
    election=ELECTION,
    truncations=(
        Truncation(node="broker-1", to_offset=0, fault=None),
        Truncation(node="broker-2", to_offset=None, fault="wipe"),
    ),
)
EARLY = EarlyRead(
    leader=1, isr=(1,), metadata_offset=10, min_isr=2, count=2, first_ns=0, last_ns=NS
)


def held(*nodes: str) -> tuple[FinalReplica, ...]:
    return tuple(
        FinalReplica(
            node=node,
            log_start_offset=0,
            log_end_offset=3,
            high_watermark=3,
            leader_epochs=(),
            held_count=3,
            damage=None,
        )
        for node in nodes
    )


def test_a_story_is_one_sentence() -> None:
    assert sentence_of(LOSS) == sentence(
        """
        Broker 1 acknowledged offsets 0..2 of t-0 in leader epochs 0 and 1 with ISR [1, 2], then
        [1]; broker 2 lost its disk (wipe); broker 2 joined the ISR at metadata offset 36 by
        AlterPartition frame 20, sent 10.2 s before its new registration (offset 33); broker 2 was
        elected at metadata offset 43 with log end 0; broker 1 truncated to 0, and no replica holds
        them any more.
        """
    )


UNREAD = ValueFate.UNREAD


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (
            replace(LOSS, early_reads=(EARLY,)),
            "; consumers had read 2 of them while the ISR was [1], and min.insync.replicas is 2; ",
        ),
        (
            replace(LOSS, fate=UNREAD, replicas=held("broker-1", "broker-2")),
            "they are in the leader's log (broker-1 and broker-2), and no read returned them.",
        ),
        (
            replace(LOSS, fate=ValueFate.UNREACHABLE, replicas=held("broker-1")),
            "only broker-1 still holds them, outside the leader's log.",
        ),
        (replace(LOSS, fate=ValueFate.UNCERTAIN), "no disk that could be read holds them."),
        (replace(LOSS, join=None), "lost its disk (wipe); broker 2 was elected"),
        (replace(LOSS, acknowledgements=()), "Offsets 0..2 of t-0, sent and not acknowledged"),
        (replace(LOSS, count=2), "acknowledged 2 records at offsets 0..2 of t-0"),
        (replace(LOSS, first_offset=None, last_offset=None), "acknowledged 3 records of t-0"),
        (replace(LOSS, election=replace(ELECTION, unclean=True)), "was uncleanly elected"),
    ],
)
def test_a_story_says_what_is_known(loss: Loss, said: str) -> None:
    assert said in sentence_of(loss)
