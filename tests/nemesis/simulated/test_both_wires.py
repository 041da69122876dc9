"""Both wires do the same: the proxy between processes, and the wire of a simulated cluster.

A request is answered by a rule in the place of its target: with the same bytes, of which the proxy
sends each and the simulated wire hands over what a process that asked reads.
"""

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from simulated_stage import Stage
from test_message_frames import ZK_EXCHANGES, of_message
from wire_doubles import Line
from wire_samples import EXCHANGES, KEY, TOPIC_ID, VOTERS, client_batch, image_with

from fencepost.clusters.kafka_port import Role
from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.protocol.entities import Unreadable
from fencepost.clusters.reference.codec.codec import Codec, kraft_apis
from fencepost.clusters.reference.codec.identifiers import text_of
from fencepost.clusters.reference.codec.zk_apis import ZK_APIS
from fencepost.clusters.reference.nodes.messages import client, data
from fencepost.nemesis.wire.answers import error_response
from fencepost.nemesis.wire.error_codes import error_names
from fencepost.nemesis.wire.rules import Answer, Link, Match, Rule

IMAGE = image_with()
CODECS = (
    Codec(apis=kraft_apis(VOTERS), image=lambda: IMAGE, wall_offset_ns=0),
    Codec(apis=ZK_APIS, image=lambda: IMAGE),
)
AT_BROKERS = {"Fetch-14", "Fetch-15", "OffsetForLeaderEpoch", *ZK_EXCHANGES}
BATCH = Batch(0, -1, 2, -1, -1, -1, client_batch(b"a", b"b"))
OF_CLIENTS = {
    "Produce": data.ProduceRequest(1, -1, 5_000_000, ((KEY, BATCH), ((TOPIC_ID, 0), BATCH))),
    "InitProducerId": data.InitProducerIdRequest(1),
    "ListOffsets": data.ListOffsetsRequest(1, -1, ((KEY, -1, -1), ((TOPIC_ID, 0), 4, -2))),
    "Metadata": client.MetadataRequest(1, (("t", -1), ("u", -1))),
    "Metadata-all": client.MetadataRequest(1, None),
    "DescribeConfigs": client.DescribeConfigsRequest(1, ((2, "t", ("a",)), (2, "u", None))),
}
REQUESTS = {
    **{name: request for name, (request, _) in (EXCHANGES | ZK_EXCHANGES).items()},
    **OF_CLIENTS,
}


class _Asked:
    """A request of one party to another, on either wire."""

    def __init__(self, name: str) -> None:
        self.request = REQUESTS[name]
        codec = CODECS[name in ZK_EXCHANGES]
        at_brokers = name in AT_BROKERS or name in OF_CLIENTS
        self._target = "broker-1" if at_brokers else "controller-1"
        self._source = "client" if name in OF_CLIENTS else "broker-2"
        sent = codec.outgoing(self.request, correlation_id=1, client_id=self._source)
        self._frame, self._version, self._codec = sent.frame, sent.version, codec
        self.stage = Stage(clients=True)
        self.stage.wire.name_topics({text_of(TOPIC_ID): "t"})

    def answer_of_the_proxy(self, rule: Rule) -> bytes:
        """The bytes that come back; empty: the connection is cut."""
        source = CLIENTS if self._source == "client" else NodeName(self._source)
        link = Link(source=source, target=NodeName(self._target), address="", port=1)
        line = Line(link, rule, dialect=link.asks(Role.CONTROLLER))
        line.ask(self._frame)
        assert line.far == b""
        return line.near

    def read(self, answer: bytes) -> Any:
        """What the process that asked reads; None: it gives up the connection."""
        node = self.stage.hosts[self._target].number
        try:
            return self._codec.answered(answer[4:], self.request, version=self._version, node=node)
        except Unreadable:
            return None

    def answer_of_the_simulated_wire(self, rule: Rule) -> Any:
        """The message that comes back; None: its sender hears that the connection is over."""
        stage = self.stage
        stage.wire.add(rule)
        stage.send(self._source, self._target, replace(self.request))
        stage.run(5)
        stage.wire.release(rule.name)
        assert stage.got(self._target) == []
        asker = stage.nodes[self._source]
        assert len(asker.got) + len(asker.refused) == 1
        found = next(iter(asker.got), None)
        asker.got.clear()
        asker.refused.clear()
        return found


SOME_ERRORS = ("NONE", "NOT_CONTROLLER", "INELIGIBLE_REPLICA", "THROTTLING_QUOTA_EXCEEDED")


@pytest.mark.parametrize(
    ("name", "errors"),
    [(name, SOME_ERRORS) for name in REQUESTS] + [("AlterPartition-3", error_names())],
)
def test_a_request_is_answered_by_the_same_bytes_on_both_wires(
    name: str, errors: Sequence[str]
) -> None:
    asked = _Asked(name)
    differing = {}
    for error in errors:
        rule = Rule(name="r", action=Answer(error=error), match=Match())
        answer = asked.answer_of_the_proxy(rule)
        own = error_response(of_message(asked.request, None), error) or b""
        found = asked.answer_of_the_simulated_wire(rule)
        read = asked.read(answer) if answer else None
        if (own, found) != (answer, read):
            differing[error] = (answer, own, read, found)
    assert differing == {}


def test_the_errors_of_the_whole_request_and_of_its_items_are_told_as_brokers_tell_them() -> None:
    asked = _Asked("AlterPartition-3")
    of_all, of_items = (
        asked.answer_of_the_proxy(Rule(name="r", action=Answer(error=error)))
        for error in ("NOT_CONTROLLER", "INVALID_UPDATE_VERSION")
    )
    assert struct.unpack_from(">h", of_all, 13) == (41,)
    assert len(of_all) == 17, "no item: a broker tells it of the whole request"
    assert struct.unpack_from(">h", of_items, 13) == (0,)
    assert of_items.count(struct.pack(">h", 95)) == 2
