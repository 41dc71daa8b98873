"""The instructor's two pages as text: the projector's and the console's, each one page, one script and one style sheet.

Owns how their files become one; there is no build step. Must not import streamlit, and knows no class but its code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path

from lessons.model import SILHOUETTES
from pages.components.lanes.source import joined
from pages.components.silhouettes import silhouette_svg

FOLDER = Path(__file__).resolve().parent
DOM = FOLDER.parents[1] / "components/lanes/dom.js"
SHARED = FOLDER.parent / "shared"

SCRIPTS: dict[str, tuple[Path, ...]] = {
    "projector.js": (
        DOM, SHARED / "prose.js", SHARED / "feed.js", SHARED / "race.js", FOLDER / "line.js", FOLDER / "pictures.js",
        FOLDER / "scenes.js", FOLDER / "running.js", FOLDER / "projector.js",
    ),
    "console.js": (
        DOM, SHARED / "feed.js", FOLDER / "line.js", FOLDER / "acting.js", FOLDER / "says.js", FOLDER / "panels.js", FOLDER / "console.js",
    ),
}  # fmt: skip
"""Each page's files in the order in which they need each other."""

STYLES = ("projector.css", "console.css")

UrlOf = Callable[[str], str]
"""Where the browser finds an asset, by its name: one of `stage_assets`, or lanes.js and lanes.css."""


@cache
def stage_assets() -> dict[str, str]:
    """The scripts and style sheets of both pages, by name."""
    letters = font_face()
    return {name: joined(parts) for name, parts in SCRIPTS.items()} | {name: letters + _read(name) for name in STYLES}


def projector_page(code: str, url_of: UrlOf) -> str:
    """The projector's page: nothing in it but the code, and where to ask."""
    pictures = "".join(f'<template id="sil-{name}">{silhouette_svg(name)}</template>' for name in SILHOUETTES)
    page = _filled("projector.html", code, url_of, ("lanes.css", "lanes.js", "projector.css", "projector.js"))
    return page.replace("{silhouettes}", pictures)


def console_page(code: str, url_of: UrlOf) -> str:
    """The console's page; whoever serves it has made sure that an instructor asks."""
    return _filled("console.html", code, url_of, ("console.css", "console.js"))


def font_face() -> str:
    """Source Sans from the server itself, as Streamlit's pages have it: a room without internet reads the same letters."""
    found = find_spec("streamlit")
    folder = Path(found.origin).parent / "static/static/media" if found and found.origin else FOLDER
    files = sorted(folder.glob("SourceSansVF-Upright*.woff2"))
    if not files:
        return ""
    source = f'url("../static/media/{files[0].name}")'
    return f'@font-face {{ font-family: "Source Sans"; font-weight: 200 900; font-display: swap; src: {source}; }}\n'


def _filled(name: str, code: str, url_of: UrlOf, assets: tuple[str, ...]) -> str:
    page = _read(name).replace("{code}", escape(code))
    for asset in assets:
        page = page.replace(f"{{{asset}}}", escape(url_of(asset)))
    return page


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
