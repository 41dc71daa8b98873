"""The instructors' page through navigation.py: sign-in, a new class, its code with warnings, pre-flight, rehearsal, results, deleting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lessons import load_lessons
from lessons.classroom import close_classroom, get_classroom
from lessons.experiments import shown_experiments
from pages import teach_look, teach_sign_in
from pages.classroom import rehearsal
from pages.classroom.address import Address, Interface, Surroundings
from pages.classroom.instructor import forget_instructors, get_instructors
from pages.classroom.probe import Answer
from pages.classroom.rehearsal import Tally
from pages.teach_class import door_html, state_line
from pages.teach_look import base_url
from pages.teach_rehearse import copy_title, lean_of, tally_advice, tally_html
from tests.pages.conftest import PretendedRuns

ROOT = Path(__file__).resolve().parents[2]
LAN = Interface(name="wlan0", address="192.168.1.23")
FIRST, SECOND = (lesson.id for lesson in load_lessons().lessons[:2])


@pytest.fixture
def surroundings(pretended: PretendedRuns, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """What pre-flight finds, for a test to change."""
    found: dict[str, object] = {"interfaces": (LAN,), "answer": Answer(ours=True), "sent": []}
    monkeypatch.setattr(teach_look, "interfaces", lambda: found["interfaces"])
    monkeypatch.setattr(teach_look, "in_container", lambda: False)
    monkeypatch.setattr(teach_look, "ask", lambda url: found["answer"])

    class Sent:
        """Stands where `Rehearsal` would: sends nobody."""

        def __init__(self, base: str, code: str, **more: object) -> None:
            self.tally, self.running = Tally(wanted=30, joined=30, following=30, votes=12, slowest_ms=42.0), True
            found["sent"].append((base, code))  # type: ignore[attr-defined]

        def stop(self) -> None:
            self.running = False

    monkeypatch.setattr(rehearsal, "Rehearsal", Sent)
    close_classroom()
    yield found
    rehearsal.end_all()
    close_classroom()


@pytest.fixture
def teach(surroundings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """`teach(signed_in=True, **query)`: the page."""

    def opened(*, signed_in: bool = True, **query: str) -> AppTest:
        monkeypatch.setattr(teach_sign_in, "instructor", lambda: "key" if signed_in else None)
        page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20)
        page.run()
        page.switch_page("teach.py")
        for name, value in query.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception
        return page

    return opened


def html(page: AppTest) -> str:
    return "\n".join(element.proto.body for element in page.get("html"))


def press(page: AppTest, key: str) -> AppTest:
    page.button(key=key).click().run()
    assert not page.exception
    return page


def test_without_a_sign_in_there_is_a_form_and_no_class(teach: Callable[..., AppTest]) -> None:
    code = get_classroom().create([FIRST], title="Secret group").code
    for query in ({}, {"class": code}):
        page = teach(signed_in=False, **query)
        text = html(page)
        assert '<form class="pg-sign-in" method="post" action="instructor/sign-in">' in text
        assert 'name="key" type="password"' in text
        assert code not in text
        assert "Secret group" not in text
        assert [button.key for button in page.button if button.key] == []
        assert "What the course covers" in text
        assert any("lessons export" in code_.value for code_ in page.code)


def test_a_class_is_made_of_lessons_with_a_plan(teach: Callable[..., AppTest]) -> None:
    page = teach()
    assert "No class yet." in html(page)
    page.multiselect(key="new-lessons").set_value([SECOND, FIRST]).run()
    page.text_input(key="new-title").set_value("Group <b>2</b>")
    page.number_input(key=f"new-minutes-{FIRST}-False").set_value(25)
    press(page, "new-create")
    (made,) = get_classroom().classes()
    assert (made.lesson_ids, made.plan, made.title, made.state) == ((SECOND, FIRST), (12.0, 25.0), "Group <b>2</b>", "lobby")
    assert page.query_params["class"] in (made.code, [made.code])
    assert "<h1>Group &lt;b&gt;2&lt;/b&gt;</h1>" in html(page)
    press(page, "all-classes")
    assert [button.label for button in page.button if button.key == f"open-{made.code}"] == ["Group <b>2</b>"]
    assert f"{made.code} · Lobby · made just now" in html(page)
    assert 'aria-label="Console of Group &lt;b&gt;2&lt;/b&gt;"' in html(page)
    press(page, f"open-{made.code}")
    assert f'href="class/{made.code}/projector"' in html(page)


def test_a_class_that_is_over_is_not_driven_any_more(teach: Callable[..., AppTest]) -> None:
    made = get_classroom().create([FIRST])
    get_classroom().act(made.code, "end")
    text = html(teach())
    assert f"{made.code} · Ended" in text
    assert f"class/{made.code}/console" not in text


def test_no_lessons_no_class(teach: Callable[..., AppTest]) -> None:
    page = teach()
    page.multiselect(key="new-lessons").set_value([]).run()
    assert page.button(key="new-create").disabled


def test_the_class_shows_code_pages_and_what_is_in_order(teach: Callable[..., AppTest], pretended: PretendedRuns) -> None:
    made = get_classroom().create([FIRST])
    lesson = load_lessons().get(FIRST)
    assert lesson is not None
    text = html(teach(**{"class": made.code}))
    assert f"QR code of http://192.168.1.23:8501/c/{made.code}" in text, "the page was opened as localhost; the room's network is known"
    assert f'class="pg-code" aria-label="Code {" ".join(made.code)}">{made.code}<' in text
    for path in ("projector", "console"):
        assert f'href="class/{made.code}/{path}" target="_blank"' in text
    assert "Phones are sent to http://192.168.1.23:8501." in text
    assert "The store takes votes." in text
    assert "No recording yet of" in text
    assert "Once the first vote is open" in text, "no results yet"
    assert not any(cause.title in html_part for cause in lesson.causes for html_part in [text.split("Pre-flight")[0]])


def test_a_code_that_phones_cannot_open_never_stands_there_without_a_warning(
    teach: Callable[..., AppTest], surroundings: dict[str, object]
) -> None:
    surroundings["interfaces"] = ()
    made = get_classroom().create([FIRST])
    text = html(teach(**{"class": made.code}))
    assert f"QR code of http://localhost:8501/c/{made.code}" in text
    assert '<p class="pg-said" role="alert">Phones cannot open http://localhost:8501' in text.split("QR code of")[0]
    assert "Not ready: 1 thing would stop the class." in text
    assert "answers, asked from this machine" not in text, "which would sound as if all were well"
    address = Address(url="http://127.0.0.1:8501", source="page")
    around = Surroundings(page_url="http://127.0.0.1:8501")
    assert door_html("AB23CD", address, around).index("the phone itself") < door_html("AB23CD", address, around).index("<img")
    good = Address(url="http://192.168.1.23:8501", source="page")
    assert "pg-said" not in door_html("AB23CD", good, Surroundings(page_url=good.url))


def test_an_address_that_nobody_answers_is_bad_and_can_be_looked_at_again(
    teach: Callable[..., AppTest], surroundings: dict[str, object]
) -> None:
    surroundings["answer"] = Answer(ours=False, fault="refuses connections")
    page = teach(**{"class": get_classroom().create([FIRST]).code})
    assert "it refuses connections" in html(page)
    surroundings["answer"] = Answer(ours=True)
    page.run()
    assert "it refuses connections" in html(page), "one look lasts until another is asked for"
    press(page, "look-again")
    assert "it refuses connections" not in html(page)


def test_missing_recordings_are_recorded_at_a_click(teach: Callable[..., AppTest], pretended: PretendedRuns) -> None:
    lesson = load_lessons().get(FIRST)
    assert lesson is not None
    page = teach(**{"class": get_classroom().create([FIRST]).code})
    press(page, "look-record")
    wanted = {lesson.config_of(name).key for name in shown_experiments(lesson)}
    assert {config.key for config in pretended.measured} == wanted
    assert f"Recording: 0 of {len(wanted)} done." in html(page)
    run = pretended.start(lesson.config_of(lesson.fix), viewer="")
    pretended.recorded |= {config.key: run for config in pretended.measured}
    page.run()
    assert "each with a recording to fall back on" in html(page)
    assert [button for button in page.button if button.key == "look-record"] == []


def test_a_rehearsal_is_a_copy_that_goes_without_a_trace(teach: Callable[..., AppTest], surroundings: dict[str, object]) -> None:
    made = get_classroom().create([FIRST, SECOND], plan=[7, 8])
    page = teach(**{"class": made.code})
    press(page, "rehearse")
    (copy,) = [each for each in get_classroom().classes() if each.code != made.code]
    assert (copy.title, copy.lesson_ids, copy.plan) == (copy_title(made.code), (FIRST, SECOND), (7.0, 8.0))
    assert surroundings["sent"] == [("http://192.168.1.23:8501", copy.code)]
    assert "30 of 30 joined, 30 follow" in html(page)
    assert "12 votes sent, the slowest acknowledged after 42 ms" in html(page)
    assert f'href="class/{copy.code}/console"' in html(page)
    press(page, "all-classes")
    assert copy.code not in html(page), "a copy is no class of its own"
    page = teach(**{"class": made.code})
    press(page, "rehearse-end")
    assert get_classroom().classes() == [made]
    assert rehearsal.rehearsal_of(copy.code) is None


def test_where_the_address_does_not_answer_they_come_by_the_servers_own(
    teach: Callable[..., AppTest], surroundings: dict[str, object]
) -> None:
    surroundings["answer"] = Answer(ours=False, fault="refuses connections")
    press(teach(**{"class": get_classroom().create([FIRST]).code}), "rehearse")
    ((base, _),) = surroundings["sent"]  # type: ignore[misc]
    assert base == "http://127.0.0.1:8501"


def test_after_a_restart_a_rehearsal_can_go_on_or_end(teach: Callable[..., AppTest], surroundings: dict[str, object]) -> None:
    made = get_classroom().create([FIRST])
    copy = get_classroom().create([FIRST], title=copy_title(made.code))
    page = teach(**{"class": made.code})
    assert "Its participants have left" in html(page)
    press(page, "rehearse-again")
    assert [code for _, code in surroundings["sent"]] == [copy.code]  # type: ignore[attr-defined]
    get_classroom().delete(made.code)
    page = teach()
    assert "A rehearsal whose class was deleted" in html(page)
    press(page, f"end-{copy.code}")
    assert get_classroom().classes() == []


def test_results_and_the_end_of_a_class(teach: Callable[..., AppTest]) -> None:
    made = get_classroom().create([FIRST])
    get_classroom().act(made.code, "next")
    page = teach(**{"class": made.code})
    assert f'href="class/{made.code}/results.csv"' in html(page)
    assert f'href="class/{made.code}/report"' in html(page)
    assert f"{made.code} · Vote, item 1 of 1" in html(page)
    press(page, "delete-class-yes")
    assert get_classroom().classes() == []
    assert "The class was deleted." in html(page)


@pytest.mark.parametrize("code", ["ZZZZZZ", "<script>alert(1)</script>", "../etc"])
def test_a_code_that_leads_nowhere(teach: Callable[..., AppTest], code: str) -> None:
    text = html(teach(**{"class": code}))
    assert "There is no class" in text
    assert "<script>" not in text
    assert "Your classes" in text


def test_where_the_app_is_served() -> None:
    assert base_url("https://class.example.org/lab/teach?class=AB23CD") == "https://class.example.org/lab"
    assert base_url("http://192.168.1.23:8501/teach") == "http://192.168.1.23:8501"
    assert base_url("") == "http://localhost:8501"


@pytest.mark.parametrize(
    ("tally", "words"),
    [
        (Tally(wanted=30, joined=30, following=30, votes=30, slowest_ms=80.0), ""),
        (Tally(wanted=30, joined=12, faults=18, fault="joining was answered with 403 full"), "Not everybody gets in: joining was"),
        (Tally(wanted=30, joined=30, following=3, faults=9, fault="following: closed"), "A proxy may cut"),
        (Tally(wanted=30, joined=30, following=30, slowest_ms=2500.0), "Votes take long"),
    ],
)
def test_what_a_rehearsal_finds_is_said_with_what_to_do(tally: Tally, words: str) -> None:
    assert (words in tally_advice(tally)) is True
    assert bool(tally_advice(tally)) == bool(words)
    assert "<b>" not in tally_html(Tally(fault="<b>", wanted=2, joined=1))


def test_a_simulated_room_leans_to_the_right_option_and_its_picture() -> None:
    lesson = load_lessons().get(FIRST)
    assert lesson is not None
    lean = lean_of([None, lesson])
    right = next(option for option in lesson.options if option.right)
    cause = lesson.cause(right.causes[0])
    assert cause is not None
    assert (lean.right, lean.draws) == ({2: right.id}, {2: cause.draws})


def test_state_line_tells_how_long_ago(surroundings: dict[str, object]) -> None:
    made = get_classroom().create([FIRST])
    told = [state_line(made, made.created_s + later_s).rpartition("made ")[2] for later_s in (0, 180, 3_700, 200_000)]
    assert told == ["just now", "3 minutes ago", "1 hour ago", "2 days ago"]


class Account(dict[str, object]):
    """Stands where `st.user` would."""


@pytest.mark.parametrize(
    ("account", "words"),
    [
        ({}, "Sign in with your account"),
        ({"is_logged_in": True, "email": "Ann@Example.org", "email_verified": True}, "Go on as Ann@Example.org"),
        ({"is_logged_in": True, "email": "ann@example.org", "email_verified": "true"}, "Go on as ann@example.org"),
        ({"is_logged_in": True, "email": "ann@example.org", "xms_edov": True}, "Go on as ann@example.org"),
        ({"is_logged_in": True, "email": "ann@example.org", "email_verified": False, "xms_edov": True}, "does not say that ann@"),
        ({"is_logged_in": True, "email": "ann@example.org", "email_verified": "false"}, "does not say that ann@example.org"),
        ({"is_logged_in": True, "email": "ann@example.org"}, "does not say that ann@example.org"),
        ({"is_logged_in": True, "email": "bob@example.org", "email_verified": True}, "bob@example.org is not among the instructors"),
        ({"is_logged_in": True}, "does not say that the e-mail address of this account"),
    ],
)
def test_signing_in_with_an_account(
    teach: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, account: dict[str, object], words: str
) -> None:
    monkeypatch.setenv("SHARDLAB_INSTRUCTORS", "ann@example.org, chris@example.org")
    forget_instructors()
    monkeypatch.setattr(teach_sign_in, "accounts", lambda: True)
    monkeypatch.setattr("streamlit.user", Account(account))
    page = teach(signed_in=False)
    text = html(page) + "".join(button.label for button in page.button)
    assert words in text
    assert '<form class="pg-sign-in"' in text, "the key goes on working"
    tickets = re.findall(r'href="instructor/ticket/([^"]+)"', text)
    assert [get_instructors().redeem(ticket) for ticket in tickets] == (["ann@example.org"] if words.startswith("Go on") else [])
    forget_instructors()


class Secrets(dict[str, object]):
    """Stands where `st.secrets` would."""

    def load_if_toml_exists(self) -> bool:
        return bool(self)


@pytest.mark.parametrize(
    ("secrets", "missing", "offered"),
    [
        ({}, (), False), ({"other": {}}, (), False), ({"auth": {"client_id": "x"}}, (), True), ({"auth": {}}, ("authlib",), False),
        ({"auth": {}}, ("httpx",), False),
    ],
)  # fmt: skip
def test_accounts_are_offered_only_where_they_are_set_up(
    monkeypatch: pytest.MonkeyPatch, secrets: dict[str, object], missing: tuple[str, ...], offered: bool
) -> None:
    monkeypatch.setattr("streamlit.secrets", Secrets(secrets))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in missing else object())
    assert teach_sign_in.accounts() is offered
