"""The control plane's part of the catalogue."""

from typing import Final

from checkers.entry import Entry, Kind, Strength

__all__ = ["CONTROL_PLANE_ENTRIES"]

_LOG: Final = ("metadata_log",)
_LOG_AND_WIRE: Final = ("metadata_log", "wire")
_SESSIONS: Final = ("metadata_log", "wire", "node_settings")

CONTROL_PLANE_ENTRIES: Final = (
    Entry(
        id="C1",
        name="nonlinearizable-isr",
        title="Changes of the ISR have no order that explains them",
        kind=Kind.ANOMALY,
        rule="The leader and ISR of a partition are a register whose versions are its partition "
        "epochs in the metadata log. An AlterPartition is a compare-and-set (call: its request at "
        "the proxy; return: its answer passed on), changes of the controller's own are writes "
        "without a caller, not before their records' timestamps, and a describe shows a version "
        "that was there when it returned. There are moments at which the versions appeared that "
        "all of it agrees with; every change that was acknowledged stands in the log as it was "
        "acknowledged; no version was made twice; and every describe shows some version.",
        meaning="A leader and its controller do not agree about who is in sync, so records count "
        "as committed that are not.",
        case="an AlterPartition that tells anything of its partition's ISR",
        source="Herlihy and Wing 1990; KIP-497, KIP-903",
        strength=Strength.NEVER,
        needs=_LOG_AND_WIRE,
    ),
    Entry(
        id="C2",
        name="stale-epoch-join",
        title="A replica joined the ISR on the word of an earlier incarnation",
        kind=Kind.ANOMALY,
        rule="A replica joins the ISR at metadata offset m by an AlterPartition. The broker epoch "
        "that the request names for it (version 3), if it names one, is not the one that it "
        "registered with last before m; or, if it names none, the registration in force at m was "
        "answered only after the request had been sent, or by then no Fetch of a connection that "
        "began to fetch after that answer had been passed on to the leader. A join whose request "
        "alone is not on the tape is unknown.",
        meaning="A broker that came back without its data counts as in sync. When it is elected, "
        "acknowledged records are gone, and the other replicas truncate theirs.",
        case="a replica that joined an ISR by an AlterPartition that is on the tape",
        source="KIP-903; KAFKA-14139, KAFKA-14617",
        strength=Strength.NEVER,
        needs=_LOG_AND_WIRE,
    ),
    Entry(
        id="C2b",
        name="unfetched-epoch",
        title="A replica was proposed under a broker epoch under which it had not fetched",
        kind=Kind.ANOMALY,
        rule="An AlterPartition asks for an ISR with a follower that the ISR of the partition "
        "epoch it expects does not have, and names a broker epoch for it. When the request had "
        "arrived at the proxy, a Fetch of that partition by that follower under that epoch had "
        "been passed on to the leader. Not judged where the follower's link to the leader is not "
        "on the tape, or a Fetch on it could not be decoded.",
        meaning="The leader judges a follower by the Fetches of one incarnation and proposes the "
        "next one, whose disk may be empty; the controller compares the epochs and lets it in.",
        case="a follower that an AlterPartition proposes to let in under a broker epoch",
        source="KIP-903; KAFKA-14139",
        strength=Strength.NEVER,
        needs=_LOG_AND_WIRE,
    ),
    Entry(
        id="C3",
        name="ineligible-member",
        title="A broker that may not be in an ISR is in one",
        kind=Kind.ANOMALY,
        rule="A replica joins an ISR, by an election that is not recorded as unclean or by a "
        "change, while the metadata log before it has its broker unregistered, fenced or in "
        "controlled shutdown; or a fenced one stays a member for more than 10 s, though it is not "
        "the last.",
        meaning="Writes wait for a broker that does not answer, or a broker that is out of office "
        "may be elected.",
        case="a replica that joined an ISR, or a member of one whose broker was fenced",
        source="KIP-631, KIP-841, KIP-903",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C4",
        name="two-leaders",
        title="Two leaders in one epoch, or a leader who may not lead",
        kind=Kind.ANOMALY,
        rule="By the metadata logs, AlterPartition requests, quorum RPCs, describes and the "
        "controllers' own claims, an epoch of a partition or of the quorum has one leader. A "
        "leader of a partition is one of its replicas, and a member of its ISR unless its election "
        "is recorded as unclean.",
        meaning="Two nodes take writes, or decide, at a time; what one of them took will be cut.",
        case="an epoch whose leader two sources name, or a version of a partition with a leader",
        source="KIP-101, KIP-595, KIP-631",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C5",
        name="epoch-went-back",
        title="An epoch or a metadata offset went back, or one was skipped",
        kind=Kind.ANOMALY,
        rule="These never fall: controller epoch and offset along every metadata log; leader epoch "
        "and partition epoch of a partition; broker epoch from registration to registration, and "
        "another incarnation has a higher one; the metadata offset in the heartbeats of one "
        "incarnation and connection. An AlterPartition is answered with the partition epoch that "
        "it expected or the next one.",
        meaning="What fences old leaders and old brokers off does not any more.",
        case="a step from an epoch or a metadata offset to the next one",
        source="KIP-101, KIP-497, KIP-631",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C6",
        name="shared-identity",
        title="Two live incarnations hold one broker id",
        kind=Kind.ANOMALY,
        rule="A heartbeat that was passed on after a newer registration of its broker id had been "
        "answered, with the broker epoch of an older one, was answered without an error.",
        meaning="The controller takes two processes for one broker; each hides that the other is "
        "gone.",
        case="an answered heartbeat of an older broker epoch than one that had been given out",
        source="KIP-631, Broker registration",
        strength=Strength.NEVER,
        needs=("wire",),
    ),
    Entry(
        id="C7",
        name="metadata-divergence",
        title="Nodes hold different metadata, or committed metadata is gone",
        kind=Kind.ANOMALY,
        rule="Two nodes hold different records at one metadata offset of one controller epoch; or "
        "the record that a majority of the controllers has at an offset that a broker had applied "
        "was appended after the broker's heartbeat said so; or such a broker's own copy holds "
        "another record there; or an acknowledged creation of a topic is not in the log.",
        meaning="Topics, configurations or ISRs that were decided are undone, or decided twice.",
        case="a metadata offset that two nodes hold, a heartbeat that says what a broker had "
        "applied, or an acknowledged creation of a topic",
        source="KIP-595, KIP-631; KAFKA-14094, KIP-853, KIP-856",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C8a",
        name="fencing-too-early",
        title="A broker was fenced whose session had not ended",
        kind=Kind.ANOMALY,
        rule="A broker that neither left nor asked for it was fenced, and the latest that this can "
        "have been decided is less than the session time-out after the earliest that the same "
        "controller can have taken the last heartbeat that it had accepted.",
        meaning="A living broker loses its leaderships, and partitions move for nothing.",
        case="a fencing of a broker whose last heartbeat is on the tape",
        source="KIP-631",
        strength=Strength.NEVER,
        needs=_SESSIONS,
    ),
    Entry(
        id="C8b",
        name="fencing-too-late",
        title="A broker was not fenced though its session had ended",
        kind=Kind.ANOMALY,
        rule="A broker stayed unfenced for 5 s longer than the session time-out after the latest "
        "that its controller can have heard of it, while that controller wrote records at least "
        "every 2 s.",
        meaning="Partitions led by a broker that is gone stay without a leader.",
        case="a broker's silence that may have been longer than its session time-out",
        source="KIP-631",
        strength=Strength.NEVER,
        needs=_SESSIONS,
    ),
    Entry(
        id="C9a",
        name="empty-isr",
        title="A partition has no ISR",
        kind=Kind.ANOMALY,
        rule="An ISR is empty while somebody leads, or on a cluster without eligible leader "
        "replicas. With them (KIP-966) it may be empty while nobody leads.",
        meaning="No replica is known to have the committed records.",
        case="a version of a partition's ISR",
        source="KIP-631, KIP-966; KAFKA-15353",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C9b",
        name="isr-not-in-replicas",
        title="An ISR has a member that is no replica",
        kind=Kind.ANOMALY,
        rule="Each member of an ISR is among the partition's replicas.",
        meaning="A broker that holds no copy counts as having one.",
        case="a version of a partition's ISR",
        source="KIP-631",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C9c",
        name="elr-overlaps-isr",
        title="A replica is in the ISR and among the eligible leaders outside it",
        kind=Kind.ANOMALY,
        rule="ISR and ELR of a partition have no member in common.",
        meaning="The controller's records of who has what contradict themselves.",
        case="a version of a partition with an ELR",
        source="KIP-966",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C11",
        name="illegal-transition",
        title="The metadata log makes a step that no rule allows",
        kind=Kind.ANOMALY,
        rule="The log of record is replayed, record by record, through a model of the controller's "
        "rules: who is registered, at which level, fenced, unfenced or amended, and under which "
        "broker epoch; who "
        "may be elected, how an unclean election is recorded, and who may be in the ISR meanwhile; "
        "who comes into the ELR; what a reassignment may name; topics, partitions and producer ids "
        "are given out once; features, and what their levels allow to be written; transactions of "
        "the log. No record may break one.",
        meaning="The controller has decided what its own rules forbid, and every broker follows "
        "it.",
        case="a record of the metadata log that says anything",
        source="KIP-455, KIP-584, KIP-631, KIP-704, KIP-730, KIP-841, KIP-868, KIP-966",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C12",
        name="stuck-isr",
        title="A replica that has caught up is left out of the ISR",
        kind=Kind.ANOMALY,
        rule="At the end of the run, with the scenario's bound since the last heal passed, a "
        "replica is out of the ISR that has been unfenced and led by another for 10 s, and whose "
        "log ends where its leader's does. Unknown if the bound had not passed, or if the disks do "
        "not tell.",
        meaning="The partition goes on with fewer copies than it could have, until somebody "
        "notices.",
        case="a replica that was out of its ISR, at the end of the run",
        source="KIP-497; KAFKA-15353",
        strength=Strength.NEVER,
        needs=("metadata_log", "replicas"),
    ),
    Entry(
        id="C12b",
        name="stuck-replica",
        title="A replica stays out of the ISR though nothing keeps it out",
        kind=Kind.ANOMALY,
        rule="For longer than the scenario's bound a replica of any topic, at any time of the run, "
        "is assigned and out of the ISR, whatever its log holds; all that time no fault is in "
        "effect, both its broker and the leader are registered, unfenced and not in controlled "
        "shutdown, neither registers, no reassignment is adding it, and neither the leader, its "
        "epoch nor the leader of the quorum changes. Unknown if the run ends before the bound has "
        "passed.",
        meaning="A replica does not fetch, does not catch up or is not let in, and the partition "
        "goes on under-replicated.",
        case="an absence of a replica from its ISR, until it was let in or the bound had passed",
        source="Apache Kafka's documentation, Replication; KIP-497, KAFKA-15353",
        strength=Strength.NEVER,
        needs=_LOG,
    ),
    Entry(
        id="C13",
        name="epoch-check-bypassed",
        title="The controller changed an ISR on a proposal that it had to refuse",
        kind=Kind.ANOMALY,
        rule="An AlterPartition made a version of its partition, and what it names is not what was "
        "in force before: the partition epoch that it expects, the leader epoch, its sender as the "
        "leader, its sender's broker epoch, or the broker epoch of a member (-1 is not compared). "
        "INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH, INVALID_REQUEST, STALE_BROKER_EPOCH and "
        "INELIGIBLE_REPLICA are the answers to that.",
        meaning="The checks that keep what is out of date from changing an ISR do not work: a dead "
        "or deposed leader decides, or a broker without its data comes to be in sync.",
        case="an epoch, or the sender, that a successful AlterPartition names",
        source="KIP-497, KIP-631, KIP-903",
        strength=Strength.NEVER,
        needs=_LOG_AND_WIRE,
    ),
    Entry(
        id="C14",
        name="stale-controller",
        title="A controller out of office goes on as if it were in",
        kind=Kind.ANOMALY,
        rule="A controller called itself the leader of the quorum in an epoch, 10 s or more after "
        "another one had done so in a later epoch, and after it was last silent for 5 s, as one "
        "that is paused is.",
        meaning="Brokers that still reach it are shown metadata that stands still, for as long as "
        "it is cut off.",
        case="a change of office that claims were recorded for 10 s after",
        source="KAFKA-15489",
        strength=Strength.NEVER,
        needs=("quorum_claims",),
    ),
    Entry(
        id="C15",
        name="lost-metadata-write",
        title="A write to the metadata was acknowledged and is not in the log",
        kind=Kind.ANOMALY,
        rule="A topic was created or deleted, or a setting of it changed, and that was "
        "acknowledged. The log of record, which goes on beyond that, has no such record (the topic "
        "id, a removal of the topic, the value) that can have been appended between the call and "
        "the return. Nothing is judged where the log begins with a snapshot.",
        meaning="An administrator was told that it is done, and it is not.",
        case="an acknowledged write that the metadata log goes on beyond",
        source="KIP-631; KIP-595",
        strength=Strength.NEVER,
        needs=("metadata_log", "metadata_writes"),
    ),
)
"""In the order of their ids."""
