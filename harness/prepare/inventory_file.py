"""The inventory of machines in a YAML file, checked whole before any login."""

from pathlib import Path

from fencepost.clusters.hosts.ssh.inventory import Inventory, parse_inventory
from fencepost.harness.scenario.yaml_file import load_document
from fencepost.history.failure import SpecError


def load_inventory(path: Path) -> Inventory:
    """Return the inventory in a file; a UsageError names file and line of what cannot be."""
    document = load_document(path, expected="an inventory has a list of 'machines'")
    try:
        return parse_inventory(document.data)
    except SpecError as error:
        raise document.error(error) from None
