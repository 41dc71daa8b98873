"""Which address a room is told: as the instructor's browser has it, unless the setting says another one."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from pages.classroom import whereabouts
from pages.classroom.address import Interface
from pages.classroom.whereabouts import Whereabouts
from scenarios.settings import Settings


@pytest.fixture(autouse=True)
def _one_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whereabouts, "interfaces", lambda: (Interface(name="eth0", address="192.168.1.20"),))
    monkeypatch.setattr(whereabouts, "in_container", lambda: False)


def asked(path: str, host: str, **headers: str) -> Request:
    named = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    return Request({
        "type": "http", "method": "GET", "scheme": "http", "path": path, "root_path": "", "query_string": b"", "headers": raw,
        "server": ("127.0.0.1", 8501),
    })  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "url"),
    [
        (asked("/class/ABC234/qr.svg", "room.example:8501"), "http://room.example:8501/c/ABC234"),
        (asked("/class/ABC234/qr.svg", "127.0.0.1:8501"), "http://192.168.1.20:8501/c/ABC234"),
        (asked("/class/ABC234/qr.svg", "inside", x_forwarded_host="class.example", x_forwarded_proto="https"), "https://class.example/c/ABC234"),
        (asked("/class/ABC234/qr.svg", "room.example", x_forwarded_proto="javascript"), "http://room.example/c/ABC234"),
        (asked("/class/ABC234/qr.svg", "evil.example/x?"), "http://192.168.1.20/c/ABC234"),
        (asked("/class/ABC234/qr.svg", 'a"><script>'), "http://192.168.1.20/c/ABC234"),
        (asked("/class/ABC234/qr.svg", "[2001:db8::7]:8501"), "http://[2001:db8::7]:8501/c/ABC234"),
    ],
)  # fmt: skip
def test_phones_are_sent_where_the_instructor_came(request_: Request, url: str) -> None:
    where = Whereabouts(Settings())
    assert where.join_url(request_, "ABC234") == url
    where.remember(request_)
    assert where.join_words("ABC234") == url.partition("://")[2]


def test_the_setting_comes_first() -> None:
    where = Whereabouts(Settings(public_url="https://class.example/lab"))
    assert where.join_url(asked("/class/ABC234/qr.svg", "127.0.0.1:8501"), "ABC234") == "https://class.example/lab/c/ABC234"
    assert where.join_words("ABC234") == "class.example/lab/c/ABC234"


def test_an_address_that_no_phone_can_open_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    where = Whereabouts(Settings())
    assert where.unreachable() == "", "a phone of this network can open it"
    monkeypatch.setattr(whereabouts.st, "get_option", {"server.address": "127.0.0.1", "server.port": 8501}.get)
    assert "Start it with --server.address 0.0.0.0" in where.unreachable(), "no other address of this machine would answer"
    where.remember(asked("/class/ABC234/console", "class.example", x_forwarded_for="10.0.0.7"))
    assert where.unreachable() == "", "a proxy stands before it"
    assert Whereabouts(Settings(public_url="http://localhost:8501")).unreachable().startswith("Phones cannot open http://localhost:8501")
