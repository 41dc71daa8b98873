"""The right half of the lab: three experiments to begin with, then the live picture of the run and what can be done with it.

Owns the stage's order. The lanes draw themselves and never by rerun; their key never changes, so that they stay mounted.
"""

from __future__ import annotations

from dataclasses import replace
from html import escape

import streamlit as st

from pages.components.lanes import lanes
from pages.lab_link import LabLink, described
from pages.lab_moves import RECORDING, act, begin, pin, run_sweep
from pages.lab_presets import PRESETS, Preset
from pages.lab_state import go, link
from pages.lesson_controls import downloads
from pages.lesson_moves import outcome
from pages.lesson_race import figure_dialog
from scenarios.catalog import SCENARIOS
from scenarios.runs import Run


def stage(at: LabLink, run: Run | None) -> None:
    """Presets, or the picture."""
    if at.run is None:
        st.html('<h2 class="pg-h">Try one of these, or set the knobs and press Run</h2>')
        with st.container(key="lab-presets"):
            for preset in PRESETS:
                with st.container(border=True, key=f"lab-preset-{preset.name}"):
                    st.html(f'<h3>{escape(preset.title)}</h3><p class="pg-note">{escape(preset.what)}</p>')
                    _start_button(preset)
        return
    with st.container(key="lab-head", horizontal=True, vertical_alignment="center", gap="small", wrap=False):
        title = described(run.config) if run is not None else "A run that is not known here any more"
        st.html(f'<h2 class="pg-h" id="at-run" title="{escape(title)}">{escape(title)}</h2>', width="stretch")
        with st.popover("Examples", type="tertiary", key="lab-examples"):
            for preset in PRESETS:
                st.html(f'<p class="pg-note"><b>{escape(preset.title)}</b> {escape(preset.what)}</p>')
                _start_button(preset)
    scenario = SCENARIOS[run.config.scenario] if run is not None else SCENARIOS[at.scenario]
    odd = run.config.straggler if run is not None and run.config.straggler is not None else scenario.odd_rank
    lanes(
        key="lab-lanes", run_id=at.run, replay=_replayed(run), odd_rank=odd, metric=scenario.opening_metric, on_action=act,
    )
    with st.container(key="lab-after", horizontal=True, vertical_alignment="center", gap="small"):
        if run is not None and outcome(run) is not None:
            st.button("Pin to compare", key="lab-pin", on_click=pin, args=(run.run_id,), disabled=run.run_id in at.pins)
            if st.button("Open as figure", key="lab-figure"):
                figure_dialog(run, opens_on=scenario.opening_metric, odd_rank=odd)
            downloads(run)


def start(preset: Preset) -> None:
    """Set the knobs as the experiment needs them and begin it. Pinned runs stay."""
    at, wanted = link(), preset.link
    to = replace(at, scenario=wanted.scenario, knobs=wanted.knobs, faults=())
    if wanted.over is None:
        begin(to)
    else:
        go(replace(to, view="sweep", over=wanted.over, values=wanted.values))
        run_sweep(wanted.config, wanted.over, wanted.values)


def _start_button(preset: Preset) -> None:
    label = "Start this sweep" if preset.sweeps else "Start this run"
    st.button(label, key=f"lab-start-{preset.name}", on_click=start, args=(preset,))


def _replayed(run: Run | None) -> bool:
    """Whether the picture plays a record: only one that was asked for, decided when it is first shown."""
    if run is None:
        return False
    asked_for = st.session_state.get(RECORDING) == run.run_id
    return bool(st.session_state.setdefault(f"replay-{run.run_id}", asked_for and outcome(run) is not None))
