"""The names of the errors that answers state: any of Kafka's, since a rule may answer with it."""

from fencepost.clusters.reference.nodes.errors import ERROR_NAMES
from fencepost.history.errors import name_of


def error_name(code: int) -> str:
    """Return the name of an error, by its code: a node's own, or any of Kafka's."""
    return ERROR_NAMES.get(code) or name_of(code)
