"""Inspect and format a directory (K11).

`python -m fencepost.clusters.reference.shell.storage_tool`.
"""

import sys
from pathlib import Path
from typing import Final

import click

from fencepost.clusters.reference.shell.formatting import (
    Directory,
    directories_of,
    format_directory,
    looked_at,
    new_id,
)
from fencepost.clusters.reference.shell.properties import read_properties
from fencepost.history.failure import HarnessError, UsageError

_config: Final = click.option(
    "-c",
    "--config",
    required=True,
    type=click.Path(path_type=Path),
    help="The configuration file to use.",
)


@click.group(help="Inspect and modify a node's storage directories.")
def _tool() -> None:
    pass


@_tool.command()
@_config
def info(config: Path) -> None:
    """Print what is known of each directory."""
    settings = read_properties(config)
    found = [looked_at(path) for path in directories_of(settings)]
    for one in found:
        click.echo(_description(one))
    if any(one.meta is None for one in found):
        raise HarnessError("not every directory is formatted")


@_tool.command("format")
@_config
@click.option("-f", "--force", is_flag=True, help="Format even if directories are not empty.")
@click.option(
    "-d",
    "--directory",
    type=click.Path(path_type=Path),
    help="Format only this directory, rather than all directories.",
)
@click.option("-t", "--cluster-id", help="The cluster's id. [default: a new one]")
def format_(config: Path, force: bool, directory: Path | None, cluster_id: str | None) -> None:  # noqa: FBT001 -- click hands every flag over by its name
    """Format the directories of a node."""
    settings = read_properties(config)
    wanted = directories_of(settings)
    if directory is not None:
        if directory not in wanted:
            named = ", ".join(map(str, wanted))
            raise UsageError(f"{directory} is none of the node's directories: {named}")
        wanted = (directory,)
    own_id = cluster_id or new_id()
    for path in wanted:
        node_id = settings.configuration.node_id
        format_directory(path, node_id=node_id, cluster_id=own_id, force=force)
        click.echo(f"{path}: formatted for node {node_id} of cluster {own_id}")


def main() -> int:
    """Run the tool; its exit code. An error is one line on standard error, and code 1."""
    try:
        _tool.main(standalone_mode=False)
    except (HarnessError, OSError) as error:
        click.echo(f"storage_tool: {error}", err=True)
        return 1
    except click.ClickException as error:
        error.show()
        return 1
    return 0


def _description(one: Directory) -> str:
    if one.problem is not None:
        return f"{one.path}: cannot be read: {one.problem}"
    if one.meta is None:
        return f"{one.path}: {'not formatted' if one.exists else 'does not exist'}"
    meta = one.meta
    mode = meta.mode or "not stated"
    return (
        f"{one.path}: formatted for node {meta.node_id} of cluster {meta.cluster_id}, "
        f"kip.500.mode={mode}"
    )


if __name__ == "__main__":
    sys.exit(main())
