"""Signing in as an instructor: by the key of this server, or with the account that Streamlit was set up for.

A form of plain HTML posts the key to `/instructor/sign-in`, which answers with a cookie that no script can read; Streamlit itself cannot
set one. Owns the form and who is signed in. Whether a key is right is for `pages.classroom.instructor`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from html import escape
from typing import Any

import streamlit as st

from pages.account_return import FAILED, OUTCOME
from pages.classroom.instructor import INSTRUCTOR_COOKIE, TICKET_S, get_instructors

FORM = (
    '<form class="pg-sign-in" method="post" action="instructor/sign-in"><label for="instructor-key">Instructor key</label>'
    '<input id="instructor-key" name="key" type="password" autocomplete="current-password" required>'
    '<button type="submit">Sign in</button></form>'
    '<p class="pg-note">Whoever started this server has it: it was printed at the start and stands in <code>instructor.key</code> in the '
    "data folder, unless <code>SHARDLAB_INSTRUCTOR_KEY</code> sets it.</p>"
)
CAME_TO_NOTHING = "Nobody was signed in. Please try once more; if that does not help, whoever runs this server finds the reason in its log."
NEEDED = ("authlib", "httpx")
"""Packages that Streamlit signs in with."""
YES = (True, "true", "True", "1")
SIGN_OUT = '<form class="pg-sign-out" method="post" action="instructor/sign-out"><button type="submit">Sign out</button></form>'


def instructor() -> str | None:
    """Who is signed in, as the class's pages know it too; None for everybody else."""
    return get_instructors().who(str(st.context.cookies.get(INSTRUCTOR_COOKIE, "")))


def sign_in() -> None:
    """The ways in."""
    st.html('<h2 class="pg-h">Sign in</h2>')
    if accounts():
        _account()
        st.html('<p class="pg-note">Or with the key of this server:</p>')
    st.html(FORM)


def sign_out() -> None:
    """The way out."""
    st.html(SIGN_OUT, width="content")


def accounts() -> bool:
    """Whether people can sign in with an account: an [auth] section in Streamlit's secrets, and the packages it needs."""
    return bool(st.secrets.load_if_toml_exists() and "auth" in st.secrets and all(map(importlib.util.find_spec, NEEDED)))


@st.fragment(run_every=TICKET_S / 2)
def _account() -> None:
    """Sign in there; then a link that is good once, and renewed before it is too old, brings the cookie."""
    if not st.user.get("is_logged_in"):
        if st.query_params.get(OUTCOME) == FAILED:
            st.html(f'<p class="pg-said" role="alert">{CAME_TO_NOTHING}</p>')
        st.button("Sign in with your account", type="primary", key="account-in", on_click=st.login)
        return
    address = str(st.user.get("email") or "")
    if not verified(st.user):
        _refused(
            f"The provider does not say that {address or 'the e-mail address of this account'} is really yours.",
            "Confirm the address there and sign in again. Whoever runs this server finds what a provider has to tell in "
            "<b>docs/teach-a-class.md</b>.",
        )
    elif get_instructors().is_instructor(address):
        ticket = get_instructors().ticket(address.strip().casefold())
        st.html(f'<p><a class="pg-go" href="instructor/ticket/{escape(ticket)}" target="_self">Go on as {escape(address)}</a></p>')
    else:
        _refused(
            f"{address} is not among the instructors of this server.",
            "Whoever runs it adds the address to <code>SHARDLAB_INSTRUCTORS</code>.",
        )


def _refused(sentence: str, advice_html: str) -> None:
    st.html(f'<p class="pg-said" role="alert">{escape(sentence)}</p><p class="pg-note">{advice_html}</p>')
    st.button("Sign in with another account", key="account-out", on_click=st.logout)


def verified(account: Mapping[str, Any]) -> bool:
    """Whether the provider answers for the e-mail address: whoever may write any address into their account would be any instructor.

    Microsoft Entra ID does not know `email_verified`; `xms_edov` tells that the address is of a domain which the organisation has proved to
    own. Some providers write these as text.
    """
    told = account.get("email_verified")
    return (account.get("xms_edov") if told is None else told) in YES
