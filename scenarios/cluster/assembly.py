"""From the messages of ranks that somebody else started to a record like any other: same recorder, same samples, same digest.

Owns what must hold between messages, and how such a run ended, down to the node. Free of wall clocks but for the head's date, and of
files but for the record's. The order in which ranks' messages come in does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from scenarios.cards import UNKNOWN_CARD, Card
from scenarios.catalog import patience_s
from scenarios.cluster.wire import LONGEST_STEP_NS, Hello
from scenarios.config import RunConfig
from scenarios.measured_recorder import MeasuredRecorder, recorder_of
from scenarios.rank_messages import Message, unpack_floats, unpack_serials, unpack_span
from scenarios.record_writer import RecordWriter
from scenarios.recorder import Outgoing, StepState
from scenarios.summary import Tally
from scenarios.verdict import Failure, neutral, outcome_of, run_end, run_head

AGENT_LOST = "agent"
"""The type of error of a rank whose torchrun was killed."""
ENDED = "ended"
"""That of a rank that was told to end, by torchrun or the scheduler."""


class Assembly:
    """One run. `check` says whether a message may come next; `take` takes it."""

    def __init__(self, config: RunConfig, record: RecordWriter, *, recorded_s: float) -> None:
        self.config = config
        self._record = record
        self._recorder = recorder_of(config)
        self._recorded_s = recorded_s
        self._card: Card | None = None
        self._tally = Tally(config=config)
        self._hellos: dict[int, Hello] = {}
        self._last: dict[int, Message] = {}
        self._read_ns: dict[int, int] = {}
        self._done: set[int] = set()
        self._failures: dict[int, Failure] = {}
        self._running = False
        record.event("state", {"state": "starting"})

    @property
    def failed(self) -> bool:
        """Whether a rank has said that it broke off."""
        return bool(self._failures)

    @property
    def all_ended(self) -> bool:
        """Whether every rank has said how it ended."""
        return len(self._done) + len(self._failures) == self.config.gpus

    def check(self, rank: int, message: Message) -> None:
        """Raises ValueError, with a sentence, unless `message` may come next. It has passed `wire.checked`."""
        self.check_all(rank, [message])

    def check_all(self, rank: int, messages: Sequence[Message]) -> None:
        """The same for messages in a row: none of them is taken by it."""
        greeted = rank in self._hellos
        ended = rank in self._done or rank in self._failures
        end_ns, read_ns = self._end_ns(rank), self._read_ns.get(rank, 0)
        for message in messages:
            if message["kind"] == "hello":
                if greeted:
                    raise ValueError(f"Rank {rank} has said hello already.")
                if Hello.model_validate(message).run_config.model_dump() != self.config.model_dump():
                    raise ValueError(f"Rank {rank} runs another config than the ranks before it.")
                greeted = True
                continue
            if not greeted:
                raise ValueError(f"Rank {rank} has not said hello.")
            if ended:
                raise ValueError(f"Rank {rank} has ended already.")
            ended = message["kind"] in ("done", "error")
            if message["kind"] == "step":
                if not 0 <= message["end_ns"] - end_ns <= LONGEST_STEP_NS:
                    raise ValueError(f"Rank {rank} must end step {message['step']} at most 600 s after the one before it, and not earlier.")
                end_ns = message["end_ns"]
            if message["kind"] == "reading":
                if not 0 < message["end_ns"] - read_ns <= LONGEST_STEP_NS:
                    raise ValueError(f"Rank {rank} must send its GPU's readings in the order of time, at most 600 s apart.")
                read_ns = message["end_ns"]

    def take(self, rank: int, message: Message) -> None:
        """Raises OSError when the record cannot be written."""
        kind = message["kind"]
        if kind == "hello":
            theirs = Hello.model_validate(message)
            if not self._hellos:
                self._head(theirs)
            self._hellos[rank] = theirs
        elif kind == "step":
            self._step(rank, message)
            self._last[rank] = {"end_ns": message["end_ns"], "step": message["step"]}
        elif kind == "reading" and isinstance(self._recorder, MeasuredRecorder):
            self._read_ns[rank] = message["end_ns"]
            self._show(self._recorder.reading(rank, message["end_ns"], message["gpu"]))
        elif kind == "lane" and isinstance(self._recorder, MeasuredRecorder):
            self._show(self._recorder.lose(rank, message["message"]))
        elif kind == "done":
            self._done.add(rank)
            self._recorder.left(rank)
            self._tally.checksums[rank] = message["checksum"]
        else:
            text = neutral(message["traceback"] or message["message"], self.config.scenario)
            self._fail(rank, message["type"], text, at_s=float(message.get("at_s", 0.0)))

    def conclude(self) -> dict[str, Any]:
        """Nothing more will come: ranks that have not said how they ended went away. Writes the rest of the record; returns its end."""
        for rank in range(self.config.gpus):
            if rank not in self._done and rank not in self._failures:
                self._fail(rank, "vanished", f"rank {rank} was not heard of again after step {self._last.get(rank, {}).get('step', 0)}")
        failures = list(self._failures.values())
        outcome = "finished" if not failures else outcome_of(failures)
        if failures and all(failure.kind == ENDED for failure in failures):
            outcome = "stopped"
        if outcome in ("finished", "out_of_memory", "timeout", "failed") or isinstance(self._recorder, MeasuredRecorder):
            self._show(self._recorder.finish(broke_off=outcome != "finished"))
        limit_s = patience_s(self.config.scenario, next((theirs.collective_limit_s for theirs in self._hellos.values()), 0.0))
        end = run_end(
            self.config, self._tally, self._recorder, outcome=outcome, failures=failures, run_limit_s=limit_s, collective_limit_s=limit_s,
            card=self._card,
        )
        if isinstance(self._recorder, MeasuredRecorder) and self._recorder.lanes:
            end["lanes"] = {str(rank): message for rank, message in self._recorder.lanes.items()}
        end["nodes"] = [self._node(node) for node in sorted({theirs.node for theirs in self._hellos.values()})]
        self._record.event("end", end)
        return end

    def _head(self, first: Hello) -> None:
        """Of whichever rank is heard first: all run one config, and a cluster's GPUs are taken to be alike."""
        if self.config.backend == "cuda":
            self._card = Card(**first.card.model_dump()) if first.card is not None else UNKNOWN_CARD
        head = run_head(self.config, card=self._card, backend_reason=first.backend_reason, recorded_s=self._recorded_s)
        self._record.event("head", head)

    def _step(self, rank: int, message: Message) -> None:
        if not self._running:
            self._running = True
            self._record.event("state", {"state": "running", "steps_per_epoch": message["steps_per_epoch"]})
        self._record.spans(message["spans"])
        serials = unpack_serials(message["serials"])
        self._tally.step(rank, message, serials)
        state = StepState(
            end_ns=message["end_ns"], step=message["step"], progress=message["progress"],
            learning_rate=message["learning_rate"], memory_gib=message["memory_gib"], apart=message["apart"],
            processes=message.get("processes", 1),
        )
        if isinstance(self._recorder, MeasuredRecorder) and message.get("sketch"):
            self._recorder.distances.take(rank, message["step"], unpack_floats(message["sketch"]))
        self._show(self._recorder.step(rank, state, [unpack_span(row) for row in message["spans"]], serials))

    def _show(self, outgoing: list[Outgoing]) -> None:
        for each in outgoing:
            self._record.event(each.event, each.data)

    def _end_ns(self, rank: int) -> int:
        return int(self._last.get(rank, {}).get("end_ns", 0))

    # Ends

    def _fail(self, rank: int, kind: str, text: str, *, at_s: float = 0.0) -> None:
        """Which of several causes came first is told by the nodes' clocks; without them, by the order of arrival."""
        node = self._node(self._hellos[rank].node) if rank in self._hellos else None
        self._failures[rank] = Failure(
            rank=rank, kind=kind, text=text, order=at_s or float(len(self._failures)), node=node, sentence=self._sentence(rank, kind, node)
        )

    def _sentence(self, rank: int, kind: str, node: dict[str, Any] | None) -> str | None:
        """Of a rank that could not say itself why it ended."""
        if kind not in (AGENT_LOST, ENDED, "vanished"):
            return None
        if node is None:
            return f"Rank {rank} was never heard of: its part is missing, or its node never began."
        ranks = node["ranks"]
        who = f"Node {node['node']} ({node['host']}, {_ranks(ranks)})"
        if kind == AGENT_LOST:
            return f"{who} went away: its torchrun was killed. Its ranks ended with it, and the other nodes' ranks lost their connection."
        if kind == ENDED:
            return f"{who} was told to end, by its scheduler or by a person."
        if any(other in self._done or (other in self._failures and self._failures[other].kind != "vanished") for other in ranks):
            return f"Rank {rank} on node {node['node']} ({node['host']}) went away: nothing was heard of it again."
        return f"{who} went away: nothing was heard of it again."

    def _node(self, number: int) -> dict[str, Any]:
        members: defaultdict[str, list[int]] = defaultdict(list)
        for rank, theirs in self._hellos.items():
            if theirs.node == number:
                members[theirs.host].append(rank)
        return {"node": number, "host": next(iter(members), ""), "ranks": sorted(rank for ranks in members.values() for rank in ranks)}


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
