"""One run from fork to end: starts the ranks, records what they report, enforces the limits, says how it ended.

Runs in a process of its own, forked by the launcher. Owns its ranks' processes and the run's record. No rank outlives it
(parent-death signal). Must not know of other runs, queues or viewers.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch._C._distributed_c10d import TCPStore

from scenarios.cards import UNKNOWN_CARD, Card
from scenarios.catalog import patience_s
from scenarios.config import RunConfig
from scenarios.measured_recorder import MeasuredRecorder, recorder_of
from scenarios.measurement import Measurement
from scenarios.processes import die_with_parent, exit_text
from scenarios.rank_pipe import RankPipe
from scenarios.record import COMPUTED
from scenarios.record_writer import RecordWriter
from scenarios.recorder import Outgoing, StepState
from scenarios.run_folder import backend_reason_of
from scenarios.settings import Settings
from scenarios.summary import Tally
from scenarios.verdict import Failure, neutral, outcome_of, run_end, run_head
from scenarios.worker.entry import rank_process
from scenarios.worker.report import unpack_floats, unpack_serials, unpack_span

GATHER_S = 3.0
"""After the first rank failed, how long to listen to the others before naming the cause: word of it goes from neighbour to neighbour."""
GATHER_WAITING_S = 10.0
"""The same where ranks waited in vain: each of them says so by itself, as long after the first as its step began later."""
LAST_WORDS_BYTES = 4_000
SAMPLER = -1
"""Stands for the sampler where ranks have their number."""

Pace = Literal["live", "fast"]


@dataclass(kw_only=True)
class _Rank:
    pid: int
    messages: RankPipe
    control_fd: int
    done: bool = False
    reaped: bool = False


@dataclass(kw_only=True)
class _State:
    """What has been learned so far."""

    failures: list[Failure] = field(default_factory=list)
    stopped: bool = False
    running: bool = False
    failed_at_s: float | None = None


def supervise(config: RunConfig, run_dir: Path, *, pace: Pace, settings: Settings) -> int:
    """Carry out one run and write its record into `run_dir`. Returns 0; how the run ended is in the record.

    `pace`: "live" releases events at 1x virtual speed, "fast" as they are computed. Raises OSError when the record cannot be written.
    """
    with RecordWriter(run_dir) as record:
        return _Supervision(config, run_dir, record, pace, settings).run()


class _Supervision:
    def __init__(self, config: RunConfig, run_dir: Path, record: RecordWriter, pace: Pace, settings: Settings) -> None:
        self._config = config
        self._run_dir = run_dir
        self._record = record
        self._pace = pace
        self._settings = settings
        self._recorder = recorder_of(config)
        self._measurement: Measurement | None = None
        """Of real GPUs; None for virtual ones."""
        self._tally = Tally(config=config)
        self._state = _State()
        self._waiting: deque[Outgoing] = deque()
        self._zero_s: float | None = None
        self._deadline_s = time.monotonic() + settings.run_limit_s
        self._ranks: list[_Rank] = []

    def run(self) -> int:
        signal.signal(signal.SIGTERM, self._on_stop)
        self._record.event("state", {"state": "starting"})
        try:
            self._begin()
            self._ranks = [self._fork(rank) for rank in range(self._config.processes)]
            store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            for rank in self._ranks:
                os.write(rank.control_fd, f"{store.port:<16}".encode())
            outcome = self._watch()
            self._end_ranks()
            self._waiting += self._measurement.end() if self._measurement else ()
            (self._run_dir / COMPUTED).touch()
            self._release_rest(outcome)
            self._record.event("end", self._end(outcome))
        finally:
            self._end_ranks()
            if self._measurement:
                self._measurement.end()
        return 0

    def _begin(self) -> None:
        """The head of the record: at once where the config says all; else once the sampler has said what it samples."""
        if isinstance(self._recorder, MeasuredRecorder):
            touched = torch.cuda.is_initialized() or torch.cuda._is_in_bad_fork()
            assert not touched, "a process that has touched CUDA cannot be forked"
            log = self._run_dir / "sampler.log"
            self._measurement = Measurement(self._recorder, range(self._config.gpus), log=log, on_card=self._head)
        else:
            self._head(None)

    def _head(self, card: Card | None) -> None:
        self._record.event("head", run_head(self._config, card=card, backend_reason=backend_reason_of(self._run_dir)))

    def _fork(self, rank: int) -> _Rank:
        """Fork one rank. The supervisor is single-threaded until all are forked."""
        messages_read, messages_write = os.pipe()
        control_read, control_write = os.pipe()
        pid = os.fork()
        if pid:
            os.close(messages_write)
            os.close(control_read)
            return _Rank(pid=pid, messages=RankPipe(messages_read), control_fd=control_write)
        status = 1
        try:
            die_with_parent()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.close(messages_read)
            os.close(control_write)
            for sibling in self._ranks:
                os.close(sibling.control_fd)
            if self._measurement:
                os.close(self._measurement.fd)
            log_fd = os.open(self._run_dir / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(log_fd, 1)
            os.dup2(log_fd, 2)
            status = rank_process(
                self._config, rank=rank, collective_limit_s=self._settings.collective_limit_s,
                messages_fd=messages_write, control_fd=control_read,
            )
        finally:
            os._exit(status)

    def _on_stop(self, number: int, frame: object) -> None:
        self._state.stopped = True

    def _watch(self) -> str:
        """Read the ranks and release events until the run is decided."""
        selector = selectors.DefaultSelector()
        for index, rank in enumerate(self._ranks):
            selector.register(rank.messages.fd, selectors.EVENT_READ, index)
        if self._measurement:
            selector.register(self._measurement.fd, selectors.EVENT_READ, SAMPLER)
        while True:
            for key, _ in selector.select(timeout=0.02):
                index = key.data
                if index == SAMPLER and self._measurement:
                    self._waiting += self._measurement.hear()
                    if self._measurement.closed:
                        selector.unregister(key.fd)
                    continue
                for message in self._ranks[index].messages.read():
                    self._take(index, message)
                if self._ranks[index].messages.closed:
                    selector.unregister(key.fd)
            self._reap()
            self._release()
            outcome = self._decided()
            if outcome is not None:
                selector.close()
                return outcome

    def _take(self, rank: int, message: dict[str, Any]) -> None:
        if message["kind"] == "begin":
            self._waiting += self._measurement.begin(message["zero_unix_ns"]) if self._measurement and rank == 0 else ()
        elif message["kind"] == "step":
            if not self._state.running:
                self._state.running = True
                self._record.event("state", {"state": "running", "steps_per_epoch": message["steps_per_epoch"]})
            self._record.spans(message["spans"])
            serials = unpack_serials(message["serials"])
            rank = message.get("gpu", rank)  # a process that drives several GPUs says of which it speaks
            self._tally.step(rank, message, serials)
            state = StepState(
                end_ns=message["end_ns"], step=message["step"], progress=message["progress"],
                learning_rate=message["learning_rate"], memory_gib=message["memory_gib"], apart=message["apart"],
                processes=message["processes"],
            )
            if isinstance(self._recorder, MeasuredRecorder) and message["sketch"]:
                self._recorder.distances.take(rank, message["step"], unpack_floats(message["sketch"]))
            self._waiting += self._recorder.step(rank, state, [unpack_span(row) for row in message["spans"]], serials)
        elif message["kind"] == "done":
            self._ranks[rank].done = True
            for gpu in range(self._config.gpus) if self._config.processes == 1 else (rank,):
                self._recorder.left(gpu)
                self._tally.checksums[gpu] = message["checksum"]
        else:
            self._fail(rank, message["type"], neutral(message["traceback"], self._config.scenario))

    def _fail(self, rank: int, kind: str, text: str) -> None:
        self._state.failures.append(Failure(rank=rank, kind=kind, text=text, order=len(self._state.failures)))
        self._ranks[rank].done = True
        if self._state.failed_at_s is None:
            self._state.failed_at_s = time.monotonic()

    def _reap(self) -> None:
        for index, rank in enumerate(self._ranks):
            if rank.reaped:
                continue
            pid, status = os.waitpid(rank.pid, os.WNOHANG)
            if pid:
                rank.reaped = True
                for message in rank.messages.read():
                    self._take(index, message)
                if not rank.done:
                    said = self._last_words(index)
                    self._fail(index, "signal" if os.WIFSIGNALED(status) else "exit", f"{exit_text(index, status)}\n{said}".strip())

    def _last_words(self, rank: int) -> str:
        """What a rank that could not report wrote to its log: a native library says there why it aborts."""
        try:
            log = (self._run_dir / f"rank-{rank}.log").read_bytes()[-LAST_WORDS_BYTES:]
        except OSError:
            return ""
        return neutral(log.decode(errors="replace"), self._config.scenario)

    def _decided(self) -> str | None:
        if self._state.stopped:
            return "stopped"
        now_s = time.monotonic()
        if now_s > self._deadline_s:
            return "timeout"
        if self._measurement and self._measurement.impossible:
            return "failed"
        all_done = all(rank.done for rank in self._ranks)
        if self._state.failed_at_s is not None:
            waited = all(failure.timed_out or failure.lost_peer for failure in self._state.failures)
            if not all_done and now_s - self._state.failed_at_s < (GATHER_WAITING_S if waited else GATHER_S):
                return None
            return outcome_of(self._state.failures)
        return "finished" if all_done else None

    def _release(self) -> None:
        """Show what virtual time has reached. The first event sets the clock, so that nobody waits for the launch twice."""
        while self._waiting:
            head = self._waiting[0]
            now_s = time.monotonic()
            if self._zero_s is None:
                self._zero_s = now_s - head.at_ns / 1e9
            if self._paced and self._zero_s + head.at_ns / 1e9 > now_s:
                return
            self._waiting.popleft()
            self._record.event(head.event, head.data)

    def _release_rest(self, outcome: str) -> None:
        """Play what has been computed to its end; a stop or the run's own time limit cuts it off."""
        if outcome in ("finished", "out_of_memory", "failed") or self._measurement or (outcome == "timeout" and self._state.failures):
            self._waiting += self._recorder.finish(broke_off=outcome != "finished")
        else:
            self._waiting.clear()
        if self._measurement:
            self._release()
        while self._waiting and not self._state.stopped and time.monotonic() < self._deadline_s:
            self._release()
            time.sleep(0.01 if self._paced and self._waiting else 0)

    @property
    def _paced(self) -> bool:
        """Whether events wait for their time to come. Those of real GPUs come when it has."""
        return self._pace == "live" and self._measurement is None

    def _end(self, outcome: str) -> dict[str, Any]:
        end = run_end(
            self._config, self._tally, self._recorder, outcome="stopped" if self._state.stopped else outcome,
            failures=self._state.failures, run_limit_s=self._settings.run_limit_s,
            collective_limit_s=self._settings.collective_limit_s
            if self._measurement else patience_s(self._config.scenario, self._settings.collective_limit_s),
            card=(self._measurement.card or UNKNOWN_CARD) if self._measurement else None,
        )
        if isinstance(self._recorder, MeasuredRecorder) and self._recorder.lanes:
            end["lanes"] = {str(rank): message for rank, message in self._recorder.lanes.items()}
        if self._measurement and self._measurement.impossible:
            end |= {"sentence": f"The GPUs cannot be sampled: {self._measurement.impossible}.", "error": self._measurement.impossible}
        return end

    def _end_ranks(self) -> None:
        """Nobody stays: ranks that finished are waiting for this, others are killed."""
        ranks, self._ranks = self._ranks, []
        for rank in ranks:
            os.close(rank.control_fd)
            if not rank.reaped:
                try:
                    os.kill(rank.pid, signal.SIGKILL)
                    os.waitpid(rank.pid, 0)
                except (ProcessLookupError, ChildProcessError):
                    pass
