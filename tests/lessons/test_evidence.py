"""The evidence table and the race: everything from summaries, nothing by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lessons.evidence import (
    NOT_MEASURED,
    evidence,
    headings,
    labels,
    matches_question,
    recorded_causes,
    silhouette_of,
)
from lessons.loader import CONTENT, read_lessons
from lessons.model import Lesson
from lessons.race import race, recorded_ticks
from scenarios.config import RunConfig


def _summary(utils: list[float | None], **changes: Any) -> dict[str, Any]:
    """A summary as a run of eight GPUs leaves it."""
    return {
        "scenario": "whatever", "source": "virtual", "outcome": "finished",
        "gpus": [{"rank": rank, "gpu_util": util} for rank, util in enumerate(utils)],
        "unique_fraction": 1.0, "steps_per_epoch": 25, "epoch_seconds": 4.0, "epoch_measured": True, "speedup_vs_one_gpu": 7.5,
        "replica_checksums": ["aa"] * len(utils), "peak_memory_gib": 13.2, "memory_limit_gib": 79.2, "virtual_s": 12.0,
    } | changes


PINNED = _summary([96.0] + [20.0 + rank for rank in range(7)], epoch_seconds=11.0, speedup_vs_one_gpu=2.5)
BUSY = _summary([99.0] * 8)
CRASHED = _summary(
    [None] * 8, outcome="out_of_memory", speedup_vs_one_gpu=None, epoch_seconds=None, peak_memory_gib=79.0, virtual_s=9.87,
    replica_checksums=[None] * 8,
)


def test_rows_have_the_letters_of_the_options_with_the_right_one_split(lesson: Lesson) -> None:
    rows = evidence(lesson, {})
    assert [row.label for row in rows] == ["A", "B", "C1", "C2", "D"]
    assert [row.cause_id for row in rows] == ["k5", "k7", "k2", "k9", "k3"]
    assert [row.option_id for row in rows] == ["m4", "q7", "t2", "t2", "x8"]


def test_letters_follow_the_order_in_which_options_are_shown(lesson: Lesson) -> None:
    assert labels(lesson, ["x8", "t2", "m4", "q7"]) == {"k3": "A", "k2": "B1", "k9": "B2", "k5": "C", "k7": "D"}


def test_without_a_recording_a_row_is_empty(lesson: Lesson) -> None:
    row = evidence(lesson, {"k5": None})[0]
    assert (row.measured, row.cells, row.matches, row.match) == (False, (), None, NOT_MEASURED)


def test_figures_come_from_the_summary(lesson: Lesson) -> None:
    row = {row.cause_id: row for row in evidence(lesson, {"k2": PINNED})}["k2"]
    assert (row.head, row.match, row.source) == ("C1 All data through GPU 0", "yes", "virtual")
    assert row.cells == ("96 %", "20 to 26 %", "13 of 79 GiB", "finished", "yes", "2.5x one GPU")
    assert headings(lesson) == (
        "", "GPU 0", "GPUs 1-7", "Memory", "Ended", "Weights agree", "Useful speed", "Matches the question?",
    )


@pytest.mark.parametrize(
    ("summary", "matches", "reason"),
    [
        (PINNED, True, ""),
        (BUSY, False, "GPUs 1 to 7 are not idle"),
        (_summary([30.0] * 8), False, "GPU 0 is not pinned"),
        (CRASHED, False, "the job does not run on"),
        (_summary([84.9] + [20.0] * 7), False, "GPU 0 is not pinned"),
        (_summary([85.0] + [35.0] * 7), True, ""),
        (_summary([85.0] + [20.0] * 6 + [35.1]), False, "GPUs 1 to 7 are not idle"),
        (_summary([None] * 8), None, "not measured"),
        (_summary([96.0]), None, "not measured"),
    ],
)
def test_whether_it_matches_is_judged_from_figures(lesson: Lesson, summary: dict[str, Any], matches: bool | None, reason: str) -> None:
    judged, why = matches_question(lesson, summary)
    assert judged is matches
    assert reason in why


def test_the_same_cause_with_other_figures_is_judged_otherwise(lesson: Lesson) -> None:
    """Were the table hard-coded by cause, swapping two recordings would not swap the verdicts."""
    for cause, summary, expected in (("k2", PINNED, True), ("k9", PINNED, True), ("k2", BUSY, False), ("k5", BUSY, False)):
        row = {row.cause_id: row for row in evidence(lesson, {cause: summary})}[cause]
        assert row.matches is expected


def test_out_of_memory_and_diverged_weights_are_said(lesson: Lesson) -> None:
    rows = evidence(lesson, {"k5": CRASHED, "k7": _summary([99.0] * 8, replica_checksums=list("abcdefgh"))})
    assert rows[0].cells == ("–", "–", "79 of 79 GiB", "out of memory at 9.9 s", "–", "–")
    assert rows[0].match == "no: the job does not run on"
    assert rows[1].cells[4] == "no"


@pytest.mark.parametrize(
    ("utils", "drawn"),
    [
        ([95.0] + [20.0] * 7, "only0"), ([5.0] + [99.0] * 7, "low0"), ([99.0] * 8, "all_high"), ([38.0] * 8, "all_low"),
        ([95.0] * 7 + [66.0], "all_high"), ([99.0], "all_high"),
    ],
)
def test_the_silhouette_is_read_from_the_figures(utils: list[float | None], drawn: str) -> None:
    assert silhouette_of(_summary(utils)) == drawn


def test_a_crash_and_a_run_without_figures_draw_what_they_draw() -> None:
    assert silhouette_of(CRASHED) == "all_crash"
    assert silhouette_of(_summary([None] * 8)) is None


class _Recordings:
    """Stands in for `Runs`: recordings by experiment, as folders."""

    def __init__(self, root: Path, ends: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
        self.asked: list[RunConfig] = []
        self._runs: dict[str, Any] = {}
        for name, (summary, ticks) in ends.items():
            folder = root / name
            folder.mkdir()
            events = [*(("tick", tick) for tick in ticks), ("end", {"outcome": summary["outcome"], "summary": summary})]
            lines = [json.dumps({"id": number, "event": event, "data": data}) for number, (event, data) in enumerate(events, start=1)]
            (folder / "events.jsonl").write_text("\n".join(lines) + "\n")
            self._runs[name] = type("Recorded", (), {"run_dir": folder})()

    def recording(self, config: RunConfig) -> Any:
        self.asked.append(config)
        return self._runs.get(config.scenario)


def test_recordings_are_asked_for_at_their_defaults(lesson: Lesson, tmp_path: Path) -> None:
    runs = _Recordings(tmp_path, {"rank0_loading": (PINNED, []), "large_batch": (CRASHED, [])})
    found = recorded_causes(lesson, runs)
    assert found == {"k5": CRASHED, "k7": None, "k2": PINNED, "k9": None, "k3": None}
    assert runs.asked == [RunConfig.parse({"scenario": cause.scenario}) for cause in lesson.causes]


def _ticks(epoch_s: float, until_s: float) -> list[dict[str, Any]]:
    """What a loader that is through after `epoch_s` shows every 0.2 s."""
    found = []
    for period in range(1, int(until_s / 0.2 + 0.5) + 1):
        loaded = period * 0.2 / epoch_s
        found.append({"t_ms": period * 200, "epoch": int(loaded), "epoch_pct": 100.0 * (loaded % 1.0)})
    return found


UNSHARDED = _summary(
    [99.0] * 8, unique_fraction=0.125, steps_per_epoch=200, epoch_seconds=32.0, epoch_measured=False, speedup_vs_one_gpu=1.0
)


def test_the_race_counts_each_sample_once(lesson: Lesson, tmp_path: Path) -> None:
    runs = _Recordings(tmp_path, {
        "sharded": (BUSY, _ticks(4.0, 12.0)), "rank0_loading": (PINNED, _ticks(11.0, 12.0)), "unsharded": (UNSHARDED, _ticks(32.0, 12.0)),
    })
    racers = {racer.scenario: racer for racer in race(lesson, recorded_ticks(lesson, runs))}
    assert [racer.role for racer in racers.values()] == ["right", "odd", "rest"]
    assert racers["sharded"].progress[-1] == (4.0, 100.0)
    assert racers["rank0_loading"].progress[-1] == (11.0, 100.0)
    last_s, last_pct = racers["unsharded"].progress[-1]
    assert last_s == 12.0
    assert last_pct == pytest.approx(100 * 12 / 32, abs=0.1)
    assert racers["unsharded"].projected == ((last_s, last_pct), (32.0, 100.0))
    assert racers["sharded"].projected == ()
    for racer in racers.values():
        times, shares = zip(*racer.progress, strict=True)
        assert list(times) == sorted(set(times))
        assert list(shares) == sorted(shares)


def test_training_samples_again_is_no_progress(lesson: Lesson) -> None:
    """The same ticks: half of what is processed was seen before, so useful progress halves."""
    half = replace(lesson, race=lesson.race[:2])
    ticks = _ticks(4.0, 2.0)
    healthy = _summary([99.0] * 8, epoch_measured=False)
    racers = race(half, {"sharded": (healthy, ticks), "rank0_loading": (healthy | {"unique_fraction": 0.5}, ticks)})
    assert racers[1].progress[-1][1] == pytest.approx(racers[0].progress[-1][1] / 2)


def test_batches_that_add_up_to_one_step_are_all_progress() -> None:
    """Of one data set, 42 batches make 42 steps, or 11 where four make one: both are half through after half of their epoch."""
    (lesson,) = [one for one in read_lessons(CONTENT).lessons if one.id == "bigger-steps-no-gain"]
    rates = {"each_12": (42, 8.0), "accumulate_sync": (11, 8.0), "accumulate": (11, 5.0)}
    recordings = {
        name: (
            _summary([99.0] * 8, steps_per_epoch=steps, epoch_seconds=epoch_s, samples_per_second=42 * 96 / epoch_s),
            _ticks(epoch_s, epoch_s / 2),
        )
        for name, (steps, epoch_s) in rates.items()
    }
    racers = race(lesson, recordings)
    assert [racer.scenario for racer in racers] == list(rates)
    for racer in racers:
        assert racer.progress[-2] == pytest.approx((racer.progress[-2][0], 100 * racer.progress[-2][0] / racer.epoch_s))


def test_no_race_without_the_healthy_run_and_no_lane_without_figures(lesson: Lesson) -> None:
    assert race(lesson, {"rank0_loading": (PINNED, [])}) == ()
    racers = race(lesson, {"sharded": (BUSY, []), "unsharded": (UNSHARDED | {"epoch_seconds": None}, [])})
    assert [racer.scenario for racer in racers] == ["sharded"]


def _gpus(field: str, values: list[float | None], **changes: Any) -> dict[str, Any]:
    summary = _summary([99.0] * len(values), **changes)
    return summary | {"gpus": [gpu | {field: value} for gpu, value in zip(summary["gpus"], values, strict=True)]}


@pytest.mark.parametrize(
    ("column", "summary", "text"),
    [
        ("gpu0", CRASHED, "–"),
        ("busy", _summary([70.0] + [99.0] * 7), "GPU 0: 70 %, others 99 %"),
        ("busy", _summary([90.0, 99.0]), "90 to 99 %"),
        ("useful", _gpus("sm_active", [85.0] * 3 + [40.0] + [84.0] * 4), "GPU 3: 40 %, others 84 to 85 %"),
        ("spin", _gpus("spin_pct", [0.0] + [74.6] * 7), "GPU 0: 0 %, others 75 %"),
        ("spin", _gpus("spin_pct", [None] * 8), "–"),
        ("exposed", _gpus("exposed_pct", [40.0] * 8), "40 %"),
        ("power", _gpus("power_w", [293.0] + [169.0] * 7), "GPU 0: 293 W, others 169 W"),
        ("power", _gpus("power_w", [320.0 + rank for rank in range(8)]), "320 to 327 W"),
        ("memory", _gpus("peak_memory_gib", [16.9] + [13.4] * 7), "GPU 0: 16.90 GiB, others 13.40 GiB"),
        ("memory", _gpus("peak_memory_gib", [13.2] * 8), "13 of 79 GiB"),
        ("memory", _gpus("peak_memory_gib", [10.9, 12.5, 35.0], peak_memory_gib=35.0), "11 to 35 of 79 GiB"),
        ("batch", _summary([99.0] * 8, last_batch_that_fitted=1024), "1,024"),
        ("samples", _summary([99.0] * 8, samples_per_second=15123.4), "15,123"),
        ("samples", _summary([99.0] * 8, samples_per_second=None), "–"),
        ("epoch", BUSY, "4.0 s"),
        ("epoch", _summary([99.0] * 8, epoch_seconds=32.1, epoch_measured=False), "32.1 s (at this rate)"),
        ("epoch", CRASHED, "–"),
        ("steps", _summary([99.0] * 8, steps_per_epoch=5004), "5,004"),
        ("unique", BUSY, "once"),
        ("unique", _summary([99.0] * 8, unique_fraction=0.125), "8 times"),
        ("unique", _summary([99.0] * 8, unique_fraction=0.4), "2.5 times"),
        ("order", _summary([99.0] * 8, order_repeated_pct=100.0), "the same"),
        ("order", _summary([99.0] * 8, order_repeated_pct=0.0), "another one"),
        ("order", _summary([99.0] * 8, order_repeated_pct=40.0), "40 % the same"),
        ("order", BUSY, "–"),
        ("windows", BUSY, "none"),
        ("windows", _summary([99.0] * 8, wait_windows={"rank": 0, "count": 6, "share_pct": 31.4}), "6, for GPU 0: 31 % of the time"),
        ("processes", _gpus("processes", [8] + [1] * 7), "GPU 0: 8, others 1"),
        ("processes", _gpus("processes", [1] * 8), "1"),
        ("processes", _gpus("processes", [None] * 8), "–"),
        ("ended", _summary([0.0] + [100.0] * 7, outcome="timeout", virtual_s=31.2), "timed out"),
        ("ended", _summary([None] * 8, outcome="out_of_memory", virtual_s=0.0, steps=0), "out of memory in the first step"),
    ],
)
def test_a_lesson_chooses_its_columns(lesson: Lesson, column: str, summary: dict[str, Any], text: str) -> None:
    chosen = replace(lesson, evidence=(column,))
    assert evidence(chosen, {"k5": summary})[0].cells == (text,)
    assert len(headings(chosen)) == 3
