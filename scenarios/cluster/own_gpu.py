"""The NVML side of one rank under torchrun: its own GPU's sampler, as messages of that rank.

Each rank speaks for its own GPU alone, on whichever node it is. Owns the form of these messages. Must not import torch.
"""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from typing import Any

from scenarios.cards import Card, real_card
from scenarios.nvml.sampling import RunTime, SamplerProcess, figures_of
from scenarios.rank_messages import Message

FIRST_WORD_LIMIT_S = 20.0


class OwnGpu:
    """Samples CUDA's device number `device` from now on. Raises ValueError, with one line, where it cannot be sampled."""

    def __init__(self, device: int) -> None:
        self._time = RunTime()
        self._sampler = SamplerProcess([device])
        deadline_s = time.monotonic() + FIRST_WORD_LIMIT_S
        said: list[dict[str, Any]] = []
        while not said and not self._sampler.closed and time.monotonic() < deadline_s:
            if select.select([self._sampler.fd], [], [], 0.1)[0]:
                said = self._sampler.events()
        if not said or said[0]["event"] != "start":
            self._sampler.end()
            reason = said[0].get("reason") if said else "the NVIDIA driver did not answer in time"
            raise ValueError(f"backend='cuda': GPU {device} cannot be sampled: {reason}; allowed here: virtual")
        self.card: Card = real_card(said[0])
        self._later = self._messages(said)
        """What it had to say before anybody listened."""

    @property
    def fd(self) -> int:
        return self._sampler.fd

    @property
    def closed(self) -> bool:
        return self._sampler.closed

    def hear(self) -> list[Message]:
        """What has come since the last call."""
        return [*self._take_later(), *self._messages(self._sampler.events())]

    def begin(self, zero_unix_ns: int) -> list[Message]:
        """The rank begins to train: what was read since."""
        return [*self._take_later(), *_placed(self._time.begin(zero_unix_ns))]

    def end(self) -> list[Message]:
        """End the sampler; its last readings. May be called again."""
        return [] if self._sampler.closed else self._messages(self._sampler.end())

    def _take_later(self) -> list[Message]:
        later, self._later = self._later, []
        return later

    def _messages(self, events: Sequence[dict[str, Any]]) -> list[Message]:
        return _placed([placed for event in events for placed in self._time.take(event)])


def _placed(events: Sequence[dict[str, Any]]) -> list[Message]:
    messages: list[Message] = []
    for event in events:
        if event["event"] == "tick":
            messages.append({"kind": "reading", "end_ns": event["end_ns"], "gpu": figures_of(event["gpus"][0])})
        elif event["event"] == "lost":
            messages.append({"kind": "lane", "message": event["message"]})
    return messages

