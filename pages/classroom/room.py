"""One class with its viewers: looks at the class when something happened to it, and tells every screen.

One task per class, as long as anybody watches. What the instructor does is told at once; joins and votes at most four times a second.
Owns when views are built. What is in them is decided in `lessons.classroom`, how they are sent in `screens.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from lessons.classroom import Classroom, RemovedError, UnknownClassError, UnknownParticipantError
from lessons.evidence import Recordings
from lessons.store import StoreError
from pages.classroom.instructor import get_instructors
from pages.classroom.presence import Presence
from pages.classroom.screens import ClassViewer, Key, Role, Screen, Showing
from pages.classroom.whereabouts import Whereabouts
from scenarios.tail import Hub

LOOK_EVERY_S = 0.5
"""How often the class is asked whether another replica has changed it, or time has."""
COUNTS_EVERY_S = 0.25
BEAT_S = 15.0
RETELL_S = 10.0
"""How often a console is told the time used of its plan."""
SHOWINGS_KEPT = 4

Views = dict[Role, dict[str, Any]]
log = logging.getLogger("shardlab.classroom")


class Room:
    """The viewers of one class in this process. Lives in one event loop."""

    def __init__(
        self, code: str, hub: Hub, classroom: Callable[[], Classroom], ask: Callable[..., Awaitable[Any]],
        recordings: Callable[[], Recordings | None], where: Whereabouts, look_after: Callable[[str], Awaitable[None]],
    ) -> None:
        """`look_after` is called when another run is on the screens: it may be one that nobody here has started."""
        self.code = code
        self.screens: dict[Role, Screen] = {"audience": Screen("audience"), "projector": Screen("projector"), "console": Screen("console")}
        self.presence = Presence()
        self._hub = hub
        self._classroom = classroom
        self._ask = ask
        self._recordings = recordings
        self._where = where
        self._look_after = look_after
        self._showings: OrderedDict[Key, Showing] = OrderedDict()
        self._changed, self._urgent, self._looking = asyncio.Event(), asyncio.Event(), asyncio.Lock()
        self._stamp: tuple[Any, ...] = ()
        self._version = 0
        self._told_s = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def watched(self) -> bool:
        return any(screen.viewers for screen in self.screens.values())

    def poke(self) -> None:
        """Somebody joined or voted."""
        self._changed.set()

    def urge(self) -> None:
        """The instructor did something: it is on all screens at once."""
        self._urgent.set()
        self._changed.set()

    async def enter(self, screen: Screen, viewer: ClassViewer, last_event_id: str) -> None:
        """Let `viewer` in: from now on it is told. The first view is built before, so that nobody begins with an old one."""
        if not screen.viewers or self._task is None or self._task.done():
            await self._look(screen.role)
        if screen.showing is not None:
            await self._revive(screen.showing)
            screen.showing.resume(viewer, last_event_id)
        screen.viewers.add(viewer)
        if viewer.person:
            self.presence.came(viewer.person)
        if viewer.version < self._version:  # the class went on between looking them up and letting them in
            self._version = -1
        self.poke()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def make_room(self, person: int, most: int) -> None:
        """One more stream of a participant: the oldest ends where they have `most`. A phone in a bad network leaves lines behind."""
        own = sorted((each for each in self.screens["audience"].viewers if each.person == person), key=lambda each: each.since_s)
        self._let_go(own[: max(0, len(own) + 1 - most)])

    def leave(self, screen: Screen, viewer: ClassViewer) -> None:
        screen.leave(viewer)
        if viewer.person:
            self.presence.went(viewer.person, expected=not viewer.removed)
        self.poke()

    def tell_me(self, token: str, me: dict[str, Any]) -> None:
        """What one participant sees of their own has changed: their other tabs learn of it too."""
        body = _json(me)
        for viewer in self.screens["audience"].viewers:
            if viewer.token == token and viewer.me != body:
                viewer.me, viewer.seen = body, 0
                viewer.wake()

    async def _watch(self) -> None:
        """Until nobody watches."""
        while self.watched:
            await _set_within(self._changed, LOOK_EVERY_S)
            self._changed.clear()
            if not self._urgent.is_set():
                await _set_within(self._urgent, self._told_s + COUNTS_EVERY_S - asyncio.get_running_loop().time())
            self._urgent.clear()
            try:
                await self._look()
            except UnknownClassError:
                self._let_go(viewer for screen in self.screens.values() for viewer in screen.viewers)
            except StoreError:
                pass  # the picture of before stays; the class can be looked at from memory once it was read
            except Exception:
                log.exception("class %s: the screens could not be told", self.code)
            # A console shows the key: not to a cookie that was signed out or is too old.
            self._let_go(viewer for viewer in self.screens["console"].viewers if get_instructors().who(viewer.token) is None)
            for screen in self.screens.values():
                screen.beat(BEAT_S)
                self._let_go(screen.viewers if self._hub.closing else screen.stalled())

    async def _look(self, also: Role | None = None) -> None:
        """Tell the screens, if there is anything new for them. One look at a time: an older one must not be told after a newer one."""
        async with self._looking:
            clock_s = asyncio.get_running_loop().time()
            here, reconnecting = self.presence.here, self.presence.reconnecting
            stamp = (await self._ask(self._stamp_of), here, reconnecting, int(clock_s / RETELL_S))
            if stamp == self._stamp and also is None and self._version >= 0:
                return
            wanted = [role for role, screen in self.screens.items() if screen.viewers or role == also]
            tokens = {viewer.token for viewer in self.screens["audience"].viewers}
            version, views, own = await self._ask(self._views, wanted, tokens, here, reconnecting, self._version)
            showings = {role: await self._showing(view, version) for role, view in views.items()}
            self._tell_own(own)  # before the views: nobody is told of a new item with their votes on the one before
            for role, view in views.items():
                self.screens[role].tell(view, showings[role])
            self._stamp, self._version, self._told_s = stamp, version, clock_s

    def _stamp_of(self) -> int:
        return self._classroom().stamp(self.code)

    def _views(
        self, wanted: list[Role], tokens: set[str], here: int, reconnecting: int, before: int
    ) -> tuple[int, Views, dict[str, bytes | None]]:
        """In a thread: version, views and, where the class has gone on, what each participant sees of their own."""
        classroom, code = self._classroom(), self.code
        version = classroom.state(code).version
        build: dict[Role, Callable[[], dict[str, Any]]] = {
            "audience": lambda: classroom.audience_base(code),
            "projector": lambda: classroom.projector_view(code, here=here, join_words=self._where.join_words(code)),
            "console": lambda: classroom.console_view(
                code, here=here, reconnecting=reconnecting, recordings=self._recordings(), unreachable=self._where.unreachable()
            ),
        }
        views = {role: build[role]() for role in wanted}
        own: dict[str, bytes | None] = {}
        for token in tokens if version != before else ():
            try:
                own[token] = _json(classroom.audience_me(code, token))
            except (UnknownParticipantError, RemovedError):
                own[token] = None
        return version, views, own

    def _tell_own(self, own: dict[str, bytes | None]) -> None:
        audience = self.screens["audience"]
        for viewer in list(audience.viewers):
            me = own.get(viewer.token, viewer.me)
            if me is None:
                viewer.removed = True
                self._let_go([viewer])
            elif me != viewer.me:
                viewer.me, viewer.seen = me, 0
                viewer.wake()

    async def _showing(self, view: dict[str, Any], version: int) -> Showing | None:
        """The run that a view has on the screen."""
        run = view.get("run")
        if not run:
            return None
        key: Key = (str(run["run_id"]), int(run.get("showing", 0)))
        if key not in self._showings:
            await self._look_after(self.code)
            self._showings[key] = Showing(key, await self._hub.open(key[0]), version)
            while len(self._showings) > SHOWINGS_KEPT:
                self._showings.popitem(last=False)
        return self._showings[key]

    async def _revive(self, showing: Showing) -> None:
        """The tail of a run that went on while nobody watched was closed: open it again."""
        if showing.tail is None or not showing.tail.over:
            showing.tail = await self._hub.open(showing.key[0])

    def _let_go(self, viewers: Iterable[ClassViewer]) -> None:
        for viewer in list(viewers):
            viewer.let_go()


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    if seconds > 0:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
