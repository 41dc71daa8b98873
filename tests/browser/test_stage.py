"""The projector and the console in a real browser, with a class that is scripted: sizes, secrets, keys, failures and manners."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from lessons import load_lessons
from tests.browser.checks import SIZES, FaultLog, assert_accessible, assert_no_sideways_scroll
from tests.browser.lanes_harness import end, run_of
from tests.browser.stage_harness import CODE, StageServer, console_view, item_of, projector_view, run_view, stage_server

LESSONS = load_lessons().lessons
LESSON = LESSONS[0]
STATES = ("lobby", "vote", "votes", "discuss", "revote", "predict", "experiments", "key", "explanation", "ended")
OpenStage = Callable[..., Page]
TWICE_MS = 600
"""A second step within half a second is taken for a double press."""

PICTURE = (1920, 1080)
WINDOWS = ((1280, 800), (1024, 768), PICTURE)
LAID_OUT = """async () => {
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    const share = Math.min(innerWidth / 1920, innerHeight / 1080);
    const scaled = (node) => (node ? (Number(getComputedStyle(node).zoom) || 1) * scaled(node.parentElement) : 1);
    const main = document.querySelector('main').getBoundingClientRect();
    const pixels = (node) => (parseFloat(getComputedStyle(node).fontSize) * scaled(node)) / share;
    const wrong = [], lines = [];
    const say = (what, text) => wrong.push(`${what}: ${text.trim().slice(0, 40)}`);
    const inside = (box, low) => box.left >= -1 && box.top >= -1 && box.right <= innerWidth + 1 && box.bottom <= low + 1;
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const text = walk.currentNode, node = text.parentElement;
        if (!text.data.trim() || !node.checkVisibility({ visibilityProperty: true }) || node.closest('.sl-unseen, template')) continue;
        const least = node.closest('.pj-options .pj-text') ? 40 : 32;
        if (pixels(node) < least - 0.1) say(`${pixels(node).toFixed(1)} px`, text.data);
        if (node.closest('svg')) continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        for (const box of range.getClientRects()) {
            if (!inside(box, node.closest('main') ? main.bottom : innerHeight)) say('outside', text.data);
            lines.push({ box, text: text.data, block: node.closest('p, li, h1, h2, strong, em, .pj-text, .pj-letter, span') });
        }
    }
    // What a line takes is higher than its letters.
    const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1
        || a.bottom - a.height / 5 <= b.top + b.height / 5 || b.bottom - b.height / 5 <= a.top + a.height / 5;
    lines.forEach((one, at) => lines.slice(at + 1).forEach((other) => {
        if (one.block !== other.block && !apart(one.box, other.box)) say('overlapping', `${one.text} / ${other.text}`);
    }));
    for (const node of document.querySelectorAll('main *, footer *')) {
        if (!node.checkVisibility() || node.closest('svg, .sl-unseen')) continue;
        const box = node.getBoundingClientRect();
        if (box.width && !inside(box, innerHeight)) say('outside', node.outerHTML.slice(0, 120));
        const cut = getComputedStyle(node).overflow !== 'visible' && !node.closest('.sl-root');
        if (cut && node.scrollWidth > node.clientWidth + 1) say('cut', node.textContent);
    }
    return { wrong, words: document.querySelector('main').innerText };
}"""


@pytest.fixture(scope="module")
def class_server() -> Iterator[StageServer]:
    with stage_server() as server:
        yield server


@pytest.fixture
def stage(class_server: StageServer) -> StageServer:
    class_server.views.clear()
    class_server.backlog.clear()
    class_server.done.clear()
    class_server.answers.clear()
    return class_server


@pytest.fixture
def open_stage(browser: Browser, stage: StageServer, fault_log: FaultLog) -> Iterator[OpenStage]:
    """`open_stage("projector", view)`: the page, once it has drawn that view."""
    contexts = []

    def open_one(name: str, view: dict[str, Any], *, size: str = "wide", theme: str = "light") -> Page:
        stage.show(view)
        context = browser.new_context(color_scheme=theme, **SIZES[size])  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        fault_log.watch(page)
        page.goto(f"{stage.url}/class/{CODE}/{name}")
        arrived(page, view)
        return page

    yield open_one
    for context in contexts:
        context.close()
    fault_log.check()


def arrived(page: Page, view: dict[str, Any]) -> None:
    if view["role"] == "projector":
        expect(page.locator("body")).to_have_attribute("data-state", view["state"])
    else:
        expect(page.locator(".cn-state")).not_to_have_text("")


def in_state(page: Page, stage: StageServer, state: str, lesson: Any = LESSON, **changes: Any) -> None:
    """The projector in `state`, with a run that has ended where there is one."""
    if state == "experiments":
        changes = {"run": run_view(lesson, "r1"), **changes}
    view = stage.show(projector_view(lesson, state, **changes))
    arrived(page, view)
    if state == "experiments":
        stage.play("r1", [*run_of(60), end("finished", 12_000)])
        expect(page.locator(".sl-root")).to_have_attribute("data-state", "finished")
    page.evaluate("document.fonts.ready")


def test_a_class_with_one_question_is_told_what_is_going_on_in_place_of_its_number(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("projector", projector_view(LESSON, "lobby"))
    for state, words in {"vote": "Your vote", "votes": "The votes", "discuss": "The votes", "revote": "Second vote"}.items():
        in_state(page, stage, state, item=item_of(LESSON, of=1))
        expect(page.locator(".pj-kicker")).to_have_text(words)


def told(view: dict[str, Any]) -> list[str]:
    """All that the room is to read in a state, as words: what the view holds of it, but for what is on phones only."""
    item, state = view["item"], view["state"]
    if item is None:
        return [view["title"]]
    if state == "predict":
        return [view["predict"]["cause_title"], *(choice["words"][1:] for choice in view["predict"]["choices"])]
    if state == "experiments":
        return [view["run"]["title"], "The class predicted", "61 %", "The class answered", "82 %"]
    if state == "explanation":
        right = next(option["text"] for option in item["options"] if option["id"] == view["key"]["option_id"])
        return [item["title"], right, *(words_of(view["explanation"][part]) for part in ("why_html", "exam_html"))]
    found = [*([] if state == "discuss" else [item["title"], item["question"]]), *(option["text"] for option in item["options"])]
    if state in ("vote", "revote"):
        found.append(words_of(item["symptom_html"]))
    if state == "key":
        counts = view["votes"]["second"]["counts"]
        wrong = [rebuttal for rebuttal in view["key"]["rebuttals"] if rebuttal["option_id"] != view["key"]["option_id"]]
        found.append(words_of(max(wrong, key=lambda rebuttal: counts[rebuttal["option_id"]])["html"]))
    return found


def words_of(html: str) -> str:
    return unescape(re.sub("<[^>]+>", "", html))


def run_together(words: str) -> str:
    """Without spaces: where lines break is the layout's."""
    return re.sub(r"\s", "", words).casefold()


def assert_laid_out(page: Page, view: dict[str, Any]) -> None:
    """Whatever the window: all of it is there, in the window, apart from each other, and large enough for the last row."""
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        found = page.evaluate(LAID_OUT)
        where = (view["item"] and view["item"]["title"], view["state"], width)
        assert found["wrong"] == [], where
        shown = run_together(found["words"])
        assert [words for words in told(view) if run_together(words) not in shown] == [], where


def test_on_every_projector_all_of_a_state_is_there_and_can_be_read_from_the_last_row(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("projector", projector_view(LESSON, "lobby"), size="wide")
    for state in STATES:
        in_state(page, stage, state, closes_s=time.time() + 60)
        assert_laid_out(page, stage.views["projector"])


def longest_of(lesson: Any, state: str) -> dict[str, Any]:
    """The projector with what is longest: the wrong answer that is refuted at most length, the cause with the longest name."""
    view = projector_view(lesson, state, closes_s=time.time() + 60)
    title = max(lesson.causes, key=lambda cause: len(cause.title)).title
    if state == "experiments":
        view["run"] = run_view(lesson, "", title=title, mode="recorded", recorded_words="Recorded here on 2 Dec, with other knobs")
    if state == "predict":
        view["predict"]["cause_title"] = title
    if state == "key":
        refuted = max((each for each in lesson.options if not each.right), key=lambda each: len(each.rebuttal.html))
        view["votes"]["second"]["counts"] = {each.id: 150 if each is refuted else 22 for each in lesson.options}
    return view


def test_the_texts_of_every_lesson_have_room(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("projector", projector_view(LESSON, "lobby"), size="wide")
    for lesson in LESSONS:
        for state in ("vote", "discuss", "predict", "experiments", "key", "explanation"):
            arrived(page, stage.show(longest_of(lesson, state)))
            assert_laid_out(page, stage.views["projector"])


def test_texts_longer_than_those_of_any_lesson_become_smaller_and_are_all_there(open_stage: OpenStage, stage: StageServer) -> None:
    view = projector_view(LESSON, "explanation")
    view["explanation"]["why_html"] = view["explanation"]["why_html"] * 3
    page = open_stage("projector", view, size="desktop")
    found = page.evaluate(LAID_OUT)
    assert {what.split(":")[0].split()[-1] for what in found["wrong"]} == {"px"}, "smaller, and nothing else"
    assert all(run_together(words) in run_together(found["words"]) for words in told(view))


def test_the_projector_has_nothing_to_press_and_no_name_that_was_not_asked_for(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("projector", projector_view(LESSON, "lobby"), size="desktop")
    for state in STATES:
        in_state(page, stage, state)
        pressable = page.locator("button, a, input, select, textarea, form, summary, [tabindex], [onclick], [role=button], [role=radio]")
        assert pressable.evaluate_all("nodes => nodes.map(node => node.outerHTML.slice(0, 90))") == [], state
    stage.show(projector_view(LESSON, "lobby", names=["<img src=x onerror=window.hit=1>", "Ada"], title="<b>Bold</b>"))
    expect(page.locator(".pj-names")).to_contain_text("<img src=x onerror=window.hit=1>  ·  Ada")
    stage.show(projector_view(LESSON, "lobby"))
    expect(page.locator(".pj-names")).to_be_hidden()
    assert page.evaluate("window.hit") is None


def test_votes_say_nothing_of_the_key_and_the_key_says_it_with_a_word(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("projector", projector_view(LESSON, "votes"), size="desktop")
    expect(page.locator(".pj-bars strong").nth(2)).to_have_text("46 %")
    expect(page.get_by_text("Right", exact=True)).to_have_count(0)
    looks = page.locator(".pj-options li").evaluate_all("rows => rows.map(row => getComputedStyle(row).backgroundColor)")
    assert len(set(looks)) == 1
    in_state(page, stage, "key")
    expect(page.locator(".pj-options li[data-right=true]")).to_contain_text(LESSON.key.text.split(",")[0])
    expect(page.get_by_text("Right", exact=True)).to_be_visible()
    expect(page.locator(".pj-bars strong").nth(2)).to_have_text("82 %")


def test_a_recording_says_so_and_a_run_shown_again_begins_anew(open_stage: OpenStage, stage: StageServer) -> None:
    recorded = run_view(LESSON, "r2", mode="recorded", recorded_words="Recorded here on 2 Dec")
    page = open_stage("projector", projector_view(LESSON, "experiments", run=recorded))
    expect(page.locator(".pj-badge")).to_have_text("Recorded here on 2 Dec")
    stage.play("r2", [*run_of(60), end("finished", 12_000)])
    expect(page.locator(".sl-root")).to_have_attribute("data-state", "replay")
    expect(page.locator(".pj-speed")).to_be_empty()
    page.wait_for_timeout(700)
    before = float(page.locator(".sl-detail").inner_text().split()[0])
    stage.play("r2", [*run_of(60), end("finished", 12_000)])
    page.wait_for_function("before => parseFloat(document.querySelector('.sl-detail').textContent) < before", arg=before)


def test_the_run_of_the_class_with_its_prediction_and_what_came_out(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("projector", projector_view(LESSON, "experiments", run=run_view(LESSON, "r3")))
    expect(page.locator(".pj-badge")).to_have_text("Live")
    stage.play("r3", run_of(20))
    expect(page.locator(".sl-root")).to_have_attribute("data-state", "running")
    assert page.locator(".sl-prediction").first.get_attribute("d")
    expect(page.locator(".pj-predicted li").first).to_contain_text("61 %")
    stage.show(projector_view(LESSON, "experiments", run=run_view(LESSON, "r3", paused=True)))
    expect(page.locator(".sl-root")).to_have_attribute("data-state", "paused")
    stage.more([*run_of(60, first=21), end("finished", 12_000)])
    stage.show(projector_view(LESSON, "experiments", run=run_view(LESSON, "r3")))
    expect(page.locator(".sl-root")).to_have_attribute("data-state", "finished")
    expect(page.locator(".pj-speed")).to_have_text("8 GPUs = 2.2× of one")
    expect(page.locator(".pj-badge")).to_have_text("Ran live")
    stage.play("r4", run_of(20))
    stage.show(projector_view(LESSON, "experiments", run=run_view(LESSON, "r4")))
    expect(page.locator(".pj-badge")).to_have_text("Live")


def test_a_question_that_is_gone_and_an_address_that_is_long_spoil_nothing(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("projector", projector_view(LESSON, "vote", item=None, votes=None, round=None), size="desktop")
    expect(page.locator("main")).to_contain_text("not on the server any more")
    long = f"gpu-classroom.department-of-parallel-systems.university.example.org/c/{CODE}"
    for state in ("lobby", "vote"):
        in_state(page, stage, state, join_words=long, closes_s=time.time() + 60)
        assert page.evaluate(LAID_OUT)["wrong"] == [], state
    expect(page.locator("footer img")).to_be_in_viewport(ratio=1)


def test_the_race_runs_on_one_clock_to_its_end(open_stage: OpenStage, stage: StageServer) -> None:
    racers = [
        {"run_id": name, "title": title, "role": role, "epoch_s": epoch_s, "measured": True, "points": [[0, 0], [epoch_s, 100]]}
        for name, title, role, epoch_s in (("a", "Each rank its own shard", "right", 1.0), ("b", "Every rank all the data", "odd", 2.0))
    ]
    view = projector_view(LESSON, "experiments", race=racers)
    page = open_stage("projector", view, size="desktop")
    expect(page.locator(".race li").nth(0)).to_contain_text("1.0 s")
    expect(page.locator(".race li").nth(1)).to_contain_text("2.0 s")
    assert page.evaluate(LAID_OUT)["wrong"] == []
    expect(page.locator(".pj-lanes")).to_be_hidden()


def test_blank_is_black_and_frozen_holds_run_and_clock(open_stage: OpenStage, stage: StageServer) -> None:
    view = projector_view(LESSON, "experiments", run=run_view(LESSON, "r4"))
    page = open_stage("projector", view)
    stage.play("r4", run_of(10))
    expect(page.locator(".sl-main")).to_contain_text("Live 2.0 s")
    stage.show({**view, "frozen": True})
    expect(page.locator(".sl-root")).to_have_attribute("data-state", "paused")
    stage.more(run_of(20, first=11))
    page.wait_for_timeout(400)
    expect(page.locator(".sl-main")).to_contain_text("2.0 s")
    stage.play("r4", run_of(15))  # meanwhile it is shown anew
    page.wait_for_timeout(400)
    expect(page.locator(".sl-main")).to_contain_text("2.0 s")
    stage.show({**view, "frozen": False})
    expect(page.locator(".sl-main")).to_contain_text("Live 3.0 s")
    stage.show({**view, "blank": True})
    expect(page.locator("body")).to_have_css("background-color", "rgb(0, 0, 0)")
    expect(page.locator("main")).to_be_hidden()
    stage.show(view)
    expect(page.locator("main")).to_be_visible()


def test_a_lessons_html_is_built_anew_from_what_is_allowed(
    open_stage: OpenStage, stage: StageServer, allow_faults: Callable[[str], None]
) -> None:
    allow_faults("Executing inline event handler")  # the page's policy speaks up while it is parsed; it is left out
    hostile = (
        '<p onclick="window.hit=1">Kept <b>bold</b> <a href="javascript://%0awindow.hit=1">link</a> <a href="https://example.org">good</a>'
        '<img src=x onerror="window.hit=1"><script>window.hit=1</script><svg onload="window.hit=1"><text>gone</text></svg>'
        "<iframe srcdoc='<script>parent.hit=1</script>'></iframe><font color=red>words stay</font></p>"
    )
    view = projector_view(LESSON, "vote")
    view["item"]["symptom_html"] = hostile
    page = open_stage("projector", view)
    made = page.locator(".pj-symptom").inner_html()
    assert made == (
        '<p>Kept <b>bold</b> <a>link</a> <a href="https://example.org" target="_blank" rel="noopener noreferrer">good</a>words stay</p>'
    )
    assert page.evaluate("window.hit") is None


def posted(stage: StageServer, number: int, page: Page) -> list[dict[str, Any]]:
    """The first `number` things that were sent, once they are."""
    for _ in range(100):
        if len(stage.done) >= number:
            break
        page.wait_for_timeout(50)
    page.wait_for_timeout(150)
    return list(stage.done)


def test_each_key_of_a_clicker_is_one_change(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("console", console_view(LESSON, "experiments", run=run_view(LESSON, "r1")), size="desktop")
    recording = {"to": "experiment", "cause_id": LESSON.causes[2].id, "mode": "recorded"}
    for key, sent in (
        ("b", {"to": "do", "action": "blank", "on": True}), (".", {"to": "do", "action": "blank", "on": True}),
        ("F", {"to": "do", "action": "freeze", "on": True}), ("p", recording),
        ("Space", {"to": "do", "action": "next", "expect_version": 7}), ("PageDown", {"to": "do", "action": "next", "expect_version": 7}),
        ("PageUp", {"to": "do", "action": "back", "expect_version": 7}),
    ):  # fmt: skip
        stage.done.clear()
        page.keyboard.press(key)
        assert posted(stage, 1, page) == [sent], key
        if "expect_version" in sent:
            page.wait_for_timeout(TWICE_MS)


def test_a_double_press_and_a_held_key_move_once(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("console", console_view(LESSON, "vote"), size="desktop")
    page.keyboard.press("PageDown")
    stage.show(console_view(LESSON, "votes", version=8))
    page.keyboard.press("PageDown")
    assert [body["action"] for body in posted(stage, 1, page)] == ["next"]
    expect(page.get_by_role("alert")).to_contain_text("it counted once")
    page.wait_for_timeout(TWICE_MS)
    for _ in range(6):
        page.keyboard.down("PageDown")  # the browser repeats a key that is held
        page.wait_for_timeout(TWICE_MS / 4)
    page.keyboard.up("PageDown")
    assert [body["expect_version"] for body in posted(stage, 2, page)] == [7, 8]


def test_a_press_meant_for_an_older_state_changes_nothing_and_says_so(
    open_stage: OpenStage, stage: StageServer, allow_faults: Callable[[str], None]
) -> None:
    allow_faults("status of 409")
    page = open_stage("console", console_view(LESSON, "vote"), size="desktop")
    stage.answers.append((409, {"reason": "stale", "words": "The class went on.", "version": 8}))
    page.keyboard.press("PageDown")
    stage.show(console_view(LESSON, "votes", version=8))
    expect(page.get_by_role("alert")).to_contain_text("Nothing was changed")
    assert len(posted(stage, 1, page)) == 1


def test_where_only_something_else_has_changed_the_press_is_sent_again(
    open_stage: OpenStage, stage: StageServer, allow_faults: Callable[[str], None]
) -> None:
    allow_faults("status of 409")
    page = open_stage("console", console_view(LESSON, "vote"), size="desktop")
    stage.answers.append((409, {"reason": "stale", "words": "The class went on.", "version": 8}))
    page.keyboard.press("PageDown")
    stage.show(console_view(LESSON, "vote", version=8, blank=True))
    assert [body["expect_version"] for body in posted(stage, 2, page)] == [7, 8]
    expect(page.get_by_role("alert")).to_be_hidden()


def test_what_was_not_done_is_said(open_stage: OpenStage, stage: StageServer, allow_faults: Callable[[str], None]) -> None:
    allow_faults("Failed to load resource")
    allow_faults("answer 50")
    page = open_stage("console", console_view(LESSON, "votes"), size="phone")
    for status, told, words in (
        (422, {"reason": "invalid", "words": "There is nothing to leave out."}, "Not done. There is nothing to leave out."),
        (401, {"reason": "sign_in", "words": "This needs an instructor."}, "You are not signed in as an instructor any more."),
        (503, {"reason": "store", "words": "The store is away."}, "Not done: The store is away. Press again in a moment."),
        (500, {}, "The server answered 500."),
    ):
        stage.answers.append((status, told))
        page.get_by_role("button", name="Skip to: Prediction").click()
        expect(page.get_by_role("alert")).to_contain_text(words)
        page.wait_for_timeout(TWICE_MS)


def test_without_a_connection_a_press_says_that_it_was_not_sent(
    open_stage: OpenStage, stage: StageServer, allow_faults: Callable[[str], None]
) -> None:
    allow_faults("ERR_")
    page = open_stage("console", console_view(LESSON, "vote"), size="phone")
    page.context.set_offline(True)
    page.get_by_role("button", name="Show the votes").click()
    expect(page.get_by_role("alert")).to_contain_text("Not sent: no connection")


def test_keys_are_not_the_classs_while_somebody_types_or_has_tabbed_to_a_button(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("console", console_view(LESSON, "vote"), size="desktop")
    page.get_by_role("textbox", name="Notes").press_sequentially(" b f p")
    page.get_by_role("button", name="Keep").click()
    assert posted(stage, 1, page) == [{"to": "do", "action": "note", "text": "Ask who has seen this at work. b f p"}]
    page.get_by_role("button", name="Freeze").focus()
    page.keyboard.press("Space")
    assert posted(stage, 2, page)[1:] == [{"to": "do", "action": "freeze", "on": True}]
    page.get_by_role("button", name="Blank").click()
    page.keyboard.press("Space")
    assert [body["action"] for body in posted(stage, 4, page)[2:]] == ["blank", "next"], "after a click the space is the next step"


def test_the_console_warns_of_what_spoils_the_class(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("console", console_view(LESSON, "lobby") | {"warning": "Phones cannot open http://localhost:8501."}, size="phone")
    expect(page.get_by_role("status").filter(has_text="Phones cannot open")).to_be_in_viewport()
    stage.show(console_view(LESSON, "vote"))
    expect(page.get_by_text("Phones cannot open")).to_be_hidden()


def test_the_console_does_what_an_instructor_needs(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("console", console_view(LESSON, "vote"), size="desktop")
    expect(page.locator(".cn-advice")).to_have_text("46 % right of 214. Let them discuss.")
    expect(page.locator(".cn-top")).to_contain_text("287 here · 2 reconnecting")
    expect(page.locator(".cn-plan")).to_contain_text("of 20:00")
    page.get_by_role("button", name="Close in 60 s").click()
    page.get_by_text("Show of hands, entered by hand").click()
    page.get_by_label("C", exact=True).fill("12")
    page.get_by_role("button", name="Count these hands").click()
    people = page.locator(".cn-people li").filter(has_text="<b>Bo</b>")
    people.get_by_role("button", name="Hide").click()
    people.get_by_role("button", name="Remove").click()
    people.get_by_role("button", name="Really remove?").click()
    page.get_by_role("button", name="Names on the projector").click()
    hands = {option.id: 12 if number == 2 else 0 for number, option in enumerate(LESSON.options)}
    assert posted(stage, 5, page) == [
        {"to": "do", "action": "timer", "seconds": 60}, {"to": "do", "action": "hands", "round": "first", "counts": hands},
        {"to": "do", "action": "hide", "participant": 3}, {"to": "do", "action": "remove", "participant": 3},
        {"to": "do", "action": "show_names", "on": True},
    ]  # fmt: skip
    expect(page.get_by_text("5 have joined, 4 with a name.")).to_be_visible()
    stage.show(console_view(LESSON, "vote", participants=[{"id": 1, "nickname": None, "hidden": False, "removed": False}]))
    expect(page.get_by_text("1 has joined, 0 with a name.")).to_be_visible()
    stage.done.clear()
    stage.show(console_view(LESSON, "experiments", run=run_view(LESSON, "r1")))
    page.get_by_text("Other knobs for the next live run").click()
    page.get_by_label("Hand-off").select_option("nccl")
    page.locator(".cn-knobs select").first.select_option("4")
    page.get_by_role("button", name=f"Run live: {LESSON.causes[2].title}").click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("button", name="Off the screens").click()
    page.get_by_role("button", name="Race them").click()
    page.get_by_role("button", name="Run live: The healthy script").click()
    sent = [{name: value for name, value in body.items() if name != "knobs"} for body in posted(stage, 6, page)]
    assert stage.done[0]["knobs"] == {"gpus": 4, "hand_off": "nccl"}
    assert [(body["to"], body.get("cause_id")) for body in sent] == [
        ("experiment", LESSON.causes[2].id), ("pause", None), ("replay", None), ("experiment", "clear"), ("experiment", "race"),
        ("experiment", "fix"),
    ]  # fmt: skip
    assert sent[1]["paused"] is True


@pytest.mark.parametrize("size", ["phone", "desktop"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_console_fits_and_can_be_used_by_everybody(open_stage: OpenStage, stage: StageServer, size: str, theme: str) -> None:
    page = open_stage("console", console_view(LESSON, "vote", closes_s=time.time() + 41), size=size, theme=theme)
    for state, step in (("vote", "Show the votes"), ("key", "Explain")):
        stage.show(console_view(LESSON, state, closes_s=time.time() + 41))
        expect(page.get_by_role("button", name=step)).to_be_in_viewport()
        expect(page.locator(".cn-shares li").last).to_be_in_viewport()
        expect(page.get_by_role("button", name="Blank")).to_be_in_viewport()
        assert_no_sideways_scroll(page)
        assert_accessible(page)
        low = page.locator("button").evaluate_all(
            "nodes => nodes.filter(node => node.offsetHeight && node.offsetHeight < 44).map(node => node.textContent)"
        )
        assert low == []
        cut = page.locator("button").evaluate_all(
            "nodes => nodes.filter(node => node.scrollWidth > node.clientWidth + 1).map(node => node.textContent)"
        )
        assert cut == []
    if size == "desktop":
        assert page.evaluate("document.documentElement.scrollHeight") <= 800


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_projector_has_enough_contrast(open_stage: OpenStage, stage: StageServer, theme: str) -> None:
    page = open_stage("projector", projector_view(LESSON, "lobby"), theme=theme, size="desktop")
    for state in ("lobby", "vote", "experiments", "key", "explanation"):
        in_state(page, stage, state, closes_s=time.time() + 5)
        assert_accessible(page)


def test_a_latecomer_and_a_reload_see_what_the_room_sees(open_stage: OpenStage, stage: StageServer) -> None:
    page = open_stage("projector", projector_view(LESSON, "experiments", run=run_view(LESSON, "r5")), size="desktop")
    stage.play("r5", run_of(21))
    expect(page.locator(".sl-main")).to_contain_text("Live 4.2 s")
    page.reload()
    expect(page.locator(".sl-main")).to_contain_text("Live 4.2 s")
    assert re.search(r"\d+ here", page.locator("footer").inner_text())
