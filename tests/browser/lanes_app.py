"""A Streamlit app of nothing but the live picture, for tests of its life under reruns."""

from __future__ import annotations

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.browser.lanes_harness import LanesServer, run_of

server = LanesServer()
server.set("endless", run_of(400), pace_s=0.1, hold=True)
server.set("long", run_of(390), hold=True)  # at 78 s at once, where "endless" is after 39 s only


async def opened(_: Request) -> PlainTextResponse:
    """How many feeds were opened so far, and how many are open now."""
    return PlainTextResponse(f"{len(server.opened)} {server.open_now}")


app = st.App("lanes_page.py", routes=[Route("/live", server.live), Route("/opened", opened)])
