"""The lab's sweeps: one knob over several values, with progress, a figure, a table and a CSV file.

Owns how a sweep is asked for and shown. Running it is `scenarios.sweeps`'s.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from pages.components.source_words import told
from pages.lab_compare import mean
from pages.lab_knobs import LABELS
from pages.lab_link import LabLink, described, lasting, why_not
from pages.lab_moves import choose_over, choose_values, run_sweep, show_sweep, stop_sweep, sweep_again
from pages.lesson_race import PLOT_CONFIG, dark
from pages.viewer import viewer
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.knob_words import value_text
from scenarios.sweep_plan import FEWEST, KNOBS, MOST, NAMES, POINT_STEPS, Value
from scenarios.sweeps import Point, Sweep, get_sweeps

LOOK_EVERY_S = 1.0
OFFERED: dict[str, tuple[Value, ...]] = {
    "gpus": tuple(range(1, 9)), "batch": tuple(2**power for power in range(2, 14)), "workers": (0, 1, 2, 4, 8, 16, 32),
    "straggler_pct": (5, 10, 20, 30, 50, 75, 100, 200, 400), "gpu": NAMES["gpu"], "precision": NAMES["precision"],
    "link": tuple(name for name, link in LINKS.items() if link.kind != "network"),
}  # fmt: skip
USUAL: dict[str, tuple[Value, ...]] = {
    **OFFERED, "gpus": (1, 2, 4, 8), "batch": (32, 64, 128, 256, 512, 1024), "straggler_pct": (5, 10, 20, 50, 100),
    "gpu": tuple(GPUS)[:8],
}  # fmt: skip
COLUMNS = ("Ended", "Samples a second", "Useful speed", "GPU busy", "Useful work", "Peak memory")
STATES = {"waiting": "waiting", "running": "running", "finished": "finished", "out_of_memory": "out of memory", "failed": "failed"}
CSV_COLUMNS = (
    "source", "knob", "value", "outcome", "samples_per_second", "unique_samples_per_second", "speedup_vs_one_gpu", "epoch_seconds",
    "gpu_util_pct", "sm_active_pct", "power_w", "peak_memory_gib", "memory_limit_gib",
)  # fmt: skip


def sweep(at: LabLink) -> None:
    """The form, then the sweep that the URL names."""
    st.html('<h2 class="pg-h" id="at-sweep">One knob, many runs</h2>')
    _form(at)
    found = get_sweeps().get(at.sweep) if at.sweep else None
    if found is not None:
        st.fragment(_shown, run_every=None if found.over else LOOK_EVERY_S)(found.sweep_id, going=not found.over)
    elif at.sweep:
        st.html('<p class="pg-note">The sweep in this link is not known here any more. Choose a knob and run it anew.</p>')


def _form(at: LabLink) -> None:
    reasons = why_not(at.config)
    knobs = [name for name in KNOBS if name not in reasons]
    over = at.over if at.over in knobs else knobs[0]
    values = at.values if at.over == over and at.values else USUAL[over]
    offered = list(OFFERED[over]) + [value for value in values if value not in OFFERED[over]]
    st.session_state["lab-over"], st.session_state["lab-values"] = over, [value for value in offered if value in values]
    with st.container(key="lab-sweep-form"):
        st.selectbox("Knob to turn", knobs, format_func=LABELS.__getitem__, key="lab-over", on_change=choose_over)
        st.pills(
            f"Values, 2 to {MOST}", offered, selection_mode="multi", key="lab-values", on_change=choose_values,
            format_func=lambda value: point_text(over, value),
        )
    with st.container(key="lab-sweep-go", horizontal=True, vertical_alignment="center", gap="small"):
        mine = get_sweeps().of(viewer())
        possible = FEWEST <= len(values) <= MOST
        st.button(
            f"Run {len(values)} points" if possible else "Run the points", key="lab-sweep-run", type="primary", on_click=run_sweep,
            args=(at.config, over, tuple(values)), disabled=mine is not None or not possible,
        )
        if mine is not None and mine.sweep_id != at.sweep:
            st.button("Show your sweep under way", type="tertiary", key="lab-sweep-mine", on_click=show_sweep, args=(mine.sweep_id,))
        steps = f" Each point trains {POINT_STEPS} steps." if at.config.scenario != "large_batch" else ""
        st.html(f'<p class="pg-note">All else as set above: {escape(described(at.config, without=over))}.{steps}</p>', width="content")


def _shown(sweep_id: str, *, going: bool) -> None:
    """Progress and results so far; runs again every second while the sweep goes on."""
    now = get_sweeps().get(sweep_id)
    if now is None:
        return
    if now.over == going:
        st.rerun()  # begun or ended: the whole page says so, and the clock starts or stops
    with st.container(key="lab-sweep-state", horizontal=True, vertical_alignment="center", gap="small"):
        _progress(now)
    st.plotly_chart(_figure(now), key=f"lab-sweep-{now.plan.knob}", config={**PLOT_CONFIG, "displayModeBar": False}, theme=None)
    st.html(table_html(now))
    if any(point.has_result for point in now.points):
        st.download_button(
            "Download as CSV", sweep_csv(now), file_name=f"sweep-{now.plan.knob}.csv", mime="text/csv", key="lab-sweep-csv",
            on_click="ignore",
        )


def _progress(now: Sweep) -> None:
    if not now.over:
        st.progress(now.done / len(now.points), text=progress_text(now))
        st.button("Stop", key="lab-sweep-stop", on_click=stop_sweep, args=(now.sweep_id,))
        return
    failed = sum(point.state == "failed" for point in now.points)
    missing = sum(not point.has_result for point in now.points)
    words = {
        "finished": "Done" if not failed else f"Done; {failed} of {len(now.points)} points failed",
        "stopped": f"Stopped after {now.done} of {len(now.points)} points",
        "interrupted": f"The server restarted after {now.done} of {len(now.points)} points",
    }[now.state]
    st.html(f'<p class="pg-note"><b>{words}.</b> {escape(lasting(now.plan))}{_told(now)}.</p>', width="content")
    if missing:
        st.button("Run the rest", key="lab-sweep-rest", on_click=sweep_again, args=(now.sweep_id, False))
    else:
        st.button("Run it again", type="tertiary", key="lab-sweep-again", on_click=sweep_again, args=(now.sweep_id, True))


def _told(now: Sweep) -> str:
    """What the points' figures are."""
    source = told((point.summary or {}).get("source") for point in now.points)
    return f", {source}" if source else ""


def point_text(knob: str, value: Value) -> str:
    """A value of the swept knob for people."""
    return value_text(knob, value) if isinstance(value, str) else f"{value:,}"


def progress_text(now: Sweep) -> str:
    """How far, which point, how long still."""
    point = now.under_way
    what = f"{LABELS[now.plan.knob]} {point_text(now.plan.knob, point.value)} is running" if point else "waiting for its turn"
    return f"{now.done} of {len(now.points)} points: {what}, about {max(1, round(now.left_s))} s left"


def _figure(now: Sweep) -> Any:
    from pages.components.lab_figures import SweptPoint, bars_figure, batch_figure, scaling_figure

    knob = now.plan.knob
    points = [
        SweptPoint(
            label=point_text(knob, point.value),
            number=None if isinstance(point.value, str) else point.value, outcome=point.state,
            rate=_of(point, "samples_per_second"), speed=_of(point, "speedup_vs_one_gpu"), memory_gib=_of(point, "peak_memory_gib"),
        )
        for point in now.points
    ]
    if knob == "gpus":
        return scaling_figure(points, dark=dark())
    if knob == "batch":
        return batch_figure(points, limit_gib=GPUS[now.plan.base.gpu].memory_gib, dark=dark())
    return bars_figure(points, knob=LABELS[knob], dark=dark())


def _of(point: Point, name: str) -> float | None:
    return None if point.summary is None else point.summary.get(name)


def table_html(now: Sweep) -> str:
    """One row per point, all there from the beginning."""
    head = "".join(f"<th scope=col>{name}</th>" for name in COLUMNS)
    body = "".join(_row(now, point) for point in now.points)
    return (
        '<div class="pg-table" role="region" aria-labelledby="at-sweep" tabindex="0">'
        f"<table><thead><tr><th scope=col>{LABELS[now.plan.knob]}</th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(now: Sweep, point: Point) -> str:
    figures = dict(point.summary or {})
    ended = STATES[point.state] + (", recorded before" if point.recorded else "")
    if point.reason:
        ended += f": {point.reason}"
    forms: Sequence[tuple[float | None, str]] = (
        (figures.get("samples_per_second"), "{:,.0f}/s"), (figures.get("speedup_vs_one_gpu"), "{:.2f}×"),
        (mean(figures, "gpu_util"), "{:.0f} %"), (mean(figures, "sm_active"), "{:.0f} %"), (figures.get("peak_memory_gib"), "{:.1f} GiB"),
    )
    texts = [ended, *("–" if value is None else form.format(value) for value, form in forms)]
    cells = "".join(f'<td data-label="{name}">{escape(text)}</td>' for name, text in zip(COLUMNS, texts, strict=True))
    return f"<tr><th scope=row>{escape(point_text(now.plan.knob, point.value))}</th>{cells}</tr>"


def sweep_csv(now: Sweep) -> str:
    """One row per point. Cells are numbers or words from fixed lists, so that no spreadsheet takes one for a formula."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    for point in now.points:
        figures = dict(point.summary or {})
        source = figures.get("source")
        cells = [
            _number(value)
            for value in (
                *(figures.get(name) for name in CSV_COLUMNS[4:8]), mean(figures, "gpu_util"), mean(figures, "sm_active"),
                mean(figures, "power_w"), figures.get("peak_memory_gib"), figures.get("memory_limit_gib"),
            )
        ]
        writer.writerow([source if source in ("virtual", "nvml") else "", now.plan.knob, point.value, point.state, *cells])
    return out.getvalue()


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else ""
