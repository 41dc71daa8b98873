"""Where Streamlit's answers to signing in and out lead: to the instructors' page, behind a proxy's path too; others as before."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.web.server.starlette import starlette_auth_routes as streamlit_routes

from pages.account_return import ACCOUNT_COOKIE, SIGN_OUT, AccountReturn

PROVIDER = "https://id.example.org/out?client_id=x"


async def _answer(request: Request) -> Response:
    """As Streamlit would: `to` is where it leads, `cookie` what the account's cookie becomes."""
    answer = RedirectResponse(request.query_params.get("to", "/"), 302)
    if "cookie" in request.query_params:
        answer.set_cookie(ACCOUNT_COOKIE, request.query_params["cookie"])
    return answer


@pytest.mark.parametrize(
    ("asked", "leads"),
    [
        ("/oauth2callback?code=1&state=2&cookie=signed", "teach"),
        ("/oauth2callback?code=1&state=2", "teach?account=failed"),
        ("/oauth2callback?code=1&state=2&cookie=", "teach?account=failed"),
        ("/oauth2callback?error=access_denied&state=2", "teach?account=failed"),
        ("/oauth2callback", "teach"),
        ("/auth/logout?cookie=", "../teach"),
        ("/auth/login?provider=old", "../teach"),
        ("/base/oauth2callback?to=/base/", "teach"),
        (f"/auth/login?to={PROVIDER}", PROVIDER),
        ("/auth/login?to=//id.example.org/", "//id.example.org/"),
        ("/elsewhere?code=1", "/"),
    ],
)
def test_the_way_back(asked: str, leads: str) -> None:
    app = Starlette(routes=[Route("/{path:path}", _answer)], middleware=[Middleware(AccountReturn)])
    assert TestClient(app).get(asked, follow_redirects=False).headers["location"] == leads


def test_addresses_and_cookie_are_those_of_streamlit() -> None:
    assert streamlit_routes.USER_COOKIE_NAME == ACCOUNT_COOKIE
    paths = {route.path for route in streamlit_routes.create_auth_routes("")}
    assert paths == {"/auth/login", f"/{SIGN_OUT}", "/oauth2callback"}
