"""docs/add-a-workload.md: its example is a kind of workload, whose bounds are kept."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

import pytest
from examples import examples_of, run_example
from pydantic import Field, TypeAdapter, ValidationError

from fencepost.history.cluster_schema import CLUSTER_TABLES
from fencepost.workloads.kind import WorkloadKind
from fencepost.workloads.registry import KINDS

NAMES = {
    "Annotated": Annotated,
    "Field": Field,
    "Final": Final,
    "WorkloadKind": WorkloadKind,
    "dataclass": dataclass,
}


def test_the_example_of_the_page_is_a_kind_beside_those_that_there_are() -> None:
    made = run_example("\n".join(examples_of("add-a-workload.md")), NAMES)
    kind, spec = made["KIND"], TypeAdapter[Any](made["TuningSpec"])
    assert isinstance(kind, WorkloadKind)
    assert kind.spec is made["TuningSpec"]
    assert kind.operations(spec.validate_python({"rate": 4})) == {"alter-config": 10.0}
    assert set(kind.tables(kind.spec())) <= set(CLUSTER_TABLES)
    assert kind.first_process not in {one.first_process for one in KINDS.values()}
    with pytest.raises(ValidationError):
        spec.validate_python({"rate": 0})
