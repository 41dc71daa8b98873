"""What stands below the lab's picture: one view at a time, of the run that is shown or of the knobs that are set.

Owns the choice, and the views of memory and prediction. The others have files of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from html import escape
from typing import Any

import streamlit as st

from pages.components.source_words import told
from pages.lab_compare import compare
from pages.lab_link import VIEWS, LabLink, described
from pages.lab_moves import choose_view
from pages.lab_state import is_of, summary
from pages.lab_sweep import sweep
from pages.lesson_moves import outcome
from pages.lesson_race import PLOT_CONFIG, dark
from pages.time import where_time_goes
from scenarios.backend import resolved
from scenarios.config import RunConfig
from scenarios.costs import pricing
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.costs.predict import predict
from scenarios.runs import Run

LABELS = {"time": "Where time goes", "memory": "Memory", "predicted": "Predicted", "compare": "Compare", "sweep": "Sweep"}
_LARGEST_BATCH = 8192


def views(at: LabLink, run: Run | None) -> None:
    """A row of names, and the view that is chosen."""
    chosen = at.view or VIEWS[0]
    st.session_state["lab-view"] = chosen
    st.segmented_control(
        "Show", VIEWS, format_func=LABELS.__getitem__, key="lab-view", on_change=choose_view, required=True, label_visibility="collapsed"
    )
    with st.container(key="lab-view-body"):
        if chosen == "compare":
            compare(at)
        elif chosen == "sweep":
            sweep(at)
        elif chosen == "memory":
            memory(at, run)
        elif chosen == "predicted":
            predicted(at, run)
        else:
            _time(run)


def _time(run: Run | None) -> None:
    if run is None:
        _note("No run yet. Press Run; when it has ended, this shows what each GPU spent its time on, and names the likely cause.")
    elif outcome(run) is None:
        _note("The run goes on. This fills in when it has ended.")
    else:
        where_time_goes(run)


def memory(at: LabLink, run: Run | None) -> None:
    """The parts of one GPU's memory for this batch and those around it."""
    from pages.components.lab_figures import MemoryBar, memory_figure

    config = at.config
    limit = GPUS[config.gpu].memory_gib
    around = sorted({max(1, min(_LARGEST_BATCH, round(config.batch * factor))) for factor in (0.25, 0.5, 1, 2, 4)})
    bars = [MemoryBar(label=f"{batch:,}", parts=astuple(_parts(config, batch)), chosen=batch == config.batch) for batch in around]
    total, edge = _parts(config, config.batch).total_gib, largest_fitting(config)
    fits = f"A batch of {edge:,} is the largest power of two that fits." if edge else "Not even one sample fits."
    st.html(
        f'<h2 class="pg-h" id="at-memory">{"Fits" if total <= limit else "Does not fit"}: {total:.1f} of {limit:.1f} GiB</h2>'
        f'<p class="pg-note">{escape(described(config))}. {fits}</p>'
    )
    figures = summary(run) if run is not None and is_of(run, at) else None
    ran_at_this_batch = figures is not None and figures["outcome"] == "finished" and figures["last_batch_that_fitted"] == config.batch
    measured = (f"{config.batch:,}", figures["peak_memory_gib"]) if figures is not None and ran_at_this_batch else None
    figure = memory_figure(bars, limit_gib=limit, measured=measured, dark=dark())
    st.plotly_chart(figure, key="lab-memory", config={**PLOT_CONFIG, "displayModeBar": False}, theme=None)
    with st.expander("As a table"):
        st.html(_memory_table(config, around))


def largest_fitting(config: RunConfig) -> int:
    """The largest power of two of a batch that fits; 0 where not even one sample does."""
    sizes = [2**power for power in range(_LARGEST_BATCH.bit_length())]
    return max((size for size in sizes if _parts(config, size).total_gib <= GPUS[config.gpu].memory_gib), default=0)


def _parts(config: RunConfig, batch: int) -> Any:
    return pricing.memory(model=config.model, gpu=config.gpu, precision=config.precision, batch=batch, world=config.gpus)


def _memory_table(config: RunConfig, batches: Sequence[int]) -> str:
    from pages.components.lab_figures import MEMORY_LABELS, MEMORY_PARTS

    head = "".join(f"<th scope=col>{MEMORY_LABELS[part]}</th>" for part in MEMORY_PARTS)
    rows = []
    for batch in batches:
        parts = _parts(config, batch)
        cells = "".join(
            f'<td data-label="{MEMORY_LABELS[part]}">{value:.2f}</td>' for part, value in zip(MEMORY_PARTS, astuple(parts), strict=True)
        )
        rows.append(f'<tr><th scope=row>Batch {batch:,}</th>{cells}<td data-label="Together, GiB">{parts.total_gib:.2f}</td></tr>')
    return (
        '<div class="pg-table" role="region" aria-labelledby="at-memory" tabindex="0"><table><thead><tr><th scope=col>GiB</th>'
        f"{head}<th scope=col>Together</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def predicted(at: LabLink, run: Run | None) -> None:
    """The prediction for published-style training beside what this run measured, and why they differ."""
    config = resolved(at.config)
    found = predict(model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, gpus=config.gpus)
    figures = summary(run) if run is not None and is_of(run, at) else None
    measured = figures or {}
    rate = _rate(found["samples_per_second"] if found["fits"] else None)
    rows = [
        ("Samples a second", rate, _rate(measured.get("samples_per_second"))),
        ("Distinct samples a second", rate, _rate(measured.get("unique_samples_per_second"))),
        ("Memory of one GPU", f"{found['memory_gib']:.1f} GiB", _gib(measured.get("peak_memory_gib"))),
    ]
    unit = MODELS[config.model].unit
    source = f", {told([figures['source']])}" if figures else ""
    st.html(
        '<h2 class="pg-h" id="at-predicted">Predicted for a correct script, and measured in this run</h2>'
        f'<p class="pg-note">{escape(described(config))}. Samples are {escape(unit)}.</p>'
        '<div class="pg-table pg-narrow" role="region" aria-labelledby="at-predicted" tabindex="0"><table><thead><tr><td></td>'
        f"<th scope=col>Predicted</th><th scope=col>Measured{source}</th></tr></thead><tbody>"
        + "".join(
            f'<tr><th scope=row>{name}</th><td data-label="Predicted">{left or "–"}</td><td data-label="Measured">{right or "–"}</td></tr>'
            for name, left, right in rows
        )
        + "</tbody></table></div>"
        f'<p class="pg-note pg-why">{escape(why_they_differ(config, found, figures))}</p>'
    )


def why_they_differ(config: RunConfig, found: dict[str, Any], figures: dict[str, Any] | None) -> str:
    """One or two sentences."""
    if figures is None:
        return "Press Run to measure it." if found["fits"] else "The prediction is that it does not fit. Press Run to see it break off."
    if figures["samples_per_second"] is None:
        known = "As predicted, it ran out of memory." if not found["fits"] else "It broke off before there was a steady rate to measure."
        return known + (" The script makes its batch larger while it runs." if config.scenario == "large_batch" else "")
    share = 100 * (figures["samples_per_second"] / found["samples_per_second"] - 1)
    reasons = [
        f"real GPUs were measured, and the prediction is a model of {GPUS[config.gpu].label}" if figures["source"] == "nvml" else "",
        "the script has a mistake, and the prediction has none" if config.scenario not in ("sharded", "tiny_model") else "",
        "each GPU also decodes its images, where predictions have ready-made ones" if _decodes(config, "gpu") else "",
        "the CPU decodes the images, where predictions have ready-made ones" if _decodes(config, "cpu") else "",
        "the ranks fetch their own batches" if config.workers == 0 else "",
        f"GPU {config.straggler} is slow, and the others wait for it" if config.straggler is not None else "",
        "the gradients take another link than this GPU's own" if config.link else "",
        "few steps were measured" if figures["steps"] < 20 else "",
    ]
    named = [reason for reason in reasons if reason]
    text = f"Measured is {abs(share):.0f} % {'above' if share >= 0 else 'below'} predicted"
    if not named:
        return f"{text}. Nothing differs but the loader and the steps' small jitter."
    return f"{text}: {'; '.join(named)}."


def _decodes(config: RunConfig, where: str) -> bool:
    return MODELS[config.model].decodes and config.preprocess == where


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}/s"


def _gib(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} GiB"


def _note(text: str) -> None:
    st.html(f'<p class="pg-note">{escape(text)}</p>')
