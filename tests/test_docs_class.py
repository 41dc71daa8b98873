"""docs/teach-a-class.md and the code in step: settings, addresses, keys, states, commands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

from lessons.classroom.model import STATE_WORDS, State
from pages.classroom import instructor, rehearsal, room
from scenarios.settings import PREFIX, Settings
from tests.browser.openid import Provider

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/teach-a-class.md"
TEXT = PAGE.read_text()


def test_every_setting_named_exists() -> None:
    named = set(re.findall(rf"{PREFIX}[A-Z_]+", TEXT))
    assert len(named) >= 6
    assert {name.removeprefix(PREFIX).lower() for name in named} <= set(Settings.model_fields)
    own = {"public_url", "instructor_key", "instructors", "joins_per_client_limit"}
    assert {f"{PREFIX}{name.upper()}" for name in own} <= named


def test_every_state_has_its_row() -> None:
    rows = re.findall(r"^\| ([A-Z][a-z ]+) \|", TEXT, re.MULTILINE)
    assert [row for row in rows if row in STATE_WORDS.values()] == [STATE_WORDS[state] for state in get_args(State) if state != "ended"]


def test_the_keys_are_those_of_the_console() -> None:
    script = (ROOT / "pages/classroom/stage/console.js").read_text()
    keys = {quoted or bare: action for quoted, bare, action in re.findall(r'(?:"([^"]+)"|\b([A-Za-z]+)): "(\w+)"', script)}
    assert {"PageDown", "ArrowRight", " "} <= {key for key, action in keys.items() if action == "next"}
    assert {"PageUp", "ArrowLeft"} <= {key for key, action in keys.items() if action == "back"}
    for letter, action in (("B", "blank"), ("F", "freeze"), ("P", "play")):
        assert keys[letter] == action
        assert f"**{letter}**" in TEXT


def test_the_links_lead_somewhere() -> None:
    headings = {re.sub(r"[^a-z -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)}
    readme = (ROOT / "README.md").read_text()
    for link in re.findall(r"\]\(([^)]+)\)", TEXT):
        path, _, anchor = link.partition("#")
        assert (PAGE.parent / path).exists()
        there = headings if not path else {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", readme, re.MULTILINE)}
        assert anchor in there


def test_the_secrets_of_accounts_are_those_that_sign_people_in() -> None:
    (block,) = re.findall(r"```toml\n(.+?)```", TEXT, re.DOTALL)
    written, tried = tomllib.loads(block)["auth"], tomllib.loads(Provider({}).secrets_toml("https://class.example.org"))["auth"]
    assert set(written) == set(tried)
    assert written["redirect_uri"] == tried["redirect_uri"]


def test_its_figures_are_those_of_the_code() -> None:
    assert f"`data/{instructor.KEY_FILE}`" in TEXT
    assert instructor.SIGNED_IN_S == 12 * 3600
    assert "signed in for twelve hours" in TEXT
    assert rehearsal.PARTICIPANTS == 30
    assert "thirty simulated participants" in TEXT
    assert f"a sign of life every {room.BEAT_S:.0f}" in " ".join(TEXT.split())
