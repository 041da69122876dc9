"""Definitions for all tests of the witness."""

import pytest
from disks import jar

from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.clusters.witness.definitions import definitions_of


@pytest.fixture(scope="session")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Definitions:
    return definitions_of([jar(tmp_path_factory.mktemp("jars") / "kafka-metadata-9.9.9.jar")])
