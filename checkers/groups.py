"""The one list of the groups of checks beside the data plane's, in the order of the catalogue."""

from typing import Final

from checkers.check_group import CheckGroup
from checkers.control_plane.group import CONTROL_PLANE
from checkers.cycles.group import CYCLES_GROUP
from checkers.cycles.kafka_group import TRANSACTION_CYCLES_GROUP
from checkers.data_plane.lag import LAG_GROUP
from checkers.linearizability.group import LINEARIZABILITY
from checkers.replicas.group import REPLICAS
from checkers.transactions.by_key_group import TRANSACTIONS_BY_KEY
from checkers.transactions.group import TRANSACTIONS_GROUP
from checkers.transactions.group_offsets_group import GROUP_OFFSETS_GROUP
from checkers.visibility.group import VISIBILITY_GROUP

__all__ = ["GROUPS"]

GROUPS: Final[tuple[CheckGroup, ...]] = (
    LAG_GROUP,
    TRANSACTIONS_BY_KEY,
    TRANSACTIONS_GROUP,
    CYCLES_GROUP,
    TRANSACTION_CYCLES_GROUP,
    REPLICAS,
    GROUP_OFFSETS_GROUP,
    CONTROL_PLANE,
    VISIBILITY_GROUP,
    LINEARIZABILITY,
)
