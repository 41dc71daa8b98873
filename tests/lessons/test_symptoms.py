"""The symptom finder without runs: its content is checked, its ranking can be followed, contradictions are named."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from lessons.cli import FAULTY, main
from lessons.code_diff import scenario_diff
from lessons.loader import CONTENT
from lessons.symptoms import SYMPTOMS_FILE, Command, Symptoms, conflict, likelihood, load_symptoms, rank, tells_most
from scenarios.config import RunConfig
from scenarios.costs.pricing import step_costs
from tests.rehearsed import rehearsed_summary


@pytest.fixture
def broken(content: Path) -> Path:
    """A copy of the content that a test may break."""
    shutil.copy(CONTENT / SYMPTOMS_FILE, content)
    return content


ALL_OF_IT = {
    "busy": "all_high", "power": "high", "memory": "even", "processes": "one_each", "steps": "eighth", "gain": "full", "rhythm": "steady",
    "ends": "runs", "loss": "fine", "exchange": "little", "batch": "longer",
}  # fmt: skip


@pytest.fixture(scope="module")
def symptoms() -> Symptoms:
    found, faults = load_symptoms(CONTENT)
    assert [str(fault) for fault in faults] == []
    assert found is not None
    return found


def test_every_cause_says_something_about_most_questions_and_has_what_it_needs(symptoms: Symptoms) -> None:
    for cause in symptoms.causes:
        assert len(cause.evidence) >= 4, cause.id
        assert cause.command.healthy != cause.command.ill
        if cause.experiment is not None and cause.experiment.scenario != cause.healthy.scenario:
            assert scenario_diff(cause.experiment.scenario, cause.healthy.scenario)
    for question in symptoms.questions:
        told = [cause for cause in symptoms.causes if question.id in cause.evidence]
        assert len(told) >= 4, question.id
        usual = ((name, how) for cause in told for name, how in cause.evidence[question.id].shows.items())
        shown = {name for name, how in usual if how in ("always", "mostly", "sometimes")}
        assert shown == set(question.answers), f"{question.id}: an answer that no cause shows leads nowhere"


def test_no_two_causes_look_alike_in_every_figure(symptoms: Symptoms) -> None:
    looks = {cause.id: {question: dict(each.shows) for question, each in cause.evidence.items()} for cause in symptoms.causes}
    assert len({str(look) for look in looks.values()}) == len(looks)


def _command(symptoms: Symptoms, cause_id: str) -> Command:
    return next(cause.command for cause in symptoms.causes if cause.id == cause_id)


def test_the_all_reduces_of_an_optimizer_step_are_the_buckets_of_the_model(symptoms: Symptoms) -> None:
    costs = step_costs(model="bert_large", gpu="a100-80gb", precision="amp", batch=12, world=8)
    buckets, said = len(costs.bucket_bytes), _command(symptoms, "accumulate_sync")
    assert (said.healthy.split()[0], said.ill.split()[0]) == (str(buckets), str(4 * buckets))
    lesson = (CONTENT / "bigger-steps-no-gain" / "lesson.md").read_text()
    assert f"```healthy\nrank 0: {buckets} all-reduces" in lesson
    assert f"```ill\nrank 0: {4 * buckets} all-reduces" in lesson


@pytest.mark.slow
def test_watts_and_step_times_shown_beside_a_command_are_those_of_the_runs(symptoms: Symptoms) -> None:
    waiting = rehearsed_summary(RunConfig.parse({"scenario": "rank0_loading", "hand_off": "nccl"}), weights=False)
    watts = [float(found) for found in re.findall(r"([\d.]+) W, 400", _command(symptoms, "rank0_nccl").ill)]
    assert watts == pytest.approx([gpu["power_w"] for gpu in waiting["gpus"][:2]], rel=0.02)
    launches = _command(symptoms, "tiny_model")
    for scenario, shown in (("sharded", launches.healthy), ("tiny_model", launches.ill)):
        told = {int(batch): float(ms) for ms, batch in re.findall(r"([\d.]+) ms a step at batch (\d+)", shown)}
        assert set(told) == {128, 256}
        for batch, ms in told.items():
            rate = rehearsed_summary(RunConfig.parse({"scenario": scenario, "batch": batch}), weights=False)["samples_per_second"]
            assert ms == pytest.approx(8 * batch / rate * 1000, rel=0.02)


@pytest.mark.parametrize(
    ("answers", "first"),
    [
        ({"busy": "only0"}, "one_process"),
        ({"busy": "only0", "processes": "only0"}, "one_process"),
        ({"busy": "only0", "memory": "even"}, "rank0_loading"),
        ({"busy": "all_high", "power": "low_but0"}, "rank0_nccl"),
        ({"busy": "all_high", "steps": "same"}, "unsharded"),
        ({"processes": "several0"}, "no_set_device"),
        ({"ends": "oom"}, "large_batch"),
        ({"ends": "hangs_first"}, "no_rendezvous"),
        ({"loss": "repeats"}, "no_set_epoch"),
        ({"busy": "all_low", "batch": "same"}, "tiny_model"),
        ({"busy": "all_low", "rhythm": "saw_tooth"}, "starved_loader"),
        (ALL_OF_IT, "healthy"),
    ],
)
def test_the_telltales_of_the_facts_rank_first(answers: dict[str, str], first: str, symptoms: Symptoms) -> None:
    ranked = rank(symptoms, answers)
    assert ranked[0].cause.id == first
    assert sum(one.share for one in ranked) == pytest.approx(1)


def test_each_answer_is_a_reason_for_or_against(symptoms: Symptoms) -> None:
    found = {one.cause.id: one for one in rank(symptoms, {"busy": "only0", "power": "high", "exchange": "much"})}
    loading = found["rank0_loading"]
    assert [(reason.question, reason.side) for reason in loading.reasons] == [("busy", "fits"), ("power", "fits"), ("exchange", "against")]
    assert loading.reasons[0].because.startswith("GPU 0 prepares")
    assert loading.reasons[2].expected[0] == "Little time"
    assert (loading.fits, loading.against) == (2, 1)
    assert [reason.side for reason in found["no_rendezvous"].reasons][-1] == "open"


def test_an_unanswered_question_changes_nothing_and_nothing_answered_is_how_often_causes_are_met(symptoms: Symptoms) -> None:
    assert [one.cause.usual for one in rank(symptoms, {})][:6] == ["common"] * 6
    assert {one.likely for one in rank(symptoms, {})} <= {"possible", "unlikely"}
    silent = next(cause for cause in symptoms.causes if "batch" not in cause.evidence)
    question = symptoms.question("batch")
    assert question is not None
    assert {likelihood(silent, question, answer) for answer in question.answers} == {1 / len(question.answers)}


def test_likelihoods_are_probabilities(symptoms: Symptoms) -> None:
    for cause in symptoms.causes:
        for question in symptoms.questions:
            assert sum(likelihood(cause, question, answer) for answer in question.answers) == pytest.approx(1)


def test_a_contradiction_is_named_with_the_answer_to_look_at_again(symptoms: Symptoms) -> None:
    assert conflict(symptoms, {}) is None
    assert conflict(symptoms, {"busy": "only0", "memory": "even"}) is None
    assert conflict(symptoms, ALL_OF_IT) is None
    found = conflict(symptoms, {"busy": "only0", "memory": "only0", "processes": "only0", "steps": "same", "ends": "oom"})
    assert found is not None
    assert (found.question.id, found.without.id) == ("ends", "one_process")


def test_the_question_that_tells_most_comes_next(symptoms: Symptoms) -> None:
    first = tells_most(symptoms, {})
    assert first is not None
    assert first.id == "busy"
    then = tells_most(symptoms, {"busy": "all_high", "power": "high"})
    assert then is not None
    assert then.id not in ("busy", "power")
    assert tells_most(symptoms, ALL_OF_IT) is None


@pytest.mark.parametrize("answers", [{"busy": "sometimes"}, {"mood": "even"}])
def test_an_unknown_answer_is_refused(answers: dict[str, str], symptoms: Symptoms) -> None:
    with pytest.raises(ValueError, match=r"must be one of|is no question"):
        rank(symptoms, answers)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("busy: {shows: {only0: always}", "busy: {shows: {only1: always}", "one_process: 'only1' is no answer to busy"),
        ("busy: {shows: {only0: always}", "buzy: {shows: {only0: always}", "one_process: 'buzy' is no question"),
        ("busy: {shows: {only0: always}", "busy: {shows: {only0: forever}", "causes.one_process.evidence.busy.shows.only0"),
        ("experiment: {scenario: unsharded}", "experiment: {scenario: unshared}", "scenario='unshared': must be one of"),
        ("experiment: {scenario: unsharded}", "telltales: x", "telltales: there is no such field here"),
        ("fix: Take the GPU out", "fix: <b>Take</b> the GPU out", "raw HTML"),
    ],
)
def test_a_fault_of_the_content_is_named_with_its_line(
    old: str, new: str, message: str, broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = broken / SYMPTOMS_FILE
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert main(["check", str(broken)]) == FAULTY
    out = capsys.readouterr().out
    assert message in out
    line = text.count("\n", 0, text.index(old)) + 1
    named = [int(row.split("symptoms.yaml:")[1].split(":")[0]) for row in out.splitlines() if "symptoms.yaml:" in row]
    assert any(abs(one - line) <= 3 for one in named), (line, named)


def test_lessons_without_symptoms_have_none(tmp_path: Path) -> None:
    assert load_symptoms(tmp_path) == (None, [])
