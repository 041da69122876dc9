"""The StorageTool's snapshot of placeholders becomes that of a cluster's own voters."""

import base64
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.kafka.configuration import nodes_of
from fencepost.clusters.kafka.formatting import first_voters, new_id
from fencepost.clusters.kafka.voters import VoterNode, checkpoint_of, placeholders, stated
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.protocol.record_batches import (
    BatchHeader,
    encoded_batch_header,
    scan_batches,
)
from fencepost.history.failure import HarnessError

ONE = VoterNode(node_id=1001, host="controller-1.raft", port=9001, directory_id=new_id())
TWO = VoterNode(node_id=1002, host="controller-2.raft", port=9002, directory_id=new_id())
HEADER = BatchHeader._make((0, 0, 0, 2, 0, 0x20, 0, 1, 1, -1, -1, -1, 1, 0))


def batches(*bodies: bytes) -> bytes:
    return b"".join(encoded_batch_header(HEADER, body) + body for body in bodies)


def raw(directory_id: str) -> bytes:
    return base64.urlsafe_b64decode(directory_id + "==")


def body(*voters: VoterNode) -> bytes:
    """As much of a VotersRecord as is looked at."""
    return b"+".join(
        raw(voter.directory_id) + b"CONTROLLER" + voter.host.encode() + voter.port.to_bytes(2)
        for voter in voters
    )


ids = st.builds(new_id)
ports = st.integers(1, 65535)


@given(st.tuples(ids, ids), st.tuples(ports, ports))
def test_ids_and_ports_take_the_places_of_the_placeholders(
    directory_ids: tuple[str, str], given_ports: tuple[int, int]
) -> None:
    voters = tuple(
        replace(voter, directory_id=directory_id, port=port)
        for voter, directory_id, port in zip((ONE, TWO), directory_ids, given_ports, strict=True)
    )
    template = batches(b"before", body(*placeholders(voters)), b"after")
    filled = checkpoint_of(template, voters)
    assert filled == batches(b"before", body(*voters), b"after")
    assert scan_batches(filled).stop is None


def test_placeholders_depend_on_nothing_but_the_number_of_voters() -> None:
    others = (replace(ONE, port=1, directory_id="x"), replace(TWO, port=2, directory_id="y"))
    assert placeholders((ONE, TWO)) == placeholders(others)


def test_the_tool_is_told_of_each_voter_by_node_address_and_directory() -> None:
    voters = (replace(ONE, directory_id="x"), replace(TWO, directory_id="y"))
    assert stated(voters) == "1001@controller-1.raft:9001:x,1002@controller-2.raft:9002:y"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (batches(body(*placeholders((ONE, TWO))[:1])), "0 times, not once"),
        (batches(*[body(*placeholders((ONE, TWO)))] * 2), "2 times, not once"),
        (batches(body(*placeholders((ONE, TWO)))) + b"tail", "ends within the header of a batch"),
    ],
    ids=["a voter is missing", "a voter stands there twice", "not whole"],
)
def test_a_snapshot_of_another_shape_is_not_guessed_at(template: bytes, words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        checkpoint_of(template, (ONE, TWO))


def test_each_controller_is_a_first_voter_with_a_directory_of_its_own() -> None:
    spec = KafkaSpec(controllers=3, brokers=1)
    voters = first_voters(nodes_of(spec, ports=count(9001)))
    assert [(voter.node_id, voter.host, voter.port) for voter in voters] == [
        (1001, "controller-1.raft", 9001),
        (1002, "controller-2.raft", 9002),
        (1003, "controller-3.raft", 9003),
    ]
    assert len({voter.directory_id for voter in voters}) == 3
