"""What is decided about containers and subnets without asking anybody."""

from ipaddress import IPv4Network

import pytest

from fencepost.clusters.hosts.docker.container import exit_code_of, memory_limit_bytes
from fencepost.clusters.hosts.docker.daemon import ContainerState
from fencepost.clusters.hosts.docker.image import ImageRecipe
from fencepost.clusters.hosts.subnet import Subnet, free_subnets

MIB = 1 << 20


@pytest.mark.parametrize(
    ("docker_says", "means"), [(0, 0), (1, 1), (137, -9), (134, -6), (139, -11), (143, 143)]
)
def test_only_what_nobody_survives_counts_as_ended_by_a_signal(
    docker_says: int, means: int
) -> None:
    ended = ContainerState(running=False, pid=0, exit_code=docker_says, out_of_memory=False)
    assert exit_code_of(ended) == means


@pytest.mark.parametrize(
    ("options", "limit_mib"),
    [([], 1024), (["-Xmx256m"], 1024), (["-Xmx256m", "-Xmx2g"], 4608), (["-Xmx1048576k"], 2560)],
    ids=["none", "usual", "last-wins", "kilobytes"],
)
def test_the_memory_limit_follows_the_heap(options: list[str], limit_mib: int) -> None:
    assert memory_limit_bytes(["java", *options, "kafka.Kafka"]) == limit_mib * MIB


def test_another_recipe_is_another_image() -> None:
    assert ImageRecipe().tag == ImageRecipe().tag
    assert ImageRecipe(packages=("procps",)).tag != ImageRecipe().tag


def test_a_subnet_overlaps_with_nothing_that_is_routed() -> None:
    routed = [IPv4Network("0.0.0.0/0"), IPv4Network("10.213.0.0/20"), IPv4Network("10.213.17.3/32")]
    assert next(free_subnets(routed)) == IPv4Network("10.213.32.0/20")
    assert next(free_subnets([IPv4Network("10.0.0.0/8")])) == IPv4Network("172.29.0.0/20")
    everything = [IPv4Network("10.0.0.0/8"), IPv4Network("172.16.0.0/12")]
    assert list(free_subnets(everything)) == []


def test_each_node_and_each_link_has_an_address_of_its_own() -> None:
    subnet = Subnet(network=IPv4Network("10.213.16.0/20"))
    nodes = [subnet.node(number) for number in range(1, 32)]
    links = [subnet.link(source, target) for source in range(32) for target in range(32)]
    assert len({subnet.gateway, *nodes, *links}) == 1 + 31 + 1024
    assert nodes[0] == "10.213.16.2"
    assert links[0] == "10.213.24.1"
