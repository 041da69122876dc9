"""Brokers that answer as they are told, and the answers."""

import io
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.request_header.v1.header import RequestHeader
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32, i32Timedelta

from fencepost.clusters.protocol.talking import Address

Answers = Callable[[RequestHeader], Any | None]
"""The response to a request, by its header; None: no answer, and the connection stays open."""

NO_TIME = i32Timedelta.parse(timedelta(0))


@dataclass
class FakeBroker:
    """One request a connection."""

    address: Address
    requests: list[RequestHeader] = field(default_factory=list)


@contextmanager
def fake_broker(answers: Answers) -> Iterator[FakeBroker]:
    """A broker on loopback, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        broker = FakeBroker(listener.getsockname())
        thread = threading.Thread(target=_serve, args=(listener, broker, answers))
        thread.start()
        try:
            yield broker
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, broker: FakeBroker, answers: Answers) -> None:
    connections: list[socket.socket] = []
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            break
        connections.append(connection)
        _answer(connection, broker, answers)
    for connection in connections:
        connection.close()


def _answer(connection: socket.socket, broker: FakeBroker, answers: Answers) -> None:
    length = connection.recv(4, socket.MSG_WAITALL)
    if len(length) < 4:
        return
    frame = connection.recv(struct.unpack(">i", length)[0], socket.MSG_WAITALL)
    header, _ = entity_reader(RequestHeader)(frame, 0)
    broker.requests.append(header)
    response = answers(header)
    if response is None:
        return
    body = io.BytesIO()
    header_type = response.__header_schema__
    entity_writer(header_type)(body, header_type(correlation_id=header.correlation_id))
    entity_writer(type(response))(body, response)
    whole = struct.pack(">i", body.tell()) + body.getvalue()
    # In two pieces, as a network may bring it.
    connection.sendall(whole[:7])
    connection.sendall(whole[7:])


def metadata(
    brokers: Sequence[int] = (), partitions: Mapping[str, Sequence[tuple[int, int]]] | None = None
) -> MetadataResponse:
    """Metadata that lists these brokers, and for each topic the (leader, leader epoch)s."""
    return MetadataResponse(
        throttle_time=NO_TIME,
        brokers=tuple(
            MetadataResponseBroker(node_id=_id(one), host="127.0.0.1", port=i32(1))
            for one in brokers
        ),
        cluster_id="c",
        controller_id=_id(-1),
        topics=tuple(
            MetadataResponseTopic(
                error_code=ErrorCode.none,
                name=TopicName(name),
                topic_id=None,
                partitions=tuple(
                    MetadataResponsePartition(
                        error_code=ErrorCode.none,
                        partition_index=i32(index),
                        leader_id=_id(leader),
                        leader_epoch=i32(leader_epoch),
                        replica_nodes=(_id(1), _id(2)),
                        isr_nodes=(_id(2),),
                    )
                    for index, (leader, leader_epoch) in enumerate(led)
                ),
            )
            for name, led in (partitions or {}).items()
        ),
    )


def _id(number: int) -> BrokerId:
    return BrokerId(i32(number))
