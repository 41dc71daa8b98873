"""From folder to lesson: what is loaded, and that every fault is found on its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lessons.loader import CONTENT, load_lessons, read_lessons
from lessons.markdown import prose
from lessons.model import Lesson, NoLessonsError
from scenarios.catalog import SCENARIOS

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
    assert [str(fault) for fault in found.faults] == []
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
    assert {claim.scenario for claim in lesson.claims} == set(SCENARIOS)
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
        ("minutes: 5", "minutes: soon", "minutes: "),
        ("minutes: 5", "minutes: 0", "greater than or equal to 1"),
        ("level: core", "leval: core", "leval: Extra inputs"),
        ("    scenario: unsharded", "    scenario: unshared", "no such experiment"),
        ("    draws: all_crash", "    draws: all_green", "draws: "),
        ("  - id: q7", "  - id: Q 7", "options.1.id"),
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
    assert line - 20 <= hits[0].line <= line
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
    ("old", "new", "message"),
    [
        ("    right: true\n", "", "exactly one option"),
        ("    causes: [k3]", "    causes: [k5]", "belongs to exactly one option; look at k3"),
        ("  - id: x8", "  - id: m4", "two options have the same id"),
    ],
)
def test_what_does_not_fit_together_is_a_fault(content: Path, old: str, new: str, message: str) -> None:
    _edit(content, old, new)
    assert any(message in fault.message for fault in read_lessons(content).faults)


def test_a_short_explanation_is_neither_too_short_nor_too_long(content: Path) -> None:
    _edit(content, "Eight workers stand ready", "word " * 40 + "Eight workers stand ready")
    assert "60 to 90" in _only_fault(content)[2]


def test_missing_and_unreadable_files_are_faults(content: Path) -> None:
    (content / SLUG / "infographic.svg").unlink()
    assert _only_fault(content) == (f"{SLUG}/infographic.svg", 1, "the file is missing")
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
    with pytest.raises(NoLessonsError, match="no lesson folder"):
        load_lessons(tmp_path / "nowhere")


def test_lessons_are_read_again_when_a_file_changed(content: Path) -> None:
    first = load_lessons(content)
    assert load_lessons(content) is first
    _edit(content, "minutes: 5", "minutes: 7")
    os.utime(content / SLUG / "lesson.md", ns=(1, 1))
    assert load_lessons(content).lessons[0].minutes == 7


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
