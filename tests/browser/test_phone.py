"""The audience's page in a real browser: from the code to the end of a class, and every way in which a phone loses touch with it."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.checks import SIZES, FaultLog, assert_accessible, assert_no_sideways_scroll
from tests.browser.lanes_harness import end, run_of
from tests.browser.phone_harness import CODE, PhoneServer, Room, phone_server

Open = Callable[..., Page]
GALLERY = Path(__file__).parent / "artifacts" / "phone"
"""A picture of every state, for people to judge; written anew by each run of the tests."""
SAID_MS = 4_900
"""Between two messages to a screen reader, less the resolution of timers."""
RECORD_WHAT_IS_SAID = """
    addEventListener("DOMContentLoaded", () => {
        window.said = [];
        new MutationObserver(() => said.push(performance.now())).observe(document.getElementById("say"), { childList: true });
    });
"""


@pytest.fixture
def server() -> Iterator[PhoneServer]:
    with phone_server() as running:
        yield running


@pytest.fixture
def room(server: PhoneServer) -> Room:
    return server.room


@pytest.fixture
def phone(browser: Browser, server: PhoneServer) -> Iterator[Open]:
    """`phone(path, joined=True, theme=, size=, faults=(...))`: a phone of its own. A console error that is not excused fails the test."""
    contexts: list[BrowserContext] = []
    log = FaultLog()

    def show(
        path: str = f"/c/{CODE}", *, joined: bool = True, theme: str = "light", size: str = "phone", faults: tuple[str, ...] = (),
        script: str = RECORD_WHAT_IS_SAID, clock: bool = False, **options: Any,
    ) -> Page:
        for text in faults:
            log.allow(text)
        context = browser.new_context(color_scheme=theme, **{**SIZES[size], **options})  # type: ignore[arg-type]
        context.set_default_timeout(8_000)
        context.add_init_script(script)
        contexts.append(context)
        page = context.new_page()
        log.watch(page)
        if clock:
            page.clock.install()
        page.goto(server.url + path)
        if joined:
            page.get_by_role("button", name="Join").click()
            expect(page.get_by_role("heading", name="Join the class")).to_have_count(0)
        return page

    yield show
    for context in contexts:
        context.close()
    log.check()


def headed(page: Page, text: str) -> None:
    """The state has come, and the focus with it."""
    title = page.get_by_role("heading", level=1, name=text)
    expect(title).to_be_visible()
    expect(title).to_be_focused()


def dock(page: Page, text: str) -> None:
    expect(page.locator("#dock")).to_contain_text(text)


def option(page: Page, number: int) -> Any:
    return page.get_by_role("radio").nth(number)


def until(page: Page, true: Callable[[], bool]) -> None:
    """Wait for something on the server's side."""
    deadline = time.monotonic() + 6
    while not true() and time.monotonic() < deadline:
        page.wait_for_timeout(20)
    assert true()


def first_run(room: Room) -> dict[str, Any]:
    return {
        "run_id": "r1", "title": room.lesson.causes[0].title, "odd_rank": 0, "metric": "busy", "mode": "live", "recorded_words": "",
        "paused": False, "prediction": "only0", "sentence": "What it shows.",
    }  # fmt: skip


def picture(page: Page, name: str) -> None:
    """Keep what the state looks like; every state has to be fit for fingers and narrow screens."""
    GALLERY.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=GALLERY / f"{name}.png")
    assert_no_sideways_scroll(page)
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, input, summary, a.button")]
            .map(node => [node.textContent || node.id, node.getBoundingClientRect()])
            .filter(([, box]) => box.width && (box.height < 43.5 || box.width < 43.5)).map(([name]) => name)"""
    )
    assert small == []


def test_the_way_in_and_both_votes(phone: Open, room: Room) -> None:
    page = phone("/c", joined=False, faults=("404",))
    page.get_by_label("Code of the class").fill("o0o")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("A code has six letters and digits")).to_be_visible()
    page.get_by_label("Code of the class").fill("abc def")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("There is no class with the code ABCDEF")).to_be_visible()
    page.get_by_label("Code of the class").fill(CODE.lower())
    page.keyboard.press("Enter")
    picture(page, "join")
    page.get_by_label("Nickname").fill("Ada")
    page.get_by_role("button", name="Join").click()
    headed(page, "You are in")
    expect(page.get_by_text("You are here as Ada.")).to_be_visible()
    picture(page, "lobby")
    assert_accessible(page)

    room.go("vote", closes_s=time.time() + 90)
    headed(page, room.lesson.title)
    dock(page, "Tap your answer")
    expect(page.get_by_role("timer")).to_have_text(re.compile("^1:(30|2[0-9])$"))
    expect(page.locator(".choice .text > span:first-child")).to_have_text([each.text for each in room.lesson.options])
    option(page, 1).click()
    dock(page, "Sent. You can still change it.")
    option(page, 1).press("ArrowDown")
    expect(option(page, 2)).to_have_attribute("aria-checked", "true")
    picture(page, "vote")
    assert_accessible(page)
    until(page, lambda: list(room.votes.values()) == [room.lesson.options[2].id])

    room.counts["first"] = {each.id: count for each, count in zip(room.lesson.options, (10, 20, 9, 0), strict=True)}
    room.go("votes", closes_s=None)
    headed(page, "How the class answered")
    expect(page.locator(".tally .figure:visible")).to_have_text(["25 %", "50 %", "25 %", "0 %"])
    expect(page.locator(".tally li").nth(2)).to_contain_text("your answer")
    expect(page.locator("#dock")).to_be_hidden()
    picture(page, "votes")
    room.go("discuss")
    headed(page, "Talk about it")
    room.go("revote")
    headed(page, "Vote again")
    expect(page.locator(".choice:has(.tag:visible)")).to_have_attribute("data-id", room.lesson.options[2].id)
    expect(page.locator(".choice[aria-checked=true]")).to_have_count(0)
    option(page, 0).click()
    dock(page, "Sent.")
    assert {key[2]: choice for key, choice in room.votes.items()} == {"first": "t2", "second": "m4"}


def test_the_run_and_what_follows(phone: Open, room: Room) -> None:
    page = phone()
    room.go("predict")
    headed(page, "What will its run draw?")
    expect(page.get_by_text(room.lesson.causes[0].title)).to_be_visible()
    page.get_by_role("radio", name="Only GPU 0 high").click()
    dock(page, "Sent.")
    picture(page, "predict")

    room.go("experiments")
    headed(page, "Watch it run")
    assert "lanes.js" not in " ".join(page.evaluate("performance.getEntriesByType('resource').map(each => each.name)"))
    room.events = list(run_of(20))
    room.go("experiments", run=first_run(room))
    expect(page.get_by_role("heading", level=1)).to_have_text(room.lesson.causes[0].title)
    root = page.locator("#stage.sl-root, #stage .sl-root").first
    expect(root).to_have_attribute("data-state", "running")
    expect(page.get_by_text("You and 100 % of the class predicted: only GPU 0 high.")).to_be_visible()
    expect(page.locator("#stage").get_by_role("button", name="Stop")).to_have_count(0)
    room.go("experiments", run={**first_run(room), "paused": True})
    expect(root).to_have_attribute("data-state", "paused")
    room.events += run_of(60, first=21)
    room.go("experiments", run=first_run(room))
    expect(page.locator(".sl-main")).to_contain_text("Live 12.0 s")
    expect(page.get_by_text("What it shows.")).to_be_hidden()
    room.events.append(end("finished", 12_000))
    expect(root).to_have_attribute("data-state", "finished")
    expect(page.get_by_text("What it shows.")).to_be_visible()
    picture(page, "experiments")
    racer = {"run_id": "a", "title": "<b>Sharded</b>", "role": "right", "epoch_s": 0.2, "measured": True, "points": [[0, 0], [0.2, 100]]}
    room.go("experiments", race=[racer, {**racer, "run_id": "b", "title": "Through GPU 0", "role": "odd", "epoch_s": 0.4}])
    expect(page.locator(".race li")).to_have_text(["<b>Sharded</b>0.2 s", "Through GPU 00.4 s"])
    expect(page.locator("#stage")).to_be_hidden()
    picture(page, "race")
    room.events = list(run_of(20))  # another run: what it shows is not told before its end either
    room.go("experiments", race=None, run={**first_run(room), "run_id": "r2"})
    expect(root).to_have_attribute("data-state", "running")
    expect(page.get_by_text("What it shows.")).to_be_hidden()
    page.mouse.wheel(0, 700)
    expect(page.locator(".sl-stuck")).to_be_in_viewport()
    assert room.streams == 1  # the class and its run came over one connection


def test_the_answer_its_reasons_and_the_end(phone: Open, room: Room) -> None:
    room.events, room.run = [*run_of(60), end("finished", 12_000)], first_run(room)
    room.go("vote")
    page = phone()
    option(page, 0).click()
    dock(page, "Sent.")
    room.go("key")
    letter = "ABCD"[[each.right for each in room.lesson.options].index(True)]
    headed(page, f"The answer is {letter}")
    expect(page.get_by_text(f"You said A. It is {letter}, and here is why.")).to_be_visible()
    assert page.locator(".tally > li .letter").all_inner_texts()[:2] == [letter, "A"]
    expect(page.locator(".tally .prose")).to_have_count(4)
    picture(page, "key")
    assert_accessible(page)
    room.go("explanation")
    headed(page, "Why")
    expect(page.locator(".drawing svg")).to_be_visible()
    expect(page.get_by_role("heading", name="In the exam")).to_be_visible()
    picture(page, "explanation")
    room.go("ended")
    headed(page, "That was the class")


def test_a_vote_counts_once_whatever_happens_to_it(phone: Open, server: PhoneServer, room: Room) -> None:
    room.go("vote")
    page = phone(faults=("502", "503", "ERR_", "Failed to load"))
    ids = [each.id for each in room.lesson.options]

    def recorded() -> list[str]:
        return list(room.votes.values())

    room.vote_answers = [0]  # recorded, but the answer gets lost
    option(page, 0).click()
    dock(page, "Not sent yet")
    expect(option(page, 0)).to_have_css("border-top-style", "dashed")
    dock(page, "Sent.")
    expect(option(page, 0)).to_have_css("border-top-style", "solid")
    expect(option(page, 0).locator(".letter")).to_have_css("background-color", "rgb(15, 118, 110)")
    assert (recorded(), len(room.asked)) == ([ids[0]], 2)

    room.vote_answers = [503]  # the store is away; then the page is loaded anew before it is back
    option(page, 1).click()
    dock(page, "Not sent yet")
    room.vote_answers = [503, 503]
    page.reload()
    expect(option(page, 1)).to_have_attribute("aria-checked", "true")
    dock(page, "Sent.")
    assert (recorded(), room.joins) == ([ids[1]], 1)

    page.context.set_offline(True)  # airplane mode in mid-vote, and another mind meanwhile
    option(page, 2).click()
    dock(page, "Not sent yet")
    option(page, 3).click()
    page.wait_for_timeout(300)
    assert recorded() == [ids[1]]
    page.context.set_offline(False)
    dock(page, "Sent.")
    assert (recorded(), room.asked[-1][2]) == ([ids[3]], ids[3])

    server.stop()  # a restart; the answer given meanwhile is sent when the server is back
    expect(page.get_by_text("Connection lost, retrying in")).to_be_visible()
    option(page, 0).click()
    dock(page, "Not sent yet")
    picture(page, "lost")
    server.start()
    dock(page, "Sent.")
    expect(page.get_by_text("Connection lost, retrying")).to_be_hidden()
    assert (recorded(), room.joins) == ([ids[0]], 1)

    page.context.set_offline(True)  # too late
    option(page, 2).click()
    room.go("votes")
    page.context.set_offline(False)
    headed(page, "How the class answered")
    expect(page.get_by_text("The vote closed before your answer arrived.")).to_be_visible()
    expect(page.locator(".tally li").first).to_contain_text("your answer")
    assert recorded() == [ids[0]]


def test_a_vote_that_the_server_lost_or_that_another_device_changed(phone: Open, server: PhoneServer, room: Room) -> None:
    room.go("vote")
    page = phone(faults=("ERR_", "Failed to load"))
    option(page, 0).click()
    dock(page, "Sent.")
    server.stop()
    room.votes.clear()  # as if restored from a copy of before
    server.start()
    until(page, lambda: list(room.votes.values()) == [room.lesson.options[0].id])
    room.votes = dict.fromkeys(room.votes, room.lesson.options[1].id)
    other = page.context.new_page()
    other.goto(server.address)
    option(other, 2).click()
    dock(other, "Sent.")
    expect(option(page, 2)).to_have_attribute("aria-checked", "true")  # the tabs of one browser agree
    assert room.joins == 1


def test_a_phone_that_slept_or_changed_its_address_comes_back(phone: Open, room: Room) -> None:
    network = "Object.defineProperty(navigator, 'connection', { value: Object.assign(new EventTarget(), { type: 'wifi' }) });"
    page = phone(faults=("ERR_", "Failed to load"), clock=True, script=network + RECORD_WHAT_IS_SAID)
    headed(page, "You are in")
    hide = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    page.clock.fast_forward(30_000)
    room.go("vote")
    page.evaluate(hide, False)
    until(page, lambda: room.streams == 2)
    headed(page, room.lesson.title)
    page.evaluate("navigator.connection.dispatchEvent(new Event('change'))")  # only another estimate of the speed
    page.evaluate("navigator.connection.type = 'cellular'; navigator.connection.dispatchEvent(new Event('change'))")
    until(page, lambda: room.streams == 3)
    room.go("vote", closes_s=time.time() + 900)
    expect(page.get_by_role("timer")).to_be_visible()
    page.clock.fast_forward(60_000)  # a line on which nothing was heard for so long is dead
    until(page, lambda: room.streams == 4)
    room.go("vote", closes_s=None)
    expect(page.get_by_role("timer")).to_be_hidden()
    assert (room.joins, room.views) == (1, 0)
    for number in (0, 1, 2, 3):
        option(page, number).click()
        dock(page, "Sent.")
        page.clock.fast_forward(2_000)
    room.mute = True
    page.evaluate("dispatchEvent(new Event('online'))")
    room.go("votes")
    until(page, lambda: room.streams == 5)
    for _ in range(2):  # the stream is open, which is heard too, and nothing comes of it
        page.wait_for_timeout(200)
        page.clock.fast_forward(10_000)
    headed(page, "How the class answered")
    said = page.evaluate("said")
    assert len(said) > 1
    assert all(later - earlier > SAID_MS for earlier, later in pairwise(said))


def test_a_phone_says_now_and_then_that_it_is_there(phone: Open, room: Room) -> None:
    page = phone(clock=True)
    headed(page, "You are in")
    page.clock.fast_forward(6_000)
    until(page, lambda: room.signs == 1)
    room.go("vote")
    headed(page, room.lesson.title)
    page.clock.fast_forward(6_000)
    room.go("votes")
    headed(page, "How the class answered")
    page.clock.fast_forward(6_000)
    assert room.signs == 1, "what comes soon after is not answered"
    room.go("discuss")
    headed(page, "Talk about it")
    page.clock.fast_forward(6_000)
    until(page, lambda: room.signs == 2)
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")
    page.clock.fast_forward(15_000)
    room.go("revote")
    until(page, lambda: room.signs == 3)  # at once: in the background no timer comes soon


def test_who_comes_late_sees_what_the_class_sees(phone: Open, room: Room) -> None:
    titles = {
        "lobby": "You are in", "vote": room.lesson.title, "votes": "How the class answered", "discuss": "Talk about it",
        "revote": "Vote again", "predict": "What will its run draw?", "experiments": room.lesson.causes[0].title,
        "key": "The answer is", "explanation": "Why", "ended": "That was the class",
    }  # fmt: skip
    room.run, room.events = first_run(room), [*run_of(60), end("finished", 12_000)]
    page = phone(theme="dark", size="narrow", reduced_motion="reduce")
    for state, title in titles.items():
        room.go(state)
        page.context.clear_cookies()
        page.evaluate("localStorage.clear()")
        page.reload()
        page.get_by_role("button", name="Join").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)
        if state in ("experiments", "key", "explanation"):
            expect(page.locator("#stage .sl-picture")).to_be_visible()
            expect(page.locator(".sl-main")).to_contain_text("Finished")
        else:
            expect(page.locator("#stage")).to_be_hidden()
        picture(page, f"late-{state}")
        assert page.evaluate("document.getAnimations().length") == 0, "who asks for less motion sees none"
    assert room.joins == len(titles) + 1


def test_a_browser_that_keeps_nothing_stays_the_same_participant(phone: Open, room: Room) -> None:
    room.go("vote")
    denied = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError'); } })"
    page = phone(f"/behind/a/proxy/c/{CODE}", faults=("403",), script=denied)
    option(page, 3).click()
    dock(page, "Sent.")
    page.reload()
    headed(page, room.lesson.title)
    expect(option(page, 3)).to_have_attribute("aria-checked", "true")
    assert room.joins == 1


def test_ways_in_that_are_closed(phone: Open, room: Room) -> None:
    excused = ("403", "422", "429", "503")
    room.join_answers = [(422, {"reason": "invalid", "words": "nickname: at most <b>24</b> characters."}), (503, {"reason": "store"})]
    page = phone(joined=False, faults=excused)
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_text("nickname: at most <b>24</b> characters.")).to_be_visible()
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_text("Many are joining at once. Your turn comes in 1 s.")).to_be_visible()
    headed(page, "You are in")
    room.removed = set(room.people)
    page.evaluate("dispatchEvent(new Event('online'))")
    headed(page, "You are no longer in this class")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("You are no longer in this class")
    room.join_answers = [(403, {"reason": "full"}), (429, {"reason": "limit", "words": "500 have joined from your network already."})]
    page = phone(joined=False)
    page.get_by_role("button", name="Join").click()
    headed(page, "The class is full")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("button", name="Join").click()
    headed(page, "Please wait a moment")
    expect(page.get_by_text("500 have joined from your network already.")).to_be_visible()
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("button", name="Join").click()
    headed(page, "You are in")
    room.go("vote")
    headed(page, room.lesson.title)
    room.people.clear()  # the server forgot: a phone that had joined joins again by itself, and its vote counts
    page.evaluate("dispatchEvent(new Event('online'))")
    option(page, 0).click()
    dock(page, "Sent.")
    assert (room.joins, len(room.people), len(room.votes)) == (7, 1, 1)


def test_what_others_wrote_is_text_and_nothing_of_a_lesson_runs(phone: Open, room: Room) -> None:
    hostile = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
    markup = f'<p onclick="window.hit=1">Fine {hostile}<a href="javascript:window.hit=1">link</a></p>'
    prose = dataclasses.replace(room.lesson.symptom, html=markup)
    svg = (
        '<svg viewBox="0 0 10 10" onload="window.hit=1"><style>rect{fill:red}</style><script>window.hit=1</script>'
        '<foreignObject><img src="x" onerror="window.hit=1"/></foreignObject><rect style="stroke:blue" width="9" height="9"/></svg>'
    )
    option0 = dataclasses.replace(room.lesson.options[0], text=hostile)
    room.lesson = dataclasses.replace(
        room.lesson, title=hostile, symptom=prose, why=prose, infographic=svg, options=(option0, *room.lesson.options[1:])
    )
    page = phone(joined=False, faults=("Executing inline event handler violates",))
    page.get_by_label("Nickname").fill("<i>*Bob*</i>")
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_text("You are here as <i>*Bob*</i>.")).to_be_visible()
    room.go("vote")
    headed(page, hostile)
    expect(option(page, 0)).to_contain_text("<img src=x")
    room.go("explanation")
    headed(page, "Why")
    drawn = page.locator(".drawing rect")
    expect(drawn).to_have_css("fill", "rgb(255, 0, 0)")
    expect(drawn).to_have_css("stroke", "rgb(0, 0, 255)")
    assert page.evaluate("document.querySelectorAll('#page :is(img, script, [onclick], a[href^=javascript])').length") == 0
    assert page.evaluate("document.querySelector('.drawing div').shadowRoot.querySelectorAll('script, img, [onload]').length") == 0
    assert page.evaluate("window.hit") is None
    room.lesson = dataclasses.replace(room.lesson, infographic=svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '))
    old = phone(script="delete Document.prototype.adoptedStyleSheets")  # a browser of some years ago: the drawing as a picture
    headed(old, "Why")
    expect(old.locator(".drawing img")).to_be_visible()
    assert old.evaluate("window.hit") is None
