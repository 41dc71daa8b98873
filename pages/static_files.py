"""Streamlit's own files from memory, compressed once: what hundreds of visitors who come at the same moment ask for first.

A first visit fetches 2.7 MB in about 40 files. Streamlit reads each from the disk for everyone, in a thread, and sends it as it is;
that was most of the CPU of joining (tests/benchmarks/join.py). The files never change while the server runs, and their names hold a
hash of what is in them. Owns that cache, bounded by the folder it mirrors. Must not serve anything else.
"""

from __future__ import annotations

import gzip
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import file_util

ROUTE = "static"
"""The folder, and the part of the address, of the files whose names are hashed."""

KEEP = b"public, immutable, max-age=31536000"
"""What Streamlit says of them too."""

COMPRESSED = (".js", ".css", ".json", ".svg", ".map", ".txt", ".html", ".wasm", ".ttf")
"""What gzip makes smaller; pictures and woff2 fonts are compressed already."""


@dataclass(frozen=True, kw_only=True)
class _File:
    plain: bytes
    packed: bytes | None
    media_type: bytes

    @classmethod
    def read(cls, path: Path) -> _File:
        plain = path.read_bytes()
        packed = gzip.compress(plain, 6, mtime=0) if path.suffix in COMPRESSED else None
        media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        if media_type.startswith("text/") or media_type == "application/javascript":
            media_type += "; charset=utf-8"
        smaller = packed if packed is not None and len(packed) < len(plain) else None
        return cls(plain=plain, packed=smaller, media_type=media_type.encode())


class StaticFiles:
    """ASGI middleware: answers GET and HEAD for a file of Streamlit's `static` folder; whatever else is asked goes on."""

    def __init__(self, app: ASGIApp, *, folder: Path | None = None) -> None:
        self._app = app
        self._folder = (folder or Path(file_util.get_static_dir())) / ROUTE
        # Names are looked up in this list and never put together from an address.
        self._paths = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*") if path.is_file()}
        self._files: dict[str, _File] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = self._asked_for(scope)
        if file is None:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        packed = file.packed is not None and b"gzip" in headers.get(b"accept-encoding", b"")
        body = file.packed if packed and file.packed is not None else file.plain
        answer = [
            (b"content-type", file.media_type), (b"content-length", str(len(body)).encode()), (b"cache-control", KEEP),
            (b"vary", b"accept-encoding"), (b"x-content-type-options", b"nosniff"),
        ]
        if packed:
            answer.append((b"content-encoding", b"gzip"))
        await send({"type": "http.response.start", "status": 200, "headers": answer})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _asked_for(self, scope: Scope) -> _File | None:
        """The file; None for anything that is not whole and plainly one of them."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or any(name == b"range" for name, _ in scope["headers"]):
            return None
        _, found, name = str(scope["path"]).partition(f"/{ROUTE}/")  # behind a base path too
        if not found or name not in self._paths:
            return None
        if name not in self._files:
            try:
                self._files[name] = _File.read(self._paths[name])
            except OSError:
                return None
        return self._files[name]
