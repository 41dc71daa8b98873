"""The section Where time goes without a browser: what it says of a record, of a short one and of one without spans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from scenarios.record import SPANS, append_event, tick_of
from scenarios.worker.report import pack_span
from tests.scenarios.analysis.made import sample
from tests.scenarios.analysis.test_causes import spans

Show = Callable[..., AppTest]


def section(run_dir: str) -> None:
    from pathlib import Path
    from types import SimpleNamespace

    from pages.time import where_time_goes

    where_time_goes(SimpleNamespace(run_id=Path(run_dir).name, run_dir=Path(run_dir)))  # type: ignore[arg-type]


@pytest.fixture
def show(tmp_path: Path) -> Show:
    """`show(spans, periods=6)`: the section on a record of four GPUs made by hand."""

    def shown(made, periods: int = 6) -> AppTest:  # type: ignore[no-untyped-def]
        run_dir = tmp_path / f"{len(made):016x}"
        run_dir.mkdir()
        append_event(run_dir, "head", {"gpus": 4, "source": "virtual", "memory_limit_gib": 80.0, "power_limit_w": 400.0})
        for period in range(periods):
            append_event(run_dir, "tick", tick_of([sample(rank, period) for rank in range(4)]))
        (run_dir / SPANS).write_text("".join(f"{pack_span(span)}\n".replace("'", '"') for span in made))
        return AppTest.from_function(section, kwargs={"run_dir": str(run_dir)}, default_timeout=30).run()

    return shown


def texts(app: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in app.get("html"))


def test_the_cause_stands_over_two_figures_a_table_and_the_data(show: Show) -> None:
    app = show(spans(forward=(30, 30, 39, 30)))
    assert not app.exception
    said = texts(app)
    assert "GPU 2 is slower than the others" in said
    assert "Very likely (97 %)" in said
    assert "pg-key" in said
    assert "/trace.json" in said
    assert len(app.get("plotly_chart")) == 2
    assert len(app.get("download_button")) == 1


def test_what_is_missing_is_said_and_nothing_is_drawn(show: Show) -> None:
    app = show([], periods=2)
    assert not app.exception
    assert "Not enough evidence: " in texts(app)
    assert "No steady step was recorded" in texts(app)
    assert not app.get("plotly_chart")
