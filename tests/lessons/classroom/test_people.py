"""Joining: one participant per token, names that are only ever text, and classes that are full."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from lessons.classroom import ClassFullError, Classroom, RemovedError, UnknownParticipantError
from lessons.classroom.words import ALPHABET, LONGEST_NICKNAME, clean_nickname, is_code, is_token, new_code, new_token
from lessons.store import Store
from lessons.store.tables import participants
from tests.lessons.classroom.playing import RIGHT, cast, go_to, new_class


def test_a_token_is_the_same_participant_wherever_it_comes_back(room: Classroom, again: Callable[[], Classroom], database: Store) -> None:
    code, _ = new_class(room)
    ada = room.join(code, nickname="Ada")
    assert is_token(ada.token)
    other = again()
    for door, written in ((room, code), (other, code.lower()), (again(), f" {code[:3]}-{code[3:].lower()} ")):
        back = door.join(written, ada.token)
        assert (back.id, back.nickname, back.token) == (ada.id, "Ada", ada.token)
    with database.read() as connection:
        kept = connection.execute(select(participants)).one()
    assert ada.token not in str(kept), "only its hash is kept"
    assert ada.token not in repr(ada)


def test_a_browser_has_one_token_for_all_its_classes(room: Classroom) -> None:
    first, second = new_class(room)[0], new_class(room)[0]
    ada = room.join(first)
    there = room.join(second, ada.token)
    assert there.token == ada.token
    assert there.id != ada.id


def test_what_cannot_be_a_token_is_replaced(room: Classroom) -> None:
    code, _ = new_class(room)
    for token in (None, "", "short", "x" * 44, "x" * 42 + "'", "\x00" * 43, "\u00fc" * 43, " " * 43):
        joined = room.join(code, token)
        assert is_token(joined.token)
        assert joined.token != token


def test_joining_from_many_tabs_at_once_makes_one_participant(room: Classroom, again: Callable[[], Classroom], database: Store) -> None:
    code, _ = new_class(room)
    token, doors = new_token(), (room, again())
    with ThreadPoolExecutor(12) as threads:
        ids = {joined.id for joined in threads.map(lambda number: doors[number % 2].join(code, token), range(24))}
    assert len(ids) == 1
    with database.read() as connection:
        assert len(connection.execute(select(participants)).all()) == 1


def test_renaming(room: Classroom, again: Callable[[], Classroom]) -> None:
    code, _ = new_class(room)
    ada = room.join(code, nickname="Ada")
    other = again()
    assert other.audience_view(code, ada.token)["me"]["nickname"] == "Ada"
    assert room.join(code, ada.token, "Countess").nickname == "Countess"
    other._copies.of(code).look_s = 0.0
    assert other.audience_view(code, ada.token)["me"]["nickname"] == "Countess"
    assert room.join(code, ada.token).nickname == "Countess"
    assert room.join(code, ada.token, " ").nickname is None
    assert room.joined(code) == 1


def test_a_full_class_lets_those_in_who_are_in_it(room: Classroom) -> None:
    code, _ = new_class(room)
    people = [room.join(code, limit=3) for _ in range(3)]
    with pytest.raises(ClassFullError, match="takes 3"):
        room.join(code, limit=3)
    assert [room.join(code, person.token, limit=3).id for person in people] == [person.id for person in people]


def test_somebody_who_was_removed_sees_and_does_nothing(room: Classroom, again: Callable[[], Classroom]) -> None:
    code, (ada,) = new_class(room, people=1, at="vote")
    room.act(code, "remove", participant=ada.id)
    for door in (room, again()):
        with pytest.raises(RemovedError):
            door.join(code, ada.token, "Again")
        with pytest.raises(RemovedError):
            door.audience_view(code, ada.token)
        with pytest.raises(RemovedError):
            cast(door, code, ada, RIGHT)
    assert room.console_view(code)["participants"] == [{"id": ada.id, "nickname": None, "hidden": False, "removed": True}]
    room.act(code, "restore", participant=ada.id)
    assert room.join(code, ada.token).id == ada.id


def test_a_forged_token_sees_nothing(room: Classroom) -> None:
    code, _ = new_class(room, people=1)
    for token in (None, "", "x" * 43, "../../etc", 'x"; DROP TABLE votes'):
        with pytest.raises(UnknownParticipantError):
            room.audience_view(code, token)


READABLE = (
    "<script>alert(1)</script"[:24], "[x](javascript:alert(1))", "![x](http://x.example)", "=cmd|'/c calc'!A1", "+1+1", "-2+3", "@SUM(1)",
    "'; DROP TABLE votes;--", "{{7*7}}", "${jndi:ldap://x}", "# Heading", "**bold** `code`", "&lt;b&gt;", "Ada", "x" * 24,
    "\u611b\u5b50", "Zo\u00eb", "\U0001f469\u200d\U0001f52c Ada", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "1\ufe0f\u20e3",
)
UNREADABLE = (
    "a\x00b", "a\nb", "a\tb", "a\x1b[31m", "a\x7f", "a\x9fb", "\u202eadA", "a\u2066b\u2069", "a\u200fb", "a\u200bb", "\ufeffAda",
    "a\u061cb", "a\u2028b", "a\ud800b", "a\ue000b", "a\U000e0041", "\u3164", "\u2800\u2800", "\u200d\u200d", "\u0301\u0301",
    "a" + "\u0335" * 20, "x" * 25, "x" * 100_000, "\u00a0", "\u3000",
)


def test_a_name_may_be_any_text_that_can_be_read(room: Classroom, again: Callable[[], Classroom]) -> None:
    """It is shown as text and nothing else; that is the matter of whoever shows it."""
    code, _ = new_class(room)
    people = [room.join(code, nickname=f"  {nickname} ") for nickname in READABLE]
    room.act(code, "show_names", on=True)
    for door in (room, again()):
        assert tuple(door.audience_view(code, person.token)["me"]["nickname"] for person in people) == READABLE
        assert tuple(door.projector_view(code)["names"]) == READABLE


def test_a_name_that_cannot_be_read_is_refused(room: Classroom) -> None:
    code, _ = new_class(room)
    for nickname in UNREADABLE:
        with pytest.raises(ValueError, match="nickname: must"):
            room.join(code, nickname=nickname)
    assert room.joined(code) == 0


def test_what_is_no_text_is_no_name() -> None:
    with pytest.raises(ValueError, match="nickname=5: must be text"):
        clean_nickname(5)  # type: ignore[arg-type]


@given(st.text(max_size=40))
def test_every_text_becomes_a_short_line_or_is_refused(nickname: str) -> None:
    try:
        name = clean_nickname(nickname)
    except ValueError:
        return
    assert name is None or (0 < len(name) <= LONGEST_NICKNAME and name == name.strip(" ") and len(name.splitlines()) == 1)
    assert clean_nickname(name) == name


def test_codes_are_random_and_of_the_alphabet() -> None:
    codes = {new_code() for _ in range(2000)}
    assert len(codes) > 1990
    assert all(is_code(code) for code in codes)
    assert len(ALPHABET) == len(set(ALPHABET) - set("01ILOU"))


def test_a_class_says_what_it_needs(room: Classroom) -> None:
    for arguments, said in (
        ({"lesson_ids": []}, "lesson_ids=0: must be 1 to 50"), ({"lesson_ids": ["nothing"]}, "lesson_ids=nothing"),
        ({"lesson_ids": ["saw-tooth"] * 51}, "lesson_ids=51"), ({"lesson_ids": ["saw-tooth"], "plan": [1, 2]}, "plan="),
        ({"lesson_ids": ["saw-tooth"], "plan": [0]}, "plan="), ({"lesson_ids": ["saw-tooth"], "plan": [float("nan")]}, "plan="),
        ({"lesson_ids": ["saw-tooth"], "title": "x" * 81}, "title: must be one line"),
        ({"lesson_ids": ["saw-tooth"], "title": "\u202eadA"}, "title"),
    ):
        with pytest.raises(ValueError, match=said):
            room.create(**arguments)  # type: ignore[arg-type]
    made = room.create(["saw-tooth", "one-busy-gpu"], title="  Monday\n course ", plan=[5, 7.5])
    assert (made.title, made.plan, made.lesson_ids, made.state) == ("Monday course", (5.0, 7.5), ("saw-tooth", "one-busy-gpu"), "lobby")
    assert [known.code for known in room.classes()] == [made.code]


def test_a_class_is_deleted_with_everything(room: Classroom, database: Store) -> None:
    code, (ada,) = new_class(room, people=1, at="vote")
    kept, _ = new_class(room, people=1)
    cast(room, code, ada, RIGHT)
    assert room.delete(code.lower())
    assert not room.delete(code)
    with database.read() as connection:
        assert [row.code for row in connection.execute(select(participants))] == [kept]
    with pytest.raises(LookupError):
        room.state(code)
    go_to(room, kept, "vote")
