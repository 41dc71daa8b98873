"""Plotly figures of what has finished: one run in full, and the race of several on one virtual clock.

Owns the look of these figures (UX section 5). Must not start runs, read records or import streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pages.components.source_words import seconds_of
from scenarios.catalog import Metric
from scenarios.telemetry import Sample

Role = Literal["odd", "rest", "right"]
"""Colour means role, never GPU number."""

METRICS: dict[Metric, tuple[str, str, str]] = {
    "busy": ("GPU busy (nvidia-smi)", "%", "gpu_util"),
    "useful": ("Useful work", "%", "sm_active"),
    "memory": ("Memory", "GiB", "memory_gib"),
    "power": ("Power", "W", "power_w"),
    "apart": ("Weights apart from rank 0", "", "weights_apart"),
    "learning_rate": ("Learning rate", "", "learning_rate"),
}
"""Per metric: label, unit and the Sample field it shows."""

_FRAMES = 48


@dataclass(frozen=True, kw_only=True)
class Palette:
    """The colours of one theme, from UX section 5."""

    paper: str
    ink: str
    muted: str
    grid: str
    odd: str
    rest: str
    right: str

    def text(self, role: Role) -> str:
        """A colour of enough contrast to read: the rest's is for fills only."""
        return self.ink if role == "rest" else self.of(role)

    def of(self, role: Role) -> str:
        return {"odd": self.odd, "rest": self.rest, "right": self.right}[role]


LIGHT = Palette(paper="#FBFAF7", ink="#1B1F27", muted="#5B6472", grid="#E4E1D8", odd="#B3380B", rest="#6F8AA3", right="#0F766E")
DARK = Palette(paper="#12161D", ink="#E8EBF0", muted="#A3ADBA", grid="#2A313C", odd="#FF8A4C", rest="#7C9DBB", right="#4FD1B8")


@dataclass(frozen=True, kw_only=True)
class Racer:
    """One run in a race: `progress` holds (virtual seconds, percent of the epoch's distinct samples trained), in order."""

    label: str
    progress: Sequence[tuple[float, float]]
    epoch_s: float
    role: Role
    measured: bool = True
    """False where the end of the epoch is extrapolated from the rate so far."""


def run_figure(
    samples: Sequence[Sample], *, metric: Metric = "busy", odd_rank: int | None = None,
    limit: float | None = None, source: str = "virtual", dark: bool = False,
) -> go.Figure:
    """One small chart per GPU on common axes; what was not measured is a gap. `limit` draws the card's line (GiB or W)."""
    palette = DARK if dark else LIGHT
    title, unit, field = METRICS[metric]
    ranks = sorted({sample.rank for sample in samples})
    figure = make_subplots(rows=max(1, len(ranks)), cols=1, shared_xaxes=True, vertical_spacing=0.02)
    values = [value for sample in samples if (value := getattr(sample, field)) is not None]
    top = 100.0 if unit == "%" else max([*values, limit or 0.0], default=1.0) * 1.05 or 1.0
    for row, rank in enumerate(ranks, start=1):
        mine = [sample for sample in samples if sample.rank == rank]
        colour = palette.odd if rank == odd_rank else palette.rest
        figure.add_trace(
            go.Scatter(
                x=[sample.end_ns / 1e9 for sample in mine], y=[getattr(sample, field) for sample in mine], name=f"GPU {rank}",
                mode="lines", line={"color": colour, "width": 2, "shape": "vh"},
                fill="tozeroy", connectgaps=False,
                hovertemplate=f"GPU {rank}, %{{x:.1f}} s: %{{y:.4~g}} {unit}<extra></extra>",
            ),
            row=row, col=1,
        )
        figure.update_yaxes(
            row=row, col=1, range=[0, top], tickvals=[top / 2, top], tickformat=".3~g", title={"text": f"GPU {rank}", "standoff": 4},
            gridcolor=palette.grid, zeroline=False,
        )
        if limit is not None:
            figure.add_hline(y=limit, row=row, col=1, line={"color": palette.ink, "width": 1, "dash": "dot"})
    figure.update_xaxes(gridcolor=palette.grid, zeroline=False)
    figure.update_xaxes(title_text=seconds_of(source), row=max(1, len(ranks)), col=1)
    heading = f"{title}{f' ({unit})' if unit else ''}, {source}"
    figure.update_layout(**layout(palette, heading, height=100 + 58 * max(1, len(ranks))), showlegend=False)
    return figure


def race_figure(racers: Sequence[Racer], *, source: str = "virtual", dark: bool = False) -> go.Figure:
    """Epoch progress of several runs on one clock, to a common finish line, each labelled where it ends.

    Opens finished; Play runs it again.
    """
    palette = DARK if dark else LIGHT
    end_s = max((max(racer.epoch_s, racer.progress[-1][0]) for racer in racers if racer.progress), default=1.0)
    figure = go.Figure(
        data=[_racer_trace(racer, end_s, palette) for racer in racers],
        frames=[
            go.Frame(name=f"{end_s * step / _FRAMES:.2f}", data=[_racer_trace(racer, end_s * step / _FRAMES, palette) for racer in racers])
            for step in range(_FRAMES + 1)
        ],
    )
    figure.add_hline(
        y=100, line={"color": palette.ink, "width": 2}, annotation={"text": "finish: every sample trained once", "font": {"size": 13}},
        annotation_position="top left",
    )
    for racer in racers:
        figure.add_annotation(
            x=min(racer.epoch_s, end_s), y=100, text=f"{racer.label}: {racer.epoch_s:.1f} s{'' if racer.measured else ' at this rate'}",
            showarrow=True, arrowhead=0, arrowcolor=palette.of(racer.role), ax=0, ay=26 + 22 * racers.index(racer),
            xanchor="right" if racer.epoch_s > 0.6 * end_s else "left", font={"color": palette.text(racer.role), "size": 14},
        )
    figure.update_layout(**layout(palette, f"One epoch, three ways of feeding eight GPUs, {source}", height=420), **_play_button(palette))
    figure.update_layout(showlegend=False)
    figure.update_xaxes(title_text=seconds_of(source), range=[0, end_s * 1.02], gridcolor=palette.grid, zeroline=False)
    figure.update_yaxes(
        title_text="epoch trained (%)", range=[0, 112], tickvals=[0, 25, 50, 75, 100], gridcolor=palette.grid, zeroline=False
    )
    return figure


def _racer_trace(racer: Racer, until_s: float, palette: Palette) -> go.Scatter:
    points = [(0.0, 0.0), *((t_s, pct) for t_s, pct in racer.progress if t_s <= until_s)]
    return go.Scatter(
        x=[t_s for t_s, _ in points], y=[min(100.0, pct) for _, pct in points], name=racer.label, mode="lines",
        line={"color": palette.of(racer.role), "width": 3, "dash": {"odd": "solid", "rest": "dash", "right": "solid"}[racer.role]},
        hovertemplate=f"{racer.label}, %{{x:.1f}} s: %{{y:.0f}} % of the epoch<extra></extra>",
    )


def _play_button(palette: Palette) -> dict[str, Any]:
    play = {"frame": {"duration": 120, "redraw": False}, "transition": {"duration": 0}, "fromcurrent": False}
    stop = {"frame": {"duration": 0, "redraw": False}, "mode": "immediate"}
    return {
        "updatemenus": [
            {
                "type": "buttons", "direction": "left", "x": 0, "y": -0.2, "xanchor": "left", "yanchor": "top", "showactive": False,
                "bgcolor": palette.paper, "bordercolor": palette.muted, "font": {"color": palette.ink},
                "buttons": [
                    {"label": "Play", "method": "animate", "args": [None, play]},
                    {"label": "Stop", "method": "animate", "args": [[None], stop]},
                ],
            }
        ],
    }


def layout(palette: Palette, title: str, *, height: int) -> dict[str, Any]:
    """Paper, type and margins that all figures share."""
    return {
        "title": {"text": title, "x": 0, "xanchor": "left", "font": {"size": 17}},
        "height": height,
        "paper_bgcolor": palette.paper, "plot_bgcolor": palette.paper,
        "font": {"family": '"Source Sans", "Source Sans 3", sans-serif', "size": 14, "color": palette.ink},
        "margin": {"l": 60, "r": 24, "t": 48, "b": 56},
        "hovermode": "x unified" if height <= 420 else "closest",
    }
