"""Pre-flight: what has to be in order before a class, as lines with a verdict and what to do next.

Each function judges one thing from what was found and returns one line. Owns the judgements and their words, as pure functions; the page
asks the server, `pages.classroom.probe` the machine and the network. Must not draw or start anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lessons.experiments import shown_as, shown_experiments
from lessons.model import Lesson
from pages.classroom.address import PUBLIC, Address, Surroundings, objections
from pages.classroom.probe import Answer
from scenarios.config import RunConfig

Tone = Literal["ok", "warn", "bad"]
"""bad: the class will fail on it. warn: it may."""

DISK_BAD_BYTES = 200_000_000
DISK_WARN_BYTES = 1_000_000_000
"""A recorded run takes a few megabytes, the store of a class of 300 less than one."""
STORE_SLOW_S = 0.5
CLOCK_WARN_S = 5.0
FILES_PER_PARTICIPANT = 2
"""A feed, and a vote now and then."""
FILES_OF_SERVER = 300
YEAR_2025_S = 1_735_689_600


@dataclass(frozen=True, kw_only=True)
class Line:
    """One thing that was looked at."""

    what: str
    tone: Tone
    words: str
    next: str = ""
    """What to do; empty where there is nothing to do."""


@dataclass(frozen=True, kw_only=True)
class Missing:
    """An experiment of the class without a recording."""

    title: str
    config: RunConfig


def address_lines(address: Address, around: Surroundings) -> tuple[Line, ...]:
    """Whether the address on the code can be that of this server for a phone."""
    found = objections(address, around)
    if found:
        return tuple(Line(what="Address", tone="bad" if each.sure else "warn", words=each.words, next=each.next) for each in found)
    because = {
        "setting": f"{PUBLIC} says so.", "page": "It is the one by which you came.",
        "interface": "You opened this page as the machine itself; phones are given its address in the network.",
    }[address.source]
    return (Line(what="Address", tone="ok", words=f"Phones are sent to {address.url}. {because}"),)


def answer_line(address: Address, answer: Answer) -> Line:
    """Whether the address answers when this machine asks. A phone's network is not asked by that, and the line says so."""
    if answer.ours:
        return Line(
            what="Answer", tone="ok", words=f"{address.url} answers, asked from this machine.",
            next="Scan the code with one phone in the room's network: guest networks often keep devices apart.",
        )  # fmt: skip
    return Line(
        what="Answer", tone="bad", words=f"{address.url}, asked from this machine: it {answer.fault}.",
        next=f"Check port and firewall of this machine, and {PUBLIC} where it is set.",
    )  # fmt: skip


def launcher_line(health: Mapping[str, Any]) -> Line:
    """Whether a click becomes a run at once."""
    state = health.get("launcher")
    if state == "broken":
        return Line(what="Launcher", tone="bad", words="Runs cannot be started now; recordings can be shown.",
                    next="Restart the server; launcher.log in the data folder says why.")
    if state != "ready":
        return Line(what="Launcher", tone="warn", words="The launcher is still importing PyTorch.", next="Look again in ten seconds.")
    waiting = int(health.get("queued", 0))
    if waiting:
        return Line(what="Launcher", tone="warn", words=f"{_count(waiting, 'run')} of others {'waits' if waiting == 1 else 'wait'}; "
                    "where yours cannot start within two seconds, its recording is shown.", next="Give the class a server of its own.")
    return Line(what="Launcher", tone="ok", words="Warm: a click becomes a run within a second.")


def missing_recordings(lessons: Iterable[Lesson], recorded: Callable[[RunConfig], object]) -> tuple[Missing, ...]:
    """Experiments of these lessons, fix and race included, of which `recorded` finds none; each config once."""
    missing: dict[str, Missing] = {}
    lessons = list(lessons)
    for lesson in lessons:
        titles = {cause.scenario: cause.title for cause in lesson.causes}
        for name in shown_experiments(lesson):
            config = lesson.config_of(name)
            if config.key not in missing and not recorded(config):
                title = titles.get(name) or (shown_as(lesson, None).title if name == lesson.fix else config.scenario)
                missing[config.key] = Missing(title=f"{title} ({lesson.title})" if len(lessons) > 1 else title, config=config)
    return tuple(missing.values())


def recordings_line(missing: Sequence[Missing], experiments: int) -> Line:
    """Whether each live run has something to fall back on."""
    if not missing:
        return Line(what="Recordings", tone="ok",
                    words=f"{_count(experiments, 'experiment')}, each with a recording to fall back on when a live start fails.")
    named = "; ".join(each.title for each in missing[:4])
    more = f"; and {len(missing) - 4} more" if len(missing) > 4 else ""
    return Line(what="Recordings", tone="warn", words=f"No recording yet of {len(missing)} of {experiments} experiments: {named}{more}.",
                next="Record them now, below: a few seconds each.")


def disk_line(free_bytes: int | None, records: str) -> Line:
    """Whether runs can be recorded."""
    if records != "writable" or free_bytes is None:
        return Line(what="Disk", tone="bad", words="The folder of the run records cannot be written to.",
                    next="Give the server the right to write into its data folder, or another one by SHARDLAB_DATA_DIR.")
    free = f"{free_bytes / 1e9:.1f} GB free in the data folder."
    if free_bytes < DISK_WARN_BYTES:
        return Line(what="Disk", tone="bad" if free_bytes < DISK_BAD_BYTES else "warn", words=free,
                    next="Make room: SHARDLAB_RUNS_KEPT says how many old records are kept.")
    return Line(what="Disk", tone="ok", words=free)


def store_line(write: Callable[[], None]) -> Line:
    """Whether a vote would be kept, and how soon: `write` carries out one empty transaction and raises what a vote would meet."""
    began_s = time.perf_counter()
    try:
        write()
    except Exception as fault:
        return Line(what="Votes", tone="bad", words=f"A vote could not be kept. {fault}", next="Mend the store before the class.")
    took_s = time.perf_counter() - began_s
    if took_s > STORE_SLOW_S:
        return Line(what="Votes", tone="warn", words=f"The store took {took_s:.1f} s for one transaction.",
                    next="See what else uses its disk or database.")
    return Line(what="Votes", tone="ok", words="The store takes votes.")


def room_line(files: int, limit: int, *, expected: int) -> Line:
    """Whether as many as are expected find a place: `files` may be open at once, `limit` may join one class."""
    places = min(limit, max(0, files - FILES_OF_SERVER) // FILES_PER_PARTICIPANT)
    if places >= expected:
        return Line(what="Places", tone="ok", words=f"Room for {places} participants.")
    why = "SHARDLAB_PARTICIPANTS_LIMIT" if places == limit else "the limit on open files (ulimit -n)"
    return Line(what="Places", tone="warn", words=f"Room for {places} participants, {expected} are expected.", next=f"Raise {why}.")


def clock_line(*, now_s: float, newest_record_s: float | None, ahead_s: float | None) -> Line:
    """Whether the server's clock can be right. Phones do not need it to be: they are told the seconds left."""
    if now_s < YEAR_2025_S or (newest_record_s is not None and newest_record_s > now_s + CLOCK_WARN_S):
        return Line(what="Clock", tone="warn", words="The server's clock is behind its own records: sign-ins and dates will be wrong.",
                    next="Set the clock of the server.")
    if ahead_s is not None and abs(ahead_s) > CLOCK_WARN_S:
        return Line(what="Clock", tone="warn", words=f"The clocks of server and proxy differ by {abs(ahead_s):.0f} s.",
                    next="Set the clock of the server.")
    return Line(what="Clock", tone="ok", words=f"It is {time.strftime('%H:%M:%S', time.localtime(now_s))} for the server.")


def summary(lines: Sequence[Line]) -> Line:
    """All of them in one: the worst tone, and how many there are of it."""
    bad, warned = (sum(line.tone == tone for line in lines) for tone in ("bad", "warn"))
    if bad:
        return Line(what="Pre-flight", tone="bad", words=f"Not ready: {_count(bad, 'thing')} would stop the class.")
    if warned:
        return Line(what="Pre-flight", tone="warn", words=f"Ready but for {_count(warned, 'thing')} to look at.")
    return Line(what="Pre-flight", tone="ok", words="Ready.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
