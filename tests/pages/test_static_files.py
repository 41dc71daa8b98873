"""Streamlit's own files out of memory: the same bytes as on disk, compressed for whoever takes it, and nothing beside them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from pages.static_files import StaticFiles

SCRIPT = "let text = 'shard';\n" * 200


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    (tmp_path / "static/js").mkdir(parents=True)
    (tmp_path / "static/js/main.a1.js").write_text(SCRIPT)
    (tmp_path / "static/logo.b2.png").write_bytes(b"\x89PNG" + bytes(50))
    (tmp_path / "secret.txt").write_text("not to be served")
    return TestClient(StaticFiles(PlainTextResponse("passed on"), folder=tmp_path))


def test_a_file_is_sent_compressed_and_is_the_file(client: TestClient) -> None:
    with client.stream("GET", "/static/js/main.a1.js", headers={"accept-encoding": "gzip"}) as answer:
        wire = b"".join(answer.iter_raw())
    assert gzip.decompress(wire).decode() == SCRIPT
    assert len(wire) < len(SCRIPT) / 10
    assert answer.headers["content-length"] == str(len(wire))
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]


def test_who_takes_no_gzip_gets_it_plain_and_a_picture_is_never_packed(client: TestClient) -> None:
    plain = client.get("/app/static/js/main.a1.js", headers={"accept-encoding": "identity"})
    assert (plain.text, "content-encoding" in plain.headers) == (SCRIPT, False)
    assert "content-encoding" not in client.get("/static/logo.b2.png").headers
    assert client.head("/static/js/main.a1.js").content == b""


@pytest.mark.parametrize(
    "path", ["/", "/static/", "/static/js", "/static/nothing.js", "/static/%2e%2e/secret.txt", "/static/..%2fsecret.txt"]
)
def test_everything_else_goes_on(client: TestClient, path: str) -> None:
    assert client.get(path).text == "passed on"


def test_a_part_of_a_file_is_left_to_streamlit(client: TestClient) -> None:
    assert client.get("/static/js/main.a1.js", headers={"range": "bytes=0-3"}).text == "passed on"
    assert client.post("/static/js/main.a1.js").text == "passed on"
