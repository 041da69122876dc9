"""Made-up histories as sealed runs: of every model, right or with lies planted."""

from dataclasses import dataclass, replace
from pathlib import Path

from fencepost.generators import list_append as transactions
from fencepost.generators.draft import LIES, HistoryRecipe
from fencepost.generators.kafka import write_synthetic_run
from fencepost.generators.model_lies import MODEL_LIES
from fencepost.generators.models import ModelRecipe, model_pieces
from fencepost.harness.histories.built_run import KAFKA, building_run, new_manifest
from fencepost.history.failure import UsageError
from fencepost.history.manifest import Manifest, read_manifest, write_manifest
from fencepost.history.model_writer import write_model_history
from fencepost.history.models import Model
from fencepost.history.run_directory import RunDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticHistory:
    """The parameters of a made-up history."""

    model: str
    """A name of `history.models.Model`, or KAFKA."""
    operations: int
    """The number of transactions for list-append, of sends for kafka."""
    keys: int
    """The number of keys; of list-append, those in use at a time."""
    clients: int
    crash_rate: float
    fail_rate: float
    planted: tuple[str, ...]
    """The names of lies to plant, of `plantable(model)`."""
    seed: int
    name: str
    command: str


def plantable(model: str) -> tuple[str, ...]:
    """Return the names of the lies that can be told of this model."""
    if model == KAFKA:
        return tuple(LIES)
    return tuple(transactions.LIES if model == Model.LIST_APPEND else MODEL_LIES[Model(model)])


def synthetic_run(spec: SyntheticHistory, *, results: Path) -> RunDirectory:
    """Make a sealed run, `results/<name>/<time>`; the same history for the same making.

    Raises UsageError for a lie that the model does not have.
    """
    for lie in spec.planted:
        if lie not in plantable(spec.model):
            known = ", ".join(plantable(spec.model))
            raise UsageError(f"expected of a {spec.model} to plant: {known}; found {lie}")
    manifest = new_manifest(
        model=spec.model,
        name=spec.name,
        title=f"A made-up history of a {spec.model}",
        command=spec.command,
        seed=spec.seed,
    )
    with building_run(spec.name, results=results) as place:
        if spec.model == KAFKA:
            _make_clients(place.building, spec, manifest)
        elif spec.model == Model.LIST_APPEND:
            _make_transactions(place.building, spec, manifest)
        else:
            recipe = ModelRecipe(
                model=Model(spec.model),
                operations=spec.operations,
                keys=spec.keys,
                clients=spec.clients,
                crash_rate=spec.crash_rate,
                fail_rate=spec.fail_rate,
                lies=spec.planted,
                seed=spec.seed,
            )
            write_model_history(place.building, manifest, model_pieces(recipe))
    assert place.run is not None
    return place.run


def _make_transactions(run: RunDirectory, spec: SyntheticHistory, manifest: Manifest) -> None:
    recipe = transactions.ListAppendRecipe(
        transactions=spec.operations,
        seed=spec.seed,
        clients=spec.clients,
        keys_open=spec.keys,
        crash_rate=spec.crash_rate,
        fail_rate=spec.fail_rate,
        lies=spec.planted,
    )
    table = transactions.synthetic_transactions(recipe).table
    promised = replace(manifest, isolation=recipe.isolation.value)
    write_model_history(run, promised, transactions.pieces(table))


def _make_clients(run: RunDirectory, spec: SyntheticHistory, manifest: Manifest) -> None:
    recipe = HistoryRecipe(
        sends=spec.operations,
        keys=spec.keys,
        producers=spec.clients,
        crash_rate=spec.crash_rate,
        fail_rate=spec.fail_rate,
        lies=spec.planted,
        seed=spec.seed,
    )
    write_synthetic_run(run, recipe)
    written = read_manifest(run.manifest_path)
    kept = {
        name: getattr(manifest, name)
        for name in ("scenario", "title", "started_at", "command", "fencepost_version")
    }
    write_manifest(run.manifest_path, replace(written, **kept))
