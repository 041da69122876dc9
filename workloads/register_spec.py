"""The options of the register workload; defaults suit an ensemble of three on one machine."""

from dataclasses import asdict, dataclass, field
from typing import Annotated, Final

from pydantic import Field

from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.history.manifest import Promises
from fencepost.history.models import Model
from fencepost.workloads.kind import WorkloadKind

Weight = Annotated[int, Field(ge=0, le=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationWeights:
    """The weights with which operations are drawn. A key that lasts has no deletes."""

    read: Weight = 30
    """A plain read, answered by the server of the session on its own."""
    sync_read: Weight = 20
    """A `sync`, and behind it a read."""
    set: Weight = 20
    """A set of any version."""
    cas: Weight = 20
    """A set of the version that the client saw last."""
    create: Weight = 12
    delete: Weight = 6
    """Of the version that the client saw last or, as often, of any."""

    def __post_init__(self) -> None:
        if not self.create:
            raise ValueError("expected create to be more than 0: a key has to be created")
        if not (self.read or self.sync_read):
            raise ValueError("expected read or sync_read to be more than 0, found neither")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterSpec:
    """Clients that read and write many znodes, each znode an object of its own.

    pydantic checks the single fields.
    """

    clients: Annotated[int, Field(ge=1, le=32)] = 3
    """Client processes. The first server that each of them turns to is the next one's."""
    sessions: Annotated[int, Field(ge=1, le=32)] = 1
    """Sessions a client."""
    pipeline: Annotated[int, Field(ge=1, le=256)] = 16
    """Logical clients a session, each with one operation open at a time."""
    rate: Annotated[float, Field(gt=0, le=100_000)] = 600.0
    """Operations a second, all clients together."""
    keys: Annotated[int, Field(ge=1, le=10_000)] = 60
    """The number of znodes. Client processes draw among all of them."""
    deleted_share: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The share of keys that are deleted and created again; the others last."""
    value_bytes: Annotated[int, Field(ge=1, le=900_000)] = 1
    """The least size of a znode's data: the number that was written, and spaces behind it.
    ZooKeeper takes 1 MiB a message by default."""
    session_timeout_ms: Annotated[int, Field(ge=400, le=120_000)] = 4000
    """The time after which ZooKeeper ends a session that it does not hear from. The servers bound
    it from 2 to 20 ticks."""
    mix: OperationWeights = field(default_factory=OperationWeights)

    @property
    def promises(self) -> Promises:
        """The promises to clients: the strictest, which are about records; it has none."""
        return Promises(idempotent=True, acks="all", consume="assign")


def _operations(spec: RegisterSpec) -> dict[str, float | None]:
    """Return what is drawn, and the final read; their ground demands each of any run."""
    drawn = [name.replace("_", "-") for name, weight in asdict(spec.mix).items() if weight]
    gone = () if spec.deleted_share else ("delete",)
    return dict.fromkeys([*(name for name in drawn if name not in gone), "final-read"])


KIND: Final = WorkloadKind(
    word="register",
    spec=RegisterSpec,
    module="fencepost.workloads.register",
    for_clusters=ZooKeeperSpec,
    first_process=400_000,
    operations=_operations,
    model=Model.ZNODE,
)
