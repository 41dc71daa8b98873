"""The live picture in a real browser, fed with scripted events: states, words, buttons, sizes and manners."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.checks import SIZES, FaultLog, assert_accessible, assert_no_sideways_scroll
from tests.browser.lanes_harness import Event, LanesServer, end, head, lanes_server, run_of, strip, summary, tick

OpenPicture = Callable[..., Page]
GALLERY = Path(__file__).parent / "artifacts" / "gallery"
"""A picture of every state, for people to judge; written anew by each run of the tests."""
QUEUED: Event = ("state", {"state": "queued", "place": 3, "wait_s": 20.0, "recording": "old", "recorded_s": 1796169600.0})
CRASH = 'Traceback (most recent call last):\n  File "train.py", line 3\nRuntimeError: <img src=x onerror="window.hit = 1"> did not answer'
BAD = {"light": "rgb(163, 18, 42)", "dark": "rgb(255, 133, 150)"}


@pytest.fixture(scope="module")
def feed() -> Iterator[LanesServer]:
    with lanes_server() as server:
        server.set("live", run_of(24), hold=True)
        server.set("finished", [*run_of(60), end("finished", 12_000)])
        server.set("queued", [QUEUED], hold=True)
        server.set("starting", [("state", {"state": "starting"}), head()], hold=True)
        server.set("failed", [*run_of(21), end("failed", 4_300, rank=3, error=CRASH, meaning="Why it was.")])
        server.set("real", real_run())
        server.set("memory", [*run_of(40), end("out_of_memory", 8_300)])
        for outcome in ("stopped", "interrupted", "timeout"):
            server.set(outcome, [*run_of(21), end(outcome, 4_200)])
        yield server


@pytest.fixture(scope="module")
def picture(browser: Browser, feed: LanesServer) -> Iterator[OpenPicture]:
    """`picture(run_id, theme=, size=, **options)`: a page with the picture of a run, mounted anew. Pages are kept for the next test."""
    faults = FaultLog()
    faults.allow("404")
    faults.allow("ERR_")
    pages: dict[tuple[str, str], Page] = {}

    def show(run_id: str | None, *, theme: str = "light", size: str = "desktop", **options: Any) -> Page:
        if (theme, size) not in pages:
            page = browser.new_context(color_scheme=theme, **SIZES[size]).new_page()  # type: ignore[arg-type]
            faults.watch(page)
            page.goto(feed.url)
            page.wait_for_function("window.ready")
            pages[theme, size] = page
        page = pages[theme, size]
        page.evaluate("window.actions.length = 0; window.scrollTo(0, 0)")
        mount(page, run_id, **options)
        return page

    yield show
    for page in pages.values():
        page.context.close()
    faults.check()


def mount(page: Page, run_id: str | None, **options: Any) -> None:
    page.evaluate("(options) => window.mount(options)", {"run_id": run_id, "metric": "busy", "odd_rank": 0, **options})


def state(page: Page, wanted: str) -> None:
    expect(page.locator(".sl-root")).to_have_attribute("data-state", wanted)


def tile_places(page: Page) -> list[list[float]]:
    """Where the tiles are, in px from the picture's corner: the page itself may be scrolled, and a shorter one scrolls back."""
    places: list[list[float]] = page.evaluate(
        """() => {
            const corner = document.querySelector(".sl-root").getBoundingClientRect();
            return [...document.querySelectorAll(".sl-tile")]
                .map((tile) => tile.getBoundingClientRect())
                .map((box) => [box.x - corner.x, box.y - corner.y]);
        }"""
    )
    return places


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def actions(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate("window.actions")
    return found


def capture(page: Page, name: str, theme: str, size: str) -> bytes:
    GALLERY.mkdir(parents=True, exist_ok=True)
    return page.locator(".sl-root").screenshot(path=GALLERY / f"{name}-{theme}-{size}.png")


def moving_state(page: Page, feed: LanesServer, name: str, run_id: str) -> None:
    """Bring the picture into a state that a record alone cannot."""
    if name == "paused":
        feed.set(run_id, run_of(60), pace_s=0.04, hold=True)
        mount(page, run_id)
        expect(page.locator(".sl-line").first).to_have_attribute("d", re.compile("H.*H"))
        press(page, "Pause")
    elif name == "offline":
        feed.set(run_id, [*run_of(30), end("finished", 6_000)])
        feed.drop_after[run_id] = 20
        mount(page, run_id)
    else:
        mount(page, "finished", replay=True)
    state(page, name)


STATES = [
    ("empty", None, "No run yet.", ["Run it"]),
    ("queued", "queued", "3rd in line, about 20 s.", ["Watch the recording now"]),
    ("starting", "starting", "Eight processes starting.", []),
    ("running", "live", "GPU 0 is busy", []),
    ("stopped", "stopped", "Stopped at 4.2 s", ["Run again", "Watch again"]),
    ("finished", "finished", "GPU 0 is busy 89 % of the time", ["Run again", "Watch again"]),
    ("out_of_memory", "memory", "As expected: all 8 ranks ran out of memory at 8.3 s.", ["Run again", "Watch again"]),
    ("failed", "failed", "Rank 3 ended: RuntimeError", ["Details", "Run again"]),
    ("timeout", "timeout", "longer than its limit", ["Run again"]),
    ("interrupted", "interrupted", "The server restarted at 4.2 s; shown up to there.", ["Run again"]),
]


def test_what_was_meant_to_break_off_is_told_as_expected_and_whom_it_hit(picture: OpenPicture, feed: LanesServer) -> None:
    feed.set("hung", [*run_of(21), end("timeout", 4_200, expected=True, rank=1, error=CRASH, sentence="GPUs 1-7 wait for GPU 0.")])
    page = picture("hung")
    state(page, "timeout")
    expect(page.locator(".sl-sentence")).to_contain_text("As expected: GPUs")
    expect(page.locator(".sl-main")).to_have_text("As expected")
    expect(page.locator(".sl-buttons").get_by_role("button", name="Details", exact=True)).to_be_visible()
    full = {"expected": False, "summary": summary(out_of_memory_ranks=[0])}
    feed.set("edge", [*run_of(21), end("out_of_memory", 4_200, **full)])
    mount(page, "edge")
    state(page, "out_of_memory")
    expect(page.locator(".sl-sentence")).to_contain_text("Rank 0 ran out of memory at 4.2")
    marks = page.locator(".sl-mark").evaluate_all("nodes => nodes.map(node => node.getAttribute('d') !== '')")
    assert marks == [True] + [False] * 7


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_state_has_its_sentence_and_next_action_and_one_height(
    picture: OpenPicture, feed: LanesServer, theme: str, size: str
) -> None:
    page = picture(None, theme=theme, size=size)
    captured: list[bytes] = []
    heights: dict[str, float] = {}
    for name, run_id, sentence, buttons in STATES:
        mount(page, run_id)
        state(page, name)
        said = page.locator(".sl-sentence")
        expect(said).to_contain_text(sentence.replace("\u00a0", " "))
        for label in buttons:
            expect(page.locator(".sl-buttons").get_by_role("button", name=label, exact=True)).to_be_visible()
        assert (said.evaluate("node => getComputedStyle(node).color") == BAD[theme]) == (name == "failed")
        assert_no_sideways_scroll(page)
        captured.append(capture(page, name, theme, size))
        heights[name] = page.locator(".sl-root").bounding_box()["height"]  # type: ignore[index]
    for name in ("paused", "offline", "replay"):
        moving_state(page, feed, name, f"{name}-{theme}-{size}")
        captured.append(capture(page, name, theme, size))
    assert len(set(captured)) == len(captured), "every state looks different from every other"
    if size == "desktop":
        assert len(set(heights.values())) == 1, heights
        assert max(heights.values()) <= 640


@pytest.mark.parametrize(("theme", "size"), [("light", "desktop"), ("dark", "desktop"), ("light", "phone"), ("dark", "phone")])
def test_the_picture_is_accessible(picture: OpenPicture, theme: str, size: str) -> None:
    page = picture("finished", theme=theme, size=size, prediction="all_high", next_steps=[["fix", "Apply the fix"]])
    state(page, "finished")
    assert_accessible(page, "#root")
    mount(page, "failed")
    state(page, "failed")
    press(page, "Details")
    assert_accessible(page, "#root")


def test_eight_lanes_with_the_odd_one_taller_and_fills_by_kind(picture: OpenPicture) -> None:
    page = picture("live", prediction="low0")
    state(page, "running")
    expect(page.locator(".sl-lane")).to_have_count(8)
    beds = page.locator(".sl-bed").evaluate_all(
        "nodes => nodes.map(node => node.getBoundingClientRect()).map(box => [box.top, box.height])"
    )
    assert beds[0][1] > 1.3 * beds[1][1]
    assert beds[1][0] - (beds[0][0] + beds[0][1]) >= 8
    first, other = page.locator(".sl-lane").nth(0), page.locator(".sl-lane").nth(1)
    for name in ("line", "tint", "solid", "prediction"):
        assert first.locator(f".sl-{name}").get_attribute("d"), name
    assert other.locator(".sl-hatch").get_attribute("d")
    expect(first.locator(".sl-value")).to_have_text("96 %")
    assert first.locator(".sl-solid").evaluate("node => getComputedStyle(node).fill") == "rgb(179, 56, 11)"
    assert other.locator(".sl-solid").evaluate("node => getComputedStyle(node).fill") == "rgb(111, 138, 163)"


def test_no_lane_stands_out_where_none_is_odd(picture: OpenPicture) -> None:
    page = picture("live", odd_rank=None)
    state(page, "running")
    tall = page.locator(".sl-bed").evaluate_all("nodes => nodes.map(node => node.getBoundingClientRect().height)")
    assert max(tall) - min(tall) < 0.1
    expect(page.locator(".sl-lane.sl-is-odd")).to_have_count(0)


def test_a_picture_driven_from_elsewhere_has_no_controls_and_follows(picture: OpenPicture) -> None:
    page = picture(None)
    page.evaluate(
        """([first, more]) => {
            window.feeds = [];
            window.driven = (showing, options) => ({
                run_id: "driven", odd_rank: 0, controls: false, ...options,
                connect: (window.feeds[showing] ??= (runId, onEvent, onChange) => {
                    first.forEach(([name, data], at) => onEvent(at + 1, name, data));
                    window.push = () => more.forEach(([name, data], at) => onEvent(first.length + at + 1, name, data));
                    return { lost: false, unknown: false, retryS: 0, open() {}, close() {} };
                }),
            });
            window.mount(window.driven(0));
        }""",
        [run_of(21), run_of(40, first=22)],
    )
    state(page, "running")
    expect(page.locator("#root :is(button, table, [role=radio])")).to_have_count(0)
    page.evaluate("window.lanes.update(window.driven(0, { paused: true }))")
    state(page, "paused")
    page.evaluate("window.push()")
    expect(page.locator(".sl-main")).to_contain_text("Paused at 4.2 s")
    page.evaluate("window.lanes.update(window.driven(0))")
    state(page, "running")
    expect(page.locator(".sl-main")).to_contain_text("Live 8.0 s")
    page.evaluate("window.lanes.update(window.driven(1, { paused: true }))")
    state(page, "paused")
    expect(page.locator(".sl-main")).to_contain_text("Paused at 4.2 s")


def test_a_counter_the_card_lacks_is_said_and_a_rank_that_ended_is_crossed(picture: OpenPicture, feed: LanesServer) -> None:
    gone = [100.0, None, *[90.0] * 6]
    events = [
        *run_of(10, useful=[None] * 8, spin=[None] * 8),
        *[tick(n, util=gone, useful=gone, mem=gone, power=gone) for n in range(11, 20)],
    ]
    feed.set("lacking", events, hold=True)
    page = picture("lacking")
    state(page, "running")
    ended = page.locator(".sl-lane").nth(1)
    expect(ended.locator(".sl-value")).to_have_text("ended")
    assert ended.locator(".sl-mark").get_attribute("d")
    feed.set("no-counter", run_of(12, useful=[None] * 8, spin=[None] * 8), hold=True)
    mount(page, "no-counter", metric="useful")
    expect(page.locator(".sl-lane").nth(0).locator(".sl-value")).to_have_text("n/a")


def test_the_metric_switch_by_keyboard(picture: OpenPicture) -> None:
    page = picture("live", metric="memory")
    shown = page.get_by_role("radiogroup", name="Show")
    expect(shown.get_by_role("radio", name="Memory")).to_have_attribute("aria-checked", "true")
    expect(page.locator(".sl-lane").first.locator(".sl-value")).to_have_text("13.3 GiB")
    assert page.locator(".sl-lane").first.locator(".sl-limit").get_attribute("d")
    shown.get_by_role("radio", name="Memory").focus()
    page.keyboard.press("ArrowRight")
    expect(shown.get_by_role("radio", name="Power")).to_be_focused()
    expect(page.locator(".sl-lane").first.locator(".sl-value")).to_have_text("280 W")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".sl-lane").first.locator(".sl-value")).to_have_text("0.1")
    expect(page.locator(".sl-legend").first).to_contain_text("every lane: 0 to")
    assert [node["action"] for node in actions(page)] == []


def test_a_picture_mounted_anew_is_in_no_state_before_it_is_drawn(picture: OpenPicture, feed: LanesServer) -> None:
    page = picture("live")
    state(page, "running")
    left = page.evaluate("""() => {
        window.mount({ run_id: "live", metric: "busy", odd_rank: 0 });
        return Object.keys(document.querySelector(".sl-root").dataset);
    }""")
    assert left == []


def test_tiles_keep_their_places(picture: OpenPicture, feed: LanesServer) -> None:
    page = picture("live")
    state(page, "running")
    before = tile_places(page)
    expect(page.locator(".sl-tile").nth(1)).to_contain_text("at this rate")
    figures = summary(epoch_measured=False, epoch_seconds=32.0, times_trained=8.0, epochs_seen=1.4)
    feed.set("long", [*run_of(60), end("finished", 12_100, summary=figures)])
    mount(page, "long")
    state(page, "finished")
    expect(page.locator(".sl-epoch")).to_have_text("1.4 epochs")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "100")
    assert page.locator(".sl-tile dd").all_inner_texts() == ["2.2×", "32 s", "8 times", "4,816/s"]
    expect(page.locator(".sl-tile").nth(1)).to_contain_text("at this rate")
    after = tile_places(page)
    assert before == after


def test_the_epoch_moves_between_two_ticks(picture: OpenPicture, feed: LanesServer) -> None:
    feed.set("ticking", run_of(200), pace_s=0.2, hold=True)
    page = picture("ticking")
    state(page, "running")
    page.wait_for_function("document.querySelectorAll('.sl-lane').length === 8 && document.querySelector('.sl-value').textContent")
    seen = page.evaluate(
        """async () => {
            const seen = [];
            const done = document.querySelector('.sl-done');
            for (let i = 0; i < 40; i++) {
                await new Promise(requestAnimationFrame);
                seen.push(done.style.transform);
            }
            return seen.map((text) => Number(text.match(/[\\d.]+/)[0]));
        }"""
    )
    assert seen == sorted(seen)
    assert len(set(seen)) >= 8


def test_pause_holds_the_picture_and_jump_to_live_catches_up(picture: OpenPicture, feed: LanesServer) -> None:
    feed.set("paused", run_of(100), pace_s=0.04, hold=True)
    page = picture("paused")
    state(page, "running")
    page.wait_for_timeout(400)
    press(page, "Pause")
    state(page, "paused")
    held = page.locator(".sl-lane").nth(1).locator(".sl-line").get_attribute("d")
    page.wait_for_timeout(1_100)
    assert page.locator(".sl-lane").nth(1).locator(".sl-line").get_attribute("d") == held
    expect(page.locator(".sl-status")).to_contain_text("Paused at")
    expect(page.locator(".sl-status")).to_contain_text("s ahead")
    press(page, "Jump to live")
    state(page, "running")
    assert page.locator(".sl-lane").nth(1).locator(".sl-line").get_attribute("d") != held


def test_a_lost_connection_counts_down_and_goes_on_without_doubling(
    picture: OpenPicture,
    feed: LanesServer,
) -> None:
    feed.set("dropped", [*run_of(30), end("finished", 6_000)])
    feed.drop_after["dropped"] = 20
    page = picture("dropped")
    state(page, "offline")
    expect(page.locator(".sl-sentence")).to_contain_text("Connection lost; the run goes on. Retrying in")
    line = page.locator(".sl-lane").first.locator(".sl-line").get_attribute("d") or ""
    press(page, "Retry now")
    state(page, "finished")
    whole = page.locator(".sl-lane").first.locator(".sl-line").get_attribute("d") or ""
    assert whole.startswith(line[: len(line) // 2])
    assert whole.count("H") == 30


def test_a_run_the_server_does_not_know(
    picture: OpenPicture,
) -> None:
    page = picture("nowhere")
    state(page, "unknown")
    expect(page.locator(".sl-sentence")).to_contain_text("not on this server")
    press(page, "Run again")
    assert actions(page)[-1] == {"action": "run_again", "run_id": "nowhere"}


LOST = "GPU 5 (NVIDIA H200) fell off the bus 2.1 s after sampling began; its lane ends here."


def real_run() -> list[Event]:
    """A run on real GPUs: nobody sees spinning, and one GPU answers no more after two seconds."""
    start, _, running = run_of(0)
    gone = {name: [*[50.0] * 5, None, 50.0, 50.0] for name in ("util", "useful", "mem", "power", "lr", "apart")}
    ticks = [tick(number, spin=[None] * 8, **(gone if number > 10 else {})) for number in range(1, 25)]
    lane = ("lane", {"rank": 5, "message": LOST, "t_ms": 2_000})
    ended = end("finished", 4_800, summary=summary(source="nvml", speedup_vs_one_gpu=None))
    return [start, head(source="nvml", gpu="NVIDIA H200"), running, *ticks[:10], lane, *ticks[10:], ended]


def test_real_gpus_say_so_and_a_lost_one_ends_its_lane_with_a_message(picture: OpenPicture) -> None:
    page = picture("real")
    state(page, "finished")
    expect(page.locator(".sl-badge")).to_have_text("Real GPUs, NVML")
    expect(page.locator(".sl-sentence")).to_contain_text("fell off the bus")
    expect(page.locator(".sl-tile").first).to_contain_text("n/a")


def test_a_failure_shows_its_text_as_text(picture: OpenPicture) -> None:
    page = picture("failed")
    state(page, "failed")
    expect(page.locator(".sl-status")).to_contain_text("Rank 3 failed")
    press(page, "Details")
    expect(page.locator("pre.sl-details")).to_have_text(f"What it means: Why it was.\n\n{CRASH}")
    assert page.locator(".sl-root img").count() == 0
    assert page.evaluate("window.hit") is None


def test_the_end_is_told_once_and_buttons_tell_what_they_ask_for(picture: OpenPicture) -> None:
    page = picture("finished", next_steps=[["fix", "Apply the fix"], ["race", "Race the three"]])
    state(page, "finished")
    press(page, "Race the three")
    assert actions(page) == [
        {"action": "ended", "run_id": "finished", "outcome": "finished"}, {"action": "race", "run_id": "finished"},
    ]  # fmt: skip
    mount(page, "queued")
    press(page, "Watch the recording now")
    assert actions(page)[-1] == {"action": "watch_recording", "run_id": "queued", "recording": "old"}
    mount(page, "live")
    press(page, "Stop")
    assert actions(page)[-1] == {"action": "stop", "run_id": "live"}


def test_a_recording_plays_at_its_own_speed_and_can_be_skipped(picture: OpenPicture) -> None:
    page = picture("finished", replay=True)
    state(page, "replay")
    expect(page.locator(".sl-status")).to_contain_text("Recorded here on 2 Dec")
    page.wait_for_timeout(1_000)
    steps = (page.locator(".sl-lane").first.locator(".sl-line").get_attribute("d") or "").count("H")
    assert 3 <= steps <= 15
    assert actions(page) == []
    press(page, "Skip to end")
    state(page, "finished")
    assert [asked["action"] for asked in actions(page)] == ["ended"]


def test_options_change_without_another_connection_and_another_run_reconnects(picture: OpenPicture, feed: LanesServer) -> None:
    page = picture("live")
    state(page, "running")
    opened = feed.opened.count("live")
    page.evaluate(
        "window.kept = document.querySelector('.sl-picture'); window.lanes.update({ run_id: 'live', metric: 'power', prediction: 'only0' })"
    )
    expect(page.get_by_role("radio", name="Power")).to_have_attribute("aria-checked", "true")
    assert feed.opened.count("live") == opened
    page.evaluate("window.lanes.update({ run_id: 'starting', metric: 'busy' })")
    state(page, "starting")
    assert page.evaluate("window.kept === document.querySelector('.sl-picture')")
    page.evaluate("window.lanes.destroy()")
    assert page.locator("#root").inner_html() == ""
    deadline = time.monotonic() + 5
    while feed.open_now and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert feed.open_now == 0


def test_the_table_says_the_same_in_figures(picture: OpenPicture) -> None:
    page = picture("live")
    state(page, "running")
    press(page, "Table")
    table = page.locator(".sl-table table")
    expect(table.get_by_role("row")).to_have_count(9)
    expect(table.get_by_role("row").nth(1)).to_contain_text("13.3 GiB")


def test_what_is_spoken_waits_five_seconds(picture: OpenPicture, feed: LanesServer) -> None:
    feed.set("spoken", run_of(200), pace_s=0.02, hold=True)
    page = picture("spoken")
    page.evaluate(
        """() => {
            window.said = [];
            const note = () => window.said.push([performance.now(), node.textContent]);
            const node = document.querySelector('[aria-live=polite]');
            new MutationObserver(note).observe(node, { childList: true, subtree: true, characterData: true });
        }"""
    )
    page.wait_for_timeout(5_600)
    said = page.evaluate("window.said")
    assert 1 <= len(said) <= 2
    assert all(later[0] - earlier[0] >= 4_900 for earlier, later in itertools.pairwise(said))
    assert "GPU 0 is busy" in said[-1][1]


def test_reduced_motion_stills_the_slow_motion_strip(picture: OpenPicture) -> None:
    page = picture(None)
    page.emulate_media(reduced_motion="reduce")
    mount(page, "live")
    state(page, "running")
    head_line = page.locator(".sl-head")
    expect(head_line).to_have_attribute("visibility", "hidden")
    page.emulate_media(reduced_motion="no-preference")
    expect(head_line).to_have_attribute("visibility", "visible")
    before = head_line.get_attribute("transform")
    page.wait_for_timeout(300)
    assert head_line.get_attribute("transform") != before


def test_the_strip_names_what_it_shows(picture: OpenPicture, feed: LanesServer) -> None:
    feed.set("strip", [head(), ("state", {"state": "running"}), tick(1), strip(900), tick(5)], hold=True)
    page = picture("strip")
    state(page, "running")
    expect(page.locator(".sl-slow-title")).to_contain_text("two steps, 900 ms at a tenth of the speed")
    legend = page.locator(".sl-kinds")
    for word in ("load", "copy", "decode", "compute", "all-reduce", "wait", "spin"):
        expect(legend).to_contain_text(word)
    drawn = page.locator(".sl-strip .sl-k").evaluate_all("nodes => [...new Set(nodes.map(node => node.classList[1]))]")
    assert set(drawn) == {"sl-k-load", "sl-k-copy", "sl-k-decode", "sl-k-compute", "sl-k-all_reduce", "sl-k-wait", "sl-k-spin"}
    expect(page.locator(".sl-words")).to_contain_text("decode")
    expect(legend.get_by_text("validate")).to_be_hidden()
    pause = strip(900, [0, "compute", "validate", 428_000, 450_000])
    feed.set("pause", [head(), ("state", {"state": "running"}), tick(1), pause, tick(5)], hold=True)
    page = picture("pause")
    state(page, "running")
    expect(page.locator(".sl-kinds").get_by_text("validate")).to_be_visible()
    expect(page.locator(".sl-kinds").get_by_text("checkpoint")).to_be_hidden()
    expect(page.locator(".sl-strip .sl-k-validate")).to_have_count(2)


def test_a_strip_that_takes_over_after_the_end_has_its_own_title(picture: OpenPicture, feed: LanesServer) -> None:
    """Each is played to its end: the one that waits is shown when nothing else changes any more."""
    step = [0, "compute", "optimizer", 0, 1_000]
    first = ("strip", {"t0_us": 0, "t1_us": 150_000, "spans": [step]})
    second = ("strip", {"t0_us": 0, "t1_us": 200_000, "spans": [step, [0, "compute", "optimizer", 100_000, 101_000]]})
    events = [head(), ("state", {"state": "running"}), tick(1), first, tick(2), second, tick(3), end("finished", 600)]
    feed.set("two strips", events, pace_s=0.1)
    page = picture("two strips")
    state(page, "finished")
    expect(page.locator(".sl-slow-title")).to_contain_text("two steps, 200 ms")


def test_a_start_tells_the_processes_only_where_their_number_is_told(picture: OpenPicture, feed: LanesServer) -> None:
    for number, sentence in ((1, "One process starting, for all eight GPUs."), (None, "The processes are starting.")):
        feed.set("start", [("state", {"state": "starting"}), head(processes=number)], hold=True)
        page = picture("start")
        state(page, "starting")
        expect(page.locator(".sl-sentence")).to_contain_text(sentence)


def test_the_figures_at_the_right_say_what_they_are_of(picture: OpenPicture, feed: LanesServer) -> None:
    """A mean over the steady part, what was read in the hang that ended it, or the last second where there is no summary."""
    feed.set("hang", [*run_of(21), end("timeout", 4_200, expected=True, summary=summary())])
    for run_id, wanted, caption in (
        ("live", "running", "now"), ("finished", "finished", "mean"), ("hang", "timeout", "hung"), ("stopped", "stopped", "last"),
    ):
        page = picture(run_id)
        state(page, wanted)
        expect(page.locator(".sl-caption")).to_have_text(caption)


def test_on_a_phone_status_and_lanes_stay_in_view(picture: OpenPicture) -> None:
    page = picture("live", size="phone")
    state(page, "running")
    assert page.locator(".sl-live").bounding_box()["height"] <= 190  # type: ignore[index]
    page.mouse.wheel(0, 1_200)
    page.wait_for_timeout(300)
    box = page.locator(".sl-live").bounding_box()
    assert box is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 200


@pytest.mark.parametrize(("size", "least"), [("desktop", 24), ("phone", 44)])
def test_targets_are_large_enough(picture: OpenPicture, size: str, least: int) -> None:
    page = picture("finished", size=size)
    state(page, "finished")
    boxes = page.locator("#root button:visible").evaluate_all(
        "nodes => nodes.map(node => [node.textContent, node.getBoundingClientRect().width, node.getBoundingClientRect().height])"
    )
    assert boxes
    assert [box for box in boxes if min(box[1:]) < least - 0.5] == []


def test_a_still_picture_of_the_symptom_says_so(picture: OpenPicture) -> None:
    page = picture(None, still="only0")
    state(page, "still")
    expect(page.locator(".sl-status")).to_contain_text("Still picture")
    values = page.locator(".sl-value").all_text_contents()
    assert int(values[0].split()[0]) >= 95
    assert all(int(value.split()[0]) <= 20 for value in values[1:])
    page.evaluate("window.lanes.update({ run_id: null, still: 'low0' })")
    expect(page.locator(".sl-value").first).to_have_text("0 %")
    expect(page.locator(".sl-value").last).to_have_text("100 %")


def test_nothing_scrolls_sideways_where_it_is_narrow(picture: OpenPicture) -> None:
    page = picture("finished", size="narrow", next_steps=[["fix", "Apply the fix"], ["race", "Race the three"]])
    state(page, "finished")
    assert_no_sideways_scroll(page)


def test_a_hidden_tab_does_not_draw_and_catches_up(picture: OpenPicture, feed: LanesServer) -> None:
    feed.set("hidden", run_of(60), pace_s=0.03, hold=True)
    page = picture("hidden")
    state(page, "running")
    page.evaluate(
        """() => {
            Object.defineProperty(document, 'hidden', { get: () => window.away ?? true, configurable: true });
            document.dispatchEvent(new Event('visibilitychange'));
        }"""
    )
    page.wait_for_timeout(150)
    line = page.locator(".sl-lane").first.locator(".sl-line")
    before = line.get_attribute("d")
    page.wait_for_timeout(400)
    assert line.get_attribute("d") == before
    page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(150)
    assert line.get_attribute("d") != before
    page.evaluate("delete document.hidden")
