"""Which broker is asked: each in turn, and the controller for what brokers do not pass on."""

from itertools import cycle

import pytest

from fencepost.workloads.generators.asked import Asked


def asked_of(*brokers: str) -> Asked[str]:
    return Asked(cycle(brokers).__next__)


def test_brokers_that_pass_everything_on_are_asked_one_after_the_other() -> None:
    asked = asked_of("a", "b", "c")
    asked.named("b")
    assert [asked.next("create") for _ in range(4)] == ["a", "b", "c", "a"]
    assert not asked.needs_look


def test_a_kind_that_was_refused_is_asked_of_the_controller_and_others_are_not() -> None:
    asked = asked_of("a", "b", "c")
    asked.answered("create", asked.next("create"), "NOT_CONTROLLER")
    assert asked.needs_look
    asked.named("c")
    assert not asked.needs_look
    assert [asked.next(kind) for kind in ("create", "alter", "create", "alter")] == [
        "c",
        "b",
        "c",
        "c",
    ]


@pytest.mark.parametrize("error", ["NOT_CONTROLLER", "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION"])
def test_a_controller_that_is_deposed_or_silent_is_not_asked_again(error: str) -> None:
    asked = asked_of("a", "b", "c")
    asked.answered("create", asked.next("create"), "NOT_CONTROLLER")
    asked.named("c")
    asked.answered("create", "c", error)
    assert asked.needs_look == (error == "NOT_CONTROLLER")
    asked.named(None)
    assert asked.next("create") == "b"


def test_the_silence_of_another_broker_says_nothing_about_the_controller() -> None:
    asked = asked_of("a", "b")
    asked.answered("create", "a", "NOT_CONTROLLER")
    asked.named("b")
    asked.answered("alter", "a", "REQUEST_TIMED_OUT")
    asked.answered("create", "b", "TOPIC_ALREADY_EXISTS")
    asked.answered("create", "b", None)
    assert asked.next("create") == "b"
