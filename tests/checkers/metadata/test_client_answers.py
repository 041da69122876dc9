"""The requests of data that brokers answered to clients, whole and in slices."""

from metadata_logs import wire

from fencepost.checkers.metadata.client_answers import answered_data
from fencepost.checkers.metadata.sliced import COLUMNS, keep_of
from fencepost.checkers.slices import Slice, Split
from fencepost.checkers.sources import source_of

MS = 1_000_000
TAPE = wire(
    """
    at 1000 broker-1 heartbeat epoch 1 -> ok at 1005
    at 1000 broker-2 heartbeat epoch 2 -> ok at 1005
    at 2000 clients to broker-1 on 7 produces t-0 -> ok at 2005
    at 2000 clients to broker-2 on 8 consumes t-0 -> ok at 2500
    at 2600 clients to broker-2 on 8 consumes t-0 -> NOT_LEADER_OR_FOLLOWER at 2605
    at 3000 broker-2 to broker-1 on 9 fetches t-0 epoch 2 -> nothing
    at 3000 clients to broker-1 on 7 produces t-0 -> nothing
    """
)
BOTH = {
    "broker-1": [(2000 * MS, 2005 * MS, 20)],
    "broker-2": [(2000 * MS, 2500 * MS, 30)],
}


def kept(part: Slice) -> list[int]:
    """The frames that a slice has of the tape."""
    source = source_of(TAPE)
    keep = keep_of("wire", part, names={}, source=source, unplaced=False)
    frames = [keep(batch).column("frame").to_pylist() for batch in source(COLUMNS["wire"])]
    return sorted({one for some in frames for one in some})


def test_what_was_answered_without_an_error_is_known_by_broker() -> None:
    found = answered_data(source_of(TAPE))
    assert {node: list(map(tuple, rows.tolist())) for node, rows in found.items()} == BOTH
    assert answered_data(source_of(TAPE.slice(0, 0))) == {}


def test_an_answer_without_a_request_says_nothing() -> None:
    answers = TAPE.filter([way == "response" for way in TAPE["direction"].to_pylist()])
    assert answered_data(source_of(answers)) == {}


def test_a_slice_of_brokers_has_what_clients_asked_these_brokers() -> None:
    assert kept(Slice(Split.BROKERS, 1, 2)) == [0, 1, 20, 21, 60]
    assert kept(Slice(Split.BROKERS, 0, 2)) == [10, 11, 30, 31, 40, 41]


def test_a_slice_of_partitions_has_none_of_it() -> None:
    frames = {one for number in (0, 1) for one in kept(Slice(Split.PARTITIONS, number, 2))}
    assert not frames & {20, 21, 30, 31, 40, 41, 60}
    assert 50 in frames
