import click
import pytest

from fencepost.bench.command import _make
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.zookeeper.system import ZooKeeperSpec


def test_a_benchmark_runs_on_the_make_that_is_named_or_on_the_first() -> None:
    assert _make("reference", KafkaSpec()).of_our_own
    assert _make(None, KafkaSpec()).name == "kafka"
    with pytest.raises(click.BadParameter, match="zookeeper has no such cluster"):
        _make("reference", ZooKeeperSpec())
