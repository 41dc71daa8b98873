"""Plotly figures of the page "How these GPUs work": predicted against published, and what fills the memory of published runs.

Owns their look (UX section 5). Must not read files or import streamlit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from pages.components.figures import DARK, LIGHT, Palette, layout
from pages.components.lab_figures import MEMORY_LABELS, MEMORY_PARTS, PART_COLOURS

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Series:
    """Rows that share a mark."""

    label: str
    symbol: str
    """Shape tells them apart, colour only helps."""
    rows: Sequence[Row]
    strong: bool


def one_gpu_figure(series: Sequence[Series], *, worst: Row | None = None, dark: bool = False) -> go.Figure:
    """Samples a second on one GPU, predicted over published, both logarithmic. `worst` is labelled."""
    palette = DARK if dark else LIGHT
    figure = _scatter(series, "published_one_gpu_per_s", "predicted_one_gpu_per_s", palette, digits=",.0f", unit=" a second")
    values = [row[f"{kind}_one_gpu_per_s"] for one in series for row in one.rows for kind in ("published", "predicted")]
    ends = [min(values, default=1.0) * 0.7, max(values, default=10.0) * 1.4]
    for share, dash, width in ((1.0, "solid", 2), (1.3, "dot", 1), (1 / 1.3, "dot", 1)):
        figure.add_trace(_line(ends, [end * share for end in ends], palette, dash=dash, width=width))
    if worst is not None:
        figure.add_annotation(
            x=math.log10(worst["published_one_gpu_per_s"]), y=math.log10(worst["predicted_one_gpu_per_s"]), ax=-60, ay=-34,
            arrowcolor=palette.odd,
            text=f"the worst fitted row: {100 * worst['one_gpu_error']:+.0f} %", font={"color": palette.odd, "size": 13}, xanchor="right",
        )
    figure.update_layout(**layout(palette, "One GPU: samples a second", height=440))
    ticks = {"type": "log", "tickvals": [10, 30, 100, 300, 1000, 3000], "tickformat": ",d", "range": [math.log10(end) for end in ends]}
    _axes(figure, palette, ticks, ticks)
    return figure


def scaling_figure(series: Sequence[Series], *, constant: float, dark: bool = False) -> go.Figure:
    """Share of perfect scaling, predicted over published, with what one number for all would say."""
    palette = DARK if dark else LIGHT
    figure = _scatter(series, "published_scaling", "predicted_scaling", palette, digits=".3f", unit=" of perfect")
    low = 0.8
    ends = [low, 1.01]
    figure.add_trace(_line(ends, ends, palette, dash="solid", width=2))
    figure.add_trace(_line(ends, [constant, constant], palette, dash="dash", width=1))
    figure.add_annotation(
        x=low, y=constant, text=f"{constant} for all", showarrow=False, xanchor="left", yshift=10, font={"color": palette.muted, "size": 13}
    )
    figure.update_layout(**layout(palette, "Several GPUs: share of perfect scaling", height=440))
    ticks = {"tickvals": [0.8, 0.85, 0.9, 0.95, 1.0], "tickformat": ".0%", "range": ends}
    _axes(figure, palette, ticks, ticks)
    return figure


@dataclass(frozen=True, kw_only=True)
class Holding:
    """Memory of one run by part, against its card."""

    label: str
    parts: Sequence[float]
    """GiB in the order of MEMORY_PARTS."""
    limit_gib: float
    published: str
    """What the source says: fits, out of memory, or a measurement."""


def memory_figure(bars: Sequence[Holding], *, dark: bool = False) -> go.Figure:
    """One lying bar per run under its name, and a line where its card ends."""
    palette = DARK if dark else LIGHT
    figure = go.Figure()
    places = list(range(len(bars)))
    for number, part in enumerate(MEMORY_PARTS):
        figure.add_trace(
            go.Bar(
                y=places, x=[bar.parts[number] for bar in bars], name=MEMORY_LABELS[part], orientation="h", width=0.3,
                marker={"color": PART_COLOURS[part][dark], "line": {"color": palette.paper, "width": 1}},
                hovertemplate=f"{MEMORY_LABELS[part]}: %{{x:.1f}} GiB<extra></extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            y=places, x=[bar.limit_gib for bar in bars], mode="markers", name="The card ends here",
            marker={"symbol": "line-ns", "size": 26, "line": {"color": palette.ink, "width": 3}},
            hovertemplate="The card holds %{x:.1f} GiB<extra></extra>",
        )
    )
    for place, bar in zip(places, bars, strict=True):
        total = sum(bar.parts)
        colour = palette.odd if total > bar.limit_gib else palette.ink
        figure.add_annotation(
            y=place - 0.19, x=0, xanchor="left", yanchor="bottom", align="left", showarrow=False, font={"size": 13, "color": palette.ink},
            text=f'{bar.label}<br><span style="color:{colour}">{total:.1f} of {bar.limit_gib:.1f} GiB</span>; {bar.published}',
        )
    figure.update_layout(**layout(palette, "Memory of one GPU (GiB)", height=170 + 78 * len(bars)), barmode="stack")
    figure.update_layout(
        legend={"orientation": "h", "y": -40 / (78 * len(bars) + 1), "yanchor": "top", "x": 0, "traceorder": "normal"}, hovermode="closest",
        margin={"l": 10, "r": 16, "b": 110},
    )
    most = max((max(sum(bar.parts), bar.limit_gib) for bar in bars), default=1.0)
    figure.update_xaxes(range=[0, most * 1.04], gridcolor=palette.grid, zeroline=False)
    figure.update_yaxes(range=[len(bars) - 0.7, -0.85], showticklabels=False, showgrid=False, zeroline=False)
    return figure


def _scatter(series: Sequence[Series], x: str, y: str, palette: Palette, *, digits: str, unit: str) -> go.Figure:
    figure = go.Figure()
    for one in reversed(series):  # the fitted rows on top
        colour = palette.right if one.strong else palette.rest
        figure.add_trace(
            go.Scatter(
                x=[row[x] for row in one.rows], y=[row[y] for row in one.rows], mode="markers", name=one.label,
                marker={
                    "symbol": one.symbol, "size": 11 if one.strong else 9, "color": colour, "opacity": 1.0 if one.strong else 0.85,
                    "line": {"color": palette.paper if one.strong else colour, "width": 1.5},
                },
                text=[_described(row) for row in one.rows],
                hovertemplate=f"%{{text}}<br>published %{{x:{digits}}}, predicted %{{y:{digits}}}{unit}<extra></extra>",
            )
        )
    return figure


def _described(row: Row) -> str:
    batch = f"batch {row['batch']}" if row["batch"] else "batch not stated"
    return f"{row['model']}, {row['gpus'] * row['nodes']} x {row['gpu']}, {row['precision']}, {batch}"


def _line(x: Sequence[float], y: Sequence[float], palette: Palette, *, dash: str, width: int) -> go.Scatter:
    return go.Scatter(
        x=x, y=y, mode="lines", showlegend=False, hoverinfo="skip", line={"color": palette.muted, "width": width, "dash": dash}
    )


def _axes(figure: go.Figure, palette: Palette, x: Row, y: Row) -> None:
    figure.update_layout(hovermode="closest", legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0, "traceorder": "reversed"})
    figure.update_xaxes(title={"text": "published", "standoff": 6, "font": {"size": 14}}, gridcolor=palette.grid, zeroline=False, **x)
    figure.update_yaxes(title={"text": "predicted", "standoff": 6, "font": {"size": 14}}, gridcolor=palette.grid, zeroline=False, **y)
    figure.update_layout(margin={"l": 56, "r": 8, "b": 104})
