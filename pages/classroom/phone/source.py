"""The audience's page as text: one page, one script and one style sheet; the live picture comes when there is a run to see.

Owns how its files become one; there is no build step. Must not import streamlit, and knows no class: what is told comes with its view.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path

from lessons.model import SILHOUETTES, Silhouette
from pages.components.lanes.source import FOLDER as LANES
from pages.components.lanes.source import joined
from pages.components.silhouettes import capital, silhouette_svg

FOLDER = Path(__file__).resolve().parent
SHARED = FOLDER.parent / "shared"
PARTS = ("memory", "server", "sign", "outbox", "clock", "speaker", "parts", "doors", "screens", "stage", "phone")
"""The page's scripts in the order in which they need each other."""

UrlOf = Callable[[str], str]
"""Where the browser finds an asset, by its name: one of `phone_assets`, or lanes.js and lanes.css."""

ASSETS = ("phone.css", "phone.js", "lanes.js", "lanes.css")


@cache
def phone_assets() -> dict[str, str]:
    """The script and the style sheet of the page, by name."""
    shared = (LANES / "dom.js", *(SHARED / f"{part}.js" for part in ("prose", "drawing", "race", "feed")))
    script = joined((*shared, *(FOLDER / f"{part}.js" for part in PARTS)))
    return {"phone.js": script, "phone.css": _read("phone.css")}


def phone_page(url_of: UrlOf, *, unknown: bool = False) -> str:
    """The page of `/c` and `/c/CODE`; `unknown` says that no class has the code of this address."""
    page = _read("phone.html").replace("{door}", "unknown" if unknown else "open")
    for asset in ASSETS:
        page = page.replace(f"{{{asset}}}", escape(url_of(asset)))
    return page.replace("{silhouettes}", _silhouettes())


@cache
def _silhouettes() -> str:
    """The five drawings, for the script to copy."""
    return "\n".join(_template(name, escape(_unbroken(words))) for name, words in SILHOUETTES.items())


def _template(name: Silhouette, words: str) -> str:
    drawing = silhouette_svg(name, decorative=True)
    return f'<template id="sil-{name}" data-silhouette="{name}" data-words="{words}">{drawing}</template>'


def _unbroken(words: str) -> str:
    """The label, with the GPU's number on the line of its name."""
    return capital(words).replace("GPU 0", "GPU\u00a00")


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
