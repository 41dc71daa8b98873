"""The symptom finder and the printable page through navigation.py: nothing chosen, ranked, contradictory, hostile; pictures or why not."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.components.lane_picture import APART, GAP, LANE, LEFT, TALL, WIDTH, drawn, lanes_svg
from scenarios.telemetry import Sample
from tests.pages.conftest import PretendedRuns
from tests.pages.test_lesson_page import html_of, labels

ROOT = Path(__file__).resolve().parents[2]


def open_page(name: str, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20)
    for key, value in query.items():
        page.query_params[key] = value
    page.run()
    page.switch_page(name).run()
    assert not page.exception
    return page


def test_nothing_chosen_says_where_to_look(pretended: PretendedRuns) -> None:
    page = open_page("finder.py")
    assert "Nothing chosen yet" in html_of(page)
    assert any("nvidia-smi" in block.value for block in page.code)


def test_the_address_ranks_and_what_is_wrong_in_it_is_said(pretended: PretendedRuns) -> None:
    page = open_page("finder.py", busy="only0", processes="one_each", memory="<script>")
    shown = html_of(page)
    assert "All data goes through GPU 0" in shown.split("at-causes")[1][:300]
    assert "A part of this link was left out" in shown
    assert "<script>" not in shown
    assert "Clear all" in labels(page)


def test_the_printable_page_says_where_a_picture_is_missing(pretended: PretendedRuns) -> None:
    page = open_page("symptoms.py")
    shown = html_of(page)
    assert "Run them now" in labels(page)
    assert "No recording here yet." in shown
    assert "No run shows this here." in shown
    assert shown.count('class="pg-symptom"') >= 15


def _sample(**changes: Any) -> Sample:
    full = Sample(
        rank=0, end_ns=100, step=1, epoch=0, epoch_pct=1.0, gpu_util=100.0, sm_active=50.0, spin_pct=0.0, memory_gib=12.0, power_w=1.0,
        learning_rate=0.1, weights_apart=0.0,
    )
    return dataclasses.replace(full, **changes)


def test_lanes_are_drawn_from_samples_with_a_gap_where_nothing_was_measured() -> None:
    samples = [_sample(), _sample(rank=1, gpu_util=None, sm_active=None), _sample(rank=2, spin_pct=80.0)]
    shown = lanes_svg(samples, odd_rank=0, how=drawn(samples, "busy"))
    assert shown.count("<g") == 3
    assert shown.count('<g class="o">') == 1
    assert f'class="b" d="M{LEFT:.1f} 0.0H{WIDTH:.1f}"' in shown
    assert 'class="b" d=""' in shown, "no counter, no line"
    top = TALL + APART + LANE + GAP
    assert f'class="h" d="M{LEFT:.1f} {top + LANE * 0.8:.1f}V{top:.1f}' in shown, "what waits is hatched, from the top down"
    assert ElementTree.fromstring(shown).tag.endswith("svg")


@pytest.mark.parametrize(("peak_gib", "caption"), [(70.0, "memory, against the card's 79 GiB"), (12.0, "memory, up to 12.0 GiB")])
def test_memory_is_drawn_against_what_shows_its_difference(peak_gib: float, caption: str) -> None:
    how = drawn([_sample(memory_gib=peak_gib)], "memory", memory_limit_gib=79.15)
    assert how.caption == caption
    share = how.solid(_sample(memory_gib=peak_gib))
    assert share is not None
    assert 0.8 < share <= 1


def test_a_contradiction_and_an_opened_cause_say_what_is_needed(pretended: PretendedRuns) -> None:
    page = open_page("finder.py", busy="only0", memory="only0", processes="only0", ends="oom")
    shown = html_of(page)
    assert "No single cause shows all of this" in shown
    assert "Only one process was launched" in shown
    for needed in ("Confirm it on your cluster", "✓ healthy", "✗ this cause", "The fix", "speaks against it"):
        assert needed in shown
    page = open_page("finder.py", steps="same")
    assert "rank 0: 5005 steps of 256, RandomSampler" in html_of(page)
    assert "sharded.py, the fix" in html_of(page)


def test_a_chip_goes_into_the_address_and_out_again(pretended: PretendedRuns) -> None:
    page = open_page("finder.py", busy="all_high")
    chips = next(group for group in page.button_group if group.key == "finder-steps")
    chips.set_value("same").run()
    assert page.query_params["steps"] in ("same", ["same"])
    assert "The data is not sharded" in html_of(page)
    next(button for button in page.button if button.key == "finder-clear").click().run()
    assert "steps" not in page.query_params
    assert "Nothing chosen yet" in html_of(page)
