"""The QR code of an address, as SVG: black on white in either theme, with the quiet zone that cameras need.

Owns its looks. Which address it says, and what speaks against that one, is for `pages.classroom.address`.
"""

from __future__ import annotations

import base64
import io
from functools import lru_cache

import segno

QUIET = 4
"""Modules of white around it, as the standard wants."""


@lru_cache(maxsize=64)
def qr_svg(text: str) -> str:
    """A whole SVG document that scales with the box it is put in; `text` is its title. Level M: a seventh of it may be covered."""
    out = io.BytesIO()
    code = segno.make(text, error="m", micro=False)
    code.save(out, kind="svg", border=QUIET, dark="#000", light="#fff", omitsize=True, xmldecl=False, nl=False, title=f"QR code of {text}")
    return out.getvalue().decode()


def qr_data_url(text: str) -> str:
    """The same as the address of a picture, for pages that let no SVG through."""
    return "data:image/svg+xml;base64," + base64.b64encode(qr_svg(text).encode()).decode()
