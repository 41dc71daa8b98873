"""The lab's figures: memory against the card, the scaling curve with its ideal, the memory edge, bars, and runs over one another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pages.components.figures import LIGHT
from pages.components.lab_figures import (
    MEMORY_PARTS,
    MemoryBar,
    Pinned,
    SweptPoint,
    bars_figure,
    batch_figure,
    memory_figure,
    overlay_figure,
    scaling_figure,
)
from scenarios.telemetry import Sample


def sample(rank: int, end_s: float, util: float | None) -> Sample:
    return Sample(
        rank=rank, end_ns=round(end_s * 1e9), step=1, epoch=0, epoch_pct=1.0, gpu_util=util, sm_active=util, spin_pct=0.0,
        memory_gib=40.0, power_w=100.0, learning_rate=0.1, weights_apart=0.0,
    )


def test_memory_is_stacked_by_part_against_the_cards_limit() -> None:
    bars = [MemoryBar(label="64", parts=(1, 2, 3, 4, 5, 6)), MemoryBar(label="128", parts=(1, 2, 3, 70, 5, 6), chosen=True)]
    figure = memory_figure(bars, limit_gib=79.0, measured=("128", 80.0))
    assert figure.layout.barmode == "stack"
    assert [sum(trace.y[index] for trace in figure.data[: len(MEMORY_PARTS)]) for index in (0, 1)] == [21, 87]
    assert figure.layout.shapes[0].y0 == 79.0
    texts = [(note.x, note.text) for note in figure.layout.annotations[:2]]
    assert texts == [(0, "<b>21 GiB</b>"), (1, "<b>87 GiB</b>, too much")]
    assert (figure.data[-1].name, list(figure.data[-1].y)) == ("Measured in this run", [80.0])
    assert figure.data[0].marker.opacity == (0.55, 1.0), "the chosen batch stands out"


def test_the_scaling_curve_has_its_ideal_line() -> None:
    points = [SweptPoint(label=str(n), number=n, outcome="finished", speed=0.9 * n) for n in (1, 4)]
    points.append(SweptPoint(label="8", number=8, outcome="waiting"))
    figure = scaling_figure(points)
    ideal, measured = figure.data
    assert (list(ideal.x), list(ideal.y)) == ([0, 8], [0, 8])
    assert (list(measured.x), list(measured.y)) == ([1, 4], [0.9, 3.6])
    assert list(measured.customdata) == pytest.approx([90, 90])
    assert list(figure.layout.xaxis.tickvals) == [1, 4, 8], "points that are still to come have their place"


def test_the_memory_edge_is_marked_where_the_card_was_full() -> None:
    points = [
        SweptPoint(label="256", number=256, outcome="finished", rate=900.0, memory_gib=20.0),
        SweptPoint(label="512", number=512, outcome="finished", rate=1000.0, memory_gib=50.0),
        SweptPoint(label="1,024", number=1024, outcome="out_of_memory", memory_gib=78.0),
    ]
    figure = batch_figure(points, limit_gib=79.0)
    assert list(figure.data[0].y) == [900.0, 1000.0, None]
    assert list(figure.data[1].y) == [20.0, 50.0, None]
    assert "<b>out of memory</b>" in [note.text for note in figure.layout.annotations]
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (1.5, 2.5)
    assert list(figure.data[2].x) == ["1,024"]
    whole = batch_figure(points[:2], limit_gib=79.0)
    assert "<b>out of memory</b>" not in [note.text for note in whole.layout.annotations]


def test_bars_say_why_a_value_has_none() -> None:
    points = [
        SweptPoint(label="NVLink 3", number=None, outcome="finished", rate=1234.0),
        SweptPoint(label="PCIe 4", number=None, outcome="finished", rate=400.0),
        SweptPoint(label="PCIe 3", number=None, outcome="failed"),
    ]
    figure = bars_figure(points, knob="Link")
    assert list(figure.data[0].text) == ["1,234/s", "400/s", "failed"]
    assert list(figure.data[0].marker.color) == [LIGHT.right, LIGHT.rest, LIGHT.rest]
    empty = bars_figure([SweptPoint(label="a", number=None, outcome="waiting")], knob="Link")
    assert empty.layout.yaxis.showticklabels is False


def test_compared_runs_are_told_apart_by_colour_and_dash_and_gaps_stay_gaps() -> None:
    runs = [
        Pinned(label="A", samples=[sample(0, 0.2, 90.0), sample(1, 0.2, 10.0)]),
        Pinned(label="B", samples=[sample(0, 0.2, 50.0), sample(0, 0.4, None)]),
    ]
    figure = overlay_figure(runs, metric="busy")
    assert [(trace.name, trace.line.dash) for trace in figure.data] == [("A", "solid"), ("B", "dash")] * 2
    assert len({trace.line.color for trace in figure.data}) == 2
    assert [trace.showlegend for trace in figure.data] == [True, True, False, False]
    assert list(figure.data[1].y) == [50.0, None]
    assert overlay_figure([Pinned(label="A", samples=[])], metric="memory").layout.title.text == "Memory (GiB), virtual"
    assert overlay_figure([runs[0], replace(runs[1], source="nvml")], metric="busy").layout.title.text.endswith(", virtual and nvml")
