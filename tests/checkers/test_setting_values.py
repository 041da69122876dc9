"""Whatever a release accepts as a setting, no check dies of it, and none takes it for another."""

import re
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from metadata_logs import FACTS, ON_ZOOKEEPER, asked, metadata_log, tables

from fencepost import checkers
from fencepost.checkers.catalogue import TABLE_CHECKS
from fencepost.checkers.life_cycle.controller_heartbeats import ungated_requests
from fencepost.checkers.metadata.setting_values import whole_number
from fencepost.history.cluster_schema import NODE_SETTINGS
from fencepost.history.schema import TABLES

SPELLINGS = (
    "",
    " 5 ",
    "+5",
    "-1",
    "5_0",
    "1.0",
    "3.9-IV0",
    "0x10",
    "1e3",
    "99999999999999999999",
    "TRUE",
    "a, b",
    "\x00",
)
_SETTING = re.compile(r'"([a-z]+(?:\.[a-z]+)+)"')
NAMES = sorted(
    {
        name
        for file in Path(checkers.__file__).parent.rglob("*.py")
        for name in _SETTING.findall(file.read_text())
    }
)
NOTHING = {name: schema.empty_table() for name, schema in TABLES.items()}
LOG = """
    0 leader {leader}
    1 register 1 unfenced
    2 register 2 unfenced
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    7 config t min.insync.replicas {value}
    8 config - min.insync.replicas {value}
    9 change t-0 isr 1 at 9000
    99 noop at 60000
"""
WIRE = "at 9050 broker-1 beats as 1 epoch 1 -> ok at 9051"


def settings(value: str) -> pa.Table:
    """Every setting that a check names has this value at each node, first and from 20 s on."""
    nodes = ("controller-1", "zookeeper-1", "broker-1", "broker-2")
    rows = [
        {"node": node, "name": name, "value": value, "since_ns": since_ns}
        for node, name, since_ns in product(nodes, NAMES, (None, 20_000_000_000))
    ]
    return pa.Table.from_pylist(rows, schema=NODE_SETTINGS)


def test_the_settings_that_checks_read_are_found() -> None:
    assert {"inter.broker.protocol.version", "min.insync.replicas", "broker.id"} <= {*NAMES}


@pytest.mark.parametrize("value", SPELLINGS)
def test_no_check_dies_of_a_setting(value: str) -> None:
    word = value.replace(" ", "") or "none"
    for facts, node, leader in ((FACTS, "controller-1", 1000), (ON_ZOOKEEPER, "zookeeper-1", 1)):
        log = metadata_log(**{node: LOG.format(leader=leader, value=word)})
        given = NOTHING | tables(log, WIRE, node_settings=settings(value))
        for check in TABLE_CHECKS:
            if "node_settings" in check.tables:
                list(asked(check.kernel, given, facts))


def test_a_number_is_what_java_takes_for_one() -> None:
    assert [whole_number(one) for one in ("5", " 5 ", "+5", "-1")] == [5, 5, 5, -1]
    for other in ("", "5_0", "1.0", "3.9-IV0", "0x10", "1e3", "TRUE", None):
        assert whole_number(other) is None, other


def test_a_protocol_of_kafka_s_own_is_not_below_the_draft_s() -> None:
    # Kafka spells it "1.0"; the draft's protocols are 1 and 2.
    given = tables(LOG.format(leader=1, value=1), WIRE, node_settings=settings("1.0"))
    assert [found.case_count for _, found in asked(ungated_requests, given, ON_ZOOKEEPER)] == []
    given = tables(LOG.format(leader=1, value=1), WIRE, node_settings=settings("1"))
    assert [found.case_count for _, found in asked(ungated_requests, given, ON_ZOOKEEPER)] != []
