"""Rules of the wire: what is done to which frames, as values, apart from the proxy that keeps them.

A rule concerns the frames that match it, from the moment it is laid until it is removed. Where
several match one frame, the rule that was laid first decides.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import NodeName, role_name

Flow = tuple[NodeName, NodeName]
"""(sender, receiver) of bytes: one direction between two nodes, whichever dialled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way from one node (or "clients") to another's listener, with an address of its own."""

    source: NodeName
    target: NodeName
    address: str
    """The address at which the proxy listens for this link and no other."""
    port: int
    """The port on which the proxy listens at `address`, and the target itself at `dials`."""
    dials: str = "127.0.0.1"
    """The address at which the target itself listens."""
    dials_from: str | None = None
    """The proxy's own address when it dials; None: any. By it the target's side tells links apart.
    """
    protocol: LinkProtocol = LinkProtocol.KAFKA
    role: str = ""
    """The role in which the target listens there; empty: the one that it is named for."""
    redials_s: float = 0.0
    """The time for which a target that refuses is dialled again, as its source would."""

    def asks(self, role: str) -> bool:
        """Return whether the target is asked in this role."""
        return role == (self.role or role_name(self.target))


class Direction(StrEnum):
    """The direction in which a frame goes on its connection."""

    REQUEST = "request"
    """From the party that dialled."""
    RESPONSE = "response"


class Operator(StrEnum):
    """The comparison that a clause makes."""

    IS = "is"
    INCLUDES = "includes"
    EXCLUDES = "excludes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A condition on a decoded field.

    `field` is a column of the `wire` table (`isr`, `topic`, `partition`, `leader_epoch`, `error`,
    `committed`, `transactional_id`, …), or one of: `key` (`topic-partition`), `metadata` (a Fetch
    of the metadata log), `record_type` (the types of the metadata records that a Fetch response
    carries, e.g. "PartitionChangeRecord": to include one, or to be that one alone).
    """

    field: str
    operator: Operator
    value: bool | int | str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A choice of frames: all that is stated has to fit; None and empty fit everything."""

    direction: Direction = Direction.REQUEST
    api: str | None = None
    """The message's own name: "AlterPartition", "Fetch", "COMMIT", "setData", …"""
    version_min: int | None = None
    version_max: int | None = None
    sources: tuple[NodeName, ...] = ()
    """The nodes that dialled the connection, also for a response."""
    targets: tuple[NodeName, ...] = ()
    client_id: str | None = None
    """The client id of the request, also for its response."""
    where: tuple[Clause, ...] = ()
    """The clauses that one item of the frame has to meet, all of them."""
    skip: int = 0
    """The number of fitting frames that pass untouched first."""
    times: int | None = None
    """The number of frames after which the rule is spent; None: it concerns this one and all later
    ones.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keep the frame, and what follows it on its connection in that direction, until released.

    It outlives the sender's connection and the sender's death.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Do not pass the frame on, and cut its connection: its pipeline waits for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Pass the frame on later; what follows it on its connection stays behind it."""

    min_ms: float
    max_ms: float
    seed: int | None = None
    """The seed of the draws between `min_ms` and `max_ms`; None until it is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Pass the request on, and again over a connection of its own whose answer is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder:
    """Let the next fitting request of the same link overtake this one, on another connection.

    This one waits for it, with all behind it, and goes over a connection of its own if its target
    has ended its connection. Within one connection nothing can overtake: that is TCP.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer the request in the target's place, with this error, and do not pass it on."""

    error: str
    """Kafka's name. It stands in each item that the request named; an error of the whole request
    (NOT_CONTROLLER, STALE_BROKER_EPOCH, …) and one of a response without items, in the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerVersion:
    """In ApiVersions responses, offer `api` up to `max_version` only.

    It is never lowered below the lowest version that the target has. The direction and the API of
    the rule's match mean nothing here; its sources and targets say on whose connections it acts.
    """

    api: str
    max_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Pass the frame on, and read nothing behind it any more: the sender's buffers fill up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Close the frame's connection on both sides, after passing the frame on or instead of it."""

    passed_on: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Count the frame and tape it, and do nothing to it: later rules still see it."""


Action = Hold | Drop | Delay | Duplicate | Reorder | Answer | LowerVersion | Stall | Cut | Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An action on the frames that match, under a name of its own."""

    name: str
    action: Action
    match: Match = field(default_factory=Match)
