"""docs/add-a-system.md: its example is the specification that it says it is, in short."""

from dataclasses import fields

from examples import examples_of, run_example

from fencepost.clusters.zookeeper import system


def test_the_example_of_the_page_builds_the_ensemble_that_the_system_builds() -> None:
    (example,) = examples_of("add-a-system.md")
    shown, real = run_example(example, vars(system))["ZooKeeperSpec"], system.ZooKeeperSpec
    assert shown is not real
    assert shown.roles == real.roles
    assert shown(servers=5).counts == real(servers=5).counts
    given = {one.name: getattr(shown(), one.name) for one in fields(shown)}
    assert given.items() <= {one.name: getattr(real(), one.name) for one in fields(real)}.items()
