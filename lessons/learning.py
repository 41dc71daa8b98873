"""Everything about learners behind one object: what pages and routes ask for, on one store.

    learning = get_learning()
    learning.attempts.open(lesson, learner=token)

Owns the one instance of this process. Must not hold rules of its own.
"""

from __future__ import annotations

import atexit
import threading

from lessons.attempts import AttemptStore
from lessons.learners import Learners
from lessons.model import LessonSet
from lessons.mystery import Mysteries
from lessons.progress import Progress, progress_in
from lessons.reviews import Reviews
from lessons.store import Store, StoreError, open_store
from scenarios.settings import Settings, load_settings


class Learning:
    """Learners, their attempts, mystery runs, reviews and progress, of one store. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.learners = Learners(store)
        self.attempts = AttemptStore(store)
        self.mysteries = Mysteries(store)
        self.reviews = Reviews(store)

    @classmethod
    def open(cls, settings: Settings) -> Learning:
        """Raises StoreError where the store cannot be opened, is damaged, or was written by a newer version."""
        return cls(open_store(settings.data_dir, settings.database_url))

    def progress(self, learner: str, lessons: LessonSet, *, now_s: float | None = None) -> Progress:
        """How far the learner with this token has come; a newcomer's for an unknown one. Raises StoreError."""
        with self.store.read() as connection:
            return progress_in(connection, learner, lessons, now_s=now_s)

    def health(self) -> str:
        """`ok`, or the sentence that says why nothing can be kept now."""
        try:
            with self.store.read():
                return "ok"
        except StoreError as fault:
            return str(fault)

    def close(self) -> None:
        self.store.close()


_learning: Learning | None = None
_lock = threading.Lock()


def get_learning() -> Learning:
    """That of this process, with the settings of its environment; made on the first call that succeeds, closed when the process exits.

    Raises StoreError where the store cannot be opened now; the next call tries again.
    """
    global _learning
    with _lock:
        if _learning is None:
            _learning = Learning.open(load_settings())
            atexit.register(_learning.close)
        return _learning


def close_learning() -> None:
    """Forget the instance of this process: the next call of `get_learning` reads the settings anew."""
    global _learning
    with _lock:
        if _learning is not None:
            atexit.unregister(_learning.close)
            _learning.close()
            _learning = None
