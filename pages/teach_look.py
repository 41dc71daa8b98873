"""The pre-flight on the page: what it asks of this server, drawn as lines with a verdict and what to do next.

Owns the asking of server and Streamlit, and the drawing. What to make of the answers is for `pages.classroom.preflight`.
"""

from __future__ import annotations

import contextlib
import resource
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from sqlalchemy import text

from lessons.experiments import shown_experiments
from lessons.learning import get_learning
from lessons.model import Lesson
from pages.classroom import preflight
from pages.classroom.address import Address, Surroundings, phone_address
from pages.classroom.preflight import Line, Missing
from pages.classroom.probe import ask, in_container, interfaces
from scenarios.runs import get_runs
from scenarios.settings import Settings

EXPECTED = 300
"""As many as a class may well have."""
MARKS = {"ok": "✓", "warn": "!", "bad": "✗"}
WORDS = {"ok": "in order", "warn": "look at this", "bad": "not in order"}


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look found."""

    lines: tuple[Line, ...]
    missing: tuple[Missing, ...]
    reachable: bool
    """The address that phones are given answered."""
    at_s: float


def surroundings() -> Surroundings:
    """Where this page was opened, and what is known about the server's place."""
    settings = get_runs().settings
    return Surroundings(
        page_url=base_url(str(st.context.url or "")), public_url=settings.public_url, listens_on=str(st.get_option("server.address") or ""),
        interfaces=interfaces(), in_container=in_container(), proxied=_proxied(st.context.headers),
    )  # fmt: skip


def base_url(page_url: str) -> str:
    """Where the app is served, from the address of one of its pages; this machine itself where a page has none."""
    url = urlsplit(page_url)
    if not url.netloc:
        return f"http://localhost:{st.get_option('server.port')}"
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/').removesuffix('/teach')}"


def look(lessons: Sequence[Lesson], address: Address, around: Surroundings) -> Look:
    """Everything once; takes as long as the address takes to answer."""
    runs = get_runs()
    health, settings = runs.health(), runs.settings
    judged = preflight.address_lines(address, around)
    hopeless = any(line.tone == "bad" for line in judged)
    answer = ask(address.url)
    experiments = {lesson.config_of(name).key for lesson in lessons for name in shown_experiments(lesson)}
    missing = preflight.missing_recordings(lessons, runs.recording)
    lines = (
        # That this machine reaches itself says nothing about phones.
        *judged, *([] if hopeless else [preflight.answer_line(address, answer)]), preflight.launcher_line(health),
        preflight.recordings_line(missing, len(experiments)), preflight.disk_line(_free_bytes(settings.data_dir), str(health["records"])),
        preflight.store_line(_write_nothing), preflight.room_line(_open_files(), _places(settings), expected=EXPECTED),
        preflight.clock_line(now_s=time.time(), newest_record_s=_newest_s(settings.data_dir / "runs"), ahead_s=answer.ahead_s),
    )
    return Look(lines=lines, missing=missing, reachable=answer.ours, at_s=time.time())


def pre_flight(code: str, lessons: Sequence[Lesson], address: Address, around: Surroundings) -> Look:
    """The section; looks once, then whenever it is asked to."""
    kept = f"look-{code}-{address.url}"
    with st.container(key="teach-look"):
        st.html('<h2 class="pg-h">Pre-flight</h2>')
        if kept not in st.session_state:
            with st.spinner("Looking at address, launcher, recordings, disk and store"):
                st.session_state[kept] = look(lessons, address, around)
        found: Look = st.session_state[kept]
        st.html(lines_html(found.lines))
        with st.container(horizontal=True, vertical_alignment="center", key="teach-look-buttons"):
            if st.button("Look again", key="look-again"):
                del st.session_state[kept]
                st.rerun()
            if found.missing:
                count = len(found.missing)
                st.button(
                    f"Record what is missing ({count})", key="look-record", on_click=_record, args=(kept, found.missing),
                    help="Each is measured in the background; a run of the class goes first.",
                )  # fmt: skip
            st.html(f'<p class="pg-note">Looked at {time.strftime("%H:%M:%S", time.localtime(found.at_s))}.</p>', width="content")
        if st.session_state.get("recording"):
            _recording()
    return found


def lines_html(lines: Sequence[Line]) -> str:
    """The sum, then one row a line; a mark and words, never colour alone."""
    total = preflight.summary(lines)
    rows = "".join(
        f'<li class="pg-{line.tone}"><b aria-hidden="true">{MARKS[line.tone]}</b><span><b>{escape(line.what)}</b> '
        f'<span class="pg-unseen">({WORDS[line.tone]})</span> {escape(line.words)}'
        + (f' <span class="pg-next">{escape(line.next)}</span>' if line.next else "")
        + "</span></li>"
        for line in lines
    )
    return f'<p class="pg-sum pg-{total.tone}" role="status">{escape(total.words)}</p><ul class="pg-checks">{rows}</ul>'


def _record(kept: str, missing: Sequence[Missing]) -> None:
    get_runs().measure_in_background([each.config for each in missing])
    st.session_state["recording"] = [kept, missing]


@st.fragment(run_every=1.0)
def _recording() -> None:
    """How many are still to be recorded; looks again once there is none."""
    kept, missing = st.session_state["recording"]
    left = [each for each in missing if get_runs().recording(each.config) is None]
    if left:
        done = f"Recording: {len(missing) - len(left)} of {len(missing)} done. Next: {left[0].title}."
        st.html(f'<p class="pg-note" role="status">{escape(done)}</p>')
        return
    del st.session_state["recording"]
    st.session_state.pop(kept, None)
    st.rerun()


def _proxied(headers: Mapping[str, str]) -> bool:
    return any(headers.get(name) for name in ("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"))


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _newest_s(folder: Path) -> float | None:
    """When the newest record was begun, by the clock of then."""
    with contextlib.suppress(OSError):
        return max((entry.stat().st_mtime for entry in folder.iterdir()), default=None)
    return None


def _write_nothing() -> None:
    with get_learning().store.write() as connection:
        connection.execute(text("SELECT 1"))


def _open_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _places(settings: Settings) -> int:
    return settings.participants_limit


def phones(around: Surroundings) -> Address:
    """What the code says."""
    return phone_address(around)
