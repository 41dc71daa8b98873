"""All symptoms on one page, to print: each cause with the picture of its recorded run, what tells it, and the command that confirms it.

Owns the page. Pictures come from recordings only; a cause without one says so.
"""

from __future__ import annotations

import time
from functools import lru_cache
from html import escape
from pathlib import Path

import streamlit as st

from lessons.exchange.item import html_of_line
from lessons.loader import CONTENT
from lessons.symptoms import SymptomCause
from lessons.symptoms.content import symptoms_at
from pages.components.lane_picture import drawn, lanes_image
from pages.components.silhouettes import capital
from pages.lesson_runs import measure, missing
from pages.viewer import viewer
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.record import samples_of, source_of
from scenarios.runs import get_runs

SOURCES = {"virtual": "Simulated timing, real DDP", "nvml": "Real GPUs, read by NVML"}


def page() -> None:
    """Head, then one block per cause; two columns on paper."""
    st.html(Path(__file__).with_name("symptoms.css"))
    symptoms = symptoms_at(CONTENT)
    if symptoms is None:
        st.error("There is nothing to show. Whoever runs this server finds the reason with `python -m lessons check`.")
        return
    configs = {cause.title: cause.experiment for cause in symptoms.causes if cause.experiment is not None}
    gaps = len(missing(list(configs.values())))
    with st.container(key="symptoms"):
        st.html(
            '<h1 id="at-symptoms">Symptoms of multi-GPU training, on one page</h1>'
            '<p class="pg-note pg-key">One lane for each GPU, over a whole run. Line: busy as nvidia-smi counts. Solid: useful work. '
            "Hatched: busy, but waiting. Every picture is a recorded run, not a drawing.</p>"
        )
        with st.container(key="symptoms-tools", horizontal=True, vertical_alignment="center", gap="small"):
            if gaps:
                text = f"{gaps} of {len(configs)} pictures {'has' if gaps == 1 else 'have'} no recording here yet."
                asked = st.button("Run them now", key="symptoms-run", type="primary")
            else:
                text, asked = "Print it with your browser (Ctrl+P): two columns on A4.", False
            st.html(f'<p class="pg-note">{text}</p>', width="content")
            st.page_link("finder.py", label="Find the cause by what you see")
        if asked and measure(configs, viewer=viewer()):
            st.rerun()
        st.html(f'<div class="pg-sheet">{"".join(cause_html(cause) for cause in symptoms.causes)}</div>')


def cause_html(cause: SymptomCause) -> str:
    """One block: title, picture, telltale, command."""
    return (
        f'<section class="pg-symptom"><h2>{escape(cause.title)}</h2><div class="pg-shown">{_picture(cause)}</div>'
        f'<p class="pg-tells">{html_of_line(cause.telltale)}</p><pre>{escape(cause.command.command.strip())}</pre></section>'
    )


def _picture(cause: SymptomCause) -> str:
    if cause.experiment is None:
        return f'<p class="pg-note">No run shows this here. {escape(cause.no_experiment)}</p>'
    run = get_runs().recording(cause.experiment)
    if run is None:
        return '<p class="pg-note">No recording here yet.</p>'
    return picture_html(run.run_dir, cause.experiment, cause.title, time.strftime("%d %b %Y", time.localtime(run.created_s)).lstrip("0"))


@lru_cache(maxsize=64)
def picture_html(run_dir: Path, config: RunConfig, title: str, recorded: str) -> str:
    """The picture of a recording, which never changes, with what it shows and where it comes from."""
    scenario, samples = SCENARIOS[config.scenario], samples_of(run_dir)
    how = drawn(samples, scenario.opening_metric, memory_limit_gib=GPUS[config.gpu].memory_gib)
    odd = scenario.odd_rank if config.straggler is None else config.straggler
    alt = f"Lanes of GPU 0 to {config.gpus - 1}, {escape(how.caption)}: {escape(title)}"
    picture = lanes_image(samples, odd_rank=odd, alt=alt, how=how)
    source = SOURCES.get(source_of(run_dir) or "", "")
    return f'{picture}<p class="pg-source">{escape(capital(how.caption))}. {escape(source)}, recorded {escape(recorded)}</p>'


page()
