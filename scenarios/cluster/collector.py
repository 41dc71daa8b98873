"""Takes in the messages of runs whose ranks somebody else started, and shows them as any other run.

Owns which such runs there are and when one is over: all ranks have ended, one has failed and the others had time to say so, or nobody
was heard for long. Every public method may be called from any thread. Knows nothing of HTTP; must not import torch.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from dataclasses import dataclass
from typing import Any

from scenarios.cluster.collected import CollectedRun, Gap, numbers_of
from scenarios.cluster.wire import Hello, checked
from scenarios.run_folder import COLLECTOR, RUN_ID, Entry
from scenarios.runs import Runs

LIVE_RUNS = 16
RUN_BYTES = 4 << 30
"""What one run may have accepted."""
BATCH_MESSAGES = 20_000
GATHER_S = 8.0
"""How long the other ranks may take to report after the first has failed. A rank tries again every 5 s."""
SILENCE_S = 60.0
"""A rank says every 5 s that it is there; where none did for so long, the whole job is gone."""
WATCH_EVERY_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the rank is told: `next` is the number of the message that is wanted next, `text` says what was wrong."""

    status: int
    next: int | None = None
    text: str = ""
    retry_s: int | None = None


class Collector:
    """One per process, for the runs of `runs`. Collects only if this process holds the folder's claim."""

    def __init__(self, runs: Runs, *, gather_s: float = GATHER_S, silence_s: float = SILENCE_S) -> None:
        self._runs = runs
        self._folder = runs.folder
        self._gather_s, self._silence_s = gather_s, silence_s
        self._lock = threading.Lock()
        self._live: dict[str, CollectedRun] = {}
        self._closed = threading.Event()
        if self.enabled:
            threading.Thread(target=self._watch, name="collector", daemon=True).start()

    @property
    def enabled(self) -> bool:
        return self._folder.collects

    def accept(self, run_id: str, body: bytes) -> Reply:
        """One batch: `{"rank": 3, "messages": [[12, {...}], [13, {...}]]}`. An empty one says that the rank is there."""
        try:
            rank, batch = _parsed(body)
            run = self._run(run_id, rank, batch)
        except ValueError as error:
            return Reply(status=400, text=str(error))
        except _Refusal as refusal:
            return refusal.reply
        except OSError as error:
            return _disk(error)
        with run.lock:
            if run.over:
                return _over(batch, run.wanted(rank))
            if run.closed:
                return Reply(status=503, text="The app is just opening this run again.", retry_s=1)
            if run.bytes > RUN_BYTES:
                return Reply(status=413, text=f"This run has sent more than {RUN_BYTES >> 20} MiB.")
            try:
                wanted = run.take(rank, batch)
                if run.all_ended:
                    self._conclude(run)
                return Reply(status=200, next=wanted)
            except Gap as gap:
                return Reply(status=409, next=gap.wanted, text=str(gap))
            except ValueError as error:
                return Reply(status=400, text=str(error))
            except OSError as error:
                self._drop(run)  # what was accepted is on disk: the next batch opens the run again
                return _disk(error)

    def close(self) -> None:
        """Let go of all runs. They go on when an app collects into this folder again."""
        self._closed.set()
        with self._lock:
            live, self._live = list(self._live.values()), {}
        for run in live:
            with run.lock:
                if not run.closed:
                    run.close()

    # Which run a batch is for

    def _run(self, run_id: str, rank: int, batch: list[tuple[int, Any]]) -> CollectedRun:
        """The run, opened or made if need be. Raises _Refusal for one that is over, and where there is no room."""
        if not RUN_ID.fullmatch(run_id):
            raise ValueError("A run's id must be 8 to 40 letters, digits, hyphens and underscores.")
        with self._lock:
            if self._closed.is_set():
                raise _Refusal(Reply(status=503, text="The app is being stopped.", retry_s=2))
            run = self._live.get(run_id)
            if run is not None:
                return run
            entry = self._folder.read(run_id)
            if entry is not None and entry.owner != COLLECTOR:
                raise _Refusal(Reply(status=409, text="This id belongs to a run that was not sent here. Choose another."))
            if entry is not None and entry.outcome is not None:
                raise _Refusal(_over(batch, numbers_of(self._folder.path(run_id)).get(rank, 0)))
            if len(self._live) >= LIVE_RUNS:
                raise _Refusal(Reply(status=429, text=f"{LIVE_RUNS} runs are being collected already.", retry_s=30))
            if entry is None:
                entry = self._new(run_id, rank, batch)
            run = self._live[run_id] = CollectedRun(entry, self._folder.path(run_id))
            return run

    def _new(self, run_id: str, rank: int, batch: list[tuple[int, Any]]) -> Entry:
        if not batch or batch[0][0] != 0:
            raise _Refusal(Reply(status=409, next=0, text="This run is not known here: begin with its first message."))
        first = checked(batch[0][1], rank)
        if first["kind"] != "hello":
            raise ValueError("A rank's first message must be its hello.")
        entry = self._folder.new_entry(Hello.model_validate(first).run_config, "fast", owner=COLLECTOR)
        entry = dataclasses.replace(entry, run_id=run_id)
        self._folder.create(entry)
        return entry

    # When a run is over

    def _watch(self) -> None:
        self._open_unfinished()
        while not self._closed.wait(WATCH_EVERY_S):
            if not self.enabled:  # the app is being stopped
                self.close()
                return
            with self._lock:
                live = list(self._live.values())
            for run in live:
                with run.lock:
                    if not run.closed and self._due(run):
                        try:
                            self._conclude(run)
                        except OSError:  # a full disk: again in a while
                            self._drop(run)

    def _open_unfinished(self) -> None:
        """Runs that went on when the app ended: their ranks may be waiting, or may be gone."""
        for entry in self._folder.load():
            if entry.owner != COLLECTOR or entry.outcome is not None:
                continue
            with self._lock:
                if entry.run_id in self._live or self._closed.is_set():
                    continue
                try:
                    self._live[entry.run_id] = CollectedRun(entry, self._folder.path(entry.run_id))
                except (OSError, ValueError, KeyError, TypeError):  # damaged: its first batch will say so
                    continue

    def _due(self, run: CollectedRun) -> bool:
        now_s = time.monotonic()
        if run.failed_s is not None and now_s - run.failed_s > self._gather_s:
            return True
        return run.all_ended or now_s - run.heard_s > self._silence_s

    def _conclude(self, run: CollectedRun) -> None:
        end = run.conclude()
        with self._lock:
            self._live.pop(run.entry.run_id, None)
        self._runs.note(dataclasses.replace(run.entry, outcome=str(end["outcome"]), expected=bool(end["expected"])))

    def _drop(self, run: CollectedRun) -> None:
        run.close()
        with self._lock:
            self._live.pop(run.entry.run_id, None)


class _Refusal(Exception):
    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.text)
        self.reply = reply


def _over(batch: list[tuple[int, Any]], wanted: int) -> Reply:
    """To a rank of a run that is over: it has to know whether all that it sends was taken before."""
    if not batch or batch[-1][0] < wanted:
        return Reply(status=200, next=wanted)
    return Reply(status=410, text="This run is over; nothing more is taken.")


def _disk(error: OSError) -> Reply:
    return Reply(status=507, text=f"The app could not write this to disk: {error.strerror or error}.", retry_s=5)


def _parsed(body: bytes) -> tuple[int, list[tuple[int, Any]]]:
    """Raises ValueError with a sentence."""
    try:
        data = json.loads(body)
        rank, rows = data["rank"], data["messages"]
        batch = [(number, message) for number, message in rows]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError('The body must be JSON of the form {"rank": 0, "messages": [[0, {...}]]}.') from None
    if type(rank) is not int or not 0 <= rank < 64 or len(batch) > BATCH_MESSAGES:
        raise ValueError(f"The rank must be an integer from 0 to 63, with at most {BATCH_MESSAGES} messages.")
    numbers = [number for number, _ in batch]
    if any(type(number) is not int for number in numbers) or (numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers)))):
        raise ValueError("The messages' numbers must be integers that follow each other.")
    if numbers and numbers[0] < 0:
        raise ValueError("The messages' numbers must not be negative.")
    return rank, batch
