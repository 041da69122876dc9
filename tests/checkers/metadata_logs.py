"""A small language for metadata logs and tapes, so that a case is read at a glance.

`metadata_log` takes one text a node. A line is a record: its offset, and what it says.

    0 leader 1000                       control record: the controller with this id leads
    3 register 2 [incarnation b]        broker 2, fenced, with its offset as broker epoch
    3 register 2 unfenced epoch-is 1    … unless something else is said
    3 register 2 supports metadata.version=1..7,kraft.version=0..1
    4 unfence 2 / fence 2 / stopping 2 / unregister 2 [epoch-is 3]
    5 topic t                           its topic id is "id-t" (`topic t as id-2` gives another)
    6 partition t-0 replicas 1,2 isr 1,2 leader 1 [leader-epoch 3] [partition-epoch 7]
    7 change t-0 isr 1 [leader 1] [replicas 1,2] [elr 2] [last-elr 2] [recovering] [recovered]
    8 noop / 9 begin / 10 abort / 11 end / 12 delete t / 13 clear-elr t
    8 to-delete t                       in the ZooKeeper generation, where the topic goes later
    7 moves t-0 replicas 1,2,3 adding 3 in the ZooKeeper generation: what the topic's znode has now
    8 runs-on 1 h1 [version 4]          there, too: host h1 registered broker 1
    9 session-ends 1                    there, too: that is over
    8 keeps h1 1 / 9 forgets h1         there, too: the id that ZooKeeper keeps for host h1
    14 feature kraft.version 1
    15 producer-ids 1000 for 2 [epoch-is 3]
    16 config t min.insync.replicas 2   of all topics: `config - min.insync.replicas 2`

A line may end in `at 9812` (ms of the run; 100 times its offset unless said), before that in
`epoch 2` (the controller's; 1 unless said) and, before that, in `saying x` (a digest of its own).
A line that starts with `snapshot` is of a snapshot. ISRs may be empty: `isr none`.

`wire` takes frames; line n has frames 10 n (request) and 10 n + 1 (response). Times are in ms.

    at 9812 broker-1 alter t-0 expecting 5 isr 1,2 -> ok 6 at 9900
    at 9812 broker-1 alter t-0 expecting 5 isr 1:3,2:4 -> ok 6 at 9900       version 3, with epochs
    at 9812 broker-1 alter t-0 expecting 5 isr 1,2 -> INVALID_UPDATE_VERSION at 9900
    at 9812 passed 12000 broker-1 alter … -> ok 6 isr 1,2 at 12100 passed never
    at 9812 held broker-1 alter … -> nothing
    at 3000 broker-2 register [incarnation b] -> ok 33 at 3005
    at 3000 broker-2 heartbeat epoch 33 offset 40 -> ok at 3001
    at 3000 broker-2 heartbeat epoch 33 asking leave -> ok told leave at 3001   or asking fenced
    at 3000 broker-2 heartbeat epoch 33 offset 40 -> ok lowest 39 at 3001
    at 3000 clients to broker-2 versions -> ok level 3 at 3001
    at 3000 broker-2 fetch epoch 4 from 100 -> ok leader 1000 epoch 4 at 3001    of the metadata log
    at 3000 broker-2 fetch epoch 4 from 100 -> ok watermark 99 at 3001
    at 3000 broker-2 to broker-1 fetches t-0 epoch 33 [session 5] [version 14] -> nothing
    at 3000 broker-2 to broker-1 fetches t-0 epoch 33 from 17 leader-epoch 1 -> nothing
    at 3000 clients to broker-2 produces t-0 -> ok at 3005      Produce, and `consumes`: a Fetch
    at 3000 clients to broker-2 consumes t-0 -> ok watermark 17 at 3005
    at 3000 broker-2 beats epoch 33 [wanting STOPPING] -> ok [told fenced] at 3001
    at 3000 broker-1 to broker-2 tells epoch 2 for 33 -> ok at 3001       LeaderAndIsr
    at 3000 broker-1 to broker-2 updates epoch 2 for 33 -> ok at 3001     UpdateMetadata
    at 3000 broker-1 changes t-0 isr 1,2 leader-epoch 3 under 4 -> ok at 3005          IsrChange
    at 3000 broker-3 to broker-2 leaves for 3 -> ok at 3001               ControlledShutdown
    at 3000 broker-1 allocates for 3 -> ok 1000 at 3001                   AllocateProducerIds
    at 3000 controller-1 begin-epoch leader 1000 epoch 4 -> ok at 3001

`describes` takes describes; they are numbered by line, and times are in ms:

    broker-2 showed t-0 [as id-2] leader 1 isr 1,2 [leader-epoch 0] [offset 40] at 5000..5003

`alter` may say `leader-epoch 3` (0 unless said) and `under 4` (its broker epoch) after its ISR; any
line may say `to controller-2` after its sender (controller-1 unless said) and `on 7` (its
connection; one a sender unless said).
`fetches` is of data, and under `epoch unread` could not be decoded; of a session it begins one
unless a session epoch is said.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

import pyarrow as pa

from fencepost.checkers.anomaly import Anomaly, anomalies_of
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableKernel
from fencepost.history.cluster_schema import METADATA_LOG, WIRE
from fencepost.history.request_schema import DESCRIBES
from fencepost.history.schema import FAULTS

Row = dict[str, Any]

_MS = 1_000_000


def facts(controllers: int = 1, brokers: int = 3, **others: Any) -> Facts:
    """Facts of a cluster of this size; the run began when 1970 did."""
    nodes = {f"controller-{n}": 999 + n for n in range(1, controllers + 1)}
    nodes |= {f"broker-{n}": n for n in range(1, brokers + 1)}
    return Facts(**{"node_ids": nodes, "keys": ("t-0",), **others})


FACTS = facts()
ON_ZOOKEEPER = Facts(node_ids={"zookeeper-1": 2001, "broker-1": 1, "broker-2": 2})
"""Facts of a cluster whose metadata ZooKeeper has."""


def metadata_log(text: str = "", **nodes: str) -> pa.Table:
    """METADATA_LOG of these nodes (`broker_1="…"`), a bare text being controller-1's."""
    texts = ({"controller-1": text} if text else {}) | {
        name.replace("_", "-"): log for name, log in nodes.items()
    }
    rows = [row for node, log in sorted(texts.items()) for row in _node_rows(node, log)]
    return pa.Table.from_pylist(rows, schema=METADATA_LOG)


def wire(text: str = "") -> pa.Table:
    """WIRE of these lines."""
    rows = [row for number, line in enumerate(_lines(text)) for row in _frames(number, line)]
    rows.sort(key=lambda row: (row["time_ns"], row["frame"], row["item"]))
    return pa.Table.from_pylist(rows, schema=WIRE)


_DESCRIBE = re.compile(
    r"(?P<node>\S+) showed (?P<topic>\S+)-(?P<partition>\d+)(?: as (?P<id>\S+))? "
    r"leader (?P<leader>-?\d+) isr (?P<isr>\S+)(?: leader-epoch (?P<epoch>\d+))?"
    r"(?: offset (?P<offset>\d+))? "
    r"at (?P<call>\d+)\.\.(?P<back>\d+)"
)


def describes(text: str = "") -> pa.Table:
    """DESCRIBES of these lines."""
    rows = []
    for number, line in enumerate(_lines(text)):
        found = _DESCRIBE.fullmatch(line)
        assert found is not None, line
        rows.append(
            {
                "read": number,
                "process": -1,
                "node": found["node"],
                "call_ns": int(found["call"]) * _MS,
                "return_ns": int(found["back"]) * _MS,
                "topic": found["topic"],
                "topic_id": found["id"] or f"id-{found['topic']}",
                "partition": int(found["partition"]),
                "error": "NONE",
                "leader": int(found["leader"]),
                "leader_epoch": int(found["epoch"]) if found["epoch"] else None,
                "isr": _ids(found["isr"]),
                "metadata_offset": int(found["offset"]) if found["offset"] else None,
            }
        )
    return pa.Table.from_pylist(rows, schema=DESCRIBES)


def tables(log: str | pa.Table, frames: str = "", **others: pa.Table) -> dict[str, pa.Table]:
    """The tables that most checks are given, and what else is said."""
    return {
        "metadata_log": metadata_log(log) if isinstance(log, str) else log,
        "wire": wire(frames),
        "describes": describes(),
        "faults": FAULTS.empty_table(),
        **others,
    }


class _ClosedAtOnce(MetadataView):
    """A view of a log whose lines are each followed by what closes their batch."""

    @cached_property
    def facts(self) -> Facts:
        return self.run


def asked(kernel: TableKernel, given: Tables, facts: Facts, *, lingering: bool = False) -> Judged:
    """What a check finds in these tables; a run without a metadata log has an empty one.

    The lines are those that matter of a log in which every batch is closed at once, as a controller
    that writes all the time has it. `lingering`: they are all that there is, and a batch is open
    until the next line of another time.
    """
    log = given.get("metadata_log", METADATA_LOG.empty_table())
    view = MetadataView if lingering else _ClosedAtOnce
    return kernel(given, view(run=facts, metadata_log=log))


def never(judged: Judged) -> dict[str, list[Anomaly]]:
    """The anomalies found, those that are legal left out, by key."""
    found = {key: list(anomalies_of(one.table)) for key, one in judged}
    bad = {key: [one for one in all_ if not one.allowed] for key, all_ in found.items()}
    return {key: anomalies for key, anomalies in bad.items() if anomalies}


def proofs(judged: Judged) -> dict[str, list[Proof]]:
    """The proofs of anomalies that are never allowed, by key."""
    return {key: [one.proof for one in all_] for key, all_ in never(judged).items()}


def told(judged: Judged) -> tuple[list[Proof], int]:
    """The proofs of all keys, and how many cases were judged."""
    found = list(judged)
    return [one for of_key in proofs(found).values() for one in of_key], case_count(found)


def doubts(judged: Judged) -> dict[str, str]:
    """Why keys cannot be judged."""
    return {key: one.doubt for key, one in judged if one.doubt}


def case_count(judged: Judged) -> int:
    """How many cases were judged, of all keys."""
    return sum(one.case_count for _, one in judged)


def sentence(text: str) -> str:
    """The text in one line."""
    return " ".join(text.split())


def _lines(text: str) -> Iterable[str]:
    lines = (line.split("#")[0].strip() for line in text.strip().splitlines())
    return [line for line in lines if line]


def _ids(text: str) -> list[int]:
    return [] if text == "none" else [int(word) for word in text.split(",")]


def _taken(line: str, pattern: str) -> tuple[str, str | None]:
    found = re.search(pattern, line)
    if found is None:
        return line, None
    return (line[: found.start()] + line[found.end() :]).strip(), found[1]


def _node_rows(node: str, text: str) -> Iterable[Row]:
    names: dict[str, str] = {}
    for line in _lines(text):
        rest, at_ms = _taken(line, r" at (-?\d+)$")
        rest, epoch = _taken(rest, r" epoch (\d+)$")
        rest, words = _taken(rest, r" saying (\S+)$")
        rest, snapshot = _taken(rest, r"^(snapshot) ")
        offset, verb, *arguments = rest.split()
        row = _record(int(offset), verb, arguments, names)
        yield {
            "node": node,
            "snapshot": snapshot is not None,
            "metadata_offset": int(offset),
            "controller_epoch": int(epoch or 1),
            "timestamp_ms": int(at_ms) if at_ms else 100 * int(offset),
            "type_key": 0,
            "version": 0,
            "control": row["type"] == "LeaderChangeMessage",
            "digest": _number(words or " ".join([verb, *arguments])),
            **row,
        }


def _number(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], signed=True)


_BROKER_VERBS = {
    "unfence": ("BrokerRegistrationChangeRecord", {"fenced": False}),
    "fence": ("BrokerRegistrationChangeRecord", {"fenced": True}),
    "stopping": ("BrokerRegistrationChangeRecord", {"in_controlled_shutdown": True}),
    "unregister": ("UnregisterBrokerRecord", {}),
}
_ID = ("broker_id", int)
_HOST = ("name", str)
_HOST_VERBS: dict[str, tuple[str, tuple[tuple[str, Callable[[str], Any]], ...]]] = {
    "runs-on": ("BrokerInfoRecord", (_ID, _HOST)),
    "session-ends": ("FenceBrokerRecord", (_ID,)),
    "keeps": ("BrokerHostRecord", (_HOST, _ID)),
    "forgets": ("RemoveBrokerHostRecord", (_HOST,)),
}
_BARE_VERBS = {
    "noop": "NoOpRecord",
    "begin": "BeginTransactionRecord",
    "abort": "AbortTransactionRecord",
    "end": "EndTransactionRecord",
}
_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "elr": "elr",
    "last-elr": "last_known_elr",
    "adding": "adding",
    "removing": "removing",
}
_NUMBERS = {
    "leader": "leader",
    "leader-epoch": "leader_epoch",
    "partition-epoch": "partition_epoch",
}


def _record(offset: int, verb: str, arguments: list[str], names: dict[str, str]) -> Row:
    if verb in _BARE_VERBS:
        return {"type": _BARE_VERBS[verb]}
    subject, *rest = arguments
    if verb == "leader":
        return {"type": "LeaderChangeMessage", "leader": int(subject)}
    if verb in _HOST_VERBS:
        kind, names_of = _HOST_VERBS[verb]
        given = zip(names_of, arguments, strict=False)
        value = rest[-1] if "version" in rest else None
        return {"type": kind, "value": value, **{name: of(word) for (name, of), word in given}}
    if verb in _BROKER_VERBS:
        kind, columns = _BROKER_VERBS[verb]
        return {"type": kind, "broker_id": int(subject), **columns, **_told_epoch(rest)}
    if verb == "register":
        return {
            "type": "RegisterBrokerRecord",
            "broker_id": int(subject),
            "broker_epoch": offset,
            "incarnation_id": rest[1] if rest[:1] == ["incarnation"] else f"{subject}-{offset}",
            "fenced": "unfenced" not in rest,
            "in_controlled_shutdown": False,
            "value": rest[rest.index("supports") + 1] if "supports" in rest else None,
            **_told_epoch(rest),
        }
    if verb == "producer-ids":
        of_broker = {"broker_id": int(rest[1]), **_told_epoch(rest)}
        return {"type": "ProducerIdsRecord", "value": subject, **of_broker}
    if verb == "config":
        topic = None if subject == "-" else subject
        return {"type": "ConfigRecord", "topic": topic, "name": rest[0], "value": rest[1]}
    if verb == "feature":
        return {"type": "FeatureLevelRecord", "name": subject, "value": rest[0]}
    if verb in ("topic", "to-delete", "delete", "clear-elr"):
        kind = {
            "topic": "TopicRecord",
            "to-delete": "TopicDeletionRecord",
            "delete": "RemoveTopicRecord",
            "clear-elr": "ClearElrRecord",
        }[verb]
        if verb == "topic":
            names[subject] = rest[1] if rest else f"id-{subject}"
        return {"type": kind, "topic": subject, "topic_id": names.get(subject)}
    return _partition(verb, subject, rest, names)


def _told_epoch(words: list[str]) -> Row:
    return {"broker_epoch": int(words[words.index("epoch-is") + 1])} if "epoch-is" in words else {}


_PARTITION_VERBS = {
    "partition": "PartitionRecord",
    "change": "PartitionChangeRecord",
    "moves": "ReassignmentRecord",
}


def _partition(verb: str, key: str, rest: list[str], names: Mapping[str, str]) -> Row:
    topic, _, partition = key.rpartition("-")
    created = verb == "partition"
    row: Row = {
        "type": _PARTITION_VERBS[verb],
        "topic": topic,
        "topic_id": names.get(topic, f"id-{topic}"),
        "partition": int(partition),
    }
    if created:
        row |= {"leader_epoch": 0, "partition_epoch": 0, "leader_recovery_state": 0}
    words = iter(rest)
    for word in words:
        if word in ("recovering", "recovered"):
            row["leader_recovery_state"] = int(word == "recovering")
        elif word in _LISTS:
            row[_LISTS[word]] = _ids(next(words))
        else:
            row[_NUMBERS[word]] = int(next(words))
    return row


_LINE = re.compile(
    r"at (?P<at>\d+)(?: passed (?P<passed>\d+)| (?P<held>held|duplicated))? (?P<source>\S+)"
    r"(?: to (?P<target>\S+))?(?: on (?P<connection>\d+))? (?P<verb>\S+)(?: (?P<rest>.*?))? -> "
    r"(?:nothing|(?P<error>\S+)(?: (?P<answer>.*?))? at (?P<back>\d+)"
    r"(?: passed (?P<returned>\d+|never))?(?P<faked> by the proxy)?)"
)
_APIS = {
    "alter": ("AlterPartition", 56),
    "register": ("BrokerRegistration", 62),
    "heartbeat": ("BrokerHeartbeat", 63),
    "beats": ("MetadataHeartbeat", 10057),
    "changes": ("IsrChange", 10058),
    "tells": ("LeaderAndIsr", 4),
    "updates": ("UpdateMetadata", 6),
    "fetch": ("Fetch", 1),
    "fetches": ("Fetch", 1),
    "produces": ("Produce", 0),
    "consumes": ("Fetch", 1),
    "begin-epoch": ("BeginQuorumEpoch", 53),
    "leaves": ("ControlledShutdown", 7),
    "allocates": ("AllocateProducerIds", 67),
    "versions": ("ApiVersions", 18),
}


def _frames(number: int, line: str) -> Iterable[Row]:
    found = _LINE.fullmatch(line)
    assert found is not None, line
    asked, answer, items = _parts(found)
    api, api_key = _APIS[found["verb"]]
    at_ns = int(found["at"]) * _MS
    passed_ns = int(found["passed"]) * _MS if found["passed"] else at_ns
    shared = {
        "item": 0,
        "connection": int(found["connection"] or 100 + sum(found["source"].encode())),
        "source": found["source"],
        "target": found["target"] or "controller-1",
        "api": api,
        "api_key": api_key,
        "api_version": 3 if items.get("isr_epochs") else 2,
        "correlation_id": number,
        "size_bytes": 100,
        **{name: items.get(name) for name in ("topic", "topic_id", "partition")},
    }
    yield (
        shared
        | asked
        | {
            "frame": 10 * number,
            "direction": "request",
            "time_ns": at_ns,
            "forwarded_ns": None if found["held"] == "held" or found["faked"] else passed_ns,
            "action": found["held"] or ("released" if found["passed"] else "forwarded"),
        }
    )
    if found["error"]:
        back_ns = int(found["back"]) * _MS
        returned = found["returned"]
        returned_ns = int(returned) * _MS if (returned or "never") != "never" else back_ns
        yield (
            shared
            | answer
            | {
                "frame": 10 * number + 1,
                "direction": "response",
                "time_ns": back_ns,
                "forwarded_ns": None if returned == "never" else returned_ns,
                "action": "answered"
                if found["faked"]
                else "held"
                if returned == "never"
                else "forwarded",
                "error": "NONE" if found["error"] == "ok" else found["error"],
            }
        )


def _fate(found: re.Match[str]) -> str:
    if found["faked"]:
        return "answered"
    return "held" if found["returned"] == "never" else "forwarded"


def _parts(found: re.Match[str]) -> tuple[Row, Row, Row]:
    """(columns of the request, of the response, of both)."""
    words = (found["rest"] or "").split()
    answered = (found["answer"] or "").split()
    if found["verb"] in ("versions", "produces", "consumes"):
        return _of_client(words, answered)
    broker = int(found["source"].rpartition("-")[2])
    if found["verb"] == "alter":
        return _alter(words, answered, broker)
    if found["verb"] == "changes":
        return _change(words, broker)
    if found["verb"] == "fetches":
        return _fetches(words, broker), {}, {}
    told = dict(zip(words[::2], words[1::2], strict=True))
    asked: Row = {"broker_id": broker}
    answer: Row = {}
    items: Row = {}
    if found["verb"] == "register":
        asked["incarnation_id"] = told.get("incarnation", f"{broker}-{found['at']}")
        answer["broker_epoch"] = int(answered[0]) if answered else -1
    elif found["verb"] == "beats":
        asked |= {"broker_epoch": int(told["epoch"]), "detail": told.get("wanting", "ACTIVE")}
        answer |= _wishes(answered[1] if answered else None)
    elif found["verb"] in ("tells", "updates", "leaves", "allocates"):
        epoch = int(told["epoch"]) if "epoch" in told else None
        asked = {"controller_epoch": epoch, "broker_epoch": int(told["for"])}
        answer["producer_id"] = int(answered[0]) if answered else None
    elif found["verb"] == "heartbeat":
        asked |= {"broker_epoch": int(told["epoch"]), "fetch_offset": int(told.get("offset", -1))}
        asked |= _wishes(told.get("asking"))
        shown = dict(zip(answered[::2], answered[1::2], strict=True))
        answer |= _wishes(shown.get("told"))
        lowest = shown.get("lowest")
        answer["lowest_acknowledged_offset"] = None if lowest is None else int(lowest)
    else:
        items |= {"topic": "__cluster_metadata", "partition": 0}
        asked["leader_epoch"] = int(told["epoch"])
        led = dict(zip(answered[::2], answered[1::2], strict=True))
        if found["verb"] == "fetch":
            asked["fetch_offset"] = int(told["from"])
        else:
            asked["leader_id"] = int(told["leader"])
        if "leader" in led:
            answer |= {"leader_id": int(led["leader"]), "leader_epoch": int(led["epoch"])}
        answer |= _watermark(led)
    return asked | items, answer | items, items


def _of_client(words: list[str], answered: list[str]) -> tuple[Row, Row, Row]:
    if not words:
        return {}, {"metadata_version": int(answered[1])} if answered else {}, {}
    topic, _, partition = words[0].rpartition("-")
    items: Row = {"topic": topic, "topic_id": f"id-{topic}", "partition": int(partition)}
    told = dict(zip(answered[::2], answered[1::2], strict=True))
    return items, items | _watermark(told), items


def _watermark(told: Mapping[str, str]) -> Row:
    return {"high_watermark": int(told["watermark"])} if "watermark" in told else {}


def _fetches(words: list[str], broker: int) -> Row:
    topic, _, partition = words[0].rpartition("-")
    told = dict(zip(words[1::2], words[2::2], strict=True))
    version: Row = {"api_version": int(told.get("version", 15))}
    if told["epoch"] == "unread":
        return version
    return version | {
        "broker_id": broker,
        "broker_epoch": int(told["epoch"]),
        "session_epoch": int(told.get("session", 0)),
        "fetch_offset": int(told.get("from", 0)),
        "leader_epoch": int(told["leader-epoch"]) if "leader-epoch" in told else None,
        "topic_id": f"id-{topic}",
        "partition": int(partition),
    }


def _wishes(word: str | None) -> Row:
    return {"fenced": word == "fenced", "shutting_down": word == "leave"}


def _change(words: list[str], broker: int) -> tuple[Row, Row, Row]:
    """An IsrChange names topics, and is answered by an error alone."""
    asked, _, items = _alter([*words, "expecting", "0"], [], broker)
    items |= {"topic": words[0].rpartition("-")[0], "topic_id": None}
    return asked | {"partition_epoch": None} | items, items, items


def _alter(words: list[str], answered: list[str], broker: int) -> tuple[Row, Row, Row]:
    topic, _, partition = words[0].rpartition("-")
    told = dict(zip(words[1::2], words[2::2], strict=True))
    members = [member.split(":") for member in told["isr"].split(",")]
    isr = [int(member[0]) for member in members]
    epochs = [int(member[1]) for member in members] if len(members[0]) > 1 else None
    items: Row = {"topic_id": f"id-{topic}", "partition": int(partition)}
    asked: Row = {
        "broker_id": broker,
        "broker_epoch": int(told["under"]) if "under" in told else None,
        "leader_epoch": int(told.get("leader-epoch", 0)),
        "partition_epoch": int(told["expecting"]),
        "isr": isr,
        "isr_epochs": epochs,
    }
    # An error comes with the default of every other field, as Kafka sends it.
    answer: Row = {"partition_epoch": 0, "isr": [], "leader_id": 0, "leader_epoch": 0}
    if answered:
        shown = dict(zip(answered[1::2], answered[2::2], strict=True))
        answer = {
            "partition_epoch": int(answered[0]),
            "isr": _ids(shown["isr"]) if "isr" in shown else isr,
            "leader_id": int(shown.get("leader", broker)),
            "leader_epoch": int(shown.get("leader-epoch", told.get("leader-epoch", 0))),
        }
    return asked | items, answer | items, items | ({"isr_epochs": epochs} if epochs else {})
