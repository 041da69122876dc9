"""Clients in virtual time: what they record is what a real client's record claims."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.simulated.quorum_kit import build
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.operation import F, Outcome
from fencepost.workloads.produce_poll_spec import ProducePollSpec
from fencepost.workloads.simulated.polls import Returned
from fencepost.workloads.simulated.produce_poll import Recorders, SimulatedProducePoll
from fencepost.workloads.simulated.sends import BatchEnd

TOPICS = (TopicSpec(name="t", partitions=3, settings={"min.insync.replicas": "2"}),)
B1, B2, B3 = (NodeName(f"broker-{number}") for number in (1, 2, 3))


class NotedSends:
    def __init__(self, process: int) -> None:
        self.next = process << 40
        self.key_count = TOPICS[0].partitions
        self.calls: dict[int, tuple[int, int]] = {}
        self.ends: dict[int, tuple[Outcome, int, int]] = {}

    def invoke(self, first_key: int, count: int, *, time_ns: int) -> int:
        first = self.next
        for place in range(count):
            self.calls[first + place] = ((first_key + place) % self.key_count, time_ns)
        self.next += count
        return first

    def complete(self, ends: Sequence[BatchEnd]) -> None:
        for end in ends:
            for place, value in enumerate(end.values):
                assert value not in self.ends, "a send ends once"
                offset = end.base_offset + place if end.base_offset >= 0 else -1
                self.ends[value] = (end.outcome, offset, end.time_ns)

    def close(self) -> None:
        pass


class NotedPolls:
    def __init__(self) -> None:
        self.open: dict[int, tuple[F, int, int]] = {}
        self.done: list[tuple[F, int, int, int, Returned, Outcome]] = []

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = -1) -> int:
        number = len(self.done) + len(self.open)
        self.open[number] = (f, key, time_ns)
        return number

    def complete(
        self, number: int, returned: Returned, *, time_ns: int, outcome: Outcome, error: int = 0
    ) -> None:
        assert (outcome is Outcome.OK) == (error == 0)
        f, key, call_ns = self.open.pop(number)
        self.done.append((f, key, call_ns, time_ns, returned, outcome))

    def close(self) -> None:
        pass


class Run:
    """A cluster with clients on it; `sends` and `polls` by the names of their clients."""

    def __init__(self, spec: ProducePollSpec, **cluster: object) -> None:
        self.cluster: SimulatedCluster = build(KafkaSpec(**cluster), seed=11)
        self.cluster.start()
        self.cluster.create_topics(TOPICS)
        self.sends: dict[str, NotedSends] = {}
        self.polls: dict[str, NotedPolls] = {}
        recorders = Recorders(
            lambda name, process: self.sends.setdefault(name, NotedSends(process)),
            lambda name, _: self.polls.setdefault(name, NotedPolls()),
        )
        self.workload = SimulatedProducePoll(
            spec, self.cluster, topics=TOPICS, recorders=recorders, seed=5
        )
        self.workload.start()

    def go(self, seconds: float) -> None:
        self.cluster.run(int(seconds * S))

    def end(self) -> dict[int, list[int]]:
        """Stop and read back: the values of each key in their order."""
        self.workload.stop(60.0)
        assert set(self.workload.final_read(60.0)) == set(self.workload.keys)
        return {
            key: [value for values in returned.values for value in values]
            for f, key, _, _, returned, outcome in self.polls["final-reader-0"].done
            if f is F.FINAL_READ and outcome is Outcome.OK
        }

    def acknowledged(self) -> dict[int, tuple[int, int]]:
        """(key, offset) of each value that was acknowledged."""
        return {
            value: (sends.calls[value][0], offset)
            for sends in self.sends.values()
            for value, (outcome, offset, _) in sends.ends.items()
            if outcome is Outcome.OK
        }


def _spec(**changes: object) -> ProducePollSpec:
    return ProducePollSpec(**{"rate": 300.0, "consume": "assign", **changes})  # type: ignore[arg-type]  # by name


def test_every_acknowledged_send_stands_at_its_offset_and_every_key_has_its_share() -> None:
    run = Run(_spec())
    run.go(5)
    logs = run.end()
    acknowledged = run.acknowledged()
    assert len(acknowledged) > 1400
    for value, (key, offset) in acknowledged.items():
        assert logs[key][offset] == value
    lengths = [len(log) for log in logs.values()]
    assert max(lengths) - min(lengths) < 0.1 * max(lengths)
    counts = run.workload.counts()
    assert (counts.ok, counts.fail, counts.info) == (len(acknowledged), 0, 0)


def test_sends_go_at_their_rate_and_end_after_they_were_called() -> None:
    run = Run(_spec(rate=200.0))
    run.go(10)
    run.end()
    sends = run.sends["producer-0"]
    times = [time_ns for _, time_ns in sends.calls.values()]
    assert times == sorted(times)
    assert len(times) / ((times[-1] - times[0]) / S) == pytest.approx(100, rel=0.05)
    assert all(sends.ends[value][2] > sends.calls[value][1] for value in sends.ends)


def test_a_consumer_has_one_poll_open_at_a_time_and_reads_each_session_in_order() -> None:
    run = Run(_spec(reassign_s=2.0))
    run.go(12)
    logs = run.end()
    for name in ("consumer-0", "consumer-1"):
        done = run.polls[name].done
        assert run.polls[name].open == {}
        assert all(before[3] <= after[2] for before, after in pairwise(done))
        following: dict[tuple[int, int], int] = {}
        for _, _, _, _, found, _ in done:
            columns = zip(found.keys, found.firsts, found.values, found.sessions, strict=True)
            for key, first, values, session in columns:
                assert following.get((key, session), first) == first
                end = following[key, session] = first + len(values)
                assert list(logs[key][first:end]) == list(values)
        assert len({session for _, session in following}) > 2
        assert {following[place] for place in following} >= {len(log) for log in logs.values()}


def test_the_death_of_a_leader_costs_no_acknowledged_send_and_clients_find_the_next_one() -> None:
    run = Run(_spec())
    run.go(2)
    run.cluster.kill_node(B1)
    run.go(8)
    before = run.workload.counts().ok
    run.go(3)
    assert run.workload.counts().ok > before + 700
    run.cluster.start_node(B1)
    run.go(8)
    logs = run.end()
    for value, (key, offset) in run.acknowledged().items():
        assert logs[key][offset] == value
    values = [value for log in logs.values() for value in log]
    assert len(values) == len(set(values))


def test_what_gets_no_answer_within_the_message_time_out_is_info() -> None:
    run = Run(_spec(message_timeout_ms=4000))
    run.go(2)
    for broker in (B1, B2, B3):
        run.cluster.pause_node(broker)
    run.go(8)
    for broker in (B1, B2, B3):
        run.cluster.resume_node(broker)
    run.go(15)
    logs = run.end()
    counts = run.workload.counts()
    assert counts.info > 500
    assert counts.fail == 0
    assert counts.ok + counts.info == counts.invoked
    for value, (key, offset) in run.acknowledged().items():
        assert logs[key][offset] == value


def test_a_key_that_is_stuck_does_not_hold_up_the_others() -> None:
    run = Run(_spec())
    run.go(1)
    # Broker 1 hears of no other: what it leads has too few replicas, the rest goes on without it.
    run.cluster.world.network.block([(2, 1), (3, 1)])
    run.go(8)
    now_ns = run.cluster.world.now_ns
    run.workload.stop(60.0)
    ended = dict.fromkeys(range(3), 0)
    for sends in run.sends.values():
        for value, (outcome, _, time_ns) in sends.ends.items():
            if outcome is Outcome.OK and now_ns - S < time_ns <= now_ns:
                ended[sends.calls[value][0]] += 1
    assert sorted(count > 50 for count in ended.values()) == [False, True, True]


@pytest.mark.parametrize("acks", ["1", "0"])
def test_a_producer_may_wait_for_fewer_or_for_nobody(acks: str) -> None:
    run = Run(_spec(acks=acks, idempotence=False))
    run.go(3)
    logs = run.end()
    offsets = {offset for _, offset in run.acknowledged().values()}
    assert (offsets == {-1}) == (acks == "0")
    assert sum(map(len, logs.values())) == len(run.acknowledged())
