"""The abilities of this machine beyond local processes; a run on `local` needs none of them."""

import os
from typing import Final

from clusters.hosts.bandwidth import why_no_limits, why_no_netem
from clusters.hosts.docker.daemon import connected
from clusters.hosts.docker.image import BASE, base_archive, missing_to_make_base
from clusters.hosts.namespaces import why_no_namespaces
from clusters.hosts.packets import why_no_rules
from harness.doctor.finding import DoctorFinding
from history.failure import HarnessError

__all__ = ["bandwidth_finding", "docker_finding", "netem_finding", "packets_finding"]

_NO_NETEM: Final = "not needed: the proxy delays, drops, duplicates and reorders, frame by frame"


def docker_finding() -> DoctorFinding:
    """Check for what `--host docker` needs: a daemon, the right to make networks, an image."""
    try:
        with connected() as daemon:
            version = daemon.version()
            loaded = daemon.image_id(BASE.image) is not None
    except HarnessError as error:
        return _docker(found="no", way_out=str(error))
    found = f"daemon {version}"
    if os.geteuid() != 0:
        return _docker(found=found, way_out="--host docker makes routes: it needs root")
    if loaded:
        return _docker(ok=True, found=f"{found}, base image loaded")
    if base_archive().is_file():
        return _docker(ok=True, found=f"{found}, base image in the cache")
    if missing := missing_to_make_base():
        lacking = f"the base image needs {missing}; or name one that Docker has: --image NAME"
        return _docker(found=found, way_out=lacking)
    making = "the first run makes the base image (a minute or two)"
    return _docker(ok=True, found=found, way_out=making)


def packets_finding() -> DoctorFinding:
    """Check whether packets can be dropped for partitions, in networks of the nodes' own."""
    return _of_networks(
        "packets",
        found="dropped by rules (`by: packets`)",
        why=why_no_namespaces() or why_no_rules(),
    )


def bandwidth_finding() -> DoctorFinding:
    """Check whether the bandwidth of what a node sends can be limited."""
    return _of_networks(
        "bandwidth", found="bounded by rate", why=why_no_namespaces() or why_no_limits()
    )


def netem_finding() -> DoctorFinding:
    """Check whether the kernel can delay, lose and reorder packets; Fencepost does not use this."""
    why = why_no_namespaces() or why_no_netem()
    found = why or "the kernel has it"
    return DoctorFinding(what="netem", ok=why is None, found=found, way_out=_NO_NETEM, needed=False)


def _of_networks(what: str, *, found: str, why: str | None) -> DoctorFinding:
    said = found if why is None else "none"
    return DoctorFinding(
        what=what, ok=why is None, found=said, way_out=why or "", needed=False, faults=(what,)
    )


def _docker(*, found: str, ok: bool = False, way_out: str = "") -> DoctorFinding:
    return DoctorFinding(what="containers", ok=ok, found=found, way_out=way_out, needed=False)
