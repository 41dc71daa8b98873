"""Who is looking: the random name of this browser, under which runs and sweeps of the lab are its own.

Owns no personal data. Must not be shown on a page or in a URL.
"""

from __future__ import annotations

import secrets

import streamlit as st

from pages.front_door import VIEWER, VIEWER_COOKIE


def viewer() -> str:
    """The browser's name; where it takes no cookies, one that lasts as long as this page."""
    name = str(st.context.cookies.get(VIEWER_COOKIE, ""))
    if VIEWER.fullmatch(name):
        return f"lab {name}"
    return f"lab {st.session_state.setdefault('viewer', secrets.token_urlsafe(16))}"
