"""What somebody with bad intentions finds at every address of a class: nothing that is not theirs, nothing early, no way to harm others."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from lessons.classroom import Classroom, ClassState
from lessons.classroom.words import ALPHABET, new_code, new_token
from lessons.model import Lesson
from lessons.store import Store
from pages.classroom import door, sign_in
from pages.classroom.door import PARTICIPANT_COOKIE
from pages.classroom.instructor import INSTRUCTOR_COOKIE, Instructors
from scenarios.settings import Settings
from tests.pages.classroom.test_routes import Browser, act, joined, vote

DRIVING = ("do", "experiment", "pause", "replay")


def options(classroom: Classroom, code: str) -> list[str]:
    return [option.id for option in lesson_of(classroom, code).options]


def lesson_of(classroom: Classroom, code: str) -> Lesson:
    lesson = classroom.lesson(code)
    assert lesson is not None
    return lesson


def answered(classroom: Classroom, code: str) -> int:
    return int(classroom.console_view(code)["answered"])


# Forged tokens


@pytest.mark.parametrize(
    "token", ["", "x", "a" * 43, "../../x", "%00" * 14, pytest.param(new_token(), id="well-formed"), "1'; DROP TABLE votes;--" + "a" * 20]
)
def test_a_forged_participant_votes_for_nobody(
    browser: Browser, driver: TestClient, classroom: Classroom, lobby: ClassState, token: str
) -> None:
    joined(browser, lobby.code)
    act(driver, lobby.code, "next")
    forger = browser()
    forger.cookies.set(PARTICIPANT_COOKIE, token)
    choice = options(classroom, lobby.code)[0]
    assert vote(forger, lobby.code, choice) == 401
    assert forger.get(f"/c/{lobby.code}/view").status_code == 401
    assert forger.get("/live", params={"class": lobby.code}).status_code == 401
    assert answered(classroom, lobby.code) == 0


def test_joining_with_an_invented_token_is_a_new_participant(browser: Browser, classroom: Classroom, lobby: ClassState) -> None:
    joined(browser, lobby.code, "Ada")
    forger = browser()
    forger.cookies.set(PARTICIPANT_COOKIE, "a" * 43)
    assert forger.post(f"/c/{lobby.code}/join", json={}).json()["me"]["nickname"] is None
    assert classroom.console_view(lobby.code)["joined"] == 2


def test_the_cookie_of_a_participant_is_no_instructors(browser: Browser, lobby: ClassState) -> None:
    phone = joined(browser, lobby.code)
    phone.cookies.set(INSTRUCTOR_COOKIE, phone.cookies[PARTICIPANT_COOKIE])
    assert refused_everywhere(phone, lobby.code)


@pytest.mark.parametrize("forgery", ["none", "noise", "longer", "other key", "ticket", "address"])
def test_a_forged_instructor_drives_nothing(
    browser: Browser, instructors: Instructors, classroom: Classroom, lobby: ClassState, forgery: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    other = Instructors(Settings(data_dir=tmp_path_factory.mktemp("other"), instructor_key="another-key-of-mine"))
    until, *rest = instructors.sign().split(".")
    forged = {
        "none": "", "noise": f"{until}.a2V5.aaaaaaaaaaaaaaaa.{'0' * 64}", "longer": ".".join([f"{int(until) + 9}", *rest]),
        "other key": other.sign(), "ticket": instructors.ticket(), "address": instructors.sign("mallory@example.org"),
    }[forgery]  # fmt: skip
    mallory = browser()
    if forged:
        mallory.cookies.set(INSTRUCTOR_COOKIE, forged)
    assert refused_everywhere(mallory, lobby.code)
    assert classroom.state(lobby.code).version == lobby.version


def refused_everywhere(client: TestClient, code: str) -> bool:
    """Whether everything that only instructors may is refused."""
    posts = [client.post(f"/class/{code}/{what}", json={"action": "next", "cause_id": "fix"}).status_code for what in DRIVING]
    gets = [client.get(path).status_code for path in (f"/class/{code}/results.csv", f"/live?class={code}&as=console")]
    pages = [client.get(f"/class/{code}/{page}").status_code for page in ("console", "report")]
    return posts + gets == [401] * 6 and pages == [303] * 2


def test_an_old_cookie_and_one_of_a_former_instructor_count_no_longer(tmp_path: object) -> None:
    now = [1_800_000_000.0]
    settings = Settings(instructor_key="open-sesame-and-stay", instructors="ada@example.org")
    instructors = Instructors(settings, now=lambda: now[0])
    by_key, by_address = instructors.sign(), instructors.sign("ada@example.org")
    assert (instructors.who(by_key), instructors.who(by_address)) == ("key", "ada@example.org")
    former = Instructors(Settings(instructor_key="open-sesame-and-stay"), now=lambda: now[0])
    assert (former.who(by_key), former.who(by_address)) == ("key", None)
    now[0] += 12 * 3600 + 1
    assert instructors.who(by_key) is None


# Votes


def test_nobody_votes_for_another(browser: Browser, driver: TestClient, classroom: Classroom, lobby: ClassState) -> None:
    ada, eve = joined(browser, lobby.code, "Ada"), joined(browser, lobby.code, "Eve")
    act(driver, lobby.code, "next")
    first, second = options(classroom, lobby.code)[:2]
    assert vote(ada, lobby.code, first) == 200
    token = ada.cookies[PARTICIPANT_COOKIE]
    forged = {"round": "first", "item_no": 1, "choice": second, "token": token, "participant": 1, "participant_id": 1}
    answer = eve.post(f"/c/{lobby.code}/vote?token={token}", json=forged)
    assert answer.json()["me"]["votes"]["first"] == second
    assert ada.get(f"/c/{lobby.code}/view").json()["me"]["votes"]["first"] == first


def test_no_vote_counts_before_it_is_open_or_after_it_is_closed(
    browser: Browser, driver: TestClient, classroom: Classroom, lobby: ClassState
) -> None:
    phone = joined(browser, lobby.code)
    act(driver, lobby.code, "next")
    first, second = options(classroom, lobby.code)[:2]
    assert vote(phone, lobby.code, first) == 200
    for which, item_no in (("second", 1), ("predict", 1), ("first", 2)):
        choice = "only0" if which == "predict" else first
        assert vote(phone, lobby.code, choice, which, item_no) in (409, 422), which
    act(driver, lobby.code, "next")
    answer = phone.post(f"/c/{lobby.code}/vote", json={"round": "first", "item_no": 1, "choice": second})
    assert (answer.status_code, answer.json()["reason"]) == (409, "closed")
    assert vote(phone, lobby.code, first) == 200, "what was recorded is acknowledged again"
    assert classroom.projector_view(lobby.code)["votes"]["first"]["counts"] == {first: 1}


@pytest.mark.parametrize(
    "body",
    [
        {}, {"round": "first"}, {"round": "first", "item_no": True, "choice": "x"}, {"round": "third", "item_no": 1, "choice": "x"},
        {"round": "first", "item_no": 10**30, "choice": "x"}, {"round": "first", "item_no": 1, "choice": "no such"},
        {"round": ["first"], "item_no": 1, "choice": {}}, {"round": "first", "item_no": -1, "choice": "x"},
    ],
)  # fmt: skip
def test_a_vote_that_makes_no_sense_is_refused(browser: Browser, driver: TestClient, lobby: ClassState, body: dict[str, object]) -> None:
    phone = joined(browser, lobby.code)
    act(driver, lobby.code, "next")
    answer = phone.post(f"/c/{lobby.code}/vote", json=body)
    assert answer.status_code in (409, 422)
    assert answer.json()["words"]


# Floods and guesses


def test_ten_thousand_joins_from_one_client_leave_room_for_the_class(
    make_app: Callable[..., Starlette], browser: Browser, classroom: Classroom, lobby: ClassState
) -> None:
    app = make_app(joins_per_client_limit=20, participants_limit=40)
    answers = Counter(asyncio.run(flood(app, f"/c/{lobby.code}/join", 10_000)))
    assert answers == {200: 20, 429: 9_980}
    refused = browser(at="10.0.0.66", app=app).post(f"/c/{lobby.code}/join", json={})
    assert (refused.json()["reason"], refused.headers["retry-after"]) == ("limit", "60")
    assert joined(lambda at="": browser(at=at, app=app), lobby.code, at="10.0.0.7").get(f"/c/{lobby.code}/view").status_code == 200
    assert classroom.console_view(lobby.code)["joined"] == 21


async def flood(app: Starlette, path: str, count: int) -> list[int]:
    """Statuses of as many joins without a cookie, from one client."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers, "client": ("10.0.0.66", 1)}

    async def one() -> int:
        statuses: list[int] = []

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

        await app(dict(scope), receive, send)
        return statuses[0]

    return [status for _ in range(count // 100) for status in await asyncio.gather(*(one() for _ in range(100)))]


def test_who_is_in_the_class_comes_back_whatever_others_of_the_network_did(
    make_app: Callable[..., Starlette], browser: Browser, lobby: ClassState
) -> None:
    app = make_app(joins_per_client_limit=1)
    phone = browser(app=app)
    assert phone.post(f"/c/{lobby.code}/join", json={"nickname": "Ada"}).status_code == 200
    assert browser(app=app).post(f"/c/{lobby.code}/join", json={}).status_code == 429
    assert phone.post(f"/c/{lobby.code}/join", json={"nickname": "Ada L."}).json()["me"]["nickname"] == "Ada L."


def test_a_full_class_says_so_and_takes_no_place_of_the_network(
    make_app: Callable[..., Starlette], browser: Browser, lobby: ClassState
) -> None:
    app = make_app(participants_limit=1, joins_per_client_limit=3)
    assert browser(app=app).post(f"/c/{lobby.code}/join", json={}).status_code == 200
    for _ in range(5):
        answer = browser(app=app).post(f"/c/{lobby.code}/join", json={})
        assert (answer.status_code, answer.json()["reason"]) == (403, "full")


def every_address(code: str) -> list[tuple[str, str]]:
    """All that is asked by the code alone."""
    return [
        ("GET", f"/c/{code}/view"), ("POST", f"/c/{code}/join"), ("POST", f"/c/{code}/vote"), ("GET", f"/class/{code}/qr.svg"),
        ("GET", f"/live?class={code}"), ("GET", f"/live?class={code}&as=projector"),
    ]  # fmt: skip


def test_guessing_codes_is_slowed_down_and_learns_nothing(
    browser: Browser, driver: TestClient, lobby: ClassState
) -> None:
    phone = joined(browser, lobby.code, at="10.0.0.66")
    guesser = browser("10.0.0.66")
    wrong = [code for code in ("AAAAAA", "0", "%2e%2e", "a" * 300, new_code(), lobby.code[:5], "ÄÖÜ") if code != lobby.code]
    bodies = {guesser.request(method, path, json={}).text for code in wrong for method, path in every_address(code)[:2]}
    assert len(bodies) == 1, "a code that is wrong and one that cannot be one are answered alike"
    assert not any(code in bodies.pop() for code in wrong[:1])
    for _ in range(door.WRONG_CODES):
        guesser.get(f"/c/{new_code()}/view")
    for method, path in (*every_address(lobby.code), ("GET", f"/c/{lobby.code}"), ("GET", f"/class/{lobby.code}/projector")):
        assert guesser.request(method, path, **({"json": {}} if method == "POST" else {})).status_code == 429, path
    assert phone.get(f"/c/{lobby.code}/view").status_code == 200, "who is in the class already is not shut out"
    assert act(driver, lobby.code, "next")["state"] == "vote"
    assert browser("10.0.0.7").get(f"/c/{lobby.code}").status_code == 200


def test_codes_are_many_and_random() -> None:
    assert len(ALPHABET) ** 6 > 700_000_000
    assert len({new_code() for _ in range(1_000)}) == 1_000


def test_wrong_keys_are_limited(browser: Browser) -> None:
    mallory = browser("10.0.0.66")
    for number in range(sign_in.WRONG_KEYS):
        assert mallory.post("/instructor/sign-in", data={"key": f"guess-number-{number}"}).status_code == 403
    assert mallory.post("/instructor/sign-in", data={"key": "open-sesame-and-stay"}).status_code == 429
    assert mallory.get("/instructor/ticket/x").status_code == 403
    assert browser("10.0.0.7").post("/instructor/sign-in", data={"key": "open-sesame-and-stay"}).status_code == 303


# Texts


@pytest.mark.parametrize(
    "nickname", ["<script>alert(1)</script"[:24], "<img src=x onerror=a()>", "**Ada** [x](javascript:", "{{7*7}}", "'\"><svg/onload=a()>"]
)  # fmt: skip
def test_markup_in_a_nickname_stays_text(browser: Browser, driver: TestClient, lobby: ClassState, nickname: str) -> None:
    joined(browser, lobby.code, nickname)
    view = act(driver, lobby.code, "show_names", on=True)
    assert view["participants"][0]["nickname"] == nickname  # type: ignore[index]
    for path in (f"/class/{lobby.code}/console", f"/class/{lobby.code}/projector", f"/class/{lobby.code}/report", f"/c/{lobby.code}"):
        page = driver.get(path)
        assert page.status_code == 200
        assert nickname not in page.text, path
        assert "script-src 'self';" in page.headers["content-security-policy"]


@pytest.mark.parametrize("nickname", ["a" * 25, "a\u200d\u200db", "\u202egnirts", "a\nb", "a\x00b", "\u200b", 5, ["a"], {"a": 1}])
def test_a_nickname_that_cannot_be_read_is_refused(browser: Browser, classroom: Classroom, lobby: ClassState, nickname: object) -> None:
    answer = browser().post(f"/c/{lobby.code}/join", json={"nickname": nickname})
    assert (answer.status_code, answer.json()["reason"]) == (422, "invalid")
    assert classroom.console_view(lobby.code)["joined"] == 0


@pytest.mark.parametrize("nickname", ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0"])
def test_a_formula_in_a_nickname_is_none_in_the_table(browser: Browser, driver: TestClient, lobby: ClassState, nickname: str) -> None:
    joined(browser, lobby.code, nickname)
    answer = driver.get(f"/class/{lobby.code}/results.csv")
    assert answer.headers["content-disposition"] == f'attachment; filename="class-{lobby.code}.csv"'
    cells = [cell for row in csv.reader(io.StringIO(answer.text)) for cell in row]
    assert any(nickname in cell for cell in cells)
    assert not any(cell.lstrip("\ufeff").startswith(("=", "+", "-", "@")) for cell in cells)


# Other sites, other bodies


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
        {"origin": "http://testserver.evil.example"}, {"origin": "http://evil.example", "host": "testserver"},
    ],
)  # fmt: skip
def test_another_site_can_do_nothing_with_the_cookies_of_a_browser(
    browser: Browser, driver: TestClient, classroom: Classroom, lobby: ClassState, headers: dict[str, str]
) -> None:
    phone = joined(browser, lobby.code)
    act(driver, lobby.code, "next")
    choice = options(classroom, lobby.code)[0]
    answer = phone.post(f"/c/{lobby.code}/vote", json={"round": "first", "item_no": 1, "choice": choice}, headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (403, "origin")
    assert phone.post(f"/c/{lobby.code}/join", json={}, headers=headers).status_code == 403
    for what in DRIVING:
        assert driver.post(f"/class/{lobby.code}/{what}", json={"action": "next"}, headers=headers).status_code == 403
    assert driver.post("/instructor/sign-out", headers=headers).status_code == 403
    assert browser("10.0.0.8").post("/instructor/sign-in", data={"key": "open-sesame-and-stay"}, headers=headers).status_code == 403
    assert (answered(classroom, lobby.code), classroom.state(lobby.code).state) == (0, "vote")


def test_a_page_of_ours_may_post_behind_a_proxy_too(make_app: Callable[..., Starlette], browser: Browser, lobby: ClassState) -> None:
    app = make_app(public_url="https://class.example")
    for headers in (
        {"origin": "http://testserver"}, {"origin": "https://class.example"}, {"sec-fetch-site": "same-origin"},
        {"origin": "https://outside.example", "x-forwarded-host": "outside.example"},
        {"origin": "https://outside.example", "sec-fetch-site": "same-origin", "host": "127.0.0.1:8501"},
    ):  # fmt: skip
        assert browser(app=app).post(f"/c/{lobby.code}/join", json={}, headers=headers).status_code == 200


def test_a_form_of_another_site_is_no_json(browser: Browser, lobby: ClassState) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = browser().post(f"/c/{lobby.code}/join", content=b'{"nickname":"x"}', headers={"content-type": kind})
        assert answer.status_code == 415


@pytest.mark.parametrize("body", [b"[", b"[]", b'"x"', b"\xff\xfe", b"[" * 3000, b"null"])
def test_a_body_that_is_no_object_is_refused(browser: Browser, lobby: ClassState, body: bytes) -> None:
    answer = browser().post(f"/c/{lobby.code}/join", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400


def test_a_body_that_is_too_large_is_not_read(browser: Browser, driver: TestClient, lobby: ClassState) -> None:
    json_type = {"content-type": "application/json"}
    for path in (f"/c/{lobby.code}/join", f"/c/{lobby.code}/vote"):
        assert browser().post(path, json={"nickname": "x" * 5_000}).status_code == 413
        assert browser().post(path, content=iter([b" " * 3_000] * 10), headers=json_type).status_code == 413, "without a length too"
    assert driver.post(f"/class/{lobby.code}/do", json={"action": "note", "text": "x" * 70_000}).status_code == 413
    assert browser().post("/instructor/sign-in", content=b"key=" + b"x" * 9_000).status_code == 413
    forged = browser().post(f"/c/{lobby.code}/join", content=b"{}", headers={**json_type, "content-length": "9" * 40})
    assert forged.status_code == 413


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"action": 5}, {"action": "show_run", "run": {"run_id": "x"}}, {"action": "next", "code": "AAAAAA"}, {"action": "__class__"},
        {"action": "next", "expect_version": "1"}, {"action": "next", "expect_version": True}, {"action": "next", "state": "key"},
        {"action": "remove", "participant": "1"}, {"action": "timer", "seconds": 10**9},
        {"action": "go_to", "state": "key"},
        {"action": "next", "connection": None, "self": 1}, {"action": "blank", "on": "yes"},
    ],
)  # fmt: skip
def test_an_action_that_makes_no_sense_changes_nothing(
    driver: TestClient, classroom: Classroom, lobby: ClassState, fields: dict[str, object]
) -> None:
    answer = driver.post(f"/class/{lobby.code}/do", json=fields)
    assert answer.status_code == 422, answer.text
    assert classroom.state(lobby.code).version == lobby.version


def test_a_double_click_goes_one_state_further_only(driver: TestClient, classroom: Classroom, lobby: ClassState) -> None:
    first = driver.post(f"/class/{lobby.code}/do", json={"action": "next", "expect_version": lobby.version})
    second = driver.post(f"/class/{lobby.code}/do", json={"action": "next", "expect_version": lobby.version})
    assert (first.status_code, second.status_code) == (200, 409)
    assert second.json() == {"reason": "stale", "words": second.json()["words"], "version": first.json()["version"]}
    assert classroom.state(lobby.code).state == "vote"


# Early reading


def secrets_of(lesson: Lesson, state: str) -> list[str]:
    """Texts that give the answer away before a state, and are nowhere else."""
    texts = [lesson.why.html, lesson.exam_box.html, lesson.on_call_box.html, lesson.infographic_alt]
    texts += [option.rebuttal.html for option in lesson.options]
    if state != "predict":  # there the class's own answer is put in the words of its cause
        texts += [cause.title for cause in lesson.causes]
    return [] if state in ("key", "explanation") else [json.dumps(text)[1:-1][:60] for text in texts if text]


def test_the_key_and_the_histogram_are_at_no_address_before_their_time(
    browser: Browser, driver: TestClient, classroom: Classroom, lobby: ClassState
) -> None:
    ada, late = joined(browser, lobby.code, "Ada-the-first"), joined(browser, lobby.code, "Bob-the-second")
    stranger = browser("10.0.0.9")
    code = lobby.code
    act(driver, code, "next")
    lesson = lesson_of(classroom, code)
    assert vote(ada, code, lesson.options[1].id) == 200

    def everything() -> str:
        """All that a participant and a stranger can read now. (Streams: test_feed.py.)"""
        paths = [
            f"/c/{code}", f"/c/{code}/view", f"/class/{code}/projector", f"/class/{code}/qr.svg", f"/class/{code}/console",
            f"/class/{code}/results.csv", f"/class/{code}/report", f"/class/{code}/do", f"/c/{code}/vote", f"/c/{code}/join",
        ]  # fmt: skip
        texts = [client.get(path).text for path in paths for client in (late, stranger)]
        posts = [(f"/c/{code}/join", {}), (f"/c/{code}/vote", {"round": "first", "item_no": 1, "choice": lesson.options[0].id})]
        texts += [late.post(path, json=body).text for path, body in posts]
        return "\n".join(texts)

    for state in ("vote", "votes", "discuss", "revote", "predict", "experiments", "key", "explanation"):
        assert classroom.state(code).state == state
        text = everything()
        for secret in secrets_of(lesson, state):
            assert secret not in text, (state, secret)
        assert "Ada-the-first" not in text, state
        if state in ("vote", "revote"):
            assert '"counts":{' not in text
            assert '"total"' not in text
        act(driver, code, "next")


# Files


@pytest.mark.parametrize(
    "path",
    [
        "../routes.py", "..%2froutes.py", "%2e%2e/routes.py", "....//phone.js", "/etc/passwd", "phone/phone.html", "phone.js/",
        "phone.js%00.css", "..\\routes.py", "phone.JS", "", "instructor.key", "../../data/instructor.key",
    ],
)  # fmt: skip
def test_no_file_but_ours_is_served(browser: Browser, path: str) -> None:
    answer = browser().get(f"/class-assets/{path}")
    assert answer.status_code == 404
    assert "import" not in answer.text


def test_nobody_but_an_instructor_tells_the_room_where_to_go(
    app: Starlette, browser: Browser, driver: TestClient, lobby: ClassState
) -> None:
    where = app.state.classes._where
    assert driver.get(f"/class/{lobby.code}/console", headers={"host": "room.example:8501"}).status_code == 200
    for path in (f"/class/{lobby.code}/projector", f"/class/{lobby.code}/qr.svg", f"/c/{lobby.code}", f"/class/{lobby.code}/console"):
        browser("10.0.0.66").get(path, headers={"host": "evil.example"})
    browser("10.0.0.66").post(f"/class/{lobby.code}/do", json={"action": "next"}, headers={"host": "evil.example"})
    assert where.join_words(lobby.code) == f"room.example:8501/c/{lobby.code}"


def test_signing_in_leads_nowhere_outside(browser: Browser) -> None:
    for to in ("//evil.example", "https://evil.example", "class/../../evil", "teach\r\nSet-Cookie: a=b", "javascript:alert(1)"):
        form = browser().get("/instructor/sign-in", params={"to": to})
        assert to not in form.text
        answer = browser().post("/instructor/sign-in", data={"key": "open-sesame-and-stay", "to": to})
        assert answer.headers["location"] == "../teach"


def test_removed_is_removed(browser: Browser, driver: TestClient, classroom: Classroom, lobby: ClassState, store: Store) -> None:
    phone = joined(browser, lobby.code, "Rude")
    view = act(driver, lobby.code, "next")
    act(driver, lobby.code, "remove", participant=view["participants"][0]["id"])  # type: ignore[index]
    for answer in (
        phone.get(f"/c/{lobby.code}/view"), phone.post(f"/c/{lobby.code}/join", json={}), phone.get("/live", params={"class": lobby.code}),
        phone.post(f"/c/{lobby.code}/vote", json={"round": "first", "item_no": 1, "choice": options(classroom, lobby.code)[0]}),
    ):  # fmt: skip
        assert (answer.status_code, answer.json()["reason"]) == (403, "removed")
    assert answered(classroom, lobby.code) == 0


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("do", '{"action": "next", "\\ud800": 1}'), ("do", '{"action": "\\ud800"}'), ("do", '{"action": "go_to", "state": "\\ud800"}'),
        ("do", '{"action": "remove", "participant": 99999999999999999999999}'), ("do", '{"action": "remove", "participant": -1}'),
        ("do", '{"action": "remove"}'), ("do", '{"action": "remove", "participant": true}'), ("do", '{"action": "timer", "seconds": NaN}'),
        ("do", '{"action": "hands", "round": "first", "counts": {"t1": Infinity}}'), ("experiment", '{"cause_id": "\\ud800"}'),
        ("experiment", '{"cause_id": "fix", "knobs": {"\\ud800": 1}}'), ("experiment", '{"cause_id": "fix", "knobs": {"batch": 1e999}}'),
    ],
)  # fmt: skip
def test_what_no_console_sends_is_refused_with_words(
    driver: TestClient, classroom: Classroom, lobby: ClassState, what: str, body: str
) -> None:
    for action in ("next", "next", "skip", "next"):
        classroom.act(lobby.code, action)
    before = classroom.state(lobby.code)
    assert before.state == "experiments"
    answer = driver.post(f"/class/{lobby.code}/{what}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["words"]
    assert classroom.state(lobby.code) == before
