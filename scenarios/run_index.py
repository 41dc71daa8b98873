"""Which records there are, and the newest good one of each config: the memory of a server about runs that are over.

Owns adopting what an earlier server left, keeping up with other servers on the same folder, pruning, and ends that a full disk refused.
Not thread-safe: its owner holds a lock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Container, Iterable
from contextlib import AbstractContextManager
from typing import Any

from scenarios.run_ends import disk_sentence
from scenarios.run_folder import Entry, RunFolder, close_record, end_data

GONE = "The server that computed it went away at {t}; shown up to there."
LOOK_EVERY_S = 2.0
"""How long a server may not know what another one on its folder has recorded."""


class RunIndex:
    """Reads the folder once, in `adopt`; afterwards it is told what ends here, and looks for what others did."""

    def __init__(self, folder: RunFolder, *, keep: int, default_keys: Collection[str]) -> None:
        self._folder = folder
        self._keep = keep
        self._spared = set(default_keys)
        self._entries: dict[str, Entry] = {}
        self._best: dict[str, str] = {}
        self._unwritten: dict[str, dict[str, Any]] = {}
        self._left_behind: set[str] = set()
        """Runs without an end that nobody could end any longer, when it was looked last."""

    def adopt(self) -> None:
        """Take in all records; runs in flight whose server is gone are marked as interrupted, keeping what is there."""
        for entry in self._folder.load():
            if self._folder.orphaned(entry):
                entry = self._close_left(entry, "The server restarted at {t}; shown up to there.")
            if entry.outcome is not None:
                self._add(entry)
        self._prune()

    def look_around(self, lock: AbstractContextManager[Any], own: Container[str]) -> None:
        """Now and then: what other servers on this folder have recorded, what they removed, and what those left behind that are gone.

        Takes the owner's `lock`, and lets go of it while it reads. `own`: the runs in flight here.
        """
        with lock:
            self.retry_unwritten()
            known = set(self._entries)
        names = self._folder.names()
        if names is None:
            return
        found = [entry for entry in map(self._folder.read, names - known) if entry is not None]
        with lock:
            for run_id in (known & set(self._entries)) - names - set(self._unwritten):
                self._drop(run_id)
            open_ends = [entry for entry in found if entry.outcome is None and entry.run_id not in own and self._folder.orphaned(entry)]
            # Whoever wrote it may have died this moment, and its processes after it: they are not written between.
            ended = [self._close_left(entry, GONE) for entry in open_ends if entry.run_id in self._left_behind]
            self._left_behind = {entry.run_id for entry in open_ends}
            for entry in (*found, *ended):
                if entry.outcome is not None and entry.run_id not in own:
                    self._add(entry)
            self._prune()

    def get(self, run_id: str) -> Entry | None:
        entry = self._entries.get(run_id)
        if entry is not None and entry.hidden and entry.owner != self._folder.owner:
            return self._folder.read(run_id) or entry  # another server may have revealed it
        return entry

    def best(self, key: str) -> Entry | None:
        """The newest record of this config that ended as it should."""
        run_id = self._best.get(key)
        return None if run_id is None else self._entries[run_id]

    def reveal(self, run_id: str) -> None:
        """From now on the config of a run that is over may be shown."""
        entry = self._entries.get(run_id) or self._folder.read(run_id)
        if entry is not None:
            entry = self._folder.reveal(entry)
            if run_id in self._entries:
                self._entries[run_id] = entry

    def unwritten_end(self, run_id: str) -> dict[str, Any] | None:
        return self._unwritten.get(run_id)

    def conclude(self, entry: Entry, outcome: str, sentence: str, *, error: str | None = None) -> Entry:
        """Append the `end` that a record lacks; where the disk refuses, keep it in memory. Returns the ended entry, not yet added."""
        try:
            close_record(self._folder.path(entry.run_id), outcome, sentence, error=error)
        except OSError as failure:
            self._unwritten[entry.run_id] = end_data(outcome, sentence.replace("{t}", "its last sample"), error=error or str(failure))
        return dataclasses.replace(entry, outcome=outcome, expected=False)

    def refuse(self, entry: Entry, failure: OSError) -> None:
        """A run that could not even be recorded: known to this server only, as failed."""
        self._unwritten[entry.run_id] = end_data("failed", disk_sentence(failure), error=str(failure))
        self._add(dataclasses.replace(entry, outcome="failed"))
        self._prune()

    def spare(self, keys: Iterable[str]) -> None:
        """Keep the newest good record of these configs too when old ones are removed."""
        self._spared.update(keys)

    def add(self, entry: Entry) -> None:
        """A run that is over."""
        self._add(entry)
        self._prune()

    def retry_unwritten(self) -> None:
        """The disk may have room again: write what it refused, so that a restart finds the record whole."""
        for run_id, end in list(self._unwritten.items()):
            path = self._folder.path(run_id)
            if not path.exists():
                continue
            try:
                close_record(path, end["outcome"], end["sentence"], error=end["error"])
            except OSError:
                return
            del self._unwritten[run_id]

    def _close_left(self, entry: Entry, sentence: str) -> Entry:
        """`entry` with an end, of which there is one, whichever server writes it."""
        with self._folder.closing():
            now = self._folder.read(entry.run_id)
            return now if now is not None and now.outcome is not None else self.conclude(entry, "interrupted", sentence)

    def _add(self, entry: Entry) -> None:
        self._entries[entry.run_id] = entry
        best = self.best(entry.config.key)
        if entry.good and (best is None or best.created_s <= entry.created_s):
            self._best[entry.config.key] = entry.run_id

    def _drop(self, run_id: str) -> None:
        """Its record is gone: the newest of the others takes its place."""
        gone = self._entries.pop(run_id)
        self._unwritten.pop(run_id, None)
        if self._best.get(gone.config.key) == run_id:
            del self._best[gone.config.key]
            for entry in [entry for entry in self._entries.values() if entry.config.key == gone.config.key]:
                self._add(entry)

    def _prune(self) -> None:
        if len(self._entries) <= self._keep:
            return
        spared = {run_id for key, run_id in self._best.items() if key in self._spared}
        oldest_first = sorted(self._entries.values(), key=lambda entry: entry.created_s)
        for run_id in self._folder.prune(oldest_first, keep=self._keep, spared=spared):
            self._drop(run_id)
