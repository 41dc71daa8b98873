"""Every lesson of the course, opened over a real connection: neither the page nor a frame of its session gives the key away.

Pages, headers and frames are read as they come over the wire, up to lock-in, and on to the prediction of a wrong answer. That a browser
asks for nothing more, and what feeds and traces hold, is tested with the first lesson in test_lesson_secrecy.py.
"""

from __future__ import annotations

import asyncio
import html
import re
import urllib.request
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from lessons import Lesson, load_lessons
from lessons.attempts import AttemptStore
from lessons.learners import new_token
from scenarios.catalog import SCENARIOS
from tests.benchmarks._answering import Learner
from tests.browser.lesson_wire import secrets_of
from tests.browser.server import ROOT, AppServer

Read = TypeVar("Read")

LESSONS = load_lessons().lessons
OURS = "".join(path.read_text() for kind in ("js", "css") for path in sorted((ROOT / "pages").rglob(f"*.{kind}")))
"""What every visitor gets with every page: a word in it tells nothing of a lesson."""
FLAGS = re.compile(r'"(right|correct|key|is_key|matches_question|draws|rebuttal|scenario)"\s*:')
"""Names of fields that would tell, as JSON writes them."""


def secret_texts(lesson: Lesson) -> list[str]:
    """What no visitor may read before the verdict, in the words that pages show."""
    public = " ".join([lesson.title, lesson.topic, lesson.symptom.html, lesson.question, *(option.text for option in lesson.options)])
    public += " ".join(term.name + " " + term.short for term in lesson.terms)
    named = [*lesson.experiments, *(scenario.title for scenario in SCENARIOS.values())]
    texts = [*secrets_of(lesson, SCENARIOS), *(name for name in named if name not in public and not re.search(rf"\b{name}\b", OURS))]
    texts += [source.url for source in lesson.sources] + [lesson.infographic_alt[:45]]
    texts += [check.command.splitlines()[0] for check in lesson.on_your_own_job]
    return [text for text in dict.fromkeys(texts) if text.strip() and text not in public]


def told(lesson: Lesson, wire: str, *, but: tuple[str, ...] = ()) -> list[str]:
    """Secrets that stand in `wire`; a name counts only as a whole word."""
    found = []
    for text in secret_texts(lesson):
        wanted = rf"(?<![\w-]){re.escape(text)}(?![\w-])" if re.fullmatch(r"\w+", text) else re.escape(text)
        if text not in but and re.search(wanted, wire):
            found.append(text)
    ids = [cause.id for cause in lesson.causes if re.search(rf'"{re.escape(cause.id)}"', wire)]
    return [*found, *(name for name in ids if name not in but), *FLAGS.findall(wire)]


def page_of(url: str, path: str) -> str:
    with urllib.request.urlopen(url + path, timeout=10) as answer:
        return f"{answer.headers}\n{answer.read().decode()}"


def heard(learner: Learner) -> str:
    text = b"\n".join(learner.heard).decode("utf-8", "replace")
    return text + "\n" + html.unescape(text)


def awaited(script: Coroutine[Any, Any, Read]) -> Read:
    """Run in a thread of its own: once a browser was started, this one has Playwright's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, script).result()


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.id)
def test_nothing_tells_the_key_before_the_verdict(lesson: Lesson, app: AppServer) -> None:
    wrong = next(option for option in lesson.options if not option.right)
    learner = Learner(app.url, new_token(), lesson.id)
    opened = page_of(app.url, f"/lesson?lesson={lesson.id}")

    async def answer() -> tuple[str, str]:
        await learner.join()
        asked = heard(learner)
        await learner.lock_in(wrong.text)
        await learner.settle()
        await learner.close()
        return asked, heard(learner)

    asked, locked_in = awaited(answer())
    assert all(option.text in asked for option in lesson.options), "the frames were read"
    assert told(lesson, opened + asked) == []
    own = [cause for cause in map(lesson.cause, wrong.causes) if cause is not None]
    assert told(lesson, locked_in, but=tuple(text for cause in own for text in (cause.title, cause.id))) == []


def test_the_search_finds_what_is_told(app: AppServer) -> None:
    """The same search on the same page, once all is explained."""
    lesson = LESSONS[0]
    store = AttemptStore(app.data_dir)
    shown = store.show_answer(store.start(lesson.id), lesson)
    learner = Learner(app.url, new_token(), f"{lesson.id}&attempt={shown.token}")

    async def read() -> str:
        await learner.join()
        await learner.close()
        return heard(learner)

    found = told(lesson, awaited(read()))
    assert {lesson.why.html[:45], lesson.causes[0].title, lesson.sources[0].url} <= set(found)
