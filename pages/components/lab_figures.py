"""Plotly figures of the lab: what fills a card's memory, what a sweep found, and several runs over one another.

Owns their look (UX section 5). Must not start runs, read records or import streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pages.components.figures import DARK, LIGHT, METRICS, Palette, layout
from pages.components.source_words import seconds_of, told
from scenarios.catalog import Metric
from scenarios.telemetry import Sample

MEMORY_PARTS = ("parameters", "gradients", "optimizer", "activations", "workspace", "context")
"""From the ground up: what every batch pays alike, but for the activations, which grow with it."""
MEMORY_LABELS = {
    "parameters": "Parameters", "gradients": "Gradients", "optimizer": "Optimizer state", "activations": "Activations",
    "workspace": "Workspace", "context": "CUDA context, NCCL",
}  # fmt: skip
PART_COLOURS: dict[str, tuple[str, str]] = {
    "parameters": ("#1F4E5F", "#2F7C8F"), "gradients": ("#2F7F86", "#4BA3A8"), "optimizer": ("#7DB8B1", "#9BD3CB"),
    "activations": ("#6F8AA3", "#7C9DBB"), "workspace": ("#C2B59B", "#8C8069"), "context": ("#8A8F98", "#5F6A79"),
}  # fmt: skip
"""Per part: light, dark. Neighbours differ in lightness too, and a hairline of paper parts them."""

DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True, kw_only=True)
class MemoryBar:
    """One batch: its memory by part, in GiB."""

    label: str
    parts: Sequence[float]
    """In the order of MEMORY_PARTS."""
    chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class SweptPoint:
    """One point of a sweep. What was not measured is None."""

    label: str
    number: float | None
    """The value where it is a number."""
    outcome: str
    """waiting, running, finished, out_of_memory or failed."""
    rate: float | None = None
    """Samples a second, all GPUs."""
    speed: float | None = None
    """Useful speed against one GPU."""
    memory_gib: float | None = None
    """The most that a GPU held."""


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """One run of a comparison."""

    label: str
    samples: Sequence[Sample]
    source: str = "virtual"


def memory_figure(
    bars: Sequence[MemoryBar], *, limit_gib: float, measured: tuple[str, float] | None = None, dark: bool = False
) -> go.Figure:
    """One stacked bar per batch against the card's limit. `measured` is (label of a bar, GiB that a run held)."""
    palette = DARK if dark else LIGHT
    figure = go.Figure()
    labels = [bar.label for bar in bars]
    for number, part in enumerate(MEMORY_PARTS):
        figure.add_trace(
            go.Bar(
                x=labels, y=[bar.parts[number] for bar in bars], name=MEMORY_LABELS[part],
                marker={
                    "color": PART_COLOURS[part][dark], "line": {"color": palette.paper, "width": 1},
                    "opacity": [1.0 if bar.chosen else 0.55 for bar in bars],
                },
                hovertemplate=f"{MEMORY_LABELS[part]}: %{{y:.1f}} GiB<extra></extra>",
            )
        )
    totals = [sum(bar.parts) for bar in bars]
    top = max([limit_gib * 1.15, *(min(total, 2.2 * limit_gib) * 1.12 for total in totals)])
    for place, total in enumerate(totals):  # a label such as "64" would be taken for the 64th bar
        over = total > limit_gib
        figure.add_annotation(
            x=place, y=min(total, top * 0.93), yshift=12, showarrow=False, text=f"<b>{total:.0f} GiB</b>{', too much' if over else ''}",
            font={"size": 14, "color": palette.odd if over else palette.ink},
            bgcolor=palette.paper if total > top * 0.93 else "rgba(0,0,0,0)",
        )
    if measured is not None:
        figure.add_trace(
            go.Scatter(
                x=[measured[0]], y=[measured[1]], mode="markers", name="Measured in this run",
                marker={"symbol": "diamond", "size": 12, "color": palette.ink, "line": {"color": palette.paper, "width": 2}},
                hovertemplate="Measured: %{y:.1f} GiB<extra></extra>",
            )
        )
    _limit_line(figure, palette, limit_gib, f"the card: {limit_gib:.0f} GiB")
    figure.update_layout(**layout(palette, "Memory of one GPU at the peak of a step", height=420), barmode="stack", bargap=0.35)
    figure.update_layout(legend={"orientation": "h", "y": -0.16, "x": 0, "traceorder": "normal"}, hovermode="x unified")
    figure.update_xaxes(title_text="batch per GPU", type="category", categoryorder="array", categoryarray=labels, title_standoff=4)
    figure.update_yaxes(title_text="GiB", range=[0, top], gridcolor=palette.grid, zeroline=False)
    return figure


def scaling_figure(points: Sequence[SweptPoint], *, dark: bool = False) -> go.Figure:
    """Useful speed against the number of GPUs, with the ideal line; each point says how much of the ideal it reaches."""
    palette = DARK if dark else LIGHT
    good = [point for point in points if point.speed is not None and point.number is not None]
    most = max((point.number or 1.0 for point in points), default=1.0)
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=[0, most], y=[0, most], mode="lines", name="Ideal", hoverinfo="skip",
            line={"color": palette.muted, "width": 2, "dash": "dash"},
        )
    )
    figure.add_annotation(x=most * 0.62, y=most * 0.62, text="ideal", showarrow=False, yshift=14, xshift=-14, font={"color": palette.muted})
    figure.add_trace(
        go.Scatter(
            x=[point.number for point in good], y=[point.speed for point in good], mode="lines+markers+text", name="Measured",
            line={"color": palette.right, "width": 3}, marker={"size": 9},
            text=[f"{point.speed:.1f}×" for point in good], textposition="bottom right", textfont={"color": palette.ink},
            customdata=[100 * (point.speed or 0) / (point.number or 1) for point in good],
            hovertemplate="%{x} GPUs: %{y:.2f}× one GPU, %{customdata:.0f} % of the ideal<extra></extra>",
        )
    )
    figure.update_layout(**layout(palette, "How the useful speed grows with the GPUs", height=400), showlegend=False)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(
        title_text="GPUs", tickvals=[point.number for point in points], range=[0, most * 1.1], gridcolor=palette.grid, zeroline=False
    )
    figure.update_yaxes(title_text="useful speed (× one GPU)", range=[0, most * 1.08], gridcolor=palette.grid, zeroline=False)
    return figure


def batch_figure(points: Sequence[SweptPoint], *, limit_gib: float | None, dark: bool = False) -> go.Figure:
    """Throughput above, memory below, on one axis of batches; where the card is full, both end."""
    palette = DARK if dark else LIGHT
    labels = [point.label for point in points]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09, row_heights=[0.55, 0.45])
    for row, values, name, unit in (
        (1, [point.rate for point in points], "Samples a second", "/s"),
        (2, [None if point.outcome == "out_of_memory" else point.memory_gib for point in points], "Memory", " GiB"),
    ):
        figure.add_trace(
            go.Scatter(
                x=labels, y=values, mode="lines+markers", name=name, connectgaps=False, line={"color": palette.right, "width": 3},
                marker={"size": 9}, hovertemplate=f"batch %{{x}}: %{{y:,.4~g}}{unit}<extra></extra>",
            ),
            row=row, col=1,
        )
    full = [point.label for point in points if point.outcome == "out_of_memory"]
    top_rate = max((point.rate or 0.0 for point in points), default=0.0) or 1.0
    top_gib = (limit_gib or max((point.memory_gib or 0.0 for point in points), default=1.0)) * 1.2
    if full:
        first = labels.index(full[0])
        figure.add_vrect(x0=first - 0.5, x1=len(labels) - 0.5, fillcolor=palette.odd, opacity=0.12, line_width=0, layer="below")
        figure.add_annotation(
            x=len(labels) - 0.5, xanchor="right", xshift=-4, y=top_rate * 0.55, row=1, col=1, text="<b>out of memory</b>", showarrow=False,
            font={"color": palette.odd, "size": 15},
        )
        figure.add_trace(
            go.Scatter(
                x=full, y=[limit_gib] * len(full), mode="markers", name="Out of memory",
                marker={"symbol": "x", "size": 11, "color": palette.odd}, hovertemplate="batch %{x}: out of memory<extra></extra>",
            ),
            row=2, col=1,
        )
    if limit_gib is not None:
        figure.add_hline(y=limit_gib, row=2, col=1, line={"color": palette.ink, "width": 1, "dash": "dot"})
        figure.add_annotation(
            x=0, xref="x2 domain", y=limit_gib, yref="y2", text=f"the card: {limit_gib:.0f} GiB", showarrow=False, xanchor="left",
            yshift=10, font={"size": 13},
        )
    figure.update_layout(**layout(palette, "Throughput and memory against the batch", height=480), showlegend=False)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(type="category", range=[-0.5, len(labels) - 0.5], gridcolor=palette.grid)
    figure.update_xaxes(title_text="batch per GPU", row=2, col=1)
    figure.update_yaxes(
        title_text="samples/s", range=[0, top_rate * 1.12], row=1, col=1, showticklabels=top_rate > 1,
        gridcolor=palette.grid, zeroline=False,
    )
    figure.update_yaxes(title_text="GiB", range=[0, top_gib], row=2, col=1, gridcolor=palette.grid, zeroline=False)
    return figure


def bars_figure(points: Sequence[SweptPoint], *, knob: str, dark: bool = False) -> go.Figure:
    """Throughput per value, one bar each; the best is in the colour of what is right, and what has no figure says why."""
    palette = DARK if dark else LIGHT
    rates = [point.rate or 0.0 for point in points]
    best = max(rates, default=0.0)
    why = {"out_of_memory": "out of memory", "failed": "failed", "waiting": "", "running": "running", "finished": "n/a"}
    figure = go.Figure(
        go.Bar(
            x=[point.label for point in points], y=rates,
            marker={"color": [palette.right if rate == best and best else palette.rest for rate in rates]},
            text=[f"{point.rate:,.0f}/s" if point.rate else why[point.outcome] for point in points], textposition="outside",
            textfont={"color": palette.ink}, cliponaxis=False, hovertemplate="%{x}: %{y:,.0f} samples/s<extra></extra>",
        )
    )
    figure.update_layout(**layout(palette, "Throughput of all GPUs together", height=400), bargap=0.4, showlegend=False)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(title_text=knob, type="category")
    figure.update_yaxes(
        title_text="samples/s", range=[0, (best or 1.0) * 1.15], showticklabels=best > 0, gridcolor=palette.grid, zeroline=False
    )
    return figure


def overlay_figure(runs: Sequence[Pinned], *, metric: Metric, dark: bool = False) -> go.Figure:
    """One small chart per GPU with a line of every run, told apart by colour and dash."""
    palette = DARK if dark else LIGHT
    title, unit, field = METRICS[metric]
    colours = (palette.right, palette.odd, palette.ink, palette.rest)
    ranks = sorted({sample.rank for run in runs for sample in run.samples}) or [0]
    figure = make_subplots(rows=len(ranks), cols=1, shared_xaxes=True, vertical_spacing=0.02)
    values = [value for run in runs for sample in run.samples if (value := getattr(sample, field)) is not None]
    top = 100.0 if unit == "%" else max(values, default=1.0) * 1.05 or 1.0
    for row, rank in enumerate(ranks, start=1):
        for number, run in enumerate(runs):
            mine = [sample for sample in run.samples if sample.rank == rank]
            figure.add_trace(
                go.Scatter(
                    x=[sample.end_ns / 1e9 for sample in mine], y=[getattr(sample, field) for sample in mine], name=run.label,
                    mode="lines", line={"color": colours[number], "width": 2, "dash": DASHES[number], "shape": "vh"}, connectgaps=False,
                    legendgroup=run.label, showlegend=row == 1, hovertemplate=f"{run.label}, GPU {rank}: %{{y:.4~g}} {unit}<extra></extra>",
                ),
                row=row, col=1,
            )
        figure.update_yaxes(
            row=row, col=1, range=[0, top], tickvals=[top / 2, top], tickformat=".3~g", title={"text": f"GPU {rank}", "standoff": 4},
            gridcolor=palette.grid, zeroline=False,
        )
    figure.update_xaxes(gridcolor=palette.grid, zeroline=False)
    source = told(run.source for run in runs)
    figure.update_xaxes(title_text=seconds_of(source), row=len(ranks), col=1)
    figure.update_layout(**layout(palette, f"{title}{f' ({unit})' if unit else ''}, {source}", height=150 + 58 * len(ranks)))
    figure.update_layout(legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1.0, "xanchor": "right"}, hovermode="closest")
    return figure


def _limit_line(figure: go.Figure, palette: Palette, limit_gib: float, text: str) -> None:
    figure.add_hline(
        y=limit_gib, line={"color": palette.ink, "width": 2, "dash": "dot"},
        annotation={"text": text, "font": {"size": 13, "color": palette.ink}, "bgcolor": palette.paper}, annotation_position="top left",
    )
