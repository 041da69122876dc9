"""A scenario for nodes of our own, wherever they run: one is killed, another is cut off."""

import pytest

_KILLED_AND_CUT_OFF = """
name: killed-and-cut-off
cluster: CLUSTER
topics:
  - {name: t, partitions: 2, replication_factor: 2, settings: {min.insync.replicas: 1}}
workload: {kind: produce-poll, rate: 200, producers: 1, consumers: 1, consume: assign}
play:
  - await: {acknowledged: 100}
  - kill: broker-2
  - await: {fenced: broker-2}
  - start: broker-2
  - await: recovered
  - partition: {isolate: broker-1, as: alone}
  - await: {fenced: broker-1}
  - heal: alone
  - await: recovered
time_limit: 60s
# On ZooKeeper clients wait for a leader that was cut off until its broker-side time-out is over.
require: {faults: [kill, partition], served: []}
"""
OWN_NODES = pytest.mark.parametrize(
    ("scenario", "flags"),
    [
        pytest.param(
            _KILLED_AND_CUT_OFF.replace("CLUSTER", "{controllers: 1, brokers: 2}"),
            ("--cluster", "reference"),
            id="quorum",
        ),
        pytest.param(
            _KILLED_AND_CUT_OFF.replace(
                "CLUSTER", "{system: reference-zookeeper, zookeepers: 1, brokers: 2}"
            ),
            (),
            id="zookeeper",
            marks=pytest.mark.kafka,
        ),
    ],
)
"""The scenario for either generation, and the flags that it takes."""
