"""What the lab's buttons and knobs do: each reads the URL afresh, changes it, and asks `Runs` and `Sweeps` for what it names.

Owns the callbacks. Must not draw anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from pages.lab_link import PINS, SCENARIO, LabLink, changed
from pages.lab_state import focus_on, go, link, run_shown, say
from pages.viewer import viewer
from scenarios.config import RunConfig
from scenarios.costs.models import MODELS
from scenarios.runs import get_runs
from scenarios.sweep_plan import SweepPlan
from scenarios.sweeps import SweepRefused, get_sweeps

RECORDING = "lab-recording"
"""Session state: the run that was asked for as a recording."""


def set_knob(name: str) -> None:
    """A knob was turned."""
    value = st.session_state.get(f"lab-{name}")
    values: dict[str, Any] = {name: None if value == "" else value}
    if name == "model":
        values["batch"] = MODELS[str(value)].batch  # what fits one model breaks off with another
    elif name == SCENARIO:
        values = {SCENARIO: value}
    go(changed(link(), **values))


def reset() -> None:
    """All knobs as the lab opens; what is shown stays."""
    go(replace(link(), scenario="sharded", knobs={}))


def run() -> None:
    """A fresh run of what is set."""
    begin(link())


def begin(at: LabLink) -> None:
    """Start the run that `at` describes and show it."""
    try:
        started = get_runs().start(at.config, viewer=viewer())
    except ValueError as full:  # QueueFull, or real GPUs that a link demands and this machine has not
        go(at)
        say(str(full))
        return
    go(replace(at, run=started.run_id))
    focus_on("at-run")


def act() -> None:
    """What the picture asked for: called before the rerun that it causes."""
    asked: Any = st.session_state.get("lab-lanes", {}).get("action") or {}
    action, run_id = asked.get("action"), asked.get("run_id")
    shown = run_shown(link())
    if action == "run":
        run()
    elif action == "run_again":
        begin(link().with_config(shown.config) if shown is not None else link())
    elif action == "stop" and run_id:
        stop(str(run_id))
    elif action == "watch_recording" and asked.get("recording"):
        if run_id:
            get_runs().stop(str(run_id), viewer())
        watch(str(asked["recording"]))


def stop(run_id: str) -> None:
    """This visitor no longer wants the run."""
    get_runs().stop(run_id, viewer())
    now = get_runs().get(run_id)
    if now is not None and not now.over and now.viewers:
        say("Somebody else is watching this run, so it goes on.")


def watch(run_id: str) -> None:
    """The recording instead of a fresh run."""
    recording = get_runs().get(run_id)
    if recording is not None:
        st.session_state[RECORDING] = run_id
        go(replace(link().with_config(recording.config), run=run_id))
        focus_on("at-run")


def back_to_its_knobs() -> None:
    """Set the knobs as they were for the run that is shown."""
    shown = run_shown(link())
    if shown is not None:
        go(link().with_config(shown.config))


def choose_view() -> None:
    """One of the views below."""
    go(replace(link(), view=st.session_state.get("lab-view")))


def pin(run_id: str) -> None:
    """Keep a run to compare it with others; the comparison opens."""
    at = link()
    if run_id not in at.pins:
        if len(at.pins) >= PINS:
            say("Four runs are pinned already. Unpin one to make room.")
            return
        at = replace(at, pins=(*at.pins, run_id))
    go(replace(at, view="compare"))


def unpin(run_id: str) -> None:
    at = link()
    go(replace(at, pins=tuple(name for name in at.pins if name != run_id)))


def choose_over() -> None:
    """The knob of the next sweep; its values are the usual ones."""
    go(replace(link(), over=st.session_state.get("lab-over"), values=()))


def choose_values() -> None:
    at = link()
    go(replace(at, over=st.session_state.get("lab-over"), values=tuple(st.session_state.get("lab-values") or ())))


def run_sweep(base: RunConfig, knob: str, values: tuple[str | int, ...]) -> None:
    """Begin a sweep, or join the equal one."""
    try:
        show_sweep(get_sweeps().start(SweepPlan.parse(base=base, knob=knob, values=values), viewer=viewer()).sweep_id)
    except SweepRefused as refused:
        say(str(refused))
    except ValueError as fault:
        say(f"This sweep is not possible. {fault}.")


def sweep_again(sweep_id: str, afresh: bool) -> None:
    """Run what is missing, or all of it anew."""
    known = get_sweeps().get(sweep_id)
    if known is None:
        return
    try:
        get_sweeps().start(known.plan, viewer=viewer(), afresh=afresh)
    except SweepRefused as refused:
        say(str(refused))


def stop_sweep(sweep_id: str) -> None:
    """This visitor no longer wants the sweep."""
    get_sweeps().stop(sweep_id, viewer())
    now = get_sweeps().get(sweep_id)
    if now is not None and not now.over:
        say("Somebody else asked for this sweep too, so it goes on.")


def show_sweep(sweep_id: str) -> None:
    """Put a sweep on the page."""
    go(replace(link(), view="sweep", sweep=sweep_id))
    focus_on("at-sweep")
