"""A cluster of three brokers in memory, with all the abilities: for tests of what drives clusters.

Metadata follows the processes at once: a broker that does not run is fenced and out of the ISR.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fencepost.clusters.abilities import Skew
from fencepost.clusters.kafka_port import ClusterView, KafkaSpec, PartitionView
from fencepost.clusters.port import DiskTrouble, NodeName, NodeState
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import ClockSkew
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import VersionChange

NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))


class FakeCluster:
    def __init__(self) -> None:
        self.states = dict.fromkeys(NODES, NodeState.RUNNING)
        self.calls: list[str] = []
        self.deaf_to_start: set[NodeName] = set()
        self.outsiders: set[NodeName] = set()
        self.fenced: set[NodeName] = set()

    spec = KafkaSpec()
    nodes = NODES
    bootstrap_servers = "127.0.0.1:1"
    versions: Mapping[str, str] = {}

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def create_topics(self, topics: Sequence[TopicSpec]) -> None: ...

    @property
    def view_ids(self) -> dict[NodeName, int]:
        return {node: self.broker_id(node) for node in self.nodes if node.startswith("broker")}

    def broker_id(self, node: NodeName) -> int:
        return int(node[-1])

    def node_of(self, broker_id: int) -> NodeName:
        return NodeName(f"broker-{broker_id}")

    def state(self, node: NodeName) -> NodeState:
        return self.states[node]

    def leader_now(self) -> NodeName | None:
        return NODES[0] if self.states[NODES[0]] is NodeState.RUNNING else None

    def logs(self, node: NodeName) -> tuple[Path, ...]:
        return (Path(f"{node}.log"),)

    def view(self) -> ClusterView:
        up = [
            b
            for b in (1, 2, 3)
            if self.states[NODES[b]] is NodeState.RUNNING and NODES[b] not in self.fenced
        ]
        if not up:
            raise HarnessError("nobody answers")
        replicas = tuple(b for b in (1, 2, 3) if NODES[b] not in self.outsiders)
        isr = tuple(b for b in up if b in replicas)
        partition = PartitionView(leader=isr[0] if isr else None, isr=isr, replicas=replicas)
        ids = frozenset(up)
        return ClusterView(time_ns=0, brokers=ids, serving=ids, partitions={"t-0": partition})

    def kill_node(self, node: NodeName) -> None:
        self._to(node, "kill", NodeState.DOWN)

    def stop_node(self, node: NodeName, *, timeout_s: float = 30.0) -> bool:  # noqa: ARG002  # the port
        self._to(node, "stop", NodeState.DOWN)
        return True

    def start_node(self, node: NodeName) -> None:
        if node in self.deaf_to_start:
            self.calls.append(f"start {node}")
        else:
            self._to(node, "start", NodeState.RUNNING)

    def pause_node(self, node: NodeName) -> None:
        self._to(node, "pause", NodeState.PAUSED)

    def resume_node(self, node: NodeName) -> None:
        self._to(node, "resume", NodeState.RUNNING)

    def wipe_node(
        self,
        node: NodeName,
        *,
        keep_directory_id: bool = False,  # noqa: ARG002  # the port
    ) -> None:
        self.calls.append(f"wipe {node}")

    def wipe_node_by_tool(self, node: NodeName) -> None:
        self.calls.append(f"wipe by tool {node}")

    def cut_power(self, nodes: Sequence[NodeName], *, torn_seed: int | None = None) -> str:
        self.calls.append(f"cut_power {', '.join(nodes)} {torn_seed}")
        self.states |= dict.fromkeys(nodes, NodeState.DOWN)
        return "all is lost"

    def trouble_disk(self, node: NodeName, trouble: DiskTrouble, *, stall_s: float) -> str:
        self.calls.append(f"{trouble} {node} {stall_s}")
        if trouble is DiskTrouble.FULL:
            self.states[node] = NodeState.DOWN
        return "it is seen"

    def mend_disk(self, node: NodeName) -> None:
        self._to(node, "mend", NodeState.RUNNING)

    def snapshot_node(self, node: NodeName, name: str) -> None:
        self.calls.append(f"snapshot {node} {name}")

    def rollback_node(self, node: NodeName, name: str) -> None:
        self.calls.append(f"rollback {node} {name}")

    def change_release(self, node: NodeName, release: str) -> str:
        self.calls.append(f"release {node} {release}")
        return f"{node}: is of {release}"

    def changes(self) -> tuple[VersionChange, ...]:
        return ()

    def finalise(self, version: str, *, within_s: float) -> str:  # noqa: ARG002  # the port
        self.calls.append(f"finalise {version}")
        return version

    def members(self) -> frozenset[NodeName]:
        return frozenset(NODES) - self.outsiders

    def add_node(self, node: NodeName, *, within_s: float) -> str:  # noqa: ARG002  # the port
        self._to(node, "add", NodeState.RUNNING)
        self.outsiders.remove(node)
        return f"{node}: added"

    def remove_node(self, node: NodeName, *, within_s: float) -> str:  # noqa: ARG002  # the port
        self.outsiders.add(node)
        self._to(node, "remove", NodeState.DOWN)
        return f"{node}: removed"

    def skew_node(self, node: NodeName, skew: Skew) -> str:
        self.calls.append(f"skew {node} {skew.jump_s:g}")
        return f"{node}: wrong"

    def unskew_node(self, node: NodeName) -> str:
        self.calls.append(f"unskew {node}")
        return f"{node}: right"

    def clock_skews(self) -> tuple[ClockSkew, ...]:
        return ()

    def throttle_node(self, node: NodeName, share: float) -> str:
        self.calls.append(f"throttle {node} {share:g}")
        return f"{node}: held back"

    def unthrottle_node(self, node: NodeName) -> str:
        self.calls.append(f"unthrottle {node}")
        return f"{node}: free"

    def squeeze_node(self, node: NodeName, room_bytes: int) -> str:
        self.calls.append(f"squeeze {node} {room_bytes}")
        return f"{node}: pressed"

    def unsqueeze_node(self, node: NodeName) -> str:
        self.calls.append(f"unsqueeze {node}")
        return f"{node}: free"

    def _to(self, node: NodeName, word: str, state: NodeState) -> None:
        self.calls.append(f"{word} {node}")
        self.states[node] = state
