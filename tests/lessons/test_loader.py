"""From folder to lesson: what is loaded, and that every fault is found on its line."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lessons import loader
from lessons.experiments import shown_experiments
from lessons.loader import CONTENT, load_lessons, read_lessons
from lessons.markdown import prose
from lessons.model import Lesson, LessonSet, NoLessonsError
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig

SLUG = "one-busy-gpu"


def _edit(content: Path, old: str, new: str, file: str = "lesson.md") -> int:
    """Replace the first `old` by `new`; returns the line of it, from 1."""
    path = content / SLUG / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return text.count("\n", 0, text.index(old)) + 1


def _only_fault(content: Path) -> tuple[str, int, str]:
    found = read_lessons(content)
    assert found.lessons == ()
    assert len(found.faults) == 1, [str(fault) for fault in found.faults]
    return found.faults[0].file, found.faults[0].line, found.faults[0].message


def test_the_lessons_of_this_repository_have_no_fault() -> None:
    found = read_lessons(CONTENT)
    assert [str(fault) for fault in (*found.faults, *found.advice)] == []
    assert SLUG in [lesson.id for lesson in found.lessons]


def test_the_first_lesson_is_complete(lesson: Lesson) -> None:
    assert [len(option.causes) for option in lesson.options] == [1, 1, 2, 1]
    assert lesson.key.id == "t2"
    assert [(cause.scenario, cause.matches_question) for cause in lesson.causes if cause.id in lesson.key.causes] == [
        ("rank0_loading", True), ("unsharded", False),
    ]
    assert [cause.id for cause in lesson.causes if cause.matches_question] == ["k2"]
    assert 60 <= lesson.why.words <= 90
    assert len(lesson.on_your_own_job) == 3
    assert all(source.url.startswith("https://") and source.says for source in lesson.sources)
    assert {claim.scenario for claim in lesson.claims} == set(shown_experiments(lesson))
    assert len(lesson.wordings) == 2
    assert [term.id for term in lesson.terms] == ["rank", "shard", "all-reduce", "epoch"]
    assert "prefers-reduced-motion" in lesson.infographic


def test_nothing_of_an_address_or_title_tells_the_answer(lesson: Lesson) -> None:
    public = f"{lesson.id} {lesson.title} {lesson.topic} {' '.join(cause.id for cause in lesson.causes)}".lower()
    for name, scenario in SCENARIOS.items():
        assert name not in public
        assert scenario.title.lower() not in public
    assert not any(word in public for word in ("shard", "load", "data", "batch", "schedul", "model"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("minutes: 5", "minutes: soon", "minutes: must be a whole number (is 'soon')"),
        ("title: One busy GPU, seven waiting", "title: 8", "title: must be a text"),
        ("    right: true", "    right: maybe", "must be true or false"),
        ("still: only0", "", "still: is missing"),
        ("minutes: 5", "minutes: 0", "must be at least 1"),
        ("level: core", "leval: core", "leval: there is no such field"),
        ("    scenario: unsharded", "    scenario: unshared", "no such experiment"),
        ("fix: sharded", "fix: sharred", "no such experiment"),
        ("  - unsharded: min(gpus.gpu_util)", "  - unsharded: min(gpus.gpu_use)", "there is no field 'gpu_use'"),
        ("gpus[0].gpu_util >= 85\", otherwise", "sharded.steps >= 85\", otherwise", "there is no field 'sharded'"),
        ("fix: sharded", "experiments:\n  steps: {scenario: rank0_loading}\nfix: sharded", "figure of every run has this name"),
        ("fix: sharded", "evidence: [gpu0, heat]\nfix: sharded", "no such column; there are gpu0, others"),
        ("fix: sharded", "evidence: []\nfix: sharded", "evidence: needs at least 1"),
        ("  - unsharded: min(", "  - unshardet: min(", ".unshardet: there is no such experiment"),
        ("fix: sharded", "experiments:\n  spin: {scenario: rank0_loading, hand_off: mail}\nfix: sharded", "hand_off='mail': "),
        ("fix: sharded", "experiments:\n  spin: {scenario: rank0_loading, speed: 3}\nfix: sharded", "speed: no such knob"),
        ("fix: sharded", "experiments:\n  spin: [rank0_loading]\nfix: sharded", "an experiment is {scenario"),
        ("fix: sharded", "experiments:\n  sharded: {scenario: rank0_loading}\nfix: sharded", "of the catalog has this name"),
        ("fix: sharded", "experiments:\n  Spin up: {scenario: rank0_loading}\nfix: sharded", "digits and _ only"),
        ("  - >-\n    A colleague", "  - Too short.\n  - >-\n    A colleague", "wordings.0 has 2 words"),
        ("  - >-\n    A colleague", "  - >-\n    <b>A</b> colleague", "wordings.0: raw HTML"),
        ("    draws: all_crash", "    draws: all_green", "draws: must be one of 'only0', 'all_high'"),
        ("  - id: q7", "  - id: Q 7", "options.1.id: must begin with a small letter"),
        ("terms: [rank, shard", "terms: [rank, shart", "'shart' is not in glossary.yaml"),
        ("  - rank0_loading: gpus[0].gpu_util >= 85", "  - rank0_loading: gpus[0].gpu_util >> 85", "expected a value, found '>'"),
        ("title: One busy GPU, seven waiting", "title: Data not sharded", "gives the answer away"),
        ("\n# What to try", "\n# What to tri", "'What to tri' is not known"),
        ("\n# On call", "\n# Symptom", "'Symptom' stands here twice"),
        ("\n## x8", "\n## zz", "'zz' is no option"),
        ("A scheduler computes a number", "Answer B is wrong: it computes a number", "speaks of a letter"),
        ("```ill\nrank 0: 5005", "```sick\nrank 0: 5005", "has no fenced block ill"),
        ("Eight workers stand ready", "<b>Eight</b> workers stand ready", "raw HTML"),
        ("- [PyTorch: DataParallel](https://", "- [PyTorch: DataParallel](http://", "a source is"),
    ],
)
def test_a_fault_is_reported_on_its_line(content: Path, old: str, new: str, message: str) -> None:
    line = _edit(content, old, new) + old.startswith("\n")
    faults = read_lessons(content).faults
    hits = [fault for fault in faults if message in fault.message]
    assert len(hits) == 1, [str(fault) for fault in faults]
    assert hits[0].file == f"{SLUG}/lesson.md"
    # Faults of a section (its letters, its blocks) stand on its heading, at most twenty lines above.
    assert line - 20 <= hits[0].line <= line + new.count("\n")
    assert read_lessons(content).lessons == ()


def test_all_faults_are_reported_at_once(content: Path) -> None:
    _edit(content, "minutes: 5", "minutes: soon")
    _edit(content, "    scenario: unsharded", "    scenario: unshared")
    _edit(content, "# Why", "# Wy")
    _edit(content, "<title ", "<titel ", "infographic.svg")
    assert len(read_lessons(content).faults) >= 4


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("no front matter", 1, "begins with"),
        ("---\ntitle: x\n", 1, "not closed"),
        ("---\ntitle: x\nlevel: [\n---\n", 3, "YAML"),
        ("---\n- a\n- b\n---\n", 2, "name: value"),
        ("---\ntitle: x\nlevel: a: b\n---\n", 3, "YAML"),
    ],
)
def test_front_matter_that_cannot_be_read(content: Path, text: str, line: int, message: str) -> None:
    (content / SLUG / "lesson.md").write_text(text)
    file, found_line, found_message = _only_fault(content)
    assert (file, found_line) == (f"{SLUG}/lesson.md", line)
    assert message in found_message


def test_a_key_written_twice_is_a_fault(content: Path) -> None:
    _edit(content, "minutes: 5", "minutes: 5\nminutes: 6")
    assert _only_fault(content) == (f"{SLUG}/lesson.md", 5, "'minutes' stands here twice")


@pytest.mark.parametrize(
    ("old", "new", "row", "message"),
    [
        ("    right: true\n", "", "options:", "exactly one option"),
        ("    causes: [k3]", "    causes: [k5]", "options:", "belongs to exactly one option; look at k3"),
        ("  - id: x8", "  - id: m4", "  - id: m4", "two options have the same id"),
        ("    matches_question: true", "    matches_question: false", "  - id: k2", "one cause of the right option"),
        ("  - id: k5\n    title", "  - id: fix\n    title", "  - id: fix", "stands for the healthy script"),
    ],
)
def test_what_does_not_fit_together_is_a_fault_on_the_line_to_look_at(content: Path, old: str, new: str, row: str, message: str) -> None:
    _edit(content, old, new)
    _, line, told = _only_fault(content)
    assert message in told
    assert (content / SLUG / "lesson.md").read_text().splitlines()[line - 1] == row


def test_one_wording_is_too_few(content: Path) -> None:
    text = (content / SLUG / "lesson.md").read_text()
    start, end = text.index("  - >-\n    The cluster team"), text.index("terms:")
    (content / SLUG / "lesson.md").write_text(text[:start] + text[end:])
    assert "needs at least 2" in _only_fault(content)[2]


def test_the_title_may_not_name_an_experiment_of_the_lesson(content: Path) -> None:
    _edit(content, "fix: sharded", "experiments:\n  all_in_a_spin: {scenario: rank0_loading, hand_off: nccl}\nfix: sharded")
    line = _edit(content, "title: One busy GPU", "title: One GPU and all in a spin")
    assert _only_fault(content) == (f"{SLUG}/lesson.md", line, _only_fault(content)[2])
    assert "gives the answer away" in _only_fault(content)[2]


def test_experiments_of_a_lesson_are_configs_and_a_learners_knobs_go_on_top(content: Path) -> None:
    _edit(content, "fix: sharded", (
        "experiments:\n  spin: {scenario: rank0_loading, hand_off: nccl}\n  one_slow: {scenario: sharded, straggler: 6}\nfix: sharded"
    ))
    _edit(content, "    scenario: rank0_loading", "    scenario: spin")
    lesson = load_lessons(content).lessons[0]
    assert lesson.config_of("spin") == RunConfig.parse({"scenario": "rank0_loading", "hand_off": "nccl"})
    assert lesson.config_of("sharded") == RunConfig.parse({"scenario": "sharded"})
    assert lesson.config_of("spin", {"gpus": 4, "batch": 64}) == RunConfig.parse(
        {"scenario": "rank0_loading", "hand_off": "nccl", "gpus": 4, "batch": 64}
    )
    assert lesson.config_of("spin", {"hand_off": "cpu"}).hand_off == "cpu"
    assert lesson.config_of("sharded", {"hand_off": "nccl"}).hand_off == "cpu", "it has no effect there"
    assert lesson.config_of("one_slow", {"gpus": 4}).straggler == 3, "the last one is slow where there is no GPU 6"
    with pytest.raises(ValueError, match="scenario='nothing'"):
        lesson.config_of("nothing")


def _course(content: Path, text: str, *more: str) -> list[str]:
    """Lessons in order, with further ones, under a course.yaml."""
    for name in more:
        shutil.copytree(content / SLUG, content / name)
    (content / "course.yaml").write_text(text)
    return [lesson.id for lesson in read_lessons(content).lessons]


def test_lessons_come_in_the_order_of_the_course_and_the_others_last(content: Path) -> None:
    order = _course(content, f"stages:\n  - {{name: Begin, lessons: [zz]}}\n  - {{name: Go on, lessons: [{SLUG}]}}\n", "zz", "cc", "bb")
    assert order == ["zz", SLUG, "bb", "cc"]
    found = load_lessons(content)
    assert found.faults == ()
    assert [(stage.name, stage.lessons) for stage in found.stages] == [("Begin", ("zz",)), ("Go on", (SLUG,))]
    assert (found.stage_of("zz"), found.stage_of("bb")) == ("Begin", None)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f"stages:\n  - name: Begin\n    lessons:\n      - {SLUG}\n      - nowhere\n", 5, "there is no folder 'nowhere'"),
        (f"stages:\n  - name: Begin\n    lessons:\n      - {SLUG}\n      - {SLUG}\n", 5, "listed twice"),
        ("stages:\n  - lessons: []\n", 2, "stages.0.name"),
        ("stages: [", 1, "YAML"),
        ("- a\n", 1, "name: value"),
    ],
)
def test_faults_of_the_course_have_their_line_and_take_no_lesson_away(content: Path, text: str, line: int, message: str) -> None:
    assert _course(content, text) == [SLUG]
    faults = read_lessons(content).faults
    assert [(fault.file, fault.line) for fault in faults] == [("course.yaml", line)]
    assert message in faults[0].message


def test_lessons_of_ones_own_come_beside_the_others(content: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for name in (SLUG, "aa", "zz"):
        shutil.copytree(content / SLUG, mine / name)
    (mine / "zz" / "lesson.md").write_text((mine / "zz" / "lesson.md").read_text().replace("terms: [rank", "terms: [disk"))
    (mine / "glossary.yaml").write_text("terms:\n  disk: {name: Disk, short: It turns.}\n")
    (content / "course.yaml").write_text(f"stages:\n  - {{name: Begin, lessons: [{SLUG}]}}\n")
    (mine / "course.yaml").write_text("stages:\n  - {name: Ours, lessons: [zz]}\n  - {name: Begin, lessons: [aa]}\n")
    found = read_lessons(content, mine)
    assert [lesson.id for lesson in found.lessons] == [SLUG, "aa", "zz"]
    assert [(stage.name, stage.lessons) for stage in found.stages] == [("Begin", (SLUG, "aa")), ("Ours", ("zz",))]
    assert found.lessons[0].folder == content / SLUG, "the first one stays"
    assert [str(fault) for fault in found.faults] == [
        f"{SLUG}/lesson.md:1: another folder of lessons has one of this name already, which stays; rename this one"
    ]


def test_the_settings_name_a_folder_of_ones_own(content: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = len(load_lessons().lessons)
    shutil.copytree(content / SLUG, tmp_path / "mine" / "ours")
    monkeypatch.setattr(loader, "LOOK_EVERY_S", 0.0)
    monkeypatch.setenv("SHARDLAB_LESSONS_DIR", str(tmp_path / "mine"))
    found = load_lessons()
    assert [lesson.id for lesson in found.lessons][-1:] == ["ours"]
    assert len(found.lessons) == built_in + 1
    monkeypatch.setenv("SHARDLAB_LESSONS_DIR", str(tmp_path / "gone"))
    found = load_lessons()
    assert len(found.lessons) == built_in
    assert "there is no such folder (see SHARDLAB_LESSONS_DIR)" in str(found.faults[-1])
    monkeypatch.setenv("SHARDLAB_LESSONS_DIR", "")
    assert load_lessons().faults == ()


def test_an_unfinished_lesson_is_left_out_and_the_log_says_so_once(content: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(content / SLUG, content / "begun")
    path = content / "begun" / "lesson.md"
    path.write_text(path.read_text().replace("# In the exam\n\n", "# In the exam\n\nTODO: say it shorter\n\n").replace(
        "Eight workers stand ready", "TODO: shorter. " + "word " * 40 + "Eight workers"
    ))
    found = load_lessons(content)
    load_lessons(content)
    assert [lesson.id for lesson in found.lessons] == [SLUG]
    assert [(fault.kind, fault.message.split(".")[0]) for fault in found.faults] == [("to do", "shorter"), ("to do", "say it shorter")]
    assert [record.getMessage().partition(" is left out: ")[0] for record in caplog.records] == ["begun"]
    assert caplog.records[0].getMessage().endswith(" and 1 more")
    assert [lesson.id for lesson in load_lessons(content, unfinished=True).lessons] == ["begun", SLUG]


def test_a_to_do_in_a_sample_of_code_is_none(content: Path) -> None:
    _edit(content, "rank 0: 5005 steps", "# TODO: mend me\nrank 0: 5005 steps")
    assert read_lessons(content).faults == ()


@pytest.mark.parametrize(
    ("old", "new", "line_of", "message"),
    [
        (
            "text: The model is too simple, so that communication between the GPUs outweighs the computation.",
            "text: Too simple.", "options:", "similar length",
        ),
        ("text: The data is", "text: Since the last change to the job, some weeks ago, the data is", "options:", "by far the"),
        ("outweighs the computation.", "outweighs the computation", "options:", "some end with a full stop"),
        ("title: One busy GPU", "title: One very, very busy GPU in a node that is full of them", "title:", "fit on a phone"),
        ("exam_domains: [Distributed training,", "exam_domains: [Cooking,", "exam_domains:", "'Cooking' is none of"),
        ("exam_domains: [Distributed training, Performance analysis]", "exam_domains: []", "exam_domains:", "at least one"),
        (
            "  - tiny_model: max(gpus.gpu_util) <= 50\n  - tiny_model: spread(gpus.gpu_util) <= 5\n", "",
            "    scenario: tiny_model", "no claim speaks of",
        ),
        ("You are called to a training job: ", "word " * 80, "# Symptom", "Symptom has"),
        ("\n## What is a waiting rank waiting for?\n", "\n", "# On your own job", "has 2 checks"),
        ("A small model leaves GPUs idle", "word " * 90 + "A small model leaves GPUs idle", "# Rebuttals", "x8 has"),
    ],
)
def test_advice_is_given_on_its_line_and_takes_no_lesson_away(content: Path, old: str, new: str, line_of: str, message: str) -> None:
    _edit(content, old, new)
    if "waiting for?" in old:  # what is left of the third check goes with its heading
        text = (content / SLUG / "lesson.md").read_text()
        (content / SLUG / "lesson.md").write_text(re.sub(r"\n`pip install py-spy`.*?(?=\n# What to try)", "", text, flags=re.DOTALL))
    found = read_lessons(content)
    assert [lesson.id for lesson in found.lessons] == [SLUG], [str(fault) for fault in found.faults]
    rows = (content / SLUG / "lesson.md").read_text().splitlines()
    assert [message in fault.message for fault in found.advice] == [True], [str(fault) for fault in found.advice]
    assert rows[found.advice[0].line - 1].startswith(line_of)


def test_a_picture_without_enough_words_is_advice(content: Path) -> None:
    path = content / SLUG / "infographic.svg"
    path.write_text(re.sub(r"(<desc[^>]*>).*?(</desc>)", r"\1Three ways.\2", path.read_text(), flags=re.DOTALL))
    assert [(fault.file, fault.kind) for fault in read_lessons(content).advice] == [(f"{SLUG}/infographic.svg", "advice")]


def test_a_lesson_of_endless_text_is_refused(content: Path) -> None:
    with (content / SLUG / "lesson.md").open("a") as file:
        file.write("word " * 50_000)
    assert "at most 200000" in _only_fault(content)[2]


def test_a_race_without_the_healthy_script_is_a_fault(content: Path) -> None:
    _edit(content, "  - {scenario: sharded, label: Each rank its own shard}\n", "")
    assert "needs the healthy script, sharded" in _only_fault(content)[2]


def test_a_short_explanation_is_neither_too_short_nor_too_long(content: Path) -> None:
    _edit(content, "Eight workers stand ready", "word " * 40 + "Eight workers stand ready")
    assert "60 to 90" in _only_fault(content)[2]


def test_missing_and_unreadable_files_are_faults(content: Path) -> None:
    (content / SLUG / "infographic.svg").unlink()
    assert _only_fault(content) == (f"{SLUG}/infographic.svg", 1, "the file is missing")
    with (content / SLUG / "infographic.svg").open("w") as file:
        file.truncate(3_000_000_000)  # nothing that could be read into memory
    assert _only_fault(content) == (f"{SLUG}/infographic.svg", 1, "the file has 3000000000 bytes; at most 2000000 are read")
    (content / SLUG / "lesson.md").write_bytes(b"---\ntitle: x\n\xff\n")
    assert (f"{SLUG}/lesson.md", 3, "is not UTF-8 text") in [(f.file, f.line, f.message) for f in read_lessons(content).faults]


def test_a_broken_lesson_leaves_the_others(content: Path) -> None:
    (content / SLUG).rename(content / "good")
    (content / "bad").mkdir()
    (content / "bad" / "lesson.md").write_text("nothing")
    found = load_lessons(content)
    assert [lesson.id for lesson in found.lessons] == ["good"]
    assert {fault.file for fault in found.faults} == {"bad/lesson.md", "bad/infographic.svg"}


def test_zero_lessons_is_an_error_that_names_every_fault(content: Path, tmp_path: Path) -> None:
    _edit(content, "minutes: 5", "minutes: soon")
    with pytest.raises(NoLessonsError, match=r"one-busy-gpu/lesson\.md:4: minutes"):
        load_lessons(content)
    with pytest.raises(NoLessonsError, match="no such folder"):
        load_lessons(tmp_path / "nowhere")


def test_lessons_are_read_again_when_a_file_changed(content: Path) -> None:
    first = load_lessons(content)
    assert load_lessons(content) is first
    _edit(content, "minutes: 5", "minutes: 7")
    os.utime(content / SLUG / "lesson.md", ns=(1, 1))
    assert load_lessons(content).lessons[0].minutes == 7


def test_many_who_ask_at_once_wait_for_one_reading(content: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that begins anew in mid-class is asked by the whole room before it has read a lesson."""
    read, everybody = [], threading.Barrier(8)

    def slowly(*roots: Path, **options: bool) -> LessonSet:
        read.append(roots)
        time.sleep(0.2)
        return read_lessons(*roots, **options)

    def ask(_: int) -> LessonSet:
        everybody.wait()
        return load_lessons(content)

    monkeypatch.setattr(loader, "read_lessons", slowly)
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(ask, range(8)))
    assert len(read) == 1
    assert all(each is found[0] for each in found)


def test_a_folder_name_that_is_no_address_is_a_fault(content: Path) -> None:
    (content / SLUG).rename(content / "Bad Name")
    assert "lesson's address" in _only_fault(content)[2]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("terms:\n  rank: {name: Rank}\n", 2, "terms.rank.short"),
        ("terms:\n  rank: {name: Rank, short: x}\n  rank: {name: Rank, short: x}\n", 3, "twice"),
        ("terms: [", 1, "YAML"),
    ],
)
def test_faults_of_the_glossary_have_their_line(content: Path, text: str, line: int, message: str) -> None:
    (content / "glossary.yaml").write_text(text)
    faults = [fault for fault in read_lessons(content).faults if fault.file == "glossary.yaml"]
    assert len(faults) == 1
    assert faults[0].line == line
    assert message in faults[0].message


def test_markdown_is_rendered_without_raw_html_and_without_foreign_schemes() -> None:
    links = "[x](javascript:alert(1)) [y](https://example.org) [z](http://example.net) [w](/etc)"
    html = prose(f"**a** <script>alert(1)</script> {links} <img src=x onerror=alert(1)> `<b>`").html
    assert "<strong>a</strong>" in html
    assert '<a href="https://example.org"' in html
    assert "&lt;script&gt;" in html
    assert "http://example.net" not in html
    assert "/etc" not in html
    assert "<img" not in html
    assert "javascript:" not in html.replace("[x](javascript:alert(1))", "")


def _multiplying() -> str:
    rows = ["zz0: &z0 [a, a, a, a, a, a, a, a, a]"]
    rows += [f"zz{number}: &z{number} [{', '.join([f'*z{number - 1}'] * 9)}]" for number in range(1, 9)]
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("matter", "message"),
    [
        (f"zz: {'[' * 3000}{']' * 3000}", "at most 20 values may be inside each other"),
        (_multiplying(), "& and * at the beginning of a text need quotation marks"),
        ("zz: &a [*a]", "& and * at the beginning of a text need quotation marks"),
        ("zz: !!int ''", "! at the beginning of a text needs quotation marks"),
        (f"zz: 0x{'f' * 5000}", "a number has at most 40 characters"),
        (f"zz: 1{':1' * 3000}.5", "a number has at most 40 characters"),
        (f"zz: '{'(' * 3000}'", "zz: there is no such field"),
    ],
)
def test_front_matter_that_would_break_its_reader_breaks_its_own_lesson_alone(content: Path, matter: str, message: str) -> None:
    shutil.copytree(content / SLUG, content / "another-one")
    _edit(content, "fix: sharded", f"{matter}\nfix: sharded")
    found = read_lessons(content)
    assert [lesson.id for lesson in found.lessons] == ["another-one"]
    assert [message in fault.message for fault in found.faults] == [True], [str(fault)[:200] for fault in found.faults]


@pytest.mark.parametrize("name", ["lesson.md", "infographic.svg"])
@pytest.mark.parametrize("odd", ["pipe", "device"])
def test_a_file_that_never_ends_is_not_read(content: Path, name: str, odd: str) -> None:
    (content / SLUG / name).unlink()
    if odd == "pipe":
        os.mkfifo(content / SLUG / name)
    else:
        (content / SLUG / name).symlink_to("/dev/zero")
    assert f"{SLUG}/{name}:1: is no plain file, and is not read" in [str(fault) for fault in read_lessons(content).faults]


def test_a_glossary_that_never_ends_is_not_read(content: Path) -> None:
    (content / "glossary.yaml").unlink(missing_ok=True)
    os.mkfifo(content / "glossary.yaml")
    assert "glossary.yaml: is no plain file" in " ".join(f"{fault.file}: {fault.message}" for fault in read_lessons(content).faults)
