"""Kafka's own reader of logs, DumpLogSegments, and what it prints, parsed."""

import json
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.launch import tool_command
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.provision.cache import cache_dir, kept
from fencepost.clusters.provision.maven import Coordinates, fetch_jars

# It moved to a jar of its own, which a server does not need.
_PLACES = {
    "kafka/tools/DumpLogSegments.class": "kafka.tools.DumpLogSegments",
    "org/apache/kafka/tools/DumpLogSegments.class": "org.apache.kafka.tools.DumpLogSegments",
}
_RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) CreateTime: (?P<time_ms>-?\d+) keySize: (?P<key_size>-?\d+) "
    r"valueSize: (?P<value_size>-?\d+) sequence: (?P<sequence>-?\d+) "
    r"headerKeys: \[(?P<headers>.*?)\] ?(?P<rest>.*)"
)
_BATCH_FIELD = re.compile(r"(\w+): (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedRecord:
    offset: int
    time_ms: int
    key_size: int
    value_size: int
    header_keys: tuple[str, ...]
    rest: str

    @property
    def payload(self) -> Any:
        """Of a metadata record: {"type": …, "version": …, "data": {…}}."""
        return json.loads(self.rest.partition("payload: ")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    batches: Sequence[Mapping[str, str]]
    records: Sequence[DumpedRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpTool:
    """The DumpLogSegments of one release."""

    main_class: str
    prepared: KafkaPrepared
    warden: Warden
    work: Path

    def dump(self, file: Path, *options: str) -> Dump:
        """All batches and records of a file, as Kafka reads them."""
        done = run_command(
            tool_command(
                self.main_class,
                (*options, "--files", str(file)),
                java=self.prepared.java,
                release=self.prepared.release,
            ),
            warden=self.warden,
            name="dump",
            directory=self.work,
            timeout_s=120,
        )
        assert done.exit_code == 0, done.output
        lines = done.output.splitlines()
        (self.work / "dump.log").unlink()
        return Dump(
            batches=[
                dict(_BATCH_FIELD.findall(line)) for line in lines if line.startswith("baseOffset")
            ],
            records=[_record(line) for line in lines if line.startswith("| ")],
        )


def find_dump_tool(prepared: KafkaPrepared, *, warden: Warden, work: Path) -> DumpTool:
    """The tool of the very release, fetched if the release's own jars do not have it."""
    jars = prepared.release.jars
    main_class = _main_class_in(jars)
    if main_class is None:
        jars = (*jars, _fetched(prepared, warden=warden))
        main_class = _main_class_in(jars)
    assert main_class is not None, prepared.release.name
    return DumpTool(
        main_class=main_class,
        prepared=replace(prepared, release=replace(prepared.release, jars=jars)),
        warden=warden,
        work=work,
    )


def _main_class_in(jars: Sequence[Path]) -> str | None:
    for jar in jars:
        if jar.name.startswith("kafka"):
            with zipfile.ZipFile(jar) as archive:
                names = set(archive.namelist())
            for place, main_class in _PLACES.items():
                if place in names:
                    return main_class
    return None


def _fetched(prepared: KafkaPrepared, *, warden: Warden) -> Path:
    version = prepared.release.version
    tools = Coordinates(organisation="org.apache.kafka", name="kafka-tools", revision=version)
    name = f"kafka-tools-{version}.jar"

    def build(draft: Path) -> None:
        work = draft / "work"
        work.mkdir()
        fetch_jars(
            [tools],
            into=work / "jars",
            java=prepared.java,
            run=partial(run_command, warden=warden),
            work=work,
        )
        # What it needs beside itself is what a server has.
        (work / "jars" / name).rename(draft / name)
        shutil.rmtree(work)

    return kept(
        cache_dir() / "tools" / version,
        read=lambda entry: entry / name if (entry / name).exists() else None,
        build=build,
        doing=f"fetching the tools of Kafka {version}",
        progress=print,
    )


def _record(line: str) -> DumpedRecord:
    found = _RECORD.fullmatch(line)
    assert found is not None, line
    return DumpedRecord(
        offset=int(found["offset"]),
        time_ms=int(found["time_ms"]),
        key_size=int(found["key_size"]),
        value_size=int(found["value_size"]),
        header_keys=tuple(filter(None, found["headers"].split(","))),
        rest=found["rest"],
    )
