"""The definitions of metadata records, out of the jars of the release that wrote them."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from fencepost.clusters.protocol.message_definitions import DefinitionError, Message, parsed_message
from fencepost.clusters.protocol.metadata_records import CONTROL_MESSAGES, Definitions
from fencepost.history.failure import HarnessError

_WANTED: Final = re.compile(
    rf"common/(?:metadata/\w+|message/(?:{'|'.join(CONTROL_MESSAGES.values())}))\.json"
)


def definitions_of(jars: Iterable[Path]) -> Definitions:
    """Return what the jars of a release (`Release.jars`) know of metadata records.

    Raises HarnessError, naming the jar, if one is unreadable or none has any definition.
    """
    places = tuple(jars)
    found = [message for jar in places for message in _messages_in(jar)]
    definitions = Definitions(found)
    if not definitions.record_types:
        where = ", ".join(sorted({str(jar.parent) for jar in places})) or "no jar at all"
        raise HarnessError(
            f"no definition of a metadata record in {where}: expected common/metadata/*.json in "
            "kafka-metadata-*.jar"
        )
    return definitions


def _messages_in(jar: Path) -> Iterator[Message]:
    if not jar.name.startswith("kafka"):
        return
    try:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if _WANTED.fullmatch(name):
                    yield parsed_message(archive.read(name).decode())
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise HarnessError(f"cannot read {jar}: {error}") from error
    except DefinitionError as error:
        raise HarnessError(f"{jar}: {name}: {error}") from error
