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
_NAME_PX = 21
"""Height of a racer's name in the legend."""
_TIE = 0.01
"""Racers whose finishes are nearer than this share of the axis draw one line."""


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
    """Epoch progress of several runs on one clock, to a common finish line; who is who, and when through, stands above it.

    Opens finished; Play runs it again.
    """
    palette = DARK if dark else LIGHT
    end_s = max((max(racer.epoch_s, racer.progress[-1][0]) for racer in racers if racer.progress), default=1.0)
    widths = [_width(racers, place, end_s) for place in range(len(racers))]

    def lines(until_s: float) -> list[go.Scatter]:
        return [_racer_trace(racer, until_s, width, palette) for racer, width in zip(racers, widths, strict=True)]

    times = [end_s * step / _FRAMES for step in range(_FRAMES + 1)]
    figure = go.Figure(data=lines(end_s), frames=[go.Frame(name=f"{until_s:.2f}", data=lines(until_s)) for until_s in times])
    figure.add_hline(
        y=100, line={"color": palette.ink, "width": 2}, annotation={"text": "finish: every sample trained once", "font": {"size": 13}},
        annotation_position="top left",
    )
    figure.update_layout(**layout(palette, f"Epoch progress, {source}", height=424 + _NAME_PX * len(racers)))
    figure.update_layout(**_play_button(palette), hovermode="x unified")
    # Names lie outside the plot: beside the lines they would cover each other and the lines wherever two finish together.
    figure.update_layout(
        showlegend=True, margin_t=52 + _NAME_PX * len(racers), title={"y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 12}},
        legend={
            "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False, "bgcolor": palette.paper,
        },
    )
    figure.update_xaxes(title_text=seconds_of(source), range=[0, end_s * 1.02], gridcolor=palette.grid, zeroline=False)
    figure.update_yaxes(
        title_text="epoch trained (%)", range=[0, 112], tickvals=[0, 25, 50, 75, 100], gridcolor=palette.grid, zeroline=False
    )
    return figure


def _width(racers: Sequence[Racer], place: int, end_s: float) -> int:
    """Of a racer's line: one that a later racer ties with is broader, so that it shows on both sides of that one."""
    ties = [other for other in racers[place + 1 :] if abs(other.epoch_s - racers[place].epoch_s) < _TIE * end_s]
    return 3 + 5 * len(ties)


def _racer_trace(racer: Racer, until_s: float, width: int, palette: Palette) -> go.Scatter:
    points = [(0.0, 0.0), *((t_s, pct) for t_s, pct in racer.progress if t_s <= until_s)]
    return go.Scatter(
        x=[t_s for t_s, _ in points], y=[min(100.0, pct) for _, pct in points], mode="lines",
        name=f"{racer.label}: {racer.epoch_s:.1f} s{'' if racer.measured else ' at this rate'}",
        line={"color": palette.of(racer.role), "width": width, "dash": {"odd": "solid", "rest": "dash", "right": "solid"}[racer.role]},
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
