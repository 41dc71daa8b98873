"""The address that the room is told: for the QR code and the words beside it.

Owns remembering how instructors reach this server; which address follows from that is decided in `pages.classroom.address`.
"""

from __future__ import annotations

import re
import threading
import time

import streamlit as st
from starlette.requests import Request

from pages.classroom.address import Address, Interface, Surroundings, objections, phone_address
from pages.classroom.files import up
from pages.classroom.probe import in_container, interfaces
from scenarios.settings import Settings

HOST = re.compile(r"[A-Za-z0-9._-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
LOOK_EVERY_S = 30.0
"""How often the machine is asked for its addresses: it may change networks before a class."""


class Whereabouts:
    """Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._public_url = settings.public_url
        self._page_url = f"http://localhost:{st.get_option('server.port')}"
        self._proxied = False
        self._interfaces: tuple[Interface, ...] = ()
        self._looked_s = 0.0
        self._lock = threading.Lock()

    def remember(self, request: Request) -> None:
        """An instructor came by this address."""
        self._page_url, self._proxied = _base(request), "x-forwarded-for" in request.headers

    def join_url(self, request: Request, code: str) -> str:
        """Where phones go, as seen by whoever asks."""
        return self._address(_base(request)).joining(code)

    def join_words(self, code: str) -> str:
        """The same as one reads it out, as seen by the instructor who came last."""
        return f"{self._address(self._page_url).short}/c/{code}"

    def unreachable(self) -> str:
        """Why no phone can open the address on the projector, and what to do; empty where nothing is certain."""
        around = self._around(self._page_url)
        return next((f"{each.words} {each.next}" for each in objections(phone_address(around), around) if each.sure), "")

    def _address(self, page_url: str) -> Address:
        return phone_address(self._around(page_url))

    def _around(self, page_url: str) -> Surroundings:
        return Surroundings(
            page_url=page_url, public_url=self._public_url, listens_on=str(st.get_option("server.address") or ""),
            interfaces=self._machine(), in_container=in_container(), proxied=self._proxied,
        )  # fmt: skip

    def _machine(self) -> tuple[Interface, ...]:
        with self._lock:
            if not self._looked_s or time.monotonic() - self._looked_s > LOOK_EVERY_S:
                self._interfaces, self._looked_s = interfaces(), time.monotonic()
            return self._interfaces


def _base(request: Request) -> str:
    """Where the app begins, as the browser of `request` has it."""
    scheme = request.headers.get("x-forwarded-proto", request.url.scheme).partition(",")[0].strip()
    scheme = scheme if scheme in ("http", "https") else "http"
    host = (request.headers.get("x-forwarded-host") or request.headers.get("host") or "localhost").partition(",")[0].strip()
    host = host if HOST.fullmatch(host) else "localhost"
    folders = str(request.scope["path"]).split("/")[: -1 - up(request).count("../")]
    return f"{scheme}://{host}{'/'.join(folders)}".rstrip("/")
