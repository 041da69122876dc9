"""What the web page refuses, and the headers that it puts on everything.

The page is for the browser of this machine. A site elsewhere can make that browser ask 127.0.0.1,
under a name of its own (DNS rebinding): so the Host header has to be ours. Results may come from
others: what they hold is never run as a part of the page. A stored report has scripts of its own,
so it is sandboxed into an origin of its own, from which it can reach nothing.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The policy of our own pages: nothing inline, nothing from elsewhere."""
STORED_POLICY: Final = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""The policy of stored files: inline scripts in an origin of their own, and no connection."""
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_METHODS: Final = ("GET", "HEAD")
_ENCODED: Final = (b"%2f", b"%5c", b"%00", b"%2e")
"""What no link of ours has, and what would be read otherwise here than by a router."""


class Guard:
    """An application behind the rules: GET and HEAD, by our own name, with our headers."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str]) -> None:
        """`hosts`: the values of the Host header that are ours, port included."""
        self._app = app
        self._hosts = frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", PAGE_POLICY)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        named = [value.lower() for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or named[0] not in self._hosts:
            return PlainTextResponse("this page answers to 127.0.0.1 and localhost only\n", 400)
        if scope["method"] not in _METHODS:
            allowed = {"Allow": ", ".join(_METHODS)}
            return PlainTextResponse("this page is read-only\n", 405, headers=allowed)
        raw = (scope.get("raw_path") or scope["path"].encode()).lower()
        if any(one in raw for one in _ENCODED) or "\0" in scope["path"] or "\\" in scope["path"]:
            return PlainTextResponse("there is no such page\n", 404)
        return None


def file_inside(root: Path, relative: str) -> Path | None:
    """Return the regular file of this path below `root`, links followed; None if there is none.

    None, too, of a path that leads out of `root`, by `..` or by a link.
    """
    parts = relative.split("/")
    if "\0" in relative or any(part in ("", ".", "..") for part in parts):
        return None
    try:
        found = root.joinpath(*parts).resolve(strict=True)
        inside = found.is_relative_to(root.resolve(strict=True))
        return found if inside and found.is_file() else None
    except (OSError, RuntimeError):  # not there, not ours to read, or a loop of links
        return None
