"""What goes over the wire while a learner is on the lesson page, and what must not be in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Response, WebSocket

from lessons import Lesson


def secrets_of(lesson: Lesson, scenarios: Iterable[str]) -> list[str]:
    """What must not be sent before the verdict: names of experiments, titles of causes, rebuttals, explanations."""
    texts = [option.rebuttal.html for option in lesson.options] + [cause.shows for cause in lesson.causes]
    texts += [lesson.why.html, lesson.full_story.html, lesson.exam_box.html, lesson.on_call_box.html, lesson.what_to_try.html]
    told = " ".join([lesson.symptom.html, *(option.text for option in lesson.options)])  # "sharded" is also a word
    return [*(name for name in scenarios if name not in told), *(cause.title for cause in lesson.causes), *(text[:45] for text in texts)]


class Wire:
    """Everything a page sends and receives, but Streamlit's own static files: addresses, bodies, WebSocket frames, and the DOM."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[str] = []
        self._responses: list[Response] = []
        page.on("response", lambda response: self._responses.append(response))
        page.on("websocket", self._websocket)

    def text(self) -> str:
        """All of it so far, as text."""
        parts = [*self._frames, self._page.url, self._page.title(), self._page.content()]
        for response in self._responses:
            path = urlsplit(response.url).path
            parts += [response.url, json.dumps(response.headers)]
            if not path.startswith("/static/") and not path.endswith("/live") and response.status == 200:
                parts.append(response.body().decode("utf-8", "replace"))
        return "\n".join(parts)

    def feeds(self) -> str:
        """The live feeds that the page has opened, from their beginnings, with what is served beside them. Call it when they are over."""
        found = []
        for url in {response.url for response in self._responses if urlsplit(response.url).path.endswith("/live")}:
            run = parse_qs(urlsplit(url).query)["run"][0]
            origin = url.split("/live")[0]
            for address in (url, f"{origin}/runs/{run}/trace.json", f"{origin}/runs/{run}/samples.csv"):
                found += [address, self._page.request.get(address).text()]
        return "\n".join(found)

    def _websocket(self, socket: WebSocket) -> None:
        for event in ("framesent", "framereceived"):
            socket.on(event, lambda frame: self._frames.append(frame if isinstance(frame, str) else frame.decode("utf-8", "replace")))
