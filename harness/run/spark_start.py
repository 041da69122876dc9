"""The start of Spark while something else is done.

The session stays for the next run of a series, which then is checked in a third of the time, and
ends with this process.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from pyspark.sql import SparkSession

from fencepost.checkers.runner.session import is_local, spark_session
from fencepost.clusters.provision.java import Java, spark_java_home
from fencepost.clusters.provision.spark_classes import spark_class_archive


class SparkStart:
    """A session that is started at most once, in a thread of its own, and waited for when used."""

    def __init__(
        self,
        java: Java,
        *,
        master: str,
        say: Callable[[str], None],
        memory_bytes: int | None = None,
    ) -> None:
        """`memory_bytes`: of all workers together; by default, a share of this machine's memory."""
        self._java = java
        self._master = master
        self._say = say
        self._memory_bytes = memory_bytes
        self._starting: Future[SparkSession] | None = None

    def begin(self) -> "Future[SparkSession]":
        """Start it, unless it was started before; return its future at once."""
        if self._starting is None:
            pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spark")
            self._starting = pool.submit(self._session)
            pool.shutdown(wait=False)
        return self._starting

    def session(self) -> SparkSession:
        """Return the session, once it is there; raise HarnessError if it does not start."""
        return self.begin().result()

    def _session(self) -> SparkSession:
        home = spark_java_home(self._java)
        archive = None
        if is_local(self._master):
            archive = spark_class_archive(self._java, home=home, progress=self._say)
        return spark_session(
            java_home=home,
            master=self._master,
            memory_bytes=self._memory_bytes,
            class_archive=archive,
        )
