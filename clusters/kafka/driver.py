"""Prepares and builds clusters of Apache Kafka."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from fencepost.clusters.hosts.place import Site
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare, with_levels, with_release
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.provision.releases import UnfetchedError
from fencepost.clusters.system import Wanted
from fencepost.history.failure import HarnessError, SpecError, UsageError


class KafkaDriver:
    """`clusters.system.Driver`."""

    cluster = KafkaCluster

    def prepare(self, spec: KafkaSpec, wanted: Wanted, say: Callable[[str], None]) -> KafkaPrepared:
        """Prepare its release, and each release and metadata.version that the play changes to."""
        try:
            ready = prepare(spec, say)
            for step, name in wanted.releases:
                with _placed(step):
                    ready = with_release(ready, name, spec=spec, progress=say)
            # The newest release of them all says which levels a metadata.version implies.
            for step, name in wanted.levels:
                with _placed(step):
                    ready = with_levels(ready, name, spec=spec, progress=say)
        except (SpecError, UsageError, UnfetchedError):
            raise  # the ways out of the last are the harness's to name
        except HarnessError as error:
            more = "(--cluster reference needs no release of Kafka)"
            raise HarnessError(f"{error}\n{more}") from error
        return ready

    def build(
        self, spec: KafkaSpec, prepared: KafkaPrepared, *, site: Site, rules_off: Sequence[str]
    ) -> KafkaCluster:
        """The cluster, with nothing of it running yet."""
        assert not rules_off, "refused before"
        return KafkaCluster(spec, prepared=prepared, site=site)


DRIVER: Final = KafkaDriver()


@contextmanager
def _placed(step: int) -> Iterator[None]:
    """Turn a UsageError inside into a SpecError of this step of the play."""
    try:
        yield
    except UsageError as error:
        raise SpecError(("play", step), str(error)) from error
