"""Who is learning: the token of this browser's cookie, under which what is answered is kept.

Owns no personal data. The token may be shown to its owner, in the link to continue elsewhere, and nowhere else.
"""

from __future__ import annotations

import streamlit as st

from lessons.learners import new_token, well_formed
from pages.learner_cookie import LEARNER_COOKIE


def learner() -> str:
    """The learner's token; where the browser takes no cookies, one that lasts as long as this page."""
    token = str(st.context.cookies.get(LEARNER_COOKIE, ""))
    if well_formed(token):
        return token
    return str(st.session_state.setdefault("learner", new_token()))
