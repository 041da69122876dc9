"""What this machine can do beyond local processes; none of it is needed for a run on `local`."""

import os

from clusters.hosts.docker.daemon import connected
from clusters.hosts.docker.image import BASE, base_archive, missing_to_make_base
from harness.finding import Finding
from history.failure import HarnessError

__all__ = ["docker_finding"]


def docker_finding() -> Finding:
    """Whether `--host docker` can run here: a daemon, the right to make networks, an image."""
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


def _docker(*, found: str, ok: bool = False, way_out: str = "") -> Finding:
    return Finding(what="containers", ok=ok, found=found, way_out=way_out, needed=False)
