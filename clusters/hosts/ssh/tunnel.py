"""Leads connections of other machines to the addresses of links. Run as a script, stdlib only.

The proxy listens for each link on an address of this machine's loopback, which no other machine can
reach. So a port is open to them, and the first line of a connection says the run's token and which
link it is of: `token address port`. A caller that does not know the token, or names anything but a
link, is hung up on. The configuration, a file of JSON: `{"listeners": [[address, port]], "token",
"links": [[address, port]]}`.
"""

import asyncio
import hmac
import json
import socket
import sys
from pathlib import Path

from fencepost.clusters.hosts.ssh.agent import pump

_OPENING_S_MAX = 10.0
_CHUNK = 1 << 18


class _Tunnel:
    """The links of a run, open to connections that begin with its token."""

    def __init__(self, *, token: str, links: list[list[object]]) -> None:
        self._token = token
        self._links = {(str(address), int(str(port))) for address, port in links}

    async def lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lead one connection, to its end."""
        try:
            opening = await asyncio.wait_for(reader.readline(), _OPENING_S_MAX)
            token, address, port = opening.decode().split()
            known = hmac.compare_digest(token, self._token)
            if not known or (address, int(port)) not in self._links:
                writer.transport.abort()
                return
            far_reader, far_writer = await asyncio.open_connection(address, int(port), limit=_CHUNK)
        except (OSError, ValueError):
            writer.transport.abort()
            return
        for one in (writer, far_writer):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        for one in (writer, far_writer):
            one.close()


async def _serve(config: dict[str, list[list[object]]]) -> None:
    tunnel = _Tunnel(token=str(config["token"]), links=config["links"])
    servers = [
        await asyncio.start_server(tunnel.lead, str(address), int(str(port)), limit=_CHUNK)
        for address, port in config["listeners"]
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(Path(sys.argv[1]).read_text())))
