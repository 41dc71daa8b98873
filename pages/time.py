"""Where time goes, of one run that has ended: the likely cause with its evidence, a bar and a timeline per GPU, and all of it as data.

Owns the order of these. What a part of time is and what it means comes from `scenarios.analysis`; the figures have a file of their own.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.lesson_race import PLOT_CONFIG, dark
from scenarios.analysis.breakdown import RankBreakdown, Segment, breakdown, timeline
from scenarios.analysis.diagnosis import Diagnosis, diagnose
from scenarios.analysis.measured_spans import spans_of_run
from scenarios.record import head_of, samples_of, source_of
from scenarios.runs import Run

STEPS = 2
"""Steps of the timeline."""

FEW = 4
"""Up to so many GPUs always have a row each; of more, the viewer may have only these drawn."""

_STYLE = Path(__file__).parent / "components" / "time.css"


@st.fragment
def where_time_goes(run: Run) -> None:
    """The whole section. The run must be over: its record no longer changes, so that it is read once."""
    st.html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>")
    diagnosis, ranks, segments, source = _read(str(run.run_dir))
    from pages.components.time_figures import breakdown_figure, diagnosis_html, legend_html, parts_drawn, parts_shown, timeline_figure

    st.html('<h2 class="pg-h" id="at-time">Where time goes, and why</h2>')
    st.html(diagnosis_html(diagnosis))
    st.html(
        '<p class="pg-note">Told from this run\'s samples and spans alone; the experiment\'s name and settings are not looked at.</p>'
    )
    if not ranks:
        st.html('<p class="pg-note">No steady step was recorded, so there is nothing to break down.</p>')
        _data(run, ranks, source)
        return
    with st.container(key="time-figures"):
        gaps = any(segment.filled < 1 for segment in segments)
        st.html(legend_html([*parts_shown(ranks), *parts_drawn(segments)], dark=dark(), gaps=gaps))
        config = {**PLOT_CONFIG, "displayModeBar": False}
        st.plotly_chart(breakdown_figure(ranks, source=source, dark=dark()), key=f"time-bars-{run.run_id}", config=config, theme=None)
        named = [finding.rank for finding in diagnosis.findings if finding.rank is not None]
        shown = _chosen([rank.rank for rank in ranks], named, run.run_id)
        drawn = [segment for segment in segments if segment.rank in shown]
        figure = timeline_figure(drawn, source=source, dark=dark())
        st.plotly_chart(figure, key=f"time-line-{run.run_id}-{len(drawn)}", config=config, theme=None)
        st.html(
            '<p class="pg-note">The thick row is what the GPU is for; the thin line below it is communication and copies, '
            "which cost no time of their own while kernels run above them.</p>"
        )
    _data(run, ranks, source)


@st.cache_data(max_entries=64, show_spinner=False)
def _read(run_dir: str) -> tuple[Diagnosis, tuple[RankBreakdown, ...], tuple[Segment, ...], str]:
    """Everything that is drawn of one record; a run id names one record for ever."""
    folder = Path(run_dir)
    spans = spans_of_run(folder)
    return diagnose(samples_of(folder), spans, head_of(folder)), breakdown(spans), timeline(spans, steps=STEPS), source_of(folder)


def _chosen(ranks: list[int], named: list[int], run_id: str) -> list[int]:
    """Which GPUs have a row in the timeline."""
    if len(ranks) <= FEW:
        return ranks
    every, few = f"All {len(ranks)} GPUs", f"{FEW} of them"
    asked = st.segmented_control(
        "GPUs in the timeline", [every, few], default=every, key=f"time-ranks-{run_id}", required=True, label_visibility="collapsed"
    )
    return ranks if asked == every else few_of(ranks, named)


def few_of(ranks: list[int], named: list[int]) -> list[int]:
    """The ranks that a finding names, and others spread over the rest."""
    spread = [ranks[index * (len(ranks) - 1) // (FEW - 1)] for index in range(FEW)]
    return sorted(list(dict.fromkeys([rank for rank in named if rank in ranks] + spread))[:FEW])


def _data(run: Run, ranks: tuple[RankBreakdown, ...], source: str) -> None:
    """The same as a table, as CSV, and as traces."""
    from pages.components.time_figures import breakdown_csv, breakdown_table

    base = f"/{str(st.get_option('server.baseUrlPath') or '').strip('/')}".rstrip("/") + f"/runs/{run.run_id}"
    with st.container(key="time-tools", horizontal=True, vertical_alignment="center", gap="small"):
        if ranks:
            st.download_button(
                "Breakdown (CSV)", breakdown_csv(ranks, source=source), file_name=f"breakdown-{run.run_id}.csv", mime="text/csv",
                key=f"time-csv-{run.run_id}", on_click="ignore",
            )
        st.html(
            f'<p class="pg-note"><a href="{base}/trace.json" download>Trace (Perfetto)</a>, '
            f'<a href="{base}/samples.csv" download>samples (CSV)</a>. '
            "<code>run --trace FOLDER/</code> writes one trace a GPU for HolisticTraceAnalysis.</p>", width="content",
        )
    if ranks:
        with st.expander("As a table"):
            st.html(breakdown_table(ranks))
