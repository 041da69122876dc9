"""The digests of releases that the track record names: SHA-256 over the names and digests of jars.

A repository that sends other bytes under these names, or a cache that was changed with care, would
give a verdict on something else. The digests are those of the series in `results/track-record`
(and, of 3.3.2 and 3.7.2, of Maven Central in November 2026). Of any other release the checksum
files of its repository are all there is.
"""

from collections.abc import Mapping
from typing import Final

PINNED: Final[Mapping[tuple[str, str], str]] = {
    ("Kafka", "2.0.0"): "9da14b342909a064f5c871ed06acb0196eea73d96c751841ed88217b626209ea",
    ("Kafka", "2.1.1"): "f41a054a04fda4ab1de40c24f38e3acfab1bad1739845e44e36d38d302de2164",
    ("Kafka", "2.2.2"): "cc664df35637e68f35469a6d80294b435c463ff6934b3ccd095c92d4c8d73156",
    ("Kafka", "2.5.1"): "19119103282d1b094f89ad3ef4617e00c587d0335da7cd5087407ee410b7f202",
    ("Kafka", "2.6.3"): "d9cb4f18a6abcaeef71a2d85dee550f3d0a03043b7e162449b7d758756dbfc1e",
    ("Kafka", "3.0.0"): "58753e3a2bb0338530c6b0b19572cc1fbe07ee09a075d962d5106a1a29522acc",
    ("Kafka", "3.0.1"): "f0fc7b7a5b825a59987ec515d12e128c2c52542cd8cce69fda571b76a64e69f4",
    ("Kafka", "3.3.2"): "552d0661bd850ac61c5cd83a641103292eb576be5d7ebc8da8709f13931796f9",
    ("Kafka", "3.4.1"): "b03fabef9d1d3c9fc862bef763fe20cee7542c093c47d42e92192e13d78d0272",
    ("Kafka", "3.5.1"): "53f14cc0776d9b691cbdd1c406ddb98395bc211b2cc976dea1b0c3925b9dd32a",
    ("Kafka", "3.5.2"): "6611b0809645322f92ed711e9871e4d4f09fd77edaeee2d601fecb8c9451529f",
    ("Kafka", "3.6.0"): "221214bc01a2067d32aaa02dbca76c94e3ccb2c297169b2cc96a1966ab066b57",
    ("Kafka", "3.6.2"): "fc31ff082051e0509ed1be404c08231dfd4cee30275f0e06ae7bfd2376bd7ddf",
    ("Kafka", "3.7.2"): "a88bfa35fa2030f38538b126dfbea18f15eda8a2e0e427a6f125e282731686d5",
    ("Kafka", "3.9.2"): "aea7a5c231fa124b118209d52b9fe968e420e08f7e1f7bfec392f8c1de62b951",
    ("Kafka", "4.0.1"): "51894df58ee57f9f3bc022f4db5f8230a504b59979b406675afe488e840b28b0",
    ("Kafka", "4.3.1"): "9b241538730d32e890117f2362eee3ff6ed60f753d73e6a46652b547a64df32f",
    ("ZooKeeper", "3.6.2"): "6b657ece5e3ccd53433f8b9aa83134da3658b6b81f3097a1a4a53d60dfe9d166",
    ("ZooKeeper", "3.7.2"): "2843a77b83fa233d1bc185604aedf4fff96decd84c87ffa35938b527e3b72942",
    ("ZooKeeper", "3.9.1"): "3a8b7e5a063da3c79f8997a54093ea3828a63e284b90ed78cd71179a4f5569ce",
    ("ZooKeeper", "3.9.2"): "3874f6d9f18d3c8d88ff037610002cc0c2dbd27f06d810de08b4ed9e3b7558cb",
    ("ZooKeeper", "3.9.3"): "6d8acf18d55f3049ebf82ed0d9e28265efa6277a41535e754d4cfb81a6952af7",
    ("ZooKeeper", "3.9.5"): "846bc5528af1673f5c7072c8b5ef9751707179b641280238aac145f207846318",
}
"""By the title of the software and the name of its release."""
