"""The certain effects of a play so far: verbs read them and write them.

The nodes that are named are followed: a node must be down to be wiped, up to be killed. Targets
known only while the play runs (`leader of t-0`), and choices drawn from the seed, make every node's
state uncertain until `heal: all`. Rules and partitions are followed by their names.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.clients import ClientChoice
from fencepost.nemesis.release_course import ReleaseCourse
from fencepost.nemesis.targets import NamedNodes, Target
from fencepost.nemesis.words import did_you_mean


class Now(StrEnum):
    """The state of a node at some step."""

    UP = "up"
    DOWN = "down"
    PAUSED = "paused"
    TROUBLED = "on a disk in trouble"
    """The node may go on, and may die of it: any state may follow."""


@dataclass(slots=True, kw_only=True)
class PredictedState:
    """The certain states of nodes, members, releases, snapshots, rules and partitions."""

    members: set[NodeName]
    releases: ReleaseCourse
    nodes: dict[NodeName, Now] = field(default_factory=dict)
    """The nodes whose state is not as it was at the start."""
    certain: bool = True
    """True while every change of a node's state was of a named node."""
    snapshots: set[str] = field(default_factory=set)
    rules: set[str] = field(default_factory=set)
    partitions: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    """The topics that there are: those of the scenario, and those that a step created."""
    clients_topics: frozenset[str] = frozenset()
    """The topics of the scenario, to which its clients write."""
    clients_wait: bool = False
    """No client has begun: a later step starts them."""
    paused_clients: set[ClientChoice] = field(default_factory=set)
    """The paused clients, as plays name them."""
    maybe: set[str] = field(default_factory=set)
    """Rules and partitions of choices, which may be there or not."""

    @classmethod
    def at_the_start(cls, stage: Stage) -> Self:
        """Return the state in which every member runs, and nothing is broken."""
        members = {node for node in stage.nodes if node not in stage.spares}
        topics = frozenset(key.rpartition("-")[0] for key in stage.keys)
        return cls(
            members=members,
            releases=ReleaseCourse.at_the_start(stage),
            topics=set(topics),
            clients_topics=topics,
        )

    def copy(self) -> Self:
        """Return a copy, to follow one of several ways on."""
        return deepcopy(self)

    def now(self, node: NodeName) -> Now:
        """Return the state of the node."""
        return self.nodes.get(node, Now.UP)

    def named(self, target: Target, word: str) -> Sequence[NodeName]:
        """List the nodes that a step hits for certain; with others, nothing is certain any more."""
        if not isinstance(target, NamedNodes):
            self.certain = False
            return ()
        for node in target.nodes:
            self.require_member(node, word)
        return target.nodes if self.certain else ()

    def require_member(self, node: NodeName, word: str) -> None:
        """Raise SpecError unless the node belongs to the cluster."""
        if node not in self.members and self.now(node) is not Now.TROUBLED:
            raise SpecError(
                (word,), f"{node} is no member of the cluster at this step; add it first"
            )

    def begin(self, name: str, open_names: set[str], *, what: str) -> None:
        """Open a rule or a partition; raise SpecError if one of that name is certainly open."""
        if name in open_names and name not in self.maybe:
            raise SpecError(
                (), f"a {what} named {name!r} is active already; give it another name with `as`"
            )
        open_names.add(name)

    def end(self, name: str, open_names: set[str], *, word: str) -> None:
        """Close a rule or a partition; raise SpecError if it certainly is not open."""
        self.require(name, open_names, word=word)
        open_names.discard(name)

    def require(self, name: str, open_names: set[str], *, word: str) -> None:
        """Raise SpecError if no rule or partition of that name can be open."""
        if name not in open_names and name not in self.maybe:
            there = did_you_mean(name, open_names) if open_names else "there is none at this step"
            raise SpecError((word,), f"no earlier step began {name!r}; {there}")

    def heal(self) -> None:
        """Undo everything: all nodes run, and that is certain."""
        self.nodes, self.certain = {}, True
        self.rules.clear()
        self.partitions.clear()
        self.paused_clients.clear()
        self.maybe.clear()

    def doubt(self, written: object) -> None:
        """Take for possible whatever a step may have done that has these words."""
        words = set(_words(written))
        nodes = words & self.releases.runs.keys()
        self.nodes |= dict.fromkeys(map(NodeName, nodes), Now.TROUBLED)
        self.certain = self.certain and bool(nodes)
        self.snapshots |= words
        self.topics |= words
        self.maybe |= words
        self.paused_clients |= {
            ClientChoice(text=f"all {role}s") for role in ("producer", "consumer")
        }
        self.releases.doubt()

    def create_topic(self, name: str) -> None:
        """Follow the creation of a topic."""
        self.topics.add(name)

    def delete_topic(self, name: str, *, word: str) -> None:
        """Follow its deletion; raise SpecError for an unknown topic or one of the clients."""
        if name not in self.topics:
            there = did_you_mean(name, self.topics) if self.topics else "there is none at this step"
            raise SpecError((word,), f"no such topic: {name!r}; {there}")
        if name in self.clients_topics and not self.clients_wait:
            raise SpecError(
                (word,),
                f"clients write to {name}, and would lose acknowledged records: let them begin "
                "later, with start_clients: all",
            )
        self.topics.discard(name)

    def start_clients(self) -> None:
        """Let the clients begin; raise SpecError if they have."""
        if not self.clients_wait:
            raise SpecError(("start_clients",), "the clients have begun already")
        self.clients_wait = False

    def require_clients(self, word: str) -> None:
        """Raise SpecError unless the clients have begun."""
        if self.clients_wait:
            raise SpecError((word,), "no client has begun at this step: start_clients comes later")

    def resume(self, clients: ClientChoice, *, word: str) -> None:
        """Let these clients go on; raise SpecError if none of them can be paused."""
        if not any(paused.may_be(clients) for paused in self.paused_clients):
            raise SpecError((word,), f"no earlier step paused {clients.text}")
        self.forget_paused(clients)

    def forget_paused(self, clients: ClientChoice) -> None:
        """Follow clients to where they are certainly not paused."""
        self.paused_clients -= {
            paused
            for paused in self.paused_clients
            if paused == clients or (not clients.names_one and paused.may_be(clients))
        }

    def join(self, ways: Sequence["PredictedState"]) -> None:
        """Join the courses: what happened in any of them may have happened."""
        for way in ways:
            self.snapshots |= way.snapshots
            self.topics |= way.topics
            self.paused_clients |= way.paused_clients
            changed = (way.rules ^ self.rules) | (way.partitions ^ self.partitions)
            self.maybe |= way.maybe | changed
        self.clients_wait = any(way.clients_wait for way in ways)
        self.releases.join(way.releases for way in ways)
        self.members = _same_members(ways)
        self.certain = False


def _words(written: object) -> Iterator[str]:
    match written:
        case str():
            yield written
        case Mapping():
            for key, value in written.items():
                yield from (str(key), *_words(value))
        case list():
            for item in written:
                yield from _words(item)


def _same_members(ways: Sequence[PredictedState]) -> set[NodeName]:
    members = ways[0].members
    if any(way.members != members for way in ways):
        raise SpecError(
            ("choose",), "its choices leave different members; add and remove nodes in each alike"
        )
    return members
