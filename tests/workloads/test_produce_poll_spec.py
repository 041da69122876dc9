import pytest

from history.manifest import Promises
from workloads.produce_poll import Consume, ProducePollSpec


def test_the_promises_are_those_of_the_configuration() -> None:
    assert ProducePollSpec().promises == Promises(idempotent=True, acks="all", consume="both")
    weak = ProducePollSpec(acks="1", idempotence=False, consume=Consume.ASSIGN)
    assert weak.promises == Promises(idempotent=False, acks="1", consume="assign")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"acks": "1"}, "idempotence needs acks: all"),
        ({"consumers": 1}, "both needs 2 consumers"),
        ({"linger_ms": 2000, "message_timeout_ms": 1000}, "linger_ms must be less"),
        ({"settings": {"acks": "1"}}, "'acks' has a field of its own"),
        ({"settings": {"enable.auto.commit": "true"}}, "the recording rests on it"),
    ],
)
def test_a_combination_that_cannot_be_is_refused_with_its_reason(
    change: dict[str, object], found: str
) -> None:
    with pytest.raises(ValueError, match=found):
        ProducePollSpec(**change)  # type: ignore[arg-type]  # by name
