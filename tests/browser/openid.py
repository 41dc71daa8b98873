"""A small OpenID provider for the tests: discovery, authorize, token, keys and the way out, on a free loopback port.

Whoever is sent here picks an account from a list, as at a real one. Owns a provider's side of the protocol, PKCE and one-time codes
included; asks nobody and knows nothing of the app. It answers as `localhost`: to a browser another site than an
app at 127.0.0.1.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.browser.server import free_port

CLIENT_ID, CLIENT_SECRET = "shardlab", "a-secret-of-the-tests"


class Provider:
    """`accounts`: by the name under which they are offered, what an id_token says of each."""

    def __init__(self, accounts: dict[str, dict[str, Any]]) -> None:
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self.accounts = accounts
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
        self.signs_with = self.key
        """Another key makes every id_token a forged one."""
        self.asked: list[str] = []
        """The paths that were asked for, in order."""
        self._codes: dict[str, dict[str, str]] = {}
        self._server: uvicorn.Server | None = None

    def secrets_toml(self, app_url: str) -> str:
        """What an app at `app_url` has to have in .streamlit/secrets.toml."""
        return (
            f'[auth]\nredirect_uri = "{app_url}/oauth2callback"\ncookie_secret = "{secrets.token_hex(32)}"\n'
            f'client_id = "{CLIENT_ID}"\nclient_secret = "{CLIENT_SECRET}"\n'
            f'server_metadata_url = "{self.url}/.well-known/openid-configuration"\n'
        )

    def app(self) -> Starlette:
        return Starlette(routes=[
            Route("/.well-known/openid-configuration", self.discovery), Route("/keys", self.keys), Route("/authorize", self.authorize),
            Route("/token", self.token, methods=["POST"]), Route("/out", self.out),
            Route("/favicon.ico", lambda request: Response(status_code=204)),
        ])  # fmt: skip

    async def discovery(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        return JSONResponse({
            "issuer": self.url, "authorization_endpoint": f"{self.url}/authorize", "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys", "end_session_endpoint": f"{self.url}/out", "response_types_supported": ["code"],
            "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        })  # fmt: skip

    async def keys(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def authorize(self, request: Request) -> Response:
        """The list of accounts; with one chosen, back to the app with a code."""
        self.asked.append(request.url.path)
        query = dict(request.query_params)
        chosen = query.pop("account", None)
        if query.get("client_id") != CLIENT_ID or query.get("response_type") != "code" or "openid" not in query.get("scope", "").split():
            return HTMLResponse("not a request of OpenID Connect", 400)
        if chosen is None:
            rows = "".join(
                f'<p><a href="/authorize?{escape(urlencode({**query, "account": name}))}">{escape(name)}</a></p>'
                for name in (*self.accounts, "nobody")
            )
            return HTMLResponse(f"<!doctype html><title>Accounts</title><h1>Choose an account</h1>{rows}")
        back = {"state": query["state"]}
        if chosen in self.accounts:
            back["code"] = secrets.token_urlsafe(16)
            self._codes[back["code"]] = {**query, "account": chosen}
        else:
            back |= {"error": "access_denied", "error_description": "The user went away."}
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(back)}", 303)

    async def token(self, request: Request) -> Response:
        """One id_token for one code, for the client that has its secret, asks for the same way back and knows the verifier."""
        self.asked.append(request.url.path)
        fields = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        known = self._codes.pop(fields.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(fields.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
        if request.headers.get("authorization") != f"Basic {basic}" or known is None:
            return JSONResponse({"error": "invalid_client" if known else "invalid_grant"}, 400)
        if fields.get("redirect_uri") != known["redirect_uri"] or known.get("code_challenge") != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now_s = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT_ID, "sub": hashlib.sha256(known["account"].encode()).hexdigest(), "iat": now_s,
            "exp": now_s + 300, "nonce": known["nonce"], **self.accounts[known["account"]],
        }  # fmt: skip
        signed = jwt.encode({"alg": "RS256", "kid": "first"}, claims, self.signs_with)
        return JSONResponse({"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "expires_in": 300, "id_token": signed})

    async def out(self, request: Request) -> Response:
        """Signed out here too, and back to the app."""
        self.asked.append(request.url.path)
        return RedirectResponse(request.query_params["post_logout_redirect_uri"], 303)

    def start(self) -> threading.Thread:
        config = uvicorn.Config(self.app(), host="localhost", port=self.port, log_level="warning", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        thread = threading.Thread(target=self._server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 10
        while not self._server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        return thread

    def stop(self, thread: threading.Thread) -> None:
        assert self._server is not None
        self._server.should_exit = True
        thread.join(5)


@contextmanager
def provider(accounts: dict[str, dict[str, Any]]) -> Iterator[Provider]:
    """One in a thread of its own."""
    made = Provider(accounts)
    thread = made.start()
    try:
        yield made
    finally:
        made.stop(thread)


def write_secrets(folder: Path, text: str) -> Path:
    """A folder to start an app in, with the settings of this one and these secrets."""
    settings = folder / ".streamlit"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_bytes((Path(__file__).resolve().parents[2] / ".streamlit/config.toml").read_bytes())
    (settings / "secrets.toml").write_text(text)
    return folder
