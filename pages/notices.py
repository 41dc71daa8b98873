"""A sentence that a button leaves for the next run of the script: what it could not do.

Owns where it is kept. Must not draw it.
"""

from __future__ import annotations

import streamlit as st


def say(text: str) -> None:
    """A sentence to show once, at the next run of the script."""
    st.session_state["said"] = text


def said() -> str | None:
    """The sentence, once."""
    text = st.session_state.pop("said", None)
    return text if isinstance(text, str) else None
