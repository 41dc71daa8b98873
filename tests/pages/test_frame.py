"""What stands around the pages: the HTML file, Streamlit's settings, and what a visitor sees of a fault."""

from __future__ import annotations

import tomllib
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit import config

from pages.front_door import VIEWER, VIEWER_COOKIE, FrontDoor, head_script
from pages.routes import PAGE_NAMES

ROOT = Path(__file__).resolve().parents[2]
INDEX = "<html><head><title>Streamlit</title></head><body>" + "x" * 2000 + "</body></html>"


def client() -> TestClient:
    async def index(_: object) -> HTMLResponse:
        return HTMLResponse(INDEX)

    async def data(_: object) -> JSONResponse:
        return JSONResponse({"html": "<head></body>"})

    return TestClient(
        Starlette(
            routes=[Route("/", index), Route("/data", data)],
            middleware=[
                Middleware(FrontDoor, page_names=("lesson",), title="Shardlab", style="p{}"), Middleware(GZipMiddleware, minimum_size=10)
            ],
        )
    )


def test_the_html_names_the_server_and_brings_the_stylesheet_even_where_answers_are_compressed() -> None:
    answer = client().get("/", headers={"accept": "text/html", "accept-encoding": "gzip"})
    assert "<title>Shardlab</title>" in answer.text
    assert head_script(("lesson",)) in answer.text
    assert answer.text.endswith("<style>p{}</style></body></html>")
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_a_browser_gets_a_random_name_once() -> None:
    first = client().get("/", headers={"accept": "text/html"})
    name = first.cookies[VIEWER_COOKIE]
    assert VIEWER.fullmatch(name)
    for cookie in first.headers.get_list("set-cookie"):
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
    again = client().get("/", headers={"accept": "text/html", "cookie": f"{VIEWER_COOKIE}={name}"})
    assert VIEWER_COOKIE not in again.headers["set-cookie"]
    forged = client().get("/", headers={"accept": "text/html", "cookie": f"{VIEWER_COOKIE}=<x>; a=", "x-forwarded-proto": "https"})
    assert [cookie.endswith("; Secure") for cookie in forged.headers.get_list("set-cookie")] == [True, True]
    assert "set-cookie" not in client().get("/data").headers


def test_other_answers_pass_untouched() -> None:
    assert client().get("/data").json() == {"html": "<head></body>"}
    assert client().head("/").status_code == 405 or client().head("/").content == b""


def test_the_pages_known_to_the_front_door_are_those_of_the_navigation() -> None:
    navigation = (ROOT / "pages/navigation.py").read_text()
    assert [f'url_path="{name}"' in navigation for name in PAGE_NAMES] == [True] * navigation.count("url_path=")


def test_the_settings_still_exist_in_this_streamlit() -> None:
    settings = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    known = config.get_config_options(force_reparse=True)
    names = {
        f"{section}.{name}": value
        for section, values in settings.items()
        for name, value in values.items()
        if not isinstance(value, dict)
    }
    assert [name for name in names if name not in known] == []
    assert names["runner.postScriptGC"] is False
    assert names["server.enableAgentApi"] is False, "it could answer the questions"
    assert names["client.showErrorDetails"] == "none"
    assert {f"theme.{theme}.{name}" for theme in ("light", "dark") for name in settings["theme"][theme]} <= set(known)
