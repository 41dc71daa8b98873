"""The knobs of a run, in a pop-over and in the URL.

Owns their names for people. What a URL may hold is decided by `lessons.deep_links`.
"""

from __future__ import annotations

import streamlit as st

from lessons import Lesson
from lessons.deep_links import KNOBS
from lessons.experiments import shown_as
from pages.lesson_moves import start_run
from pages.lesson_state import link
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS

HAND_OFF = {"cpu": "Over the host", "nccl": "By NCCL"}
PREPROCESS = {"gpu": "The rank's GPU", "cpu": "The CPU"}
_ANY_SCENARIO = "rank0_loading"
"""One on which each knob has an effect: the form shows the knobs of the address, whatever the cause on show makes of them."""
OFFERED = ("gpu", "gpus", "model", "batch", "seed", "hand_off", "preprocess")


def knobs() -> dict[str, str | int]:
    """The URL's valid knobs."""
    return dict(link().knobs)


def knobs_popover(lesson: Lesson, cause_id: str) -> None:
    """One form; a run starts with its button."""
    now, keys = _form_values(lesson, cause_id), _keys(lesson, cause_id)
    models = ["", *MODELS]
    changed = len(knobs())
    with st.popover(f"Knobs ({changed})" if changed else "Knobs", key="knobs"), st.form("knobs-form", border=False):
        st.selectbox("GPU", list(GPUS), index=list(GPUS).index(now.gpu), format_func=lambda name: GPUS[name].label, key=keys["gpu"])
        st.selectbox(
            "Model", models, index=models.index(str(knobs().get("model", ""))), key=keys["model"],
            format_func=lambda name: MODELS[name].label if name else "The experiment's own",
        )
        number, left, right = st.columns(3)
        number.number_input("GPUs", 1, 8, now.gpus, key=keys["gpus"])
        left.number_input("Batch per GPU", 1, 8192, now.batch, key=keys["batch"])
        right.number_input("Seed", 0, 2**31 - 1, now.seed, key=keys["seed"])
        st.radio("Shards from GPU 0 travel", list(HAND_OFF), list(HAND_OFF).index(now.hand_off), HAND_OFF.__getitem__,
                 key=keys["hand_off"], horizontal=True)
        st.radio("Decoding and augmenting on", list(PREPROCESS), list(PREPROCESS).index(now.preprocess), PREPROCESS.__getitem__,
                 key=keys["preprocess"], horizontal=True)
        st.form_submit_button("Run with these", type="primary", key="knobs-run", on_click=_run_with, args=(lesson, cause_id))


def _form_values(lesson: Lesson, cause_id: str, *, turned: bool = True) -> RunConfig:
    """The experiment's own knobs and, where `turned`, those of the address on top."""
    own = shown_as(lesson, cause_id).config
    values = {name: getattr(own, name) for name in KNOBS if name != "model"}
    return RunConfig.parse({**values, **(knobs() if turned else {}), "scenario": _ANY_SCENARIO, "model": ""})


def _keys(lesson: Lesson, cause_id: str) -> dict[str, str]:
    """Keys of the fields. One whose experiment has a value of its own is a field of its own: what it holds must not go over to another."""
    own, plain = _form_values(lesson, cause_id, turned=False), RunConfig.parse({"scenario": _ANY_SCENARIO})
    values = {name: getattr(own, name) for name in KNOBS}
    return {name: f"knob-{name}" + (f"-{value}" if value != getattr(plain, name) else "") for name, value in values.items()}


def _run_with(lesson: Lesson, cause_id: str) -> None:
    defaults, keys = _form_values(lesson, cause_id, turned=False), _keys(lesson, cause_id)
    for name in KNOBS:
        value = st.session_state.get(keys[name]) if name in OFFERED else None
        if value in (None, "") or (name != "model" and value == getattr(defaults, name)):
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = str(value)
    start_run(lesson, cause_id, knobs())
