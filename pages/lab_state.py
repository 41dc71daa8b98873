"""Where this visitor stands in the lab: everything is in the URL, so that a reload, a second tab and Back agree.

Owns the way from URL to state and back. Must not draw anything.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.lab_link import LabLink, parse_lab_link
from pages.lesson_moves import outcome
from scenarios.backend import resolved
from scenarios.record import summary_of
from scenarios.runs import Run, get_runs


def link() -> LabLink:
    """What the URL says, as far as it is usable."""
    return parse_lab_link(st.query_params.to_dict())


def go(to: LabLink) -> None:
    """Put a state into the URL: one step of the browser's history."""
    query = to.query()
    if query != st.query_params.to_dict():
        st.query_params.from_dict(query)


def run_shown(at: LabLink) -> Run | None:
    """The run that the URL names, if it is known here."""
    return get_runs().get(at.run) if at.run else None


def summary(run: Run) -> dict[str, Any] | None:
    """The figures of a run that ended with a result; None for any other."""
    return summary_of(run.run_dir) if outcome(run) in ("finished", "out_of_memory", "timeout") else None


def is_of(run: Run, at: LabLink) -> bool:
    """Whether `run` is what the knobs describe, however long it went on."""
    wanted = resolved(at.config)
    if (wanted.backend == "cuda") != (run.config.backend == "cuda"):
        return False
    return at.with_config(run.config).config == at.with_config(wanted).config


def say(text: str) -> None:
    """A sentence to show once, at the next run of the script."""
    st.session_state["lab-said"] = text


def said() -> str | None:
    text = st.session_state.pop("lab-said", None)
    return text if isinstance(text, str) else None


def focus_on(target: str) -> None:
    """Move the keyboard focus there at the next run of the script."""
    moves = st.session_state.get("lab-focus", ("at-lab", 0))[1] + 1
    st.session_state["lab-focus"] = (target, moves)


def focus_target() -> tuple[str, str]:
    """Where the focus belongs, and a token that changes when it has to move."""
    target, moves = st.session_state.get("lab-focus", ("at-lab", 0))
    return target, f"lab-{moves}"
