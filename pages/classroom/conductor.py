"""The runs that a class is shown: started for everybody, paused, shown again, raced; and the recording where a live one does not come.

    await conductor.experiment(code, "c1", mode="live")

A live run is on the screens at once, as "starting". Has it drawn nothing after two seconds, or cannot begin, the newest recording takes its
place, labelled, and the console's log says why and what to do. A run that dies on screen is told there too. Owns these decisions and their
words. Must not know HTTP or viewers. Lives in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Literal

from lessons.classroom import Classroom, ClassState, StaleClassError, UnknownClassError
from lessons.deep_links import KNOBS
from lessons.experiments import Shown, shown_as
from lessons.model import Lesson
from lessons.store import StoreError
from pages.classroom.door import LateError
from pages.classroom.racing import racers, unmeasured
from scenarios.backend import resolved
from scenarios.config import RunConfig
from scenarios.record import read_events
from scenarios.runs import Run, Runs

Mode = Literal["live", "recorded"]
FIX, RACE = "fix", "race"
"""What can be put on the screens beside the causes of the present item."""
WITH_RUNS = ("experiments", "key", "explanation")
START_LIMIT_S = 1.8
"""How long a class waits for the first sample: two seconds, less what the recording needs to be on every screen."""
LOOK_EVERY_S = 0.05
WATCH_EVERY_S = 0.25
OTHERS_FIRST_S = 1.5
"""How long whoever did not start a run waits to say how it ended: longer than what another replica has said takes to be known here."""
TRIES = 3
RACE_LIMIT_S = 180.0

log = logging.getLogger("shardlab.classroom")


class Conductor:
    """Of all classes of this process."""

    def __init__(
        self, runs: Callable[[], Runs], classroom: Callable[[], Classroom], ask: Callable[..., Awaitable[Any]],
        change: Callable[..., Awaitable[Any]], urge: Callable[[str], None],
    ) -> None:
        """`ask` looks at something in a thread, `change` writes into the store in another one; `urge` has the screens told at once."""
        self._runs = runs
        self._classroom = classroom
        self._ask = ask
        self._change = change
        self._urge = urge
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def experiment(self, code: str, what: str, *, mode: Mode = "live", knobs: Mapping[str, Any] | None = None) -> None:
        """Put a cause of the present item on all screens, or FIX or RACE. Raises ValueError where that is not possible now."""
        async with self._turns.setdefault(code, asyncio.Lock()):  # of two presses the second one counts, and has one run
            await self._experiment(code, what, mode, knobs)

    async def _experiment(self, code: str, what: str, mode: Mode, knobs: Mapping[str, Any] | None) -> None:
        state, lesson = await self._at(code)
        self._forget(code, state)
        if what == RACE:
            await self._race(code, lesson)
            return
        shown = _experiment(lesson, what)
        config = _turned(lesson, shown, knobs)
        fields = {
            "title": "The healthy script" if what == FIX else shown.title, "odd_rank": shown.odd_rank, "metric": shown.metric,
            "sentence": "" if what == FIX else _shows(lesson, what), "cause_id": None if what == FIX else what,
            "showing": 1 + (state.run or {}).get("showing", 0),
        }  # fmt: skip
        if mode == "recorded":
            if not await self._show_recording(code, fields, lesson, shown, config):
                raise ValueError(f"There is no recording of “{fields['title']}” on this server yet; run it live.")
            return
        starting = asyncio.ensure_future(self._ask(self._runs().start, config, viewer=_viewer(code)))
        try:
            run: Run = await asyncio.wait_for(asyncio.shield(starting), START_LIMIT_S)
        except Exception as fault:  # whatever it is: the class goes on
            why = str(fault) or _slow()
            starting.add_done_callback(lambda late: self._give_up(code, late))
            log.warning("class %s: a live run could not be started: %s", code, why)
            await self._fall_back(code, fields, lesson, shown, config, why)
            return
        await self._show(code, {**fields, "run_id": run.run_id, "mode": "live"})
        self._begin(code, lambda: self._follow(code, run, fields, lesson, shown))

    async def pause(self, code: str, paused: bool) -> None:
        """Hold the picture on all screens, or let it go on; a live run goes on meanwhile."""
        state, _ = await self._at(code)
        if state.run is None:
            raise ValueError("No run is on the screens.")
        await self._show(code, {**state.run, "paused": paused})

    async def replay(self, code: str) -> None:
        """Show the run that is on the screens once more, from its beginning."""
        state, _ = await self._at(code)
        if state.run is None:
            raise ValueError("No run is on the screens.")
        words = state.run["recorded_words"] or "Shown again"
        again = {"mode": "recorded", "recorded_words": words, "paused": False, "showing": state.run["showing"] + 1}
        await self._show(code, {**state.run, **again})

    async def clear(self, code: str) -> None:
        """Take the run off the screens."""
        async with self._turns.setdefault(code, asyncio.Lock()):  # pressed during a start, it takes off what that puts on
            self._forget(code, (await self._at(code))[0])
            await self._act(code)

    async def look_after(self, code: str) -> None:
        """A class has a live run on its screens that was not started here: follow it, and say what becomes of it.

        Before a restart it was, or another web replica has. Where that one is alive it tells first.
        """
        state: ClassState = await self._ask(self._classroom().state, code)
        if state.run is None or state.run["mode"] != "live":
            return
        run = await self._ask(self._runs().get, state.run["run_id"])
        lesson = await self._ask(self._classroom().lesson, code)
        title = state.run["title"]
        turn = self._turns.get(code)
        own = code in self._tasks or (turn is not None and turn.locked())
        if run is not None and lesson is not None and not own:
            self._begin(code, lambda: self._watch(code, run, title, lesson, after_s=OTHERS_FIRST_S))

    async def close(self) -> None:
        """Follow nothing any longer; the runs themselves end with the server."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # What follows a start

    async def _follow(self, code: str, run: Run, fields: Mapping[str, Any], lesson: Lesson, shown: Shown) -> None:
        """Until it has drawn something; the recording takes its place where that takes too long. Without one, a slow run is waited for."""
        until_s, told = time.monotonic() + START_LIMIT_S, False
        while not await self._ask(_has_drawn, run):
            now: Run | None = await self._ask(self._runs().get, run.run_id)
            over = now is None or now.over
            late = time.monotonic() >= until_s
            if over or (late and (not told or await self._recording(lesson, shown, run.config) is not None)):
                if not await self._on_screen(code, run):
                    return
                told = True
                replaced = await self._fall_back(code, fields, lesson, shown, run.config, _why(now) or _slow(), comes=not over)
                if replaced:
                    await self._ask(self._runs().stop, run.run_id, _viewer(code))
                if replaced or over:
                    return
            await asyncio.sleep(WATCH_EVERY_S if told else LOOK_EVERY_S)
        await self._watch(code, run, fields["title"], lesson)

    async def _watch(self, code: str, run: Run, title: str, lesson: Lesson, *, after_s: float = 0.0) -> None:
        """Until its end, which is told, `after_s` later, where it is none that was expected."""
        while True:
            now: Run | None = await self._ask(self._runs().get, run.run_id)
            if now is None or now.over or not await self._on_screen(code, run):
                break
            await asyncio.sleep(WATCH_EVERY_S)
        state: ClassState = await self._ask(self._classroom().state, code)
        if state.run is not None and state.run["run_id"] != run.run_id:
            self._runs().stop(run.run_id, _viewer(code))  # another web replica has put its own on the screens
        sentence = _why(now)
        if sentence:
            await asyncio.sleep(after_s)
        if sentence and await self._on_screen(code, run):
            ready = await self._ask(self._runs().recording, run.config) is not None
            todo = "Play the recording (P), or run it again." if ready else "Run it again; there is no recording of it here."
            await self._note(code, f"“{title}” broke off: {sentence} {todo}", "bad")

    async def _fall_back(
        self, code: str, fields: Mapping[str, Any], lesson: Lesson, shown: Shown, config: RunConfig, why: str, *, comes: bool = False
    ) -> bool:
        """The recording onto the screens, and why into the log; False where there is none. `comes`: the live run may still begin."""
        found = await self._show_recording(code, {**fields, "showing": fields["showing"] + 1}, lesson, shown, config)
        if found:
            tone, todo = "warn", "Its recording is on the screens, labelled. Run it again to try once more."
        elif comes:
            tone, todo = "warn", "No recording of it is here: it is on the screens as soon as it begins. Go on talking, or show another."
        else:
            tone, todo = "bad", "There is no recording of it here: go on, or run it again in a moment."
        await self._note(code, f"“{fields['title']}” could not be shown live: {_sentence(why)} {todo}", tone)
        return found

    async def _show_recording(self, code: str, fields: Mapping[str, Any], lesson: Lesson, shown: Shown, config: RunConfig) -> bool:
        """A recording onto the screens, with its date; False where there is none."""
        found = await self._recording(lesson, shown, config)
        if found is None:
            return False
        other = found.key != resolved(config).key
        made = time.localtime(found.created_s)
        words = f"Recorded here on {made.tm_mday} {time.strftime('%b', made)}" + (", with the usual knobs" if other else "")
        await self._show(code, {**fields, "run_id": found.run_id, "mode": "recorded", "recorded_words": words})
        return True

    async def _recording(self, lesson: Lesson, shown: Shown, config: RunConfig) -> Run | None:
        """The newest of `config`; where there is none, that of the experiment without turned knobs."""
        found: Run | None = await self._ask(self._runs().recording, config)
        return found or await self._ask(self._runs().recording, lesson.config_of(shown.name))

    # The race

    async def _race(self, code: str, lesson: Lesson) -> None:
        ready = await self._racers(lesson)
        left: list[RunConfig] = await self._ask(unmeasured, lesson, self._runs())
        if ready:
            await self._show_race(code, ready)
        else:
            await self._note(code, "The race was not recorded here yet: it is being run now, and shown when it is done.", "info")
        if left:
            self._begin(code, lambda: self._measure(code, lesson, left, shown=bool(ready)))

    async def _measure(self, code: str, lesson: Lesson, configs: list[RunConfig], *, shown: bool) -> None:
        """Run whole epochs at full speed, then show the race again."""
        until_s = time.monotonic() + RACE_LIMIT_S
        try:
            for config in configs:
                await self._ask(self._runs().start, config, viewer=_viewer(code), pace="fast")
        except Exception as fault:
            log.warning("class %s: the race could not be run: %s", code, fault)
            if not shown:
                await self._note(code, f"The race could not be run: {_sentence(str(fault))} Show the causes one by one.", "warn")
            return
        while await self._ask(unmeasured, lesson, self._runs()) and time.monotonic() < until_s:
            await asyncio.sleep(WATCH_EVERY_S)
        ready = await self._racers(lesson)
        state: ClassState = await self._ask(self._classroom().state, code)
        if ready and state.state in WITH_RUNS and (state.race or (not shown and state.run is None)):
            await self._show_race(code, ready)

    async def _racers(self, lesson: Lesson) -> list[dict[str, Any]]:
        """Those that can be shown; none where there is nobody to race against."""
        found: list[dict[str, Any]] = await self._ask(racers, lesson, self._runs())
        return found if len(found) > 1 else []

    async def _show_race(self, code: str, ready: list[dict[str, Any]]) -> None:
        await self._act(code, race=ready)

    # Small things

    async def _at(self, code: str) -> tuple[ClassState, Lesson]:
        """The class and the lesson of its item. Raises ValueError where no run may be shown."""
        state: ClassState = await self._ask(self._classroom().state, code)
        lesson: Lesson | None = await self._ask(self._classroom().lesson, code)
        if lesson is None or state.state not in WITH_RUNS:
            raise ValueError("A run would give the vote away: it is shown from the experiments on.")
        return state, lesson

    async def _show(self, code: str, run: Mapping[str, Any]) -> None:
        await self._act(code, run=dict(run))

    async def _act(self, code: str, **shown: Any) -> None:
        """Have the class show it. What somebody else did in the same instant is no reason not to."""
        for tries_left in range(TRIES - 1, -1, -1):
            try:
                await self._change(self._classroom().act, code, "show_run", **shown)
                break
            except StaleClassError:
                if not tries_left:
                    raise
        self._urge(code)

    async def _note(self, code: str, words: str, tone: str) -> None:
        said = await self._ask(lambda: {line["words"] for line in self._classroom().console_view(code)["log"]}) if tone == "bad" else set()
        if words not in said:  # a server that begins anew finds what it found before
            with contextlib.suppress(LateError):  # it is told as soon as the store answers
                await self._change(self._classroom().note, code, words, tone)
        self._urge(code)

    async def _on_screen(self, code: str, run: Run) -> bool:
        state: ClassState = await self._ask(self._classroom().state, code)
        return state.run is not None and state.run["run_id"] == run.run_id and state.run["mode"] == "live"

    def _forget(self, code: str, state: ClassState) -> None:
        """The run before is followed no longer, and ends if it was ours."""
        task = self._tasks.pop(code, None)
        if task is not None:
            task.cancel()
        if state.run is not None and state.run["mode"] == "live":
            self._runs().stop(state.run["run_id"], _viewer(code))

    def _give_up(self, code: str, late: asyncio.Future[Run]) -> None:
        """A start that came after all, or failed: nobody waits for it any longer."""
        if not late.cancelled() and late.exception() is None:
            self._runs().stop(late.result().run_id, _viewer(code))

    def _begin(self, code: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def safely() -> None:
            try:
                await work()
            except UnknownClassError:
                pass  # it was deleted
            except (StoreError, ValueError, StaleClassError) as fault:
                log.warning("class %s: %s", code, fault)
                await self._note(code, f"The screens could not be changed: {_sentence(str(fault))} Start the run again in a moment.", "bad")
            except Exception:
                log.exception("class %s: its run could not be followed", code)

        task = asyncio.get_running_loop().create_task(safely())
        self._tasks[code] = task
        task.add_done_callback(lambda done: self._tasks.pop(code) if self._tasks.get(code) is done else None)


def _viewer(code: str) -> str:
    return f"class {code}"


def _experiment(lesson: Lesson, what: str) -> Shown:
    if what != FIX and lesson.cause(what) is None:
        allowed = ", ".join([*(cause.id for cause in lesson.causes), FIX, RACE])
        raise ValueError(f"cause_id={what[:40]!r}: must be one of {allowed}")
    return shown_as(lesson, None if what == FIX else what)


def _shows(lesson: Lesson, cause_id: str) -> str:
    cause = lesson.cause(cause_id)
    return "" if cause is None else cause.shows


def _turned(lesson: Lesson, shown: Shown, knobs: Mapping[str, Any] | None) -> RunConfig:
    """The experiment with the instructor's knobs. Raises ValueError for one that there is not, or a value that is not allowed."""
    unknown = [str(name)[:40] for name in knobs or {} if name not in KNOBS]
    if unknown:
        raise ValueError(f"knobs: {', '.join(unknown)}: must be of {', '.join(KNOBS)}")
    return lesson.config_of(shown.name, knobs)


def _has_drawn(run: Run) -> bool:
    """Whether there is a sample to see."""
    return any(event["event"] == "tick" for event in read_events(run.run_dir))


def _slow() -> str:
    return f"it did not begin within {START_LIMIT_S:.1g} s"


def _why(run: Run | None) -> str:
    """The sentence of an end that nobody expected; empty for a run that goes on or ended as it should."""
    if run is None:
        return "Its record is gone."
    if not run.over or run.state in ("finished", "out_of_memory", "stopped"):
        return ""
    end = next((event["data"] for event in reversed(read_events(run.run_dir)) if event["event"] == "end"), run.unwritten_end) or {}
    return "" if end.get("expected") else str(end.get("sentence") or f"It ended as {run.state}.")


def _sentence(words: str) -> str:
    """`words` as the end of a sentence."""
    return words if words.endswith((".", "!", "?")) else f"{words}."
