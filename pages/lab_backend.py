"""Where the lab's runs happen, on a machine with real GPUs: on which the knobs amount to, why, and the way to the other.

Owns this line above the Run button. On a machine without usable GPUs it says nothing: the bar on top and the machine page do.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from pages.lab_link import LabLink, changed
from pages.lab_state import go, link
from scenarios.backend import Choice, choose
from scenarios.config import RunConfig

NO_EFFECT = {"gpu": "The real ones", "link": "As they are joined", "straggler": "Only virtual GPUs", "straggler_pct": "Only virtual GPUs"}
"""Knobs of virtual GPUs, for a run on real ones."""


def chosen(config: RunConfig) -> Choice | None:
    """What a run of `config` would use; None where it demands real GPUs that are not here."""
    try:
        return choose(config)
    except ValueError:
        return None


def without_effect(config: RunConfig) -> dict[str, str]:
    """The knobs that mean nothing on the real GPUs that `config` would use, each with what stands in its place."""
    choice = chosen(config)
    return dict(NO_EFFECT) if choice is not None and choice.real else {}


def runs_on(at: LabLink) -> None:
    """Draw the line."""
    choice = chosen(at.config)
    if choice is None:
        _line("This link asks for real GPUs that are not here.", [("Use virtual GPUs", {"backend": "virtual"})])
    elif choice.real:
        _line(f"Runs on real GPUs, read by NVML: {choice.reason}.", [("Use virtual GPUs", {"backend": "virtual"})])
    elif at.config.backend == "virtual" and (could := chosen(at.config.model_copy(update={"backend": "auto"}))) and could.real:
        _line("Runs on virtual GPUs, as you chose.", [("Use the real GPUs", {"backend": None})])
    elif choice.offered_gpus:
        count = choice.offered_gpus
        label = "Use the real GPU" if count == 1 else f"Use the {count} real GPUs"
        _line(f"Runs on virtual GPUs: {choice.reason}.", [(label, {"gpus": count, "backend": None})])
    elif choice.offer:
        _line(f"Runs on virtual GPUs: {choice.reason}.", [])


def _line(text: str, ways: list[tuple[str, dict[str, str | int | None]]]) -> None:
    with st.container(key="lab-backend", horizontal=True, vertical_alignment="center", gap="small"):
        st.html(f'<p class="pg-note">{escape(text)}</p>', width="content")
        for label, values in ways:
            st.button(label, type="tertiary", key=f"lab-backend-{label}", on_click=_set, args=(values,))


def _set(values: dict[str, str | int | None]) -> None:
    go(changed(link(), **values))
