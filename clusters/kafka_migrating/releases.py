"""The releases of Kafka that can be between ZooKeeper and KRaft: 3.5 to 3.9."""

from dataclasses import replace
from functools import partial
from typing import Final

from fencepost.clusters.kafka import releases
from fencepost.clusters.kafka_zookeeper.releases import LINE as ON_ZOOKEEPER

LINE: Final = replace(
    ON_ZOOKEEPER, known=("3.6.0", "3.9.2"), oldest=(3, 5), too_old="to migrate as 3.5 does"
)

fetch_release: Final = partial(releases.fetch_release, line=LINE)
"""Return the release of this name, as `clusters.kafka.releases` does."""
is_here: Final = partial(releases.is_here_of, LINE)
"""Return whether nothing has to be fetched for a release."""
release_here: Final = partial(releases.release_here, line=LINE)
"""Return the release of this name if nothing has to be fetched for it, else None."""
