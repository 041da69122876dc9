"""A partition: flows between nodes are cut, until it is healed by its name.

    - partition: {isolate: broker-1}                       # from every other node
    - partition: {isolate: active controller, among: controllers}
    - partition: {groups: [[broker-1], controllers]}       # a node in no group reaches all nodes
    - partition: {from: broker-1, to: controllers}         # one way: what is sent there is lost
    - partition: {shape: majority-ring, among: brokers}    # one, halves, majority-ring, bridge
    - partition: {isolate: controller-1, as: cut-off}
    - partition: {isolate: broker-1, by: packets}          # not by the proxy

A side is a node, a list of sides, `brokers`, `controllers`, `clients`, `leader of KEY`, …
"""

from dataclasses import dataclass
from enum import StrEnum

from history.failure import SpecError
from nemesis.cut_words import CUT_FORMS, cut_data, one_of, parse_cut
from nemesis.drawn_cuts import drawn_cut
from nemesis.topology import Cut
from nemesis.verbs.course import PlayCourse
from nemesis.verbs.episode import Begun, Episode, Opening
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.step import Breaking
from nemesis.verbs.takes import Takes
from nemesis.verbs.verb import Capabilities, Director, Verb
from nemesis.verbs.written import Written
from nemesis.words import did_you_mean, rule_name

__all__ = ["VERBS", "Means", "Partition"]

_KEYS = ("as", "by", "isolate", "groups", "from", "to", "shape", "among", "flows")


class Means(StrEnum):
    """The means of a partition."""

    PROXY = "proxy"
    """The proxy passes nothing on: who sends sees a connection that is there, and waits."""
    PACKETS = "packets"
    """Rules in the nodes' own networks drop each packet, acknowledgements of TCP's included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(Breaking):
    """Cut the network between nodes, until it is healed by its name."""

    name: str
    cut: Cut
    by: Means | None = None
    """The means of the cut; None: the proxy where there is one, else packets."""


def _parse(written: Written) -> Partition:
    operand, stage = written.operand, written.stage
    if not isinstance(operand, dict):
        raise SpecError((), f"a partition is one of {CUT_FORMS}")
    data = {str(key): value for key, value in operand.items()}
    for key in data:
        if key not in _KEYS:
            raise SpecError((key,), f"unknown key {key!r}; {did_you_mean(key, _KEYS)}")
    name = rule_name(data.pop("as", "partition"))
    if name == "all":
        raise SpecError(("as",), "'heal: all' heals everything; give the partition another name")
    by = Means(one_of(data, "by", tuple(Means))) if "by" in data else None
    data.pop("by", None)
    return Partition(name=name, cut=parse_cut(data, stage), by=by)


def _data(partition: Partition) -> dict[str, object]:
    by = {} if partition.by is None else {"by": str(partition.by)}
    return {"partition": {"as": partition.name} | cut_data(partition.cut) | by}


def _perform(partition: Partition, director: Director) -> bool:
    return director.on_the_wire(partition)


def _follow(partition: Partition, course: PlayCourse) -> None:
    course.begin(partition.name, course.partitions, what="partition")


def _why_not(partition: Partition, there: Capabilities) -> str | None:
    if partition.by is Means.PACKETS:
        return there.why_no_packets
    return there.why_no_cut if partition.by is None else there.why_no_wire


def _episode(kind: str, *, by: Means | None) -> Episode:
    def begin(draft: Opening) -> Begun | None:
        end_s = draft.drawn_end_s()
        flows, lost = drawn_cut(draft.scene, draft.draw)
        if draft.free(lost) != lost:
            return None
        cut = Partition(name=draft.name, cut=flows, by=by)
        return Begun(nodes=lost, due=[(draft.now_s, cut), (end_s, HealPartition(name=draft.name))])

    takes = Takes.NETWORKS if by is Means.PACKETS else Takes.PROXY
    return Episode(kind=kind, begin=begin, takes=takes, between_nodes=True)


VERBS = (
    Verb(
        word="partition",
        example=("partition: {as: p, isolate: broker-1}",),
        step=Partition,
        parse=_parse,
        data=_data,
        perform=_perform,
        follow=_follow,
        why_not=_why_not,
        fault=True,
        kind=lambda step: "packets" if step.by is Means.PACKETS else "partition",
        concerns_clients=lambda step: step.cut.concerns_clients,
        episodes=(
            _episode("partition", by=None),
            _episode("packets", by=Means.PACKETS),
        ),
        state="cut off",
        tones=("#7450c8", "#a68cf0"),
    ),
)
