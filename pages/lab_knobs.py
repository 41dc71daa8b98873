"""The left half of the lab: every knob of a run, and the button that runs it.

Owns names of knobs and values for people. What a knob may be is `lab_link`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import streamlit as st

from pages.lab_backend import runs_on
from pages.lab_backend import without_effect as unused_by_real
from pages.lab_link import SCENARIO, LabLink, why_not
from pages.lab_moves import back_to_its_knobs, reset, run, set_knob, watch
from pages.lab_state import is_of, said
from pages.lesson_moves import outcome
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS
from scenarios.knob_words import HAND_OFF, PRECISION, PREPROCESS, value_text
from scenarios.knob_words import LABELS as WORDS
from scenarios.runs import Run, get_runs

LABELS = {name: label for name, label in WORDS.items() if name not in ("epochs", "steps", "backend")}
"""The knobs that the lab offers, in its order."""


def knobs(at: LabLink, shown: Run | None) -> None:
    """All knobs, in the order in which one thinks of them, then Run."""
    config = at.config
    without_effect = {**why_not(config), **unused_by_real(config)}
    with st.container(key="lab-what"):
        _choice(SCENARIO, list(SCENARIOS), config.scenario)
        st.html(f'<p class="pg-note">{escape(SCENARIOS[config.scenario].what)}</p>')
    with st.container(key="lab-knobs"):
        for name in LABELS:
            if name == SCENARIO:
                continue
            if name in without_effect:
                st.text_input(LABELS[name], without_effect[name], disabled=True, key=f"lab-no-{name}-{without_effect[name]}")
            else:
                _knob(name, config)
    runs_on(at)
    with st.container(key="lab-go", horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Run", type="primary", key="lab-run", on_click=run, disabled=_under_way(at, shown), width=120)
        _beside_run(at, shown)
    sentence = said()
    st.html(f'<p class="pg-said" role="alert">{escape(sentence)}</p>' if sentence else '<p class="pg-said"></p>')


def _knob(name: str, config: RunConfig) -> None:
    own_link = LINKS[GPUS[config.gpu].link].label
    numbers = {"gpus": (1, 8, 1), "batch": (1, 8192, 8), "workers": (0, 32, 1), "straggler_pct": (1, 400, 10), "seed": (0, 2**31 - 1, 1)}
    if name in numbers:
        least, most, step = numbers[name]
        st.session_state[f"lab-{name}"] = getattr(config, name)
        st.number_input(LABELS[name], least, most, step=step, key=f"lab-{name}", on_change=set_knob, args=(name,))
    elif name == "straggler":
        ranks: Sequence[str | int] = ["", *range(config.gpus)]
        _choice(name, ranks, "" if config.straggler is None else config.straggler, lambda rank: "None" if rank == "" else f"GPU {rank}")
    elif name == "link":
        links = ["", *(key for key, link in LINKS.items() if link.kind != "network" and key != GPUS[config.gpu].link)]
        links += [config.link] if config.link not in links else []
        _choice(name, links, config.link, lambda key: LINKS[key].label if key else f"{own_link}, its own")
    else:
        options: dict[str, Sequence[str]] = {
            "gpu": list(GPUS), "model": list(MODELS), "precision": list(PRECISION), "hand_off": list(HAND_OFF),
            "preprocess": list(PREPROCESS),
        }
        _choice(name, options[name], getattr(config, name))


def _choice(name: str, options: Sequence[Any], value: Any, text: Callable[[Any], str] | None = None) -> None:
    st.session_state[f"lab-{name}"] = value
    st.selectbox(
        LABELS[name], options, key=f"lab-{name}", format_func=text or (lambda key: value_text(name, key)), on_change=set_knob, args=(name,),
    )


def _under_way(at: LabLink, shown: Run | None) -> bool:
    """Whether the picture is showing just this run, live."""
    return shown is not None and outcome(shown) is None and is_of(shown, at)


def _beside_run(at: LabLink, shown: Run | None) -> None:
    """What else can be done with these knobs, in one row that is always there."""
    if shown is not None and not is_of(shown, at):
        st.button("Back to the knobs of the run shown", type="tertiary", key="lab-back", on_click=back_to_its_knobs)
        return
    recording = get_runs().recording(at.config)
    if recording is not None and (shown is None or outcome(shown) is not None) and (shown is None or recording.run_id != shown.run_id):
        st.button("Watch its recording", type="tertiary", key="lab-watch", on_click=watch, args=(recording.run_id,))
    if at.query().keys() & {SCENARIO, *LABELS, "backend"}:
        st.button("Reset", type="tertiary", key="lab-reset", on_click=reset)
