"""The race of the variants on one virtual clock, and the full figure of one run.

Owns which records become figures. Plotly is imported only when a figure is shown.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt
from lessons.race import race as race_progress
from pages.components.source_words import told
from pages.lesson_controls import downloads
from pages.lesson_runs import measure
from scenarios.backend import resolved
from scenarios.catalog import Metric
from scenarios.record import read_events, samples_of, source_of, summary_of
from scenarios.runs import Run, get_runs

METRIC_LABELS: dict[Metric, str] = {
    "busy": "Busy", "useful": "Useful", "memory": "Memory", "power": "Power", "apart": "Weights apart", "learning_rate": "Learning rate",
}
PLOT_CONFIG = {"displaylogo": False, "responsive": True}


def dark() -> bool:
    """Whether the page is dark."""
    return st.context.theme.type == "dark"


def race(lesson: Lesson, attempt: Attempt) -> None:
    """Run one whole epoch of each racer where that has not been recorded, then draw the race."""
    configs = {racer.scenario: lesson.config_of(racer.scenario, {"epochs": 1, "steps": None}) for racer in lesson.race}
    real = any(resolved(config).backend == "cuda" for config in configs.values())
    st.html(
        f'<h2 class="pg-h" id="at-race">The race: one epoch each, on one {"" if real else "virtual "}clock</h2>'
        '<p class="pg-note">The share of the data set that has been trained on at least once. Whole epochs, recorded at full speed.</p>'
    )
    labels = {racer.label: configs[racer.scenario] for racer in lesson.race}
    if not measure(labels, viewer=attempt.token):
        return
    recordings = {}
    for name, config in configs.items():
        run = get_runs().recording(config)
        summary = summary_of(run.run_dir) if run else None
        if run is not None and summary is not None:
            recordings[name] = (summary, [event["data"] for event in read_events(run.run_dir) if event["event"] == "tick"])
    from pages.components.figures import Racer, race_figure

    racers = [
        Racer(label=racer.label, progress=racer.progress, epoch_s=racer.epoch_s, role=racer.role, measured=racer.measured)
        for racer in race_progress(lesson, recordings)
    ]
    source = told(summary["source"] for summary, _ in recordings.values())
    figure = race_figure(racers, source=source, dark=dark())
    st.plotly_chart(figure, key="race-figure", config={**PLOT_CONFIG, "displayModeBar": False}, theme=None)


@st.dialog("The whole run", width="large")
def figure_dialog(run: Run, *, opens_on: Metric, odd_rank: int | None) -> None:
    """Zoom, hover, every metric, and the data to take away."""
    metric: Metric = st.segmented_control(
        "Metric", list(METRIC_LABELS), default=opens_on, format_func=METRIC_LABELS.__getitem__, key="figure-metric",
        required=True, label_visibility="collapsed",
    )
    from pages.components.figures import run_figure

    head: dict[str, Any] = next((event["data"] for event in read_events(run.run_dir) if event["event"] == "head"), {})
    limit = {"memory": head.get("memory_limit_gib"), "power": head.get("power_limit_w")}.get(metric)
    st.plotly_chart(
        run_figure(
            samples_of(run.run_dir), metric=metric, odd_rank=odd_rank, limit=limit, source=source_of(run.run_dir), dark=dark()
        ),
        key=f"run-figure-{metric}", config=PLOT_CONFIG, theme=None,
    )
    downloads(run)

