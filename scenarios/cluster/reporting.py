"""The parent of a rank under torchrun: it hears what its rank reports, keeps or sends it, and says how the rank ended.

A process of its own, so that the rank never waits for a disk or a network, and that a rank which is killed or aborts still has somebody
to report its end with its last words. Owns that process. Linux and macOS; must not import torch.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from scenarios.cluster.assembly import AGENT_LOST, ENDED
from scenarios.cluster.job import collector_address
from scenarios.cluster.own_gpu import OwnGpu
from scenarios.cluster.parts import PartFile
from scenarios.cluster.posting import Post, Poster
from scenarios.processes import die_with_parent, exit_text
from scenarios.rank_messages import Message
from scenarios.rank_pipe import RankPipe
from scenarios.run_folder import RUN_ID
from scenarios.verdict import neutral

LAST_WORDS_BYTES = 4_000
FLUSH_LIMIT_S = 120.0
TOLD_TO_END_FLUSH_S = 15.0
"""torchrun kills a rank 30 s after it told it to end."""
TEXT_LIMIT = 8_000
AGENT_GONE_S = 0.5
"""How long a killed torchrun may take to be gone after its ranks have heard of it."""


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where the messages go. Build it with `Destination.of`."""

    record: Path | None = None
    collect: str = ""
    run: str = ""
    token: str = ""

    @classmethod
    def of(cls, options: dict[str, str], environ: Mapping[str, str]) -> Destination | None:
        """Take `record`, `collect` and `run_id` out of `options`, else from SHARDLAB_RECORD_DIR and SHARDLAB_COLLECT_URL; None for none.

        Raises ValueError with one line naming the field, its value and what is allowed.
        """
        record = options.pop("record", "") or environ.get("SHARDLAB_RECORD_DIR", "")
        collect = options.pop("collect", "") or environ.get("SHARDLAB_COLLECT_URL", "")
        run = options.pop("run_id", "") or environ.get("TORCHELASTIC_RUN_ID", "")
        restarts = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        token = environ.get("SHARDLAB_COLLECT_TOKEN", "")
        if not record and not collect:
            return None
        if collect:
            try:
                collect = collector_address(collect)
            except ValueError as error:
                raise ValueError(f"collect={collect[:60]!r}: {error}") from None
            if not token:
                raise ValueError("SHARDLAB_COLLECT_TOKEN='': must be the token of the app at --collect")
            run = run if restarts == "0" else f"{run}-r{restarts}"
            if not RUN_ID.fullmatch(run):
                raise ValueError(f"run_id={run[:60]!r}: must be 8 to 40 letters, digits, hyphens and underscores, the same on all nodes")
        folder = Path(record) / f"restart-{restarts}" if restarts != "0" else Path(record)
        return cls(record=folder if record else None, collect=collect, run=run if collect else "", token=token)

    def open_part(self, rank: int) -> PartFile:
        """The file of this rank: the record itself, or a waiting room beside the sender. Raises ValueError as `of` does."""
        folder = self.record or Path(gettempdir()) / f"shardlab-{os.getuid()}-{self.run}"
        try:
            return PartFile(folder, run=self.run, rank=rank, kept=self.record is not None)
        except FileExistsError:
            if not folder.is_dir():
                raise ValueError(f"record={str(folder)!r}: must be a folder, not a file") from None
            raise ValueError(f"record={str(folder)!r}: must be a folder without rank-{rank}.jsonl; that one holds another run") from None
        except OSError as error:
            raise ValueError(f"record={str(folder)!r}: must be a folder that can be written: {error.strerror or error}") from None


class Reporter:
    """Runs until its rank has ended and all is reported."""

    def __init__(self, destination: Destination, part: PartFile, rank: int, *, gpu: OwnGpu | None = None) -> None:
        """`gpu`: the rank's real GPU, sampled already."""
        self._gpu = gpu
        self._destination = destination
        self._part = part
        self._rank = rank
        self._poster: Poster | None = None
        self._lost = 0
        self._last_words = b""
        self._said_its_end = False
        self._told_to_end = self._agent_lost = False
        self._ended_s = 0.0
        self._scenario = ""
        self._agent = os.getppid()
        self._wake_read, self._wake_write = os.pipe()
        self.status = 1

    def fork(self, hello: Message) -> int | None:
        """Fork the rank. In it: the pipe for its messages. In this process: None, once the rank has ended and all is reported."""
        messages_read, messages_write = os.pipe()
        words_read, words_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            die_with_parent()
            os.close(messages_read)
            os.close(words_read)
            if self._gpu is not None:
                os.close(self._gpu.fd)
            os.dup2(words_write, 2)
            os.close(words_write)
            return messages_write
        os.close(messages_write)
        os.close(words_write)
        os.set_blocking(self._wake_write, False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_write)
        die_with_parent(signal.SIGTERM)  # told rather than killed: somebody has to say that the agent is gone
        if self._destination.collect:
            post = Post(self._destination.collect, self._destination.run, self._rank, self._destination.token)
            self._poster = Poster(self._part, post)
        self._scenario = str(hello["config"]["scenario"])
        self._keep(hello)
        self.status = self._watch(pid, RankPipe(messages_read), words_read)
        self._finish()
        return None

    def _watch(self, pid: int, messages: RankPipe, words: int) -> int:
        open_fds = {messages.fd, words}
        while open_fds:
            sampled = [self._gpu.fd] if self._gpu is not None and not self._gpu.closed else []
            readable, _, _ = select.select([*open_fds, *sampled, self._wake_read], [], [])
            if self._gpu is not None and sampled and sampled[0] in readable:
                self._keep_all(self._gpu.hear())
            if self._wake_read in readable:
                os.read(self._wake_read, 64)
                self._hear_the_end(pid)
            if messages.fd in readable:
                for message in messages.read():
                    self._hear(message)
                if messages.closed:
                    open_fds.discard(messages.fd)
            if words in readable:
                text = os.read(words, 65_536)
                if text:
                    _write_all(2, text)
                    self._last_words = (self._last_words + text)[-LAST_WORDS_BYTES:]
                else:
                    open_fds.discard(words)
        _, status = os.waitpid(pid, 0)
        self._say_the_end(status)
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _hear(self, message: Message) -> None:
        """What the rank says. Its GPU's last readings come before its end: nothing may come after that."""
        if message["kind"] == "begin":
            self._keep_all(self._gpu.begin(message["zero_unix_ns"]) if self._gpu else [])
            return
        if message["kind"] in ("done", "error") and self._gpu is not None:
            self._keep_all(self._gpu.end())
        self._keep(message)

    def _keep_all(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._keep(message)

    def _hear_the_end(self, pid: int) -> None:
        """A signal: torchrun ends its ranks, or torchrun itself is gone."""
        self._ended_s = self._ended_s or time.time()  # before the other nodes' ranks can notice
        self._agent_lost = self._agent_is_gone()
        self._told_to_end = not self._agent_lost
        os.kill(pid, signal.SIGKILL if self._agent_lost else signal.SIGTERM)

    def _agent_is_gone(self) -> bool:
        """A killed process of several threads ends one by one: its first thread may be a zombie that is still our parent."""
        if os.getppid() != self._agent:
            return True
        try:
            stat = Path(f"/proc/{self._agent}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in ("Z", "X")

    def _say_the_end(self, status: int) -> None:
        if self._said_its_end:
            return
        self._keep_all(self._gpu.end() if self._gpu else [])
        text = exit_text(self._rank, status)
        kind = "signal" if os.WIFSIGNALED(status) else "exit"
        deadline_s = time.monotonic() + AGENT_GONE_S
        while self._told_to_end and not self._agent_lost and time.monotonic() < deadline_s:
            self._agent_lost = self._agent_is_gone()
            time.sleep(0.02)
        if self._agent_lost:
            kind, text = AGENT_LOST, f"rank {self._rank} ended with its torchrun, which was killed"
        elif self._told_to_end:
            kind, text = ENDED, f"rank {self._rank} was told to end"
        else:
            text = f"{text}\n{self._last_words.decode(errors='replace')}".strip()
        self._keep({"kind": "error", "type": kind, "message": text[:TEXT_LIMIT], "traceback": ""})

    def _keep(self, message: Message) -> None:
        if message["kind"] in ("done", "error"):
            self._said_its_end = True
            message = {name: self._fit(text) if isinstance(text, str) else text for name, text in message.items()}
            message["at_s"] = self._ended_s or time.time()
        try:
            if not self._lost:  # a part has no gaps
                self._part.append(message)
                return
        except OSError as error:
            self._complain(f"the record breaks off here: {error.strerror or error}")
        self._lost += 1

    def _fit(self, text: str) -> str:
        """Not too long, and without this node's folders: every viewer of the run may read it."""
        return neutral(text, self._scenario)[-TEXT_LIMIT:]

    def _finish(self) -> None:
        left = 0
        if self._poster is not None:
            left = self._poster.close(TOLD_TO_END_FLUSH_S if self._told_to_end or self._agent_lost else FLUSH_LIMIT_S)
            if left:
                why = self._poster.problem or self._poster.last_error
                self._complain(
                    f"{left} messages were not taken by {self._destination.collect} ({why}). They lie in {self._part.path}; "
                    f"send them with: python -m scenarios resend {self._part.path.parent} --collect {self._destination.collect}"
                )
        if self._lost:
            self._complain(f"{self._lost} messages were lost")
        self._part.close()

    def _complain(self, text: str) -> None:
        _write_all(2, f"rank {self._rank}: {text}\n".encode())


def _write_all(fd: int, text: bytes) -> None:
    view = memoryview(text)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:  # nobody listens any more
        return
