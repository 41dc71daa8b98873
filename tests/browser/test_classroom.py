"""A whole class in real browsers, as it is rehearsed: presenter, console and two phones play it with thirty simulated participants by a
plan of twenty minutes, with live runs that do not start and keys in mid-run. They all meet in the copy that the instructors' page makes.

With SHARDLAB_TEST_SHOTS=FOLDER every state is kept there as pictures of presenter, console and phone, for people to judge.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from lessons import load_lessons
from lessons.classroom import Classroom
from lessons.store import open_store
from pages.classroom.rehearsal import PARTICIPANTS
from tests.browser.checks import SIZES, FaultLog, settle
from tests.browser.server import ROOT, AppServer

KEY = "a-key-for-this-test"
NOTE = "Ask the second row first."
NAMES = ("Ada Lovelace", "<i>Grace</i>")
LESSON, SECOND = load_lessons().lessons[:2]
CAUSE = next(cause for cause in LESSON.causes if cause.scenario == "rank0_loading")
SHOTS = os.environ.get("SHARDLAB_TEST_SHOTS", "")
RUN_MS = 30_000
PLAN_MINUTES = (12, 8)
ALL = PARTICIPANTS + len(NAMES)
WATCH = """
    window.seen = [];
    new MutationObserver((changes) => {
        for (const { target, attributeName } of changes) {
            const first = String(target.className?.baseVal ?? target.className).split(" ")[0];
            seen.push([Date.now(), `${target.localName}.${first} ${attributeName}=${target.getAttribute(attributeName)}`]);
        }
    }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-blank", "data-mode", "data-state"] });
    addEventListener("keydown", () => { window.pressed = Date.now(); }, true);
"""


class Projector:
    """The projector's page, with everything that was ever sent to it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[tuple[str, str]] = []
        self._texts: list[str] = []
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.eventSourceMessageReceived", lambda event: self.frames.append((event["eventName"], event["data"])))
        page.on("response", self._keep)

    def _keep(self, response: Any) -> None:
        if "/live" not in response.url and "/static/" not in response.url and response.ok:
            self._texts.append(f"{response.url} {json.dumps(response.headers)} {response.text()}")

    def told(self) -> str:
        """All of its traffic and what is in its page now."""
        return "\n".join([*self._texts, *(data for _, data in self.frames), self.page.content(), self.page.url])

    def views(self) -> list[dict[str, Any]]:
        return [json.loads(data) for name, data in self.frames if name == "class"]


@pytest.fixture
def server(own_app: Callable[..., AppServer]) -> AppServer:
    # With recordings, as a server has them that was set up before its class.
    env = {"SHARDLAB_INSTRUCTOR_KEY": KEY, "SHARDLAB_MEASURE_AT_START": "true"}
    return own_app(script=ROOT / "tests/browser/class_app.py", cwd=ROOT, env=env)


@pytest.fixture
def code(server: AppServer) -> str:
    store = open_store(server.data_dir)
    try:
        classroom = Classroom(store)
        return classroom.create([LESSON.id, SECOND.id], title="Scaling on one node", plan=list(PLAN_MINUTES)).code
    finally:
        store.close()


@pytest.fixture
def open_window(browser: Browser, server: AppServer, fault_log: FaultLog) -> Iterator[Callable[..., Page]]:
    """`open_window(path, size)`: a window of its own, on the class's server."""
    contexts: list[BrowserContext] = []

    def show(path: str, size: str, watch: Callable[[Page], Any] = lambda page: None) -> Page:
        context = browser.new_context(**SIZES[size])  # type: ignore[arg-type]
        context.set_default_timeout(10_000)
        context.add_init_script(WATCH)
        contexts.append(context)
        page = context.new_page()
        fault_log.watch(page)
        watch(page)
        page.goto(server.url + path)
        return page

    yield show
    for context in contexts:
        context.close()
    fault_log.check()


class Desk:
    """The instructors' page with a class: where its rehearsal begins and ends."""

    def __init__(self, code: str, server: AppServer, open_window: Callable[..., Page]) -> None:
        self.code, self.url = code, server.url
        self.page = open_window(f"/teach?class={code}", "desktop")
        self.page.get_by_label("Instructor key").fill(KEY)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.goto(f"{server.url}/teach?class={code}")
        self.section = self.page.locator(".st-key-teach-rehearse")
        self.tally = self.section.locator("[role=status]")

    def begin(self) -> str:
        """The code of the copy in which everybody is."""
        self.page.get_by_role("button", name="Begin the rehearsal").click(timeout=RUN_MS)
        expect(self.tally).to_contain_text(f"{PARTICIPANTS} of {PARTICIPANTS} joined, {PARTICIPANTS} follow", timeout=RUN_MS)
        copy = (self.section.get_by_role("link", name="Console").get_attribute("href") or "").split("/")[1]
        assert copy != self.code
        answer = self.page.context.request.post(f"{self.url}/class/{copy}/do", data={"action": "note", "text": NOTE, "item_no": 1})
        assert answer.status == 200, answer.text()
        return copy

    def all_is_well(self) -> None:
        """Votes of three rounds, some of them changed in between, and samples of the runs have come to the simulated participants."""
        expect(self.tally).to_contain_text(f"{PARTICIPANTS} follow")
        sent, arrived = (re.compile(rf"^(9[1-9]|[1-9]\d\d+) {what}") for what in ("votes sent", "samples of runs arrived"))
        for found in (sent, arrived):
            expect(self.tally.get_by_role("listitem").filter(has_text=found)).to_be_visible(timeout=RUN_MS)
        expect(self.section.locator(".pg-said")).to_have_count(0)

    def leave(self) -> None:
        """The page is closed while the server is down: what Streamlit's pages say of it is theirs."""
        self.page.goto("about:blank")

    def end(self, copy: str) -> None:
        """After a restart of the server: nothing of the copy is left, and the class itself stands in its lobby."""
        self.page.goto(f"{self.url}/teach?class={self.code}")
        settle(self.page)
        expect(self.section).to_contain_text("the server was restarted")
        self.page.get_by_role("button", name="End the rehearsal and delete it").click()
        self.page.get_by_role("button", name="Begin the rehearsal").wait_for()
        asked = self.page.context.request
        assert asked.get(f"{self.url}/class/{copy}/results.csv").status == 404
        rows = asked.get(f"{self.url}/class/{self.code}/results.csv").text().strip().splitlines()
        assert len(rows) == 1, "the class itself has only the head of its table"


class Room:
    """The four windows of a class, and what is done in them."""

    def __init__(self, code: str, server: AppServer, open_window: Callable[..., Page]) -> None:
        self.server = server
        found: list[Projector] = []
        self.presenter = open_window(f"/class/{code}/projector", "wide", lambda page: found.append(Projector(page)))
        self.projector = found[0]
        self.console = open_window(f"/class/{code}/console", "desktop")
        self.console.get_by_label("Instructor key").fill(KEY)
        self.console.get_by_role("button", name="Sign in").click()
        self.phones = [open_window(f"/c/{code}", "phone") for _ in NAMES]
        for phone, name in zip(self.phones, NAMES, strict=True):
            phone.get_by_label("Nickname").fill(name)
            phone.get_by_role("button", name="Join").click()
            expect(phone.get_by_role("heading", level=1)).to_be_visible()
        self.secrets = [option.rebuttal.html[:40] for option in LESSON.options] + [LESSON.why.html[:40], LESSON.exam_box.html[:40]]

    def starts(self, how: str) -> None:
        """How live runs start from now on."""
        (self.server.data_dir / "start").write_text(how)

    def on(self, key: str, state: str, *, name: str = "") -> None:
        """One key of the clicker leads to `state`, on every screen."""
        self.rest()
        self.console.keyboard.press(key)
        expect(self.presenter.locator("body")).to_have_attribute("data-state", state)
        self.nothing_too_early(state)
        self.shots(name or state)

    def restart(self) -> None:
        """The server dies in mid-class and comes back; the picture on the wall stays meanwhile, and says so."""
        self.server.kill()
        expect(self.presenter.locator(".pj-lost")).to_be_visible(timeout=RUN_MS)
        expect(self.presenter.locator("[data-right=true]")).to_be_visible()
        self.console.keyboard.press("PageDown")
        expect(self.console.get_by_role("alert")).to_contain_text("Not sent: no connection")
        self.rest()
        self.server.start()

    def rest(self) -> None:
        """As long as it takes until a second press is not taken for a double one."""
        self.console.wait_for_timeout(600)

    def nothing_too_early(self, state: str) -> None:
        told = self.projector.told()
        never = [NOTE, *NAMES, "&lt;i&gt;Grace", "Simulated 01", "suggestion", "participants"]
        before_key = [] if state in ("key", "explanation", "ended") else [*self.secrets, json.dumps(LESSON.why.html)[1:40]]
        for secret in [*never, *before_key]:
            assert secret not in told, f"{state}: {secret}"
        for view in self.projector.views():
            if view["state"] in ("lobby", "vote", "revote"):
                assert view["votes"] is None, view["state"]
            if view["state"] not in ("key", "explanation"):
                assert view["key"] is None, view["state"]
                assert view["explanation"] is None, view["state"]
            if view["state"] in ("lobby", "vote", "votes", "discuss", "revote"):
                assert [view["run"], view["predict"], view["predictions"]] == [None] * 3, view["state"]
                assert not any(cause.title in json.dumps(view) for cause in LESSON.causes), view["state"]
        pressable = self.presenter.locator("button, a, input, select, textarea, summary, [tabindex], [role=button]")
        assert pressable.count() == 0, state

    def vote(self, phone: Page, number: int) -> None:
        phone.get_by_role("radio").nth(number).click()
        expect(phone.locator("#dock")).to_contain_text("Sent")

    def everybody_answers(self) -> None:
        expect(self.presenter.locator(".pj-count")).to_have_text(f"{ALL} of {ALL} answered", timeout=2 * RUN_MS)

    def share_of_right(self) -> int:
        """What the projector says of the latest vote, in percent."""
        right = self.presenter.locator(".pj-bars strong").nth(LESSON.options.index(LESSON.key))
        expect(right).to_have_text(re.compile(r"^\d+ %$"))
        return int(right.inner_text().split()[0])

    def latency(self, key: str, wanted: str) -> int:
        """Press a key on the console; how many ms later the projector has it, by the clock of the machine that runs both."""
        self.presenter.evaluate("window.seen.length = 0")
        self.console.keyboard.press(key)
        self.presenter.wait_for_function("wanted => window.seen.some(([, what]) => what === wanted)", arg=wanted, timeout=RUN_MS)
        at = self.presenter.evaluate("wanted => window.seen.find(([, what]) => what === wanted)[0]", wanted)
        return int(at - self.console.evaluate("window.pressed"))

    def shots(self, name: str) -> None:
        if not SHOTS:
            return
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        self.presenter.wait_for_timeout(900)
        for theme in ("light", "dark"):
            for width, height in ((1920, 1080), (1280, 800)):
                self.presenter.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                self.presenter.set_viewport_size({"width": width, "height": height})
                self.presenter.wait_for_timeout(500)
                self.presenter.screenshot(path=f"{SHOTS}/{name}-presenter-{width}-{theme}.png")
        self.presenter.emulate_media(color_scheme="light")
        self.presenter.set_viewport_size({"width": 1920, "height": 1080})
        self.phones[0].screenshot(path=f"{SHOTS}/{name}-phone.png")
        self.console.screenshot(path=f"{SHOTS}/{name}-console.png")
        self.console.set_viewport_size({"width": 390, "height": 844})
        self.console.screenshot(path=f"{SHOTS}/{name}-console-phone.png", full_page=True)
        self.console.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_whole_class(
    code: str, server: AppServer, open_window: Callable[..., Page], allow_faults: Callable[[str], None]
) -> None:
    allow_faults("ERR_")  # while the server is restarted
    desk = Desk(code, server, open_window)
    copy = desk.begin()
    room = Room(copy, server, open_window)
    console, presenter, (ada, grace) = room.console, room.presenter, room.phones
    expect(console.locator(".cn-here")).to_contain_text(f"{ALL} here")
    expect(presenter.locator(".pj-here")).to_have_text(f"{ALL} people are here")
    expect(presenter.locator(".pj-code")).to_have_text(copy)
    expect(console.locator(".cn-plan")).to_contain_text("0:00 of 20:00")
    room.nothing_too_early("lobby")
    room.shots("lobby")

    room.on("PageDown", "vote")
    console.get_by_role("button", name="Close in 90 s").click()
    expect(presenter.locator(".pj-clock")).to_contain_text("1:")
    room.vote(ada, 0)
    room.vote(grace, 2)
    room.everybody_answers()
    room.nothing_too_early("vote")
    room.on("Space", "votes")
    before = room.share_of_right()
    assert 0 < before < 100, "they do not all vote alike"
    expect(console.locator(".cn-advice")).to_contain_text(f"of {ALL}")
    room.on("PageDown", "discuss")
    room.on("PageUp", "votes", name="votes-again")
    room.on("PageDown", "discuss")
    room.on("PageDown", "revote")
    for phone in room.phones:
        room.vote(phone, 2)
    room.everybody_answers()
    room.nothing_too_early("revote")
    room.on("PageDown", "predict")
    for phone in room.phones:
        phone.get_by_role("radio", name="Only GPU 0 high").click()
        expect(phone.locator("#dock")).to_contain_text("Sent")
    room.everybody_answers()
    room.on("PageDown", "experiments", name="experiments-waiting")
    watch_runs(room)
    desk.all_is_well()
    expect(console.locator(".cn-plan")).to_contain_text(re.compile(r"(?!0:0)\d+:\d\d of 20:00"))
    desk.leave()
    reveal_and_end(room, before)
    desk.end(copy)


def reveal_and_end(room: Room, before: int) -> None:
    """The key, a server that dies and comes back, the explanation, another question, the end."""
    console, presenter, (ada, grace) = room.console, room.presenter, room.phones
    console.keyboard.press("PageDown")
    console.keyboard.press("PageDown")  # a double press
    expect(presenter.locator("body")).to_have_attribute("data-state", "key")
    expect(console.get_by_role("alert")).to_contain_text("it counted once")
    expect(presenter.locator("[data-right=true]")).to_contain_text("Right")
    assert room.share_of_right() > before, "talking has changed minds"
    expect(ada.get_by_role("heading", level=1)).to_contain_text("The answer is C")
    room.nothing_too_early("key")
    room.shots("key")

    room.restart()
    for screen, what in ((presenter, ".pj-lost"), (console, ".cn-lost")):
        expect(screen.locator(what)).to_be_hidden(timeout=RUN_MS)
    expect(console.locator(".cn-here")).to_contain_text(f"{len(NAMES)} here", timeout=RUN_MS)  # the others lived in the server
    assert room.share_of_right() > before
    room.on("PageDown", "explanation")
    assert json.dumps(LESSON.why.html)[1:40] in room.projector.told(), "what is searched for is what would be found"
    assert presenter.locator(".pj-drawing img").evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    expect(grace.get_by_role("heading", level=1)).to_have_text("Why")
    room.rest()
    console.keyboard.press("PageDown")
    expect(presenter.locator(".pj-head h1")).to_have_text(SECOND.title.replace("GPU ", "GPU\u00a0"))
    expect(console.locator(".cn-state")).to_have_text("Vote")
    console.get_by_role("button", name="End the class").click()
    console.get_by_role("button", name="Really end it?").click()
    expect(presenter.get_by_role("heading", name="Thank you")).to_be_visible()
    expect(ada.get_by_role("heading", level=1)).to_have_text("That was the class")
    room.shots("ended")


def watch_runs(room: Room) -> None:
    """A live run for all, blank, freeze, P; one that cannot start and one that takes too long."""
    console, presenter = room.console, room.presenter
    for title in (CAUSE.title, "The healthy script"):  # measured in the background; afterwards there is room for a live run
        expect(console.locator(".cn-causes li").filter(has_text=title)).to_contain_text("recording ready", timeout=RUN_MS)
    live = console.get_by_role("button", name=f"Run live: {CAUSE.title}")
    lanes = presenter.locator(".pj-lanes.sl-root")
    live.click()
    expect(lanes).to_have_attribute("data-state", "running", timeout=RUN_MS)
    expect(presenter.locator(".pj-badge")).to_have_text("Live")
    for phone in room.phones:
        expect(phone.locator(".sl-root").first).to_have_attribute("data-state", "running")
    expect(presenter.locator(".pj-predicted li").first).to_contain_text("%")
    room.nothing_too_early("experiments")
    took = {
        "blank": room.latency("b", "body. data-blank=true"), "shown again": room.latency("b", "body. data-blank=false"),
        "frozen": room.latency("f", "div.pj-lanes data-state=paused"),
    }  # fmt: skip
    before = presenter.locator(".sl-main").inner_text()
    presenter.wait_for_timeout(600)
    assert presenter.locator(".sl-main").inner_text() == before
    presenter.reload()
    expect(presenter.locator("body")).to_have_attribute("data-state", "experiments")
    console.keyboard.press("f")
    expect(lanes).not_to_have_attribute("data-state", "paused")
    room.shots("experiments-live")
    took["recording"] = room.latency("p", "strong.pj-badge data-mode=recorded")
    expect(presenter.locator(".pj-badge")).to_contain_text("Recorded here on")
    expect(lanes).to_have_attribute("data-state", "replay")
    console.get_by_role("button", name="Pause").click()
    for screen in (presenter, *room.phones):
        expect(screen.locator(".sl-root").first).to_have_attribute("data-state", "paused")
    room.shots("experiments-recorded")
    console.get_by_role("button", name="Play on").click()
    expect(lanes).to_have_attribute("data-state", "replay")
    for how, words in (("fail", "The launcher does not answer"), ("hang", "did not begin within")):
        console.get_by_role("button", name="Off the screens").click()
        expect(presenter.locator(".pj-waiting")).to_be_visible()
        room.starts(how)
        presenter.evaluate("window.seen.length = 0")
        pressed = console.evaluate("Date.now()")
        live.click()
        expect(presenter.locator(".pj-badge")).to_contain_text("Recorded here on", timeout=RUN_MS)
        at = presenter.evaluate("window.seen.findLast(([, what]) => what.endsWith('data-mode=recorded'))[0]")
        took[f"recording after a start that {how}s"] = int(at - pressed)
        expect(console.locator(".cn-log")).to_contain_text(words)
        expect(console.locator(".cn-log")).to_contain_text("Its recording is on the screens, labelled")
    room.starts("")
    print("ms from a key or click on the console to the projector:", json.dumps(took))
