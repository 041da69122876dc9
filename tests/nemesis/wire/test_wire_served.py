"""The requests of clients that the tape has, so that it tells which broker served them."""

import pytest
from wire_doubles import CONTROLLER, Line, plain_request, plain_response

from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.nemesis.wire.rules import Hold, Link, Match, Rule

PRODUCE, FETCH, METADATA = 0, 1, 3
BROKER = NodeName("broker-1")
MS = 1_000_000


def line(*rules: Rule, source: NodeName = CLIENTS, target: NodeName = BROKER) -> Line:
    return Line(Link(source=source, target=target, address="127.77.0.1", port=1), *rules)


def taped(one: Line) -> list[tuple[str, int]]:
    return [(str(row["direction"]), row["correlation_id"]) for row in one.notes.rows]


def exchange(one: Line, number: int, at_ms: int, *, api_key: int = FETCH) -> None:
    one.ask(plain_request(number, api_key=api_key), now_ns=at_ms * MS)
    one.tell(plain_response(number), now_ns=(at_ms + 1) * MS)


def test_one_exchange_every_half_second_and_all_bytes_pass() -> None:
    one = line()
    for number, at_ms in enumerate((0, 10, 499, 500, 510, 1200)):
        exchange(one, number, at_ms)
    both = [(way, number) for number in (0, 3, 5) for way in ("request", "response")]
    assert taped(one) == both
    assert len(one.far) == 6 * len(plain_request(0))
    assert len(one.near) == 6 * len(plain_response(0))


def test_each_of_the_two_apis_has_its_own_turn_and_no_other_has_one() -> None:
    one = line()
    exchange(one, 1, 0, api_key=FETCH)
    exchange(one, 2, 10, api_key=METADATA)
    one.ask(plain_request(3, api_key=FETCH), now_ns=20 * MS)
    assert taped(one) == [("request", 1), ("response", 1)]


def test_an_answer_that_takes_longer_is_still_on_the_tape() -> None:
    one = line()
    one.ask(plain_request(1, api_key=FETCH), now_ns=0)
    one.ask(plain_request(2, api_key=FETCH), now_ns=100 * MS)
    one.ask(plain_request(3, api_key=FETCH), now_ns=700 * MS)
    for number in (1, 2, 3):
        one.tell(plain_response(number), now_ns=5000 * MS)
    assert taped(one) == [("request", 1), ("request", 3), ("response", 1), ("response", 3)]


@pytest.mark.parametrize(
    ("source", "target"),
    [(NodeName("broker-2"), BROKER), (CLIENTS, CONTROLLER)],
    ids=["of a node", "to a controller"],
)
def test_only_clients_of_brokers_are_served(source: NodeName, target: NodeName) -> None:
    one = line(source=source, target=target)
    exchange(one, 1, 0, api_key=PRODUCE)
    assert one.notes.rows == []


def test_a_request_that_a_rule_keeps_takes_its_turn() -> None:
    one = line(Rule(name="r", match=Match(api="Fetch"), action=Hold()))
    one.ask(plain_request(1, api_key=FETCH))
    one.ask(plain_request(2, api_key=FETCH))
    one.release("r", now_ns=100 * MS)
    assert [str(row["action"]) for row in one.notes.rows] == ["released"]
    one.tell(plain_response(1), now_ns=110 * MS)
    one.tell(plain_response(2), now_ns=110 * MS)
    assert taped(one) == [("request", 1), ("response", 1)]
