"""Where time goes, drawn: what the figures hold is what the breakdown says, no part looks like another, and texts are escaped."""

from __future__ import annotations

import csv
import io
import itertools

import pytest

from pages.components.figures import DARK, LIGHT
from pages.components.time_figures import (
    GAPS,
    SHORT,
    breakdown_csv,
    breakdown_figure,
    breakdown_table,
    diagnosis_html,
    fill_of,
    legend_html,
    parts_drawn,
    timeline_figure,
)  # fmt: skip
from pages.time import few_of
from scenarios.analysis.breakdown import IDLE, PART_LABELS, PARTS, RankBreakdown, Segment
from scenarios.analysis.diagnosis import Diagnosis
from scenarios.analysis.findings import Finding

MS = 1_000_000


def rank(number: int, **ms: int) -> RankBreakdown:
    parts = {part: ms.get(part, 0) * 10 * MS for part in PARTS}
    return RankBreakdown(
        rank=number, steps=10, window_ns=sum(parts.values()), parts_ns=parts, hidden_all_reduce_ns=20 * MS
    )


RANKS = (rank(0, forward=30, backward=60, all_reduce=10), rank(1, forward=20, backward=50, spin=30))


def test_bars_add_up_to_the_step() -> None:
    figure = breakdown_figure(RANKS)
    assert [trace.name for trace in figure.data] == [PART_LABELS[part] for part in ("forward", "backward", "all_reduce", "spin")]
    assert [sum(trace.x[index] for trace in figure.data) for index in (0, 1)] == pytest.approx([100, 100])
    assert figure.data[0].text == ("30 %", "20 %")
    assert "100 ms" in figure.layout.title.text
    assert figure.layout.title.text.endswith("virtual")


def segment(rank_number: int, part: str, start_s: float, end_s: float, *, lane: str = "gpu", filled: float = 1.0) -> Segment:
    return Segment(rank=rank_number, lane=lane, part=part, start_s=start_s, end_s=end_s, filled=filled)  # type: ignore[arg-type]


LINE = (
    segment(0, "forward", 0, 0.04), segment(0, "backward", 0.04, 0.1), segment(0, "all_reduce", 0.06, 0.1, lane="beside"),
    segment(3, "wait", 0, 0.02), segment(3, "forward", 0.02, 0.1, filled=0.4),
)  # fmt: skip


def test_the_timeline_places_every_stretch_in_its_row() -> None:
    figure = timeline_figure(LINE)
    forward = next(trace for trace in figure.data if trace.name == "Forward")
    assert (list(forward.base), list(forward.x)) == ([0, 20], pytest.approx([40, 80]))
    assert list(figure.layout.yaxis.ticktext) == ["GPU 0", "GPU 3"]
    beside = next(trace for trace in figure.data if trace.name == "All-reduce, exposed")
    assert beside.width[0] < forward.width[0]
    assert -1 < beside.y[0] < forward.y[0] == 0
    assert figure.layout.xaxis.title.text == "virtual ms"
    assert timeline_figure([segment(0, "forward", 0, 3)], source="nvml").layout.xaxis.title.text == "s"


def test_launch_gaps_lower_the_bar_within_an_outline() -> None:
    figure = timeline_figure(LINE)
    forward = next(trace for trace in figure.data if trace.name == "Forward")
    assert forward.width[1] == pytest.approx(0.4 * forward.width[0])
    assert GAPS in [trace.name for trace in figure.data]
    assert SHORT["forward"] in figure.data[-1].text, "a bar too low for its name has it above"
    assert GAPS not in [trace.name for trace in timeline_figure(LINE[:3]).data]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_no_two_parts_look_alike_and_lost_time_is_striped(palette) -> None:
    fills = {part: fill_of(part, palette) for part in PARTS}
    for one, other in itertools.combinations(PARTS, 2):
        assert (fills[one].colour, fills[one].shape) != (fills[other].colour, fills[other].shape)
    assert all(fills[part].shape for part in (*IDLE, "spin"))
    assert len({fills[part].shape for part in (*IDLE, "spin")}) == 1 + len(IDLE)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_names_on_bars_can_be_read(palette) -> None:
    def luminance(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for part in PARTS:
        fill = fill_of(part, palette)
        darker, lighter = sorted((luminance(fill.colour), luminance(fill.text)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, part


def test_the_legend_names_what_is_drawn_and_nothing_else() -> None:
    assert parts_drawn([*LINE, segment(0, "copy", 0, 0.0001)]) == ["forward", "backward", "all_reduce", "wait"]
    html = legend_html(["wait", "forward"], gaps=True)
    assert html.index("Forward") < html.index("Idle: another rank is late") < html.index(GAPS)
    assert html.count("<li>") == 3


def test_csv_and_table_hold_the_figures() -> None:
    rows = list(csv.DictReader(io.StringIO(breakdown_csv(RANKS, source="virtual"))))
    assert [row["gpu"] for row in rows] == ["0", "1"]
    assert rows[0]["source"] == "virtual"
    assert sum(float(rows[1][f"{part}_s"]) for part in PARTS) == pytest.approx(float(rows[1]["step_s"])) == pytest.approx(0.1)
    assert float(rows[0]["hidden_all_reduce_s"]) == pytest.approx(0.002)
    assert 'data-label="Spinning in a collective">30.00</td>' in breakdown_table(RANKS)


def test_the_diagnosis_is_ranked_in_words_and_escaped() -> None:
    findings = (
        Finding(cause="straggler", title="GPU 3 <b> is slow", confidence=0.97, evidence=("It takes 30 % & more.",), rank=3),
        Finding(cause="healthy", title="Nothing", confidence=0.3, evidence=()),
    )
    html = diagnosis_html(Diagnosis(findings=findings, enough=True, sentence=""))
    assert "GPU 3 &lt;b&gt; is slow" in html
    assert "30\u00a0% &amp; more." in html
    assert html.index("Very likely (97 %)") < html.index("Possible (30 %)")
    assert "Not enough evidence: &lt;x&gt;." in diagnosis_html(Diagnosis(findings=(), enough=False, sentence="Not enough evidence: <x>."))


def test_four_rows_hold_the_gpus_that_a_finding_names() -> None:
    assert few_of(list(range(8)), []) == [0, 2, 4, 7]
    assert few_of(list(range(8)), [3]) == [0, 2, 3, 4]
    assert few_of([0, 1, 2, 3, 4], [9]) == [0, 1, 2, 4]
