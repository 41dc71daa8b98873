"""Where a step's time goes, drawn: the last steps of every GPU on one clock, a bar per GPU, and the diagnosis as HTML.

Owns the look of a part of time (UX section 5): work is solid and green, communication blue, lost time the warm colour in stripes, so that
no two parts differ by colour alone. Must not read records or import streamlit.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go

from pages.components.figures import DARK, LIGHT, Palette
from scenarios.analysis.breakdown import IDLE, PART_LABELS, PARTS, WORK, Part, RankBreakdown, Segment
from scenarios.analysis.diagnosis import Diagnosis, likelihood
from scenarios.analysis.findings import Finding

SHOWN = 0.005
"""A part that takes less than this share of a step on every GPU is not drawn."""

NAMED = 0.07
"""A stretch as long as this share of the picture has its name in it."""

ROOMY = 0.5
"""A bar that kernels fill to this share is high enough to hold its name."""

SHORT: dict[Part, str] = {
    "decode": "decode", "forward": "forward", "backward": "backward", "optimizer": "optimizer", "all_reduce": "all-reduce",
    "hand_off": "hand over", "spin": "spinning", "copy": "copy", "replicate": "replicating", "validate": "validating",
    "checkpoint": "checkpoint", "wait": "waits", "input": "no data", "launch": "launching",
}

GAPS = "Launch gaps: kernels fill the height"

_GPU_HEIGHT, _BESIDE_HEIGHT = 0.66, 0.15
_BESIDE_OFFSET = 0.43
_GPU_AXIS: dict[str, Any] = {"showgrid": False, "zeroline": False, "ticks": "outside", "ticklen": 6}
_NARROW = {"l": 64, "r": 16, "t": 44, "b": 52}


@dataclass(frozen=True, kw_only=True)
class Fill:
    """How a part is filled: a colour, and lines on it."""

    colour: str
    text: str
    shape: str = ""
    lines: str = ""
    solidity: float = 0.3


def fill_of(part: Part, palette: Palette) -> Fill:
    """The look of a part in one theme. Lines are faint where text may stand on them."""
    dark = palette is DARK
    if part in WORK:
        colours = ("#8CE8D6", "#4FD1B8", "#2FA58F", "#C6F5EA") if dark else ("#6DBBB1", "#0F766E", "#0A534E", "#A9DAD3")
        colour = colours[WORK.index(part)]
        light_fill = dark or part in ("decode", "optimizer")
        return Fill(
            colour=colour, text="#0B2420" if light_fill else "#FFFFFF", shape="." if part == "decode" else "",
            lines="#5FC4B0" if dark else "#3E948A", solidity=0.15,
        )
    if part in ("all_reduce", "hand_off", "copy", "replicate"):
        shapes: dict[Part, str] = {"hand_off": "/", "copy": "-", "replicate": "\\"}
        colour, lines = ("#7C9DBB", "#A9C3DA") if dark else ("#4F6C87", "#8AA3BA")
        return Fill(colour=colour, text="#0F1722" if dark else "#FFFFFF", shape=shapes.get(part, ""), lines=lines, solidity=0.2)
    if part == "validate":
        colour, lines = ("#C9A8E8", "#8E63B8") if dark else ("#6B3FA0", "#B79AD6")
        return Fill(colour=colour, text="#1B0F2A" if dark else "#FFFFFF", shape="+", lines=lines, solidity=0.2)
    if part == "spin":
        text, lines = ("#2A0F03", "#FFB28A") if dark else ("#FFFFFF", "#D9764F")
        return Fill(colour=palette.odd, text=text, shape="x", lines=lines, solidity=0.16)
    idle: dict[Part, str] = {"checkpoint": "-", "wait": "\\", "input": "/", "launch": "|"}
    return Fill(colour=palette.paper, text=palette.ink, shape=idle[part], lines="#8A5136" if dark else "#E3A98F", solidity=0.16)


def timeline_figure(segments: Sequence[Segment], *, source: str = "virtual", dark: bool = False) -> go.Figure:
    """A row per GPU: what it was for, and in the thin line below it what communication and copies did meanwhile.

    A bar is as high as kernels fill it: what is missing are launch gaps.
    """
    palette = DARK if dark else LIGHT
    ranks = sorted({segment.rank for segment in segments})
    row = {rank: -index for index, rank in enumerate(ranks)}
    end_s = max((segment.end_s for segment in segments), default=0.0)
    unit, scale = ("ms", 1000.0) if end_s < 2 else ("s", 1.0)
    figure = go.Figure()
    for part in _drawn(segments):
        mine = [segment for segment in segments if segment.part == part]
        names = [SHORT[part] if _named(segment, end_s) and segment.filled >= ROOMY else "" for segment in mine]
        figure.add_trace(
            go.Bar(
                orientation="h", name=PART_LABELS[part],
                base=[segment.start_s * scale for segment in mine], x=[(segment.end_s - segment.start_s) * scale for segment in mine],
                y=[_height_of(segment, row) for segment in mine],
                width=[_BESIDE_HEIGHT if segment.lane == "beside" else _GPU_HEIGHT * segment.filled for segment in mine],
                text=names, textposition="inside", insidetextanchor="middle", textangle=0,
                marker=_marker(part, palette), textfont={"color": fill_of(part, palette).text, "size": 12},
                customdata=[[segment.rank, segment.start_s * scale, (segment.end_s - segment.start_s) * scale] for segment in mine],
                hovertemplate=f"GPU %{{customdata[0]}}: {PART_LABELS[part]}<br>%{{customdata[2]:.3~g}} {unit}, "
                f"from %{{customdata[1]:.4~g}} {unit}<extra></extra>",
            )
        )
    gaps = [segment for segment in segments if segment.lane == "gpu" and segment.filled < 1]
    if gaps:
        figure.add_trace(_gaps(gaps, row, scale, palette))
        low = [segment for segment in gaps if _named(segment, end_s) and segment.filled < ROOMY]
        figure.add_trace(_gap_names(low, row, scale, palette))
    pauses = any(segment.part in ("validate", "checkpoint") for segment in segments)
    said = "The last steps with a pause from training, on one clock" if pauses else "The last steps on one clock"
    figure.update_layout(**_layout(palette, f"{said}, {source}", height=128 + 50 * max(1, len(ranks))), barmode="overlay", bargap=0)
    figure.update_xaxes(title_text="virtual " + unit if source == "virtual" else unit, range=[0, end_s * scale], **_axis(palette))
    figure.update_yaxes(
        tickvals=[row[rank] for rank in ranks], ticktext=[f"GPU {rank}" for rank in ranks], range=[-len(ranks) + 0.35, 0.5],
        **_GPU_AXIS, tickcolor=palette.paper,
    )
    return figure


def breakdown_figure(ranks: Sequence[RankBreakdown], *, source: str = "virtual", dark: bool = False) -> go.Figure:
    """A bar per GPU: the milliseconds of a steady step by part."""
    palette = DARK if dark else LIGHT
    figure = go.Figure()
    labels = [f"GPU {rank.rank}" for rank in ranks]
    longest_s = max((rank.step_s for rank in ranks), default=0.0)
    for part in parts_shown(ranks):
        milliseconds = [1000 * rank.parts[part] for rank in ranks]
        figure.add_trace(
            go.Bar(
                orientation="h", name=PART_LABELS[part], y=labels, x=milliseconds, marker=_marker(part, palette),
                text=[f"{100 * rank.share(part):.0f} %" if rank.share(part) >= NAMED else "" for rank in ranks],
                textposition="inside", insidetextanchor="middle", textangle=0,
                textfont={"color": fill_of(part, palette).text, "size": 13},
                customdata=[[100 * rank.share(part), 1000 * rank.hidden_all_reduce_s] for rank in ranks],
                hovertemplate=f"%{{y}}: {PART_LABELS[part]}<br>%{{x:.4~g}} ms, %{{customdata[0]:.1f}} %"
                + ("<br>hidden under kernels: another %{customdata[1]:.3~g} ms" if part == "all_reduce" else "") + "<extra></extra>",
            )
        )
    title = f"Where a step of {1000 * longest_s:.4g} ms goes, {source}"
    figure.update_layout(**_layout(palette, title, height=128 + 34 * max(1, len(ranks))), barmode="stack", bargap=0.28)
    unit = "virtual ms of a steady step" if source == "virtual" else "ms of a steady step"
    figure.update_xaxes(title_text=unit, range=[0, 1000 * longest_s], **_axis(palette))
    figure.update_yaxes(autorange="reversed", **_GPU_AXIS, tickcolor=palette.paper)
    return figure


def parts_shown(ranks: Iterable[RankBreakdown]) -> list[Part]:
    """The parts that take a visible share of any GPU's step, in order."""
    known = list(ranks)
    return [part for part in PARTS if any(rank.share(part) >= SHOWN for rank in known)]


def breakdown_csv(ranks: Sequence[RankBreakdown], *, source: str) -> str:
    """Seconds of a steady step by part, one row per GPU."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["source", "gpu", "steps", "step_s", *(f"{part}_s" for part in PARTS), "hidden_all_reduce_s"])
    for rank in ranks:
        seconds = [f"{rank.parts[part]:.9f}" for part in PARTS]
        writer.writerow([source, rank.rank, rank.steps, f"{rank.step_s:.9f}", *seconds, f"{rank.hidden_all_reduce_s:.9f}"])
    return out.getvalue()


def breakdown_table(ranks: Sequence[RankBreakdown]) -> str:
    """The figures of the bars as a table: a row per GPU."""
    parts = parts_shown(ranks)
    head = "".join(f"<th scope=col>{escape(PART_LABELS[part])}</th>" for part in parts)
    body = "".join(
        f"<tr><th scope=row>GPU {rank.rank}</th>"
        + "".join(f'<td data-label="{escape(PART_LABELS[part])}">{1000 * rank.parts[part]:.2f}</td>' for part in parts)
        + f'<td data-label="All-reduce, hidden">{1000 * rank.hidden_all_reduce_s:.2f}</td>'
        + f'<td data-label="Step">{1000 * rank.step_s:.2f}</td></tr>'
        for rank in ranks
    )
    return (
        '<div class="pg-table" role="region" aria-label="Milliseconds of a steady step by part" tabindex="0"><table>'
        f"<thead><tr><th scope=col>ms of a step</th>{head}<th scope=col>All-reduce, hidden</th><th scope=col>Step</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """The ranked causes with their evidence; confidence in words and as a bar. Every text goes in escaped."""
    if not diagnosis.enough or not diagnosis.findings:
        return f'<div class="pg-diag"><p>{_text(diagnosis.sentence)}</p></div>'
    return f'<ol class="pg-diag">{"".join(map(_finding, diagnosis.findings))}</ol>'


def _finding(finding: Finding) -> str:
    pct = round(100 * finding.confidence)
    role = "pg-well" if finding.cause == "healthy" else "pg-ill"
    evidence = "".join(f"<li>{_text(sentence)}</li>" for sentence in finding.evidence)
    return (
        f'<li class="{role}"><h3>{_text(finding.title)}</h3>'
        f'<p class="pg-sure"><span class="pg-meter" aria-hidden="true"><i style="width:{pct}%"></i></span>'
        f"{escape(likelihood(finding)).capitalize()} ({pct} %)</p><ul>{evidence}</ul></li>"
    )


def _text(sentence: str) -> str:
    """Escaped; a number and its percent sign stay on one line."""
    return escape(sentence).replace(" %", "\u00a0%")


def parts_drawn(segments: Sequence[Segment]) -> list[Part]:
    """The parts that are long enough to be seen in the timeline, in order."""
    end_s = max((segment.end_s for segment in segments), default=0.0)
    found = {segment.part for segment in segments if segment.end_s - segment.start_s >= 0.003 * end_s}
    return [part for part in PARTS if part in found]


def _drawn(segments: Iterable[Segment]) -> list[Part]:
    found = {segment.part for segment in segments}
    return [part for part in PARTS if part in found]


def _named(segment: Segment, end_s: float) -> bool:
    return segment.lane == "gpu" and segment.end_s - segment.start_s >= NAMED * end_s


def _height_of(segment: Segment, row: dict[int, int]) -> float:
    """The middle of its bar. One that kernels fill only in part stands on the floor of its row."""
    if segment.lane == "beside":
        return row[segment.rank] - _BESIDE_OFFSET
    return row[segment.rank] - _GPU_HEIGHT * (1 - segment.filled) / 2


def _gap_names(gaps: Sequence[Segment], row: dict[int, int], scale: float, palette: Palette) -> go.Scatter:
    """Names over bars that are too low to hold them."""
    return go.Scatter(
        x=[(segment.start_s + segment.end_s) / 2 * scale for segment in gaps],
        y=[row[segment.rank] + _GPU_HEIGHT * segment.filled / 2 for segment in gaps],
        text=[SHORT[segment.part] for segment in gaps], mode="text", textposition="middle center",
        textfont={"color": palette.ink, "size": 12}, hoverinfo="skip",
    )


def _gaps(gaps: Sequence[Segment], row: dict[int, int], scale: float, palette: Palette) -> go.Scatter:
    """The outline of a stretch that kernels fill only in part, at full height."""
    x: list[float | None] = []
    y: list[float | None] = []
    for segment in gaps:
        top, bottom = row[segment.rank] + _GPU_HEIGHT / 2, row[segment.rank] - _GPU_HEIGHT / 2
        left, right = segment.start_s * scale, segment.end_s * scale
        x += [left, right, right, left, left, None]
        y += [top, top, bottom, bottom, top, None]
    return go.Scatter(
        x=x, y=y, mode="lines", line={"color": palette.odd, "width": 1}, name=GAPS, hoverinfo="skip",
    )


def _marker(part: Part, palette: Palette) -> dict[str, Any]:
    fill = fill_of(part, palette)
    edge = palette.odd if part in IDLE else palette.paper
    marker: dict[str, Any] = {"color": fill.colour, "line": {"color": edge, "width": 1 if part in IDLE else 0.5}}
    if fill.shape:
        marker["pattern"] = {
            "shape": fill.shape, "fillmode": "replace", "bgcolor": fill.colour, "fgcolor": fill.lines, "size": 6, "solidity": fill.solidity,
        }
    return marker


def _axis(palette: Palette) -> dict[str, Any]:
    return {"gridcolor": palette.grid, "zeroline": False, "title_standoff": 8}


def _layout(palette: Palette, title: str, *, height: int) -> dict[str, Any]:
    return {
        "title": {"text": title, "x": 0, "xanchor": "left", "font": {"size": 17}},
        "height": height,
        "paper_bgcolor": palette.paper, "plot_bgcolor": palette.paper,
        "font": {"family": '"Source Sans", "Source Sans 3", sans-serif', "size": 14, "color": palette.ink},
        "margin": _NARROW,
        "hovermode": "closest",
        "showlegend": False,
        "uniformtext": {"minsize": 11, "mode": "hide"},
    }


def legend_html(parts: Iterable[Part], *, dark: bool = False, gaps: bool = False) -> str:
    """One legend for both figures, in HTML: it wraps on narrow screens, and screen readers read it."""
    palette = DARK if dark else LIGHT
    chosen = set(parts)
    items = "".join(_key(part, palette) for part in PARTS if part in chosen)
    if gaps:
        half = f"linear-gradient({palette.paper} 60%,{fill_of('forward', palette).colour} 60%)"
        items += _item(f"background:{half};border-color:{palette.odd}", GAPS)
    return f'<ul class="pg-key" aria-label="Parts of a step">{items}</ul>'


_ANGLES = {"/": (135,), "\\": (45,), "|": (90,), "-": (0,), "x": (45, 135)}


def _key(part: Part, palette: Palette) -> str:
    """A swatch by CSS gradients: Streamlit lets no SVG through."""
    fill = fill_of(part, palette)
    layers = [f"repeating-linear-gradient({angle}deg,{fill.lines} 0 1.5px,transparent 1.5px 5px)" for angle in _ANGLES.get(fill.shape, ())]
    if fill.shape == ".":
        layers = [f"radial-gradient({fill.lines} 1px,transparent 1.4px) 0 0/5px 5px"]
    edge = palette.odd if part in IDLE else fill.colour
    return _item(f"background:{','.join([*layers, fill.colour])};border-color:{edge}", PART_LABELS[part])


def _item(style: str, text: str) -> str:
    return f'<li><span class="pg-swatch" style="{style}" aria-hidden="true"></span>{escape(text)}</li>'
