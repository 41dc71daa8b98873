"""Who is an instructor: the key and where it is kept, the cookie, tickets, and signing in over HTTP."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lessons.classroom import ClassState
from pages.account_return import ACCOUNT_COOKIE, SIGN_OUT
from pages.classroom.instructor import BY_KEY, INSTRUCTOR_COOKIE, KEY_FILE, Instructors
from pages.routes import _tell_key
from scenarios.settings import Settings, load_settings
from tests.pages.classroom.conftest import KEY
from tests.pages.classroom.test_routes import Browser

ADA = "ada@example.org"


def test_a_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    first = Instructors(Settings(data_dir=data))
    assert Instructors(Settings(data_dir=data)).key == first.key == (data / KEY_FILE).read_text().strip()
    assert len(first.key) == 19
    assert stat.S_IMODE((data / KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in data.iterdir()] == [KEY_FILE], "no draft is left"
    assert Instructors(Settings(data_dir=tmp_path / "other")).key != first.key


def test_a_key_of_ones_own_is_not_written_anywhere(tmp_path: Path) -> None:
    assert Instructors(Settings(data_dir=tmp_path, instructor_key=KEY)).key == KEY
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["empty", "short", "folder"])
def test_a_key_file_that_cannot_be_used_is_left_alone_and_a_key_made_for_now(tmp_path: Path, damage: str) -> None:
    path = tmp_path / KEY_FILE
    path.mkdir() if damage == "folder" else path.write_text("" if damage == "empty" else "short")
    assert len(Instructors(Settings(data_dir=tmp_path)).key) == 19
    assert path.is_dir() or len(path.read_text()) < 6


def test_two_servers_that_start_at_once_have_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is through between our look and our writing."""
    monkeypatch.setattr(Path, "exists", lambda path: False)
    first = Instructors(Settings(data_dir=tmp_path)).key
    assert Instructors(Settings(data_dir=tmp_path)).key == first


def test_the_start_tells_the_key_that_was_made_and_not_the_one_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], instructors: Instructors
) -> None:
    monkeypatch.delenv("SHARDLAB_INSTRUCTOR_KEY", raising=False)
    monkeypatch.setenv("SHARDLAB_PUBLIC_URL", "https://class.example/")
    _tell_key()
    assert f"https://class.example/teach with the key {instructors.key}" in capsys.readouterr().out
    monkeypatch.setenv("SHARDLAB_INSTRUCTOR_KEY", KEY)
    _tell_key()
    assert KEY not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INSTRUCTOR_KEY", "short", "12 to 256"), ("INSTRUCTORS", "ada", "e-mail"), ("PUBLIC_URL", "localhost:8501", "http://"),
        ("PARTICIPANTS_LIMIT", "0", "from 1 to 10000"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_used_is_said(name: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        load_settings({f"SHARDLAB_{name}": value})
    assert f"SHARDLAB_{name}=" in str(refused.value)
    assert ("short" in str(refused.value)) is False, "a key is never printed"


def test_settings_are_taken_as_people_write_them() -> None:
    settings = load_settings({"SHARDLAB_INSTRUCTORS": " Ada@Example.org, bob@example.org,", "SHARDLAB_PUBLIC_URL": "http://10.0.0.5:8501/"})
    assert (settings.instructors, settings.public_url) == ("ada@example.org,bob@example.org", "http://10.0.0.5:8501")


def test_a_ticket_is_good_once_and_for_a_minute(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    made = Instructors(Settings(data_dir=tmp_path, instructor_key=KEY, instructors=ADA), now=lambda: now[0])
    ticket = made.ticket(ADA)
    assert made.redeem(ticket) == ADA
    assert made.redeem(ticket) is None
    late = made.ticket(ADA)
    now[0] += 61
    assert made.redeem(late) is None
    assert made.redeem(made.ticket("mallory@example.org")) is None
    assert made.redeem(made.sign()) is None, "a cookie is no ticket"
    assert made.redeem(made.ticket()) == BY_KEY


def test_the_form_the_key_and_the_way_on(browser: Browser, instructors: Instructors) -> None:
    client = browser()
    form = client.get("/instructor/sign-in?to=class/ABC234/console")
    assert form.status_code == 200
    assert 'value="class/ABC234/console"' in form.text
    assert '<a href="../teach">page for instructors</a>' in form.text, "where accounts are offered"
    wrong = client.post("/instructor/sign-in", data={"key": "not-this-one-at-all", "to": "class/ABC234/console"})
    assert wrong.status_code == 403
    assert "not-this-one" not in wrong.text
    assert INSTRUCTOR_COOKIE not in client.cookies
    sent = {"key": f" {KEY} ", "to": "class/ABC234/console"}
    right = client.post("/instructor/sign-in", data=sent, headers={"x-forwarded-proto": "https"})
    assert (right.status_code, right.headers["location"]) == (303, "../class/ABC234/console")
    cookie = right.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200", "Secure"} <= set(cookie.split("; "))
    assert instructors.who(cookie.partition("=")[2].partition(";")[0]) == BY_KEY


def test_a_ticket_brings_the_cookie_of_the_account(browser: Browser, instructors: Instructors) -> None:
    client = browser()
    answer = client.get(f"/instructor/ticket/{instructors.ticket(ADA)}")
    assert (answer.status_code, answer.headers["location"]) == (303, "../../teach")
    assert instructors.who(client.cookies[INSTRUCTOR_COOKIE]) == ADA


def test_signing_out_takes_the_cookie_away(driver: TestClient) -> None:
    assert INSTRUCTOR_COOKIE in driver.cookies
    answer = driver.post("/instructor/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, "../teach")
    assert INSTRUCTOR_COOKIE not in driver.cookies


def test_a_copy_of_a_cookie_that_was_signed_out_drives_nothing(browser: Browser, driver: TestClient, lobby: ClassState) -> None:
    thief, other = browser(), browser()
    thief.cookies.set(INSTRUCTOR_COOKIE, driver.cookies[INSTRUCTOR_COOKIE])
    assert other.post("/instructor/sign-in", data={"key": KEY}).status_code == 303
    assert thief.post(f"/class/{lobby.code}/do", json={"action": "blank", "on": False}).status_code == 200
    driver.post("/instructor/sign-out")
    assert thief.post(f"/class/{lobby.code}/do", json={"action": "next"}).status_code == 401
    assert thief.get(f"/class/{lobby.code}/results.csv").status_code == 401
    assert other.post(f"/class/{lobby.code}/do", json={"action": "next"}).status_code == 200, "who signed in elsewhere stays"


def test_signing_out_ends_the_account_too(driver: TestClient) -> None:
    driver.cookies.set(ACCOUNT_COOKIE, "anybody")
    answer = driver.post("/instructor/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, f"../{SIGN_OUT}")
    assert INSTRUCTOR_COOKIE not in driver.cookies


def test_the_console_of_somebody_who_is_not_signed_in_asks_for_the_key(browser: Browser) -> None:
    answer = browser().get("/class/ABC234/console")
    assert (answer.status_code, answer.headers["location"]) == (303, "../../instructor/sign-in?to=class/ABC234/console")
