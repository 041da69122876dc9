"""Histories of objects: operations on registers, sets, counters, logs and lists, of any system.

A run of the harness records what clients did to Kafka's partitions. An *open history* is one of a
plainer object, made by another tool or made up (`Manifest.model` says which object): a checker
decides whether some order of the operations, each taking effect between its call and its return,
explains every answer. Operations end as everywhere: ok, fail (it surely did not take effect) or
info (it may have, at any time after its call).

The operations of each model, by `f`, and the columns that they use:

| model | f | expected | version | value | values |
|---|---|---|---|---|---|
| versioned-register | read | | read | read | |
| | cas | version expected | made | written | |
| | write | | made | written | |
| register | read | | | read | |
| | write | | | written | |
| | cas | value expected | | written | |
| log | append | | offset it got | appended | |
| | read | | offset asked for | found there; null: nothing was there yet | |
| set | add | | | added | |
| | read | | | | all elements |
| counter | add | | | added, negative too | |
| | read | | | read | |
| list-append | append, read: `MICRO_OPERATIONS` | | | appended | all that was read, in order |
| znode | create, set, cas, delete, read, sync-read, final-read: `ZNODE_OPERATIONS` | | | | |

- A versioned register begins at version 0, which has no value (null), and each change makes the
  next version. One that began with a value has a first write of it before everything.
- A register begins without a value (null), a set and a list empty, a counter at 0, a log with its
  next offset 0.
- A `cas` that fails without an error was refused: what it expected did not hold at some moment
  between call and return. One that fails with an error did not take effect, and says nothing.
- A znode is absent at first. A create begins a *life*, whose number is greater than those of all
  lives before it (ZooKeeper's czxid), with version 0; a set and a `cas` make the next version of
  the life; a delete ends it, and its `version` is the last one that the life had. A read that found
  nothing has no life. `expected` is a version: of a `cas`, and of a delete that names one.
  Each value is written once. What fails without an error was refused: a create, for the znode was
  there; a set, or a delete of any version, for it was absent; a `cas`, or a delete of one version,
  for it was absent or had another version.
- Null where the client never learned it: the version that a crashed `cas` made, the offset of a
  crashed `append`, the value of a `read` that is not ok.
"""

from enum import StrEnum
from typing import Final


class Model(StrEnum):
    """The kind of object that a history is about; every key of it is one such object."""

    VERSIONED_REGISTER = "versioned-register"
    REGISTER = "register"
    LOG = "log"
    SET = "set"
    COUNTER = "counter"
    LIST_APPEND = "list-append"
    """Transactions over many lists, each appended to and read whole."""
    ZNODE = "znode"
    """A node of ZooKeeper's tree, as a run of the harness records it: no file of others has it."""


class Isolation(StrEnum):
    """The isolation that transactions were promised, weakest first."""

    READ_UNCOMMITTED = "read-uncommitted"
    READ_COMMITTED = "read-committed"
    SNAPSHOT = "snapshot"
    SERIALIZABLE = "serializable"
    STRICT_SERIALIZABLE = "strict-serializable"


OPEN_MODELS: Final = tuple(model for model in Model if model is not Model.ZNODE)
"""The models whose histories are taken in from files and made up, and given out as files."""

MODEL_TABLES: Final = dict.fromkeys(Model, "model_operations") | {
    Model.LIST_APPEND: "micro_operations",
    Model.ZNODE: "znode_operations",
}
"""The table of `history.schema` that holds the operations of each model."""
