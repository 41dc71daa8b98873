"""The copies of classes in this process: read once, told of every change, and compared with the store because other replicas write too.

While the store is away a class that is here can still be looked at, and nobody waits for a store that does not even refuse: it is asked in
threads of its own. Owns which copies there are and how fresh they are, and who is told of a change. Must not change a class.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from lessons.classroom import keeping
from lessons.classroom.memory import LiveClass
from lessons.classroom.model import UnknownClassError
from lessons.classroom.words import is_code, normal_code
from lessons.store import Store, StoreError
from lessons.store.faults import AWAY

LOOK_EVERY_S = 0.5
"""How long a replica may not know what another one has done."""
AWAY_S = 2.0
"""How long a store that failed is left alone by those who only look."""
LOOK_LIMIT_S = 1.0
"""How long who looks at a class waits for the store, before the copy has to do as it is."""
FIRST_LIMIT_S = 5.0
"""And where there is no copy yet."""
THREADS = 4
KEPT = 100
"""Classes; the one that nobody has looked at for longest is read again when somebody does."""

Listener = Callable[[str], None]

log = logging.getLogger("shardlab.classroom")


class Copies:
    """Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._live: dict[str, LiveClass] = {}
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="copies")

    def of(self, code: str, *, look: bool = True) -> LiveClass:
        """The copy of a class, as fresh as `LOOK_EVERY_S`; as old as need be while the store is away, or without `look`.

        Raises UnknownClassError; StoreError where there is no copy yet.
        """
        code = normal_code(code)
        if not is_code(code):
            raise UnknownClassError
        with self._lock:
            live = self._live.get(code)
        if live is None:
            try:
                return self._threads.submit(self._first, code).result(FIRST_LIMIT_S)
            except TimeoutError:
                raise StoreError(AWAY) from None
        if look and time.monotonic() >= live.look_s and live.looking.acquire(blocking=False):
            try:
                return self._threads.submit(self._look, code, live).result(LOOK_LIMIT_S)
            except TimeoutError:
                log.warning("class %s is shown as it was: the store does not answer", code)
        return live

    def _look(self, code: str, live: LiveClass) -> LiveClass:
        """Who has `live.looking` hands it over, so that one thread at most waits for the store with this class."""
        try:
            live.look_s = time.monotonic() + LOOK_EVERY_S
            return self._compared(code, live)
        except StoreError:
            live.look_s = time.monotonic() + AWAY_S
            return live
        finally:
            live.looking.release()

    def fresh(self, code: str) -> LiveClass:
        """The copy of a class with everything that was in the store when this was called. Of many at once one asks it.

        Raises UnknownClassError, StoreError.
        """
        called_s = time.monotonic()
        live = self.of(code, look=False)
        with live.looking:
            if live.look_s - LOOK_EVERY_S < called_s:
                live.look_s = time.monotonic() + LOOK_EVERY_S
                live = self._compared(live.state.code, live)
        return live

    def forget(self, code: str) -> None:
        with self._lock:
            self._live.pop(code, None)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """`listener` is called with the code of a class that has changed, in the thread that noticed; returns how to end that."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def tell(self, code: str) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            try:
                listener(code)
            except Exception:
                log.exception("whoever was told that class %s has changed failed", code)

    def _first(self, code: str) -> LiveClass:
        with self._lock:
            known = self._live.get(code)
        if known is not None:  # read for somebody else meanwhile
            return known
        live = self._read(code, None)
        with self._lock:
            live = self._live.setdefault(code, live)
            while len(self._live) > KEPT:
                del self._live[min(self._live, key=lambda known: self._live[known].look_s)]
        return live

    def _compared(self, code: str, live: LiveClass) -> LiveClass:
        """`live` with what the store holds; a fresh copy where the store was taken back behind it, as by a backup."""
        own = live.now  # before the store is asked: whatever is in it was committed by then
        with self._store.read() as connection:
            now = keeping.read_now(connection, code)
        if now is not None and any(there < here for there, here in zip(now, own, strict=True)):
            self.forget(code)
            live = self._first(code)
            self.tell(code)
        elif now != live.now:
            before = live.stamp
            self._read(code, live)
            if live.stamp != before:
                self.tell(code)
        return live

    def _read(self, code: str, live: LiveClass | None) -> LiveClass:
        """Everything of a class from the store, into `live`."""
        with self._store.read() as connection:
            state = keeping.read_class(connection, code)
            if state is None:
                self.forget(code)
                raise UnknownClassError
            people = keeping.read_participants(connection, code)
            votes = keeping.read_votes(connection, code)
            lines, count = keeping.read_log(connection, code)
        live = live or LiveClass(state=state, look_s=time.monotonic() + LOOK_EVERY_S)
        live.set_state(state)
        for token_hash, person in people.items():
            live.set_person(token_hash, person)
        for vote in votes:
            live.set_vote(vote)
        live.set_log(lines, count)
        return live
