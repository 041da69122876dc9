"""Violations planted into the evidence of a stored run: each is one that a check has to call.

The run is valid as it is, so that what is told of it then is the plant's. A plant is made up in
all tables that would tell of it, as far as the table of one client or one node would: evidence
that contradicts itself is unknown, and that is an answer as well. A verdict of *valid* is a lie.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from fencepost.harness.metamorphic import (
    planted_frames,
    planted_groups,
    planted_life_cycle,
    planted_log,
    planted_metadata,
    planted_records,
    planted_replicas,
    planted_shown,
    planted_tables,
)
from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_rows import change_one
from fencepost.harness.metamorphic.transformation import Transformation


def _returned_before_call(run: CopiedRun, draw: Random) -> bool:
    """An operation returned before it was called."""
    return change_one(
        run,
        draw,
        "operations",
        ("index",),
        is_fit=lambda row: row["return_ns"] is not None,
        news=lambda row: {"return_ns": row["call_ns"] - 1_000_000},
    )


def _harness_failed(run: CopiedRun, draw: Random) -> bool:
    """The harness failed in the middle of the run."""
    del draw
    run.state(failure="the harness crashed")
    return True


def _table_gone(run: CopiedRun, draw: Random, *, name: str) -> bool:
    """A table that was recorded is not there."""
    del draw
    if not run.has(name) or name not in (*run.manifest.recorded, "faults"):
        return False
    run.run.table_path(name).unlink()
    return True


def _rows_gone(run: CopiedRun, draw: Random, *, name: str) -> bool:
    """A table that was recorded has no rows."""
    del draw
    return run.has(name) and run.change(name, lambda rows: rows.slice(0, 0))


def _plant(
    name: str, change: Callable[[CopiedRun, Random], bool], *called: str, title: str = ""
) -> Transformation:
    """Return a plant that one of these checks has to call; of several, any."""
    words = title or (change.__doc__ or "").strip().rstrip(".")
    return Transformation(
        name=name, title=words[0].lower() + words[1:], change=change, is_plant=True, called=called
    )


PLANTED: Final = (
    _plant("acknowledged-lost", planted_records.lost, "lost-write", "unseen"),
    _plant("logged-twice", planted_records.twice, "duplicate", "out-of-sequence"),
    _plant("key-unrecorded", planted_records.key_unrecorded),
    _plant("sends-without-record", planted_records.sends_without_record),
    _plant("offset-elsewhere", planted_records.offset_elsewhere, "inconsistent-offset"),
    _plant("read-unsent", planted_records.read_unsent, "vanished", "inconsistent-offset"),
    _plant("polled-back", planted_records.polled_back, "internal-nonmonotonic-poll"),
    _plant("poll-skipped", planted_records.poll_skipped, "skipped-poll", "internal-skipped-poll"),
    _plant("replica-diverges", planted_records.replica_diverges, "divergent-replicas"),
    _plant("replica-hole", planted_records.replica_hole, "divergent-replicas"),
    _plant(
        "all-replicas-short",
        planted_records.all_replicas_short,
        "lost-write",
        "vanished",
        "truncated-below-high-watermark",
    ),
    _plant("group-ahead", planted_groups.group_ahead, "passed-over"),
    _plant("group-told-ahead", planted_groups.group_told_ahead, "wrong-group-offset"),
    _plant("input-twice", planted_groups.input_twice, "input-not-once"),
    _plant("input-skipped", planted_groups.input_skipped, "input-not-once"),
    _plant("outcome-contradicted", planted_groups.outcome_contradicted),
    _plant("torn", planted_groups.torn, "torn-transaction"),
    _plant("aborted-shown", planted_groups.aborted_shown, "aborted-read"),
    _plant("id-unmade", planted_metadata.id_unmade, "wrong-topic-id"),
    _plant("id-of-another", planted_metadata.id_of_another, "wrong-topic-id"),
    _plant(
        "id-of-the-dead",
        planted_metadata.id_of_the_dead,
        "wrong-topic-id",
        "stale-read-after-write",
        "session-went-back",
    ),
    _plant(
        "old-leader-wrote",
        planted_records.old_leader_wrote,
        "log-epoch-went-back",
        "deposed-leader-write",
    ),
    _plant("fenced-served", planted_metadata.fenced_served, "served-while-fenced"),
    _plant("isr-never-was", planted_metadata.isr_never_was, "nonlinearizable-isr"),
    _plant(
        "leader-epoch-ahead",
        planted_metadata.leader_epoch_ahead,
        "nonlinearizable-isr",
        "epoch-went-back",
    ),
    _plant("setting-unwritten", planted_metadata.setting_unwritten),
    _plant("setting-unasked", planted_metadata.setting_unasked, "unwritten-setting"),
    _plant("old-member", planted_metadata.old_member, "stale-epoch-join", "epoch-check-bypassed"),
    _plant("isr-unasked", planted_metadata.isr_unasked, "unasked-change", "nonlinearizable-isr"),
    _plant("lowest-ahead", planted_metadata.lowest_ahead, "false-lowest-acknowledged-offset"),
    _plant("nodes-disagree", planted_metadata.nodes_disagree, "metadata-divergence"),
    _plant("no-replica-in-isr", planted_metadata.no_replica_in_isr, "isr-not-in-replicas"),
    _plant(
        "leader-outside-isr",
        planted_metadata.leader_outside_isr,
        "illegal-transition",
        "two-leaders",
    ),
    _plant(
        "broker-epoch-back",
        planted_metadata.broker_epoch_back,
        "illegal-transition",
        "incarnation-went-back",
    ),
    _plant("old-claim", planted_metadata.old_claim, "stale-controller"),
    _plant(
        "topic-uncreated",
        planted_metadata.topic_uncreated,
        "metadata-divergence",
        "lost-metadata-write",
    ),
    _plant("move-undone", planted_metadata.move_undone, "lost-reassignment"),
    _plant("move-endless", planted_metadata.move_endless, "stuck-reassignment"),
    _plant("leader-epoch-back", planted_log.epoch_back, "epoch-went-back", "nonlinearizable-isr"),
    _plant("version-skipped", planted_log.version_skipped, "nonlinearizable-isr"),
    _plant("change-undone", planted_log.change_undone, "nonlinearizable-isr"),
    _plant(
        "member-put-out",
        planted_log.member_put_out,
        "unasked-change",
        "nonlinearizable-isr",
    ),
    _plant("isr-emptied", planted_log.isr_emptied, "empty-isr"),
    _plant(
        "never-unfenced",
        planted_log.never_unfenced,
        "ineligible-member",
        "illegal-transition",
    ),
    _plant("min-isr-raised", planted_log.min_isr_raised, "acknowledged-below-min-isr"),
    _plant(
        "registered-twice",
        planted_log.registered_twice,
        "epoch-went-back",
        "illegal-transition",
    ),
    _plant("producer-ids-again", planted_log.producer_ids_again, "illegal-transition"),
    _plant("topic-id-again", planted_log.id_again, "illegal-transition"),
    _plant(
        "removal-undone", planted_log.removal_undone, "lost-metadata-write", "illegal-transition"
    ),
    _plant("setting-undone", planted_log.creation_undone, "lost-metadata-write"),
    _plant("term-back", planted_log.term_back, "epoch-went-back"),
    _plant("elected-another", planted_log.election_of_another, "two-leaders"),
    _plant("fencing-undone", planted_life_cycle.fencing_undone, "fencing-too-late"),
    _plant(
        "another-fenced",
        planted_life_cycle.another_fenced,
        "fencing-too-early",
        "fencing-too-late",
        "illegal-transition",
        "ineligible-member",
    ),
    _plant("unfenced-behind", planted_life_cycle.unfenced_behind, "unfenced-too-early"),
    _plant("refused-and-running", planted_life_cycle.refused_and_running, "refused-but-running"),
    _plant("never-fetched", planted_life_cycle.never_fetched, "unfetched-epoch"),
    _plant("answered-other-isr", planted_frames.answered_other_isr, "nonlinearizable-isr"),
    _plant("answered-other-epoch", planted_frames.answered_other_epoch, "nonlinearizable-isr"),
    _plant(
        "expected-older", planted_frames.expected_older, "epoch-check-bypassed", "unasked-change"
    ),
    _plant("led-before", planted_frames.led_before, "epoch-check-bypassed"),
    _plant("sent-by-another", planted_frames.sent_by_another, "epoch-check-bypassed"),
    _plant("heartbeat-of-the-dead", planted_frames.heartbeat_of_the_dead, "shared-identity"),
    _plant("lowest-by-one", planted_frames.lowest_by_one, "false-lowest-acknowledged-offset"),
    _plant("lowest-back", planted_frames.lowest_back, "false-lowest-acknowledged-offset"),
    _plant(
        "producer-ids-told-again", planted_frames.producer_ids_told_again, "shared-producer-ids"
    ),
    _plant("watermark-ahead", planted_frames.watermark_ahead, "watermark-ahead"),
    _plant(
        "metadata-watermark-ahead",
        planted_frames.metadata_watermark_ahead,
        "metadata-watermark-ahead",
    ),
    _plant(
        "epoch-shown-back",
        planted_shown.epoch_shown_back,
        "isr-read-went-back",
        "session-went-back",
        "nonrepeatable-read",
        "nonlinearizable-isr",
        "two-leaders",
    ),
    _plant(
        "dead-topic-shown",
        planted_shown.dead_topic_shown,
        "stale-read-after-write",
        "session-went-back",
    ),
    _plant(
        "topic-hidden", planted_shown.topic_hidden, "session-went-back", "stale-read-after-write"
    ),
    _plant("replicas-shown-other", planted_shown.replicas_shown_other, "unlogged-replicas"),
    _plant("partition-shown-more", planted_shown.partitions_shown_more, "unlogged-replicas"),
    _plant("setting-shown-early", planted_shown.setting_shown_early),
    _plant("applied-ahead", planted_shown.applied_ahead, "metadata-divergence", "epoch-went-back"),
    _plant("content-differs", planted_replicas.content_differs, "divergent-replicas"),
    _plant("epoch-differs", planted_replicas.epoch_differs, "divergent-replicas"),
    _plant("time-differs", planted_replicas.time_differs, "divergent-replicas"),
    _plant("marker-turned", planted_replicas.committed_turned, "wrong-marker"),
    _plant(
        "marker-of-nobody",
        planted_replicas.marker_of_nobody,
        "wrong-marker",
        "hanging-transaction",
    ),
    _plant("producer-id-of-two", planted_replicas.producer_id_of_two, "out-of-sequence"),
    _plant(
        "value-exchanged",
        planted_replicas.value_exchanged,
        "divergent-replicas",
        "truncated-below-high-watermark",
        "out-of-sequence",
    ),
    _plant(
        "watermark-beyond-end", planted_replicas.watermark_beyond_end, "unsafe-leader-candidate"
    ),
    _plant("polled-again", planted_replicas.polled_again, "nonmonotonic-poll"),
    _plant("read-before-sent", planted_replicas.read_before_sent),
    _plant("failed-read", planted_replicas.failed_read, "aborted-read"),
    _plant("sends-swapped", planted_replicas.sends_swapped, "nonmonotonic-send"),
    _plant("value-sent-twice", planted_tables.value_sent_twice),
    _plant("describes-blank", planted_tables.describes_blank),
    _plant("fatal-line", planted_tables.fatal_line, "fatal-fault"),
    _plant("record-retold", planted_tables.record_retold),
    _plant("copy-retold", planted_tables.copy_retold),
    _plant("log-begins-later", planted_tables.log_begins_later),
    _plant("fault-gone", planted_tables.fault_gone),
    _plant("frame-redirected", planted_tables.frame_redirected),
    _plant("answer-unasked", planted_tables.answer_unasked),
    _plant("returned-before-call", _returned_before_call),
    _plant("harness-failed", _harness_failed),
    *(
        _plant(f"{name}-gone", partial(_table_gone, name=name), title=f"`{name}` is not there")
        for name in ("faults", "wire", "partition_writes")
    ),
    *(
        _plant(f"{name}-empty", partial(_rows_gone, name=name), title=f"`{name}` has no rows")
        for name in (
            "operations",
            "replicas",
            "metadata_log",
            "describes",
            "metadata_writes",
            "transactions",
            "group_offsets",
        )
    ),
)
"""All of them, in the order in which they are told. One without a check is to be unknown."""
