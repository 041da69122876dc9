"""What a scenario may say of the register workload."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.history.models import MODEL_TABLES, Model
from fencepost.workloads.register_spec import KIND, RegisterSpec

SPEC: TypeAdapter[RegisterSpec] = TypeAdapter(RegisterSpec)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"clients": 0}, "clients"),
        ({"deleted_share": 1.5}, "deleted_share"),
        ({"rate": 0}, "rate"),
        ({"session_timeout_ms": 10}, "session_timeout_ms"),
        ({"value_bytes": 0}, "value_bytes"),
        ({"value_bytes": 1 << 20}, "value_bytes"),
        ({"mix": {"create": 0}}, "create"),
        ({"mix": {"read": 0, "sync_read": 0}}, "sync_read"),
    ],
)
def test_what_cannot_work_is_refused(said: dict[str, Any], word: str) -> None:
    with pytest.raises(ValidationError, match=word):
        SPEC.validate_python(said)


def test_its_clients_use_znodes_of_an_ensemble() -> None:
    assert KIND.for_clusters is ZooKeeperSpec
    assert KIND.model is Model.ZNODE
    assert MODEL_TABLES[KIND.model] == "znode_operations"
    assert not KIND.beside


@pytest.mark.parametrize(
    ("said", "left_out"),
    [
        ({}, set()),
        ({"mix": {"cas": 0, "sync_read": 0}}, {"cas", "sync-read"}),
        ({"deleted_share": 0}, {"delete"}),
    ],
)
def test_its_clients_set_out_to_do_what_is_drawn(said: dict[str, Any], left_out: set[str]) -> None:
    everything = {"create", "set", "cas", "delete", "read", "sync-read", "final-read"}
    assert set(KIND.operations(SPEC.validate_python(said))) == everything - left_out
