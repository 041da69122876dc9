"""A scenario of Kafka's, laid over another system that can do what it asks for, by a flag."""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from fencepost.clusters.port import KEY
from fencepost.clusters.system import System
from fencepost.clusters.systems import SYSTEMS
from fencepost.harness.scenario.yaml_file import Document

SYSTEM_KEY: Final = ("cluster", "system")


def on_other_system(document: Document, name: str, flag: str) -> Document:
    """Return the document with a cluster of this system, of the release that the system starts on.

    Roles are renamed to those that stand for them. Other words that the system does not have are
    refused when the document is read.
    """
    system, found = SYSTEMS[name], document
    match document.data:
        case {"cluster": dict(cluster)} if cluster.get("system") != name:
            release = key_of_release(system)
            kept = {key: cluster[key] for key in cluster if key != release}
            found = found.with_flag(("cluster",), _renamed(kept, system), flag)
    match document.data:
        case {"nemesis": {"down": dict(down)}}:
            found = found.with_flag(("nemesis", "down"), _renamed(down, system), flag)
    match document.data:
        case {"nemesis": {"targets": list(targets)}}:
            named = [_target(str(word), system) for word in targets]
            found = found.with_flag(("nemesis", "targets"), named, flag)
    return found.with_flag(SYSTEM_KEY, name, flag)


def key_of_release(system: System) -> str:
    """Return the key by which a scenario's cluster, and a flag, name a release of the system."""
    (release,) = (field for field in fields(system.spec) if field.name == "release")
    return str(release.metadata.get(KEY, release.name))


def _renamed(counts: Mapping[str, Any], system: System) -> dict[str, Any]:
    """Return counts by role, under the names of the roles here."""
    plurals = {f"{old}s": f"{new}s" for old, new in system.stands_for.items()}
    return {plurals.get(key, key): value for key, value in counts.items()}


def _target(word: str, system: System) -> str:
    """Return "one zookeeper" for "one controller"; "active controller" is a target here, too."""
    if word not in {target.words for target in system.targets}:
        for old, new in system.stands_for.items():
            word = re.sub(rf" {old}(s?)$", rf" {new}\1", word)
    return word
