"""The kinds of operation that clients were to do, by their answers, and their topics, in words."""

from collections.abc import Iterator, Mapping

from fencepost.checkers.grounds.operation_kinds import OperationKind, operation_kinds_in
from fencepost.checkers.grounds.topics_alive import topics_alive_in
from fencepost.checkers.verdict import Verdict
from fencepost.report.notation import integer, one_line


def operations_line(verdict: Verdict) -> str:
    """Return `create-topic 41 of 71, reassign 0 of 16`: how many succeeded, of how many calls."""
    return ", ".join(map(_successes, operation_kinds_in(verdict)))


def topics_line(verdict: Verdict) -> str:
    """Return how many topics of the clients there were; empty if they have none."""
    topics = topics_alive_in(verdict)
    if topics is None:
        return ""
    promised = "" if topics.promised is None else f", {integer(topics.promised)} promised"
    return f"{integer(topics.end_count)} at the end, at most {integer(topics.max_count)}{promised}"


def operation_properties(verdict: Verdict) -> Mapping[str, str]:
    """Return properties for a build server: `operation.create-topic.ok` and so on."""
    return dict(pair for kind in operation_kinds_in(verdict) for pair in _properties(kind))


def _successes(one: OperationKind) -> str:
    name, ok, called = one_line(one.kind), integer(one.ok_count), integer(one.called_count)
    return f"{name} {ok}" if ok == called else f"{name} {ok} of {called}"


def _properties(kind: OperationKind) -> Iterator[tuple[str, str]]:
    name = f"operation.{kind.kind}"
    yield f"{name}.ok", str(kind.ok_count)
    yield f"{name}.fail", str(kind.fail_count)
    yield f"{name}.info", str(kind.info_count)
