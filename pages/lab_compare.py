"""The lab's comparison: up to four pinned runs, the knobs in which they differ, their figures, and their lanes over one another.

Owns what is compared. Reads records only.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from pages.lab_knobs import LABELS
from pages.lab_link import PINS, SCENARIO, LabLink, described
from pages.lab_moves import unpin
from pages.lab_state import summary
from pages.lesson_moves import outcome
from pages.lesson_race import METRIC_LABELS, PLOT_CONFIG, dark
from scenarios.catalog import Metric
from scenarios.knob_words import value_text
from scenarios.record import samples_of, source_of
from scenarios.runs import Run, get_runs

LETTERS = "ABCD"
OUTCOMES = {
    "finished": "finished", "out_of_memory": "out of memory", "timeout": "took too long", "failed": "failed", "stopped": "stopped",
    "interrupted": "interrupted",
}  # fmt: skip


def compare(at: LabLink) -> None:
    """Pins, table, picture."""
    st.html('<h2 class="pg-h" id="at-compare">Runs side by side</h2>')
    runs = [run for run in (get_runs().get(name) for name in at.pins) if run is not None]
    if not runs:
        text = "The pinned runs are not known here any more." if at.pins else "Nothing is pinned yet."
        st.html(f'<p class="pg-note">{text} Run something and press <b>Pin to compare</b> under its lanes; up to {PINS} runs fit.</p>')
        return
    with st.container(key="lab-pins"):
        for letter, run in zip(LETTERS, runs, strict=False):
            with st.container(key=f"lab-pinned-{letter}", horizontal=True, vertical_alignment="center", gap="small", wrap=False):
                st.html(f'<p class="pg-note"><b>{letter}</b> {escape(described(run.config))}</p>', width="content")
                st.button(f"Unpin {letter}", type="tertiary", key=f"lab-unpin-{letter}", on_click=unpin, args=(run.run_id,))
    st.html(table_html(runs))
    if len(runs) < 2:
        st.html('<p class="pg-note">Pin a second run to see the difference.</p>')
    metric: Metric = st.segmented_control(
        "Metric", list(METRIC_LABELS), default="busy", format_func=METRIC_LABELS.__getitem__, key="lab-compare-metric", required=True,
        label_visibility="collapsed",
    )
    from pages.components.lab_figures import Pinned, overlay_figure

    pinned = [
        Pinned(label=letter, samples=samples_of(run.run_dir), source=source_of(run.run_dir))
        for letter, run in zip(LETTERS, runs, strict=False)
    ]
    st.plotly_chart(overlay_figure(pinned, metric=metric, dark=dark()), key=f"lab-overlay-{metric}", config=PLOT_CONFIG, theme=None)


def table_html(runs: Sequence[Run]) -> str:
    """Knobs that differ, then figures; one column per run."""
    letters = LETTERS[: len(runs)]
    head = "".join(f"<th scope=col>{letter}</th>" for letter in letters)
    rows = [*differing(runs), *_figures(runs)]
    body = "".join(
        f"<tr><th scope=row>{escape(name)}</th>"
        + "".join(f'<td data-label="{letter}">{escape(text)}</td>' for letter, text in zip(letters, texts, strict=True))
        + "</tr>"
        for name, texts in rows
    )
    return (
        f'<div class="pg-table{" pg-narrow" if len(runs) < 3 else ""}" role="region" aria-labelledby="at-compare" tabindex="0">'
        f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def differing(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    """The knobs in which not all of `runs` agree, with each run's value."""
    rows = []
    for name in (SCENARIO, *(label for label in LABELS if label != SCENARIO), "steps", "epochs"):
        values = [getattr(run.config, name) for run in runs]
        if len(set(values)) > 1:
            absent = {"straggler": "none", "link": "its own"}.get(name, "as watched")
            texts = [absent if value in (None, "") else value_text(name, value) for value in values]
            rows.append((LABELS.get(name, name.capitalize()), texts))
    return rows


def _figures(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    ends = [(outcome(run), summary(run)) for run in runs]
    found = [figures or {} for _, figures in ends]
    return [
        ("Samples", [source_of(run.run_dir) for run in runs]),
        ("Ended", [OUTCOMES.get(end or "", "runs on") for end, _ in ends]),
        ("Useful speed", [_text(each.get("speedup_vs_one_gpu"), "{:.1f}× one GPU") for each in found]),
        ("Samples a second", [_text(each.get("samples_per_second"), "{:,.0f}") for each in found]),
        ("An epoch", [_text(each.get("epoch_seconds"), "{:.1f} s") for each in found]),
        ("Each sample trained", [_times(each.get("times_trained")) for each in found]),
        ("GPU busy, mean", [_text(mean(each, "gpu_util"), "{:.0f} %") for each in found]),
        ("Useful work, mean", [_text(mean(each, "sm_active"), "{:.0f} %") for each in found]),
        ("Peak memory", [_text(each.get("peak_memory_gib"), "{:.1f} GiB") for each in found]),
        ("Power of a GPU, mean", [_text(mean(each, "power_w"), "{:.0f} W") for each in found]),
    ]


def mean(figures: dict[str, Any], name: str) -> float | None:
    """Over the GPUs of a summary that have this counter."""
    values = [gpu[name] for gpu in figures.get("gpus", []) if gpu.get(name) is not None]
    return sum(values) / len(values) if values else None


def _times(value: float | None) -> str:
    return "once" if value is not None and value < 1.05 else _text(value, "{:.3g} times")


def _text(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
