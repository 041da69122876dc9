from dataclasses import replace

import pytest

from fencepost.history.manifest import Promises
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec


def test_the_promises_are_those_of_the_configuration() -> None:
    usual, weak = (
        replace(spec.promises, readers=())
        for spec in (
            ProducePollSpec(),
            ProducePollSpec(acks="1", idempotence=False, consume=Consume.ASSIGN),
        )
    )
    assert usual == Promises(idempotent=True, acks="all", consume="both")
    assert weak == Promises(idempotent=False, acks="1", consume="assign")


def test_consumers_go_on_from_themselves_or_from_their_group() -> None:
    spec = ProducePollSpec(consumers=4)
    told = {one.name: (one.processes, one.stride) for one in spec.promises.readers}
    assert told == {"consumer-0": ((2,), 8), "consumer-2": ((4,), 8), "the group": ((3, 5), 8)}
    # One that goes to the end of a log passes records over.
    latest = ProducePollSpec(settings={"auto.offset.reset": "latest"})
    assert not latest.promises.readers


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"acks": "1"}, "idempotence needs acks: all"),
        ({"consumers": 1}, "both needs 2 consumers"),
        ({"linger_ms": 2000, "message_timeout_ms": 1000}, "linger_ms must be less"),
        ({"settings": {"acks": "1"}}, "'acks' is stated by the field"),
        ({"settings": {"enable.auto.commit": "true"}}, "the recording depends on it"),
    ],
)
def test_a_combination_that_cannot_be_is_refused_with_its_reason(
    change: dict[str, object], found: str
) -> None:
    with pytest.raises(ValueError, match=found):
        ProducePollSpec(**change)  # type: ignore[arg-type]  # by name
