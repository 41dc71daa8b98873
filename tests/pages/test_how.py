"""The page "How these GPUs work" without a browser: it comes from what is committed, and hides no error."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages import how
from pages.components.figures import DARK, LIGHT
from pages.components.how_figures import Holding, memory_figure, one_gpu_figure, scaling_figure
from scenarios.costs import fit, validate
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS, NETWORKS
from scenarios.costs.published import memory_rows

ROOT = Path(__file__).resolve().parents[2]
FOUND = validate.committed()
ROWS = [*FOUND["throughput"], *FOUND["held_out_rows"]]


def test_the_page_fits_nothing_while_a_visitor_waits(lab_page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("computed while a visitor waits")

    for module, name in ((validate, "validate"), (fit, "fit_rates"), (validate, "fit"), (validate, "micro_step_seconds")):
        monkeypatch.setattr(module, name, refused)
    page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20).run()
    page.switch_page("how.py").run()
    assert not page.exception
    text = _html(page)
    assert "The training code runs for real; times, memory and power are modelled." in text
    for constant in FOUND["constants"]:
        assert how.WHAT_CONSTANTS_MEAN[constant["name"]] in text
    for gpu in GPUS.values():
        assert gpu.label in text
        assert gpu.source in text
    for link in (*LINKS.values(), *NETWORKS.values()):
        assert link.label in text


def _html(page: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in page.get("html"))


def test_every_row_is_in_a_table_with_its_errors() -> None:
    for rows in (FOUND["throughput"], FOUND["held_out_rows"]):
        table = how.rows_table(rows, "at")
        assert table.count("<tr>") == len(rows) + 1
        for row in rows:
            assert row["source"].split(" (")[0] in table
            for error in ("one_gpu_error", "leave_one_out_one_gpu_error", "scaling_error"):
                if row[error] is not None:
                    assert how._signed(row[error]) in table
    far = sum(abs(row[error]) > 0.3 for row in ROWS for error in ("one_gpu_error", "scaling_error") if row[error] is not None)
    assert sum(how.rows_table(rows, "at").count("pg-far") for rows in (FOUND["throughput"], FOUND["held_out_rows"])) == far > 0


def test_sentences_name_the_worst_of_each_kind() -> None:
    said = "\n".join(how.sentences(FOUND))
    assert said.startswith(f"{FOUND['fitted_constants']} constants")
    for kind in (FOUND["one_gpu"], FOUND["scaling"], FOUND["constant_scaling"], FOUND["held_out"]["tuned"]["one_gpu"]):
        assert re.search(rf"{100 * kind['worst']:.1f}\s%", said), kind
    for rows in ([row for row in ROWS if not row["tuned"]],):
        for error in ("one_gpu_error", "scaling_error"):
            worst = max((row[error] for row in rows if row[error] is not None), key=abs)
            assert f"{100 * worst:+.1f}" in said


def test_pictures_tell_kinds_apart_by_shape_and_label() -> None:
    for dark in (False, True):
        palette = DARK if dark else LIGHT
        one = one_gpu_figure(how.series(FOUND, "predicted_one_gpu_per_s"), worst=FOUND["throughput"][3], dark=dark)
        several = scaling_figure(how.series(FOUND, "scaling_error"), constant=0.945, dark=dark)
        for figure in (one, several):
            marks = [trace for trace in figure.data if trace.mode == "markers"]
            assert len({trace.marker.symbol for trace in marks}) == len({trace.name for trace in marks}) == 4
            assert figure.layout.paper_bgcolor == palette.paper
        assert one.layout.xaxis.type == one.layout.yaxis.type == "log"
        points = sum(len(trace.x) for trace in one.data if trace.mode == "markers")
        assert points == sum(row["predicted_one_gpu_per_s"] is not None for row in ROWS)


def test_memory_bars_show_every_published_limit_against_its_card() -> None:
    bars = how.holdings()
    assert len(bars) == 1 + sum(1 + (row.oom_batch is not None) for row in memory_rows())
    for bar in bars:
        assert (sum(bar.parts) > bar.limit_gib) == (bar.published == "published: out of memory")
    figure = memory_figure([Holding(label="one", parts=(1, 2, 3, 4, 5, 6), limit_gib=20.0, published="published: out of memory")])
    assert [trace.x[0] for trace in figure.data] == [1, 2, 3, 4, 5, 6, 20.0]
    assert LIGHT.odd in figure.layout.annotations[0].text
