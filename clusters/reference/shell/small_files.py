"""The small files of a node as text, with Kafka's names and formats, and the values they stand for.

Pure: text in, values out. A file that cannot be read raises ValueError with what is wrong in it.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.clusters.node_port.storage import MetaProperties, QuorumState
from fencepost.clusters.reference.codec.identifiers import id_of_text, text_of

META_NAME: Final = "meta.properties"
QUORUM_STATE_NAME: Final = "quorum-state"
HIGH_WATERMARKS_NAME: Final = "replication-offset-checkpoint"
LEADER_EPOCHS_NAME: Final = "leader-epoch-checkpoint"
PARTITION_NAME: Final = "partition.metadata"
CLEAN_STOP_NAME: Final = ".kafka_cleanshutdown"
"""The file that is there while the node is down after a clean stop."""

_OFFSET_PARTS: Final = 3
_LINES_BEFORE: Final = 2


def properties_in(text: str) -> dict[str, str]:
    """The lines `name=value` of a Java properties file; comments and empty lines are left out."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            raise ValueError(f"line {number}: expected name=value, found {stripped!r}")
        found[_unescaped(name.strip())] = _unescaped(value.strip())
    return found


def meta_text(meta: MetaProperties) -> str:
    """Return the text as the storage tool writes it (K11); without a mode, as Kafka did before."""
    if not meta.mode:
        return f"version=0\nbroker.id={meta.node_id}\ncluster.id={meta.cluster_id}\n"
    return (
        "version=1\n"
        f"cluster.id={meta.cluster_id}\n"
        f"node.id={meta.node_id}\n"
        f"directory.id={text_of(meta.directory_id)}\n"
        f"kip.500.mode={meta.mode}\n"
    )


def meta_in(text: str) -> MetaProperties:
    """Return whose disk it is. One of the ZooKeeper generation has no mode and no directory id."""
    found = properties_in(text)
    try:
        if "broker.id" in found:
            cluster_id = found.get("cluster.id", "")
            node_id = int(found["broker.id"])
            return MetaProperties(cluster_id=cluster_id, node_id=node_id, directory_id=0, mode="")
        return MetaProperties(
            cluster_id=found["cluster.id"],
            node_id=int(found["node.id"]),
            directory_id=id_of_text(found["directory.id"]),
            mode=found.get("kip.500.mode", ""),
        )
    except KeyError as missing:
        raise ValueError(f"no {missing.args[0]}") from missing


def quorum_state_text(state: QuorumState, *, voters: Iterable[int]) -> str:
    """Return the text of Kafka's `quorum-state` of data version 0."""
    return json.dumps(
        {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_for,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    )


def quorum_state_in(text: str) -> QuorumState:
    """The same, read back."""
    try:
        found = json.loads(text)
        return QuorumState(
            epoch=int(found["leaderEpoch"]),
            voted_for=int(found["votedId"]),
            leader_id=int(found["leaderId"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"no state of a quorum: {error!r}") from error


def offsets_text(offsets: Mapping[tuple[str, int], int]) -> str:
    """A checkpoint of offsets by (topic name, partition)."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return _checkpoint(lines)


def offsets_in(text: str) -> dict[tuple[str, int], int]:
    """The same, read back."""
    lines = text.splitlines()
    if lines[:_LINES_BEFORE] != ["0", str(len(lines) - _LINES_BEFORE)]:
        raise ValueError("not a checkpoint of version 0 with as many entries as it says")
    found = {}
    for line in lines[_LINES_BEFORE:]:
        parts = line.split(" ")
        if len(parts) != _OFFSET_PARTS:
            raise ValueError(f"expected topic, partition and offset, found {line!r}")
        found[parts[0], int(parts[1])] = int(parts[2])
    return found


def leader_epochs_text(epochs: Iterable[tuple[int, int]]) -> str:
    """The (leader epoch, first offset) of a log, in order."""
    return _checkpoint([f"{epoch} {offset}" for epoch, offset in epochs])


def topic_id_text(topic_id: int) -> str:
    """Return the text by which a partition's directory names its topic."""
    return f"version: 0\ntopic_id: {text_of(topic_id)}"


def topic_id_in(text: str) -> int:
    """The same, read back."""
    stated = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if "topic_id" not in stated:
        raise ValueError("no topic_id")
    return id_of_text(stated["topic_id"])


def _checkpoint(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines))


def _unescaped(text: str) -> str:
    """Return the text of a properties file: a backslash takes the next character as it is."""
    return text.replace("\\\\", "\0").replace("\\", "").replace("\0", "\\")
