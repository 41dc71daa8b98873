"""The plain pages of a class over HTTP, and their scripts and styles: from memory, compressed once, under addresses that change with them.

Owns headers and addresses. A file is looked up by its name and never put together from an address. What the pages say belongs to
`phone/` and `stage/`.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pages.classroom.phone.source import phone_assets
from pages.classroom.stage.source import stage_assets
from pages.components.lanes.source import lanes_script, style

ROUTE = "class-assets"
TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
PLAIN = Path(__file__).with_name("plain.css")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# same-origin, not no-referrer: with that one a browser names no origin when it posts the sign-in form.
PAGE_HEADERS = {
    "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": POLICY, "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Robots-Tag": "noindex",
    "Cross-Origin-Opener-Policy": "same-origin",
}  # fmt: skip
ASSET_HEADERS = {
    "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": "default-src 'none'",
}
KEEP = "public, immutable, max-age=31536000"


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file for browsers."""

    name: str
    text: str

    @cached_property
    def plain(self) -> bytes:
        return self.text.encode()

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.plain, 9, mtime=0)

    @cached_property
    def version(self) -> str:
        """Of what is in it: under an address that holds it the file may be kept for ever."""
        return hashlib.sha256(self.plain).hexdigest()[:16]

    @property
    def media_type(self) -> str:
        return TYPES[self.name.rpartition(".")[2]]


class Files:
    """All files of the plain pages."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        found = all_texts() if texts is None else texts
        self._assets = {name: Asset(name=name, text=text) for name, text in found.items()}

    async def asset(self, request: Request) -> Response:
        """`GET /class-assets/NAME?v=VERSION`. Another version than the present one, or none, is answered and not kept."""
        asset = self._assets.get(str(request.path_params["name"]))
        if asset is None:
            return PlainTextResponse("There is no such file.", 404, headers={**ASSET_HEADERS, "Cache-Control": "no-store"})
        kept = request.query_params.get("v") == asset.version
        headers = {**ASSET_HEADERS, "Content-Type": asset.media_type, "Cache-Control": KEEP if kept else "no-cache"}
        return packed(request, asset.plain, asset.packed, headers)

    def url_of(self, request: Request) -> Callable[[str], str]:
        """Addresses of files by their names, from the address of `request`."""
        base = up(request)
        return lambda name: f"{base}{ROUTE}/{name}?v={self._assets[name].version}"

    def page(self, request: Request, text: str, *, status: int = 200) -> Response:
        """A whole page of ours."""
        body = text.encode()
        return packed(request, body, gzip.compress(body, 6, mtime=0), PAGE_HEADERS, status)

    def message(self, request: Request, status: int, title: str, text: str, more: str = "", retry_s: int | None = None) -> Response:
        """A page without a script. `more` is HTML of ours; nothing of the request is repeated."""
        begin = head(f"{title} · Shardlab", self.url_of(request))
        page = (
            f"{begin}<body><main><h1>{escape(title)}</h1><p>{escape(text)}</p>{more}</main></body></html>"
        )
        response = self.page(request, page, status=status)
        if retry_s is not None:
            response.headers["Retry-After"] = str(retry_s)
        return response


def head(title: str, url_of: Callable[[str], str]) -> str:
    """How a page without a script begins."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="{escape(url_of("plain.css"))}"></head>'
    )


def all_texts() -> dict[str, str]:
    """Every file by its name."""
    lanes = {"lanes.js": lanes_script(), "lanes.css": style()}
    return {**lanes, **phone_assets(), **stage_assets(), "plain.css": PLAIN.read_text(encoding="utf-8")}


def up(request: Request) -> str:
    """From the address of a request to where the app begins, behind a proxy's path too: `/c/ABC` is one folder deep."""
    path = str(request.scope["path"]).removeprefix(str(request.scope.get("root_path", "")))
    return "../" * (path.count("/") - 1) or "./"


def packed(request: Request, plain: bytes, small: bytes, headers: Mapping[str, str], status: int = 200) -> Response:
    """`plain`, or `small`, which is the same compressed, for whoever takes that."""
    headers = {**headers, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", "") and len(small) < len(plain):
        return Response(small, status, headers={**headers, "Content-Encoding": "gzip"})
    return Response(plain, status, headers=headers)
