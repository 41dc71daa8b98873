"""Sending parts that lie on disk to the collector of a running app: what a rank could not send itself, or a whole record.

Owns that one pass. Messages that the collector has already are not counted again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from scenarios.cluster.job import collector_address
from scenarios.cluster.parts import PartReader, parts_in
from scenarios.cluster.posting import BATCH_BYTES, LONGEST_WAIT_S, Post
from scenarios.run_folder import RUN_ID

TRIES = 10


def resend(folder: Path, address: str, run: str, token: str) -> Iterator[tuple[int, int]]:
    """(rank, messages sent) of each part, once it is sent. Raises ValueError where that cannot be."""
    try:
        address = collector_address(address)
    except ValueError as error:
        raise ValueError(f"collect={address[:60]!r}: {error}") from None
    if not token:
        raise ValueError("SHARDLAB_COLLECT_TOKEN='': must be the token of the app")
    for part in parts_in(folder):
        name = run or part.run
        if not name:
            raise ValueError(f"run_id='': {part.path} names no run, since its ranks kept it for import; give it one: --run-id NAME")
        if not RUN_ID.fullmatch(name):
            raise ValueError(f"run_id={name[:60]!r}: must be 8 to 40 letters, digits, hyphens and underscores")
        post = Post(address, name, part.rank, token)
        count = 0
        for lines in _batches(part):
            _send(post, lines, part)
            count += len(lines)
        yield part.rank, count


def _batches(part: PartReader) -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    size = 0
    for line in part.lines():
        lines.append(line)
        size += len(line)
        if size >= BATCH_BYTES:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def _send(post: Post, lines: list[bytes], part: PartReader) -> None:
    for tried in range(TRIES):
        answer = post.send(lines)
        if answer.accepted:
            return
        if not answer.worth_retrying:
            break
        time.sleep(min(max(0.25 * 2**tried, answer.wait_s), LONGEST_WAIT_S))
    raise ValueError(f"part={str(part.path)!r}: was not taken by {post.url}: {answer.text or 'no answer'}")
