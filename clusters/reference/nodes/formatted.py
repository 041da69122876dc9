"""The check whether a disk was formatted for a node.

Source: KIP-631, "Command-Line Tools": `kafka-storage.sh format` and `kip.500.mode`.
"""

from typing import Final

from fencepost.clusters.node_port.storage import META_PROPERTIES, Contents, MetaProperties
from fencepost.clusters.reference.nodes.configuration import Configuration

_MODE: Final = "enabled"


def unfit(contents: Contents, configuration: Configuration) -> str:
    """Return why a node may not start on this disk; empty if it may."""
    found: MetaProperties | None = contents.files.get(META_PROPERTIES)
    if found is None:
        return "the disk is not formatted: there is no meta.properties on it"
    if found.mode != _MODE:
        return f"meta.properties: expected kip.500.mode={_MODE}, found {found.mode!r}"
    if found.node_id != configuration.node_id:
        return f"meta.properties: expected node {configuration.node_id}, found {found.node_id}"
    if found.cluster_id != configuration.cluster_id:
        expected = configuration.cluster_id
        return f"meta.properties: expected cluster {expected!r}, found {found.cluster_id!r}"
    return ""
