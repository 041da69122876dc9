"""A program that does with Spark what checks do with it, so that its JVM loads the classes of one.

`python -m fencepost.clusters.provision.spark_training LIST`: the JVM writes the names of the
classes that it loads to LIST, and the program prints the class path that it found them on.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

_SETTINGS: Final = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def main(class_list: Path) -> None:
    """Judge nothing, in the way in which checks are judged; print the class path."""
    builder = SparkSession.builder.config(
        "spark.driver.extraJavaOptions",
        f'-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-XX:DumpLoadedClassList={class_list}"',
    )
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    words = F.array(F.lit("a"), F.lit("b"))
    frame = spark.range(0, 2, 1, 2).select(
        F.element_at(words, (F.col("id") + 1).cast("int")).alias("word")
    )
    assert frame.mapInArrow(_same, "word string").toArrow().num_rows == 2  # noqa: PLR2004  # two were made
    jvm = spark.sparkContext._jvm  # noqa: SLF001  # there is no public way to ask
    assert jvm is not None
    sys.stdout.write(jvm.java.lang.System.getProperty("java.class.path"))
    spark.stop()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    main(Path(sys.argv[1]))
