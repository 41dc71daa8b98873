"""The figures of finished runs: gaps stay gaps, roles have colours, a race has a finish line."""

from __future__ import annotations

from pages.components.figures import DARK, LIGHT, Racer, race_figure, run_figure
from scenarios.telemetry import Sample


def sample(rank: int, end_s: float, util: float | None) -> Sample:
    return Sample(
        rank=rank, end_ns=round(end_s * 1e9), step=1, epoch=0, epoch_pct=1.0, gpu_util=util, sm_active=util, spin_pct=0.0,
        memory_gib=40.0, power_w=100.0, learning_rate=0.1, weights_apart=0.0,
    )


def test_one_chart_per_gpu_with_gaps_where_nothing_was_measured() -> None:
    samples = [sample(rank, t / 5, None if rank == 1 and t == 2 else 50.0) for t in range(1, 4) for rank in range(2)]
    figure = run_figure(samples, metric="busy", odd_rank=0)
    assert [trace.name for trace in figure.data] == ["GPU 0", "GPU 1"]
    assert list(figure.data[1].y) == [50.0, None, 50.0]
    assert figure.data[1].connectgaps is False
    assert figure.data[0].line.color == LIGHT.odd
    assert figure.data[1].line.color == LIGHT.rest
    assert "virtual" in figure.layout.title.text


def test_no_accent_where_no_gpu_is_odd_and_the_limit_is_drawn() -> None:
    figure = run_figure([sample(0, 0.2, 10.0)], metric="memory", limit=79.15, dark=True)
    assert figure.data[0].line.color == DARK.rest
    assert figure.layout.shapes[0].y0 == 79.15
    assert figure.layout.yaxis.range[1] > 79.15


def test_an_empty_run_is_an_empty_figure() -> None:
    assert len(run_figure([]).data) == 0


def test_a_race_opens_finished_and_can_be_played() -> None:
    racers = [
        Racer(label="Sharded", progress=[(1.0, 25.0), (4.0, 100.0)], epoch_s=4.0, role="right"),
        Racer(label="Unsharded", progress=[(10.0, 35.0)], epoch_s=32.0, role="rest", measured=False),
    ]
    figure = race_figure(racers)
    assert figure.data[0].y[-1] == 100.0
    assert figure.layout.shapes[0].y0 == 100
    assert [trace.name for trace in figure.data] == ["Sharded: 4.0 s", "Unsharded: 32.0 s at this rate"]
    assert len(figure.frames[0].data[0].x) == 1, "a race starts at zero"
    assert figure.layout.updatemenus[0].buttons[0].label == "Play"


def test_racers_that_finish_together_cover_neither_each_other_nor_their_names() -> None:
    whole = [(2.0, 50.0), (4.0, 100.0)]
    racers = [
        Racer(label="Ill", progress=whole, epoch_s=4.0, role="odd"), Racer(label="Healthy", progress=whole, epoch_s=4.01, role="right"),
        Racer(label="Slow", progress=[(8.0, 100.0)], epoch_s=8.0, role="rest"),
    ]
    figure = race_figure(racers)
    ill, healthy, slow = (trace.line.width for trace in figure.data)
    assert ill > healthy == slow, "the line below shows on both sides of the one that is drawn over it"
    assert [annotation.text for annotation in figure.layout.annotations] == ["finish: every sample trained once"]
    assert figure.layout.showlegend
    assert (figure.layout.legend.y, figure.layout.legend.yanchor) == (1, "bottom"), "names stand above the plot, one below the other"
    assert figure.layout.margin.t - race_figure(racers[:2]).layout.margin.t > 18
