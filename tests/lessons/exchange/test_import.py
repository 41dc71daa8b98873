"""Foreign files: what becomes of them, and that a faulty one is refused with every reason and leaves nothing behind."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from lxml import etree

from lessons.exchange import importing
from lessons.exchange.importing import RefusedError, import_file, read_file
from lessons.exchange.item import item_of
from lessons.exchange.moodle_write import moodle_xml
from lessons.loader import load_lessons, read_lessons
from lessons.reading import read_lesson
from tests.lessons.exchange.asked import SVG

HERE = Path(__file__).parent
XML, GIFT = HERE / "foreign.xml", HERE / "foreign.gift.txt"


def _refused(path: Path, into: Path, **more: bool) -> list[str]:
    with pytest.raises(RefusedError) as refused:
        import_file(path, into, **more)
    assert not into.exists()
    assert [child.name for child in into.parent.iterdir() if child.name.startswith(".import")] == []
    return [str(refusal) for refusal in refused.value.refusals]


def test_the_sample_is_moodle_xml() -> None:
    assert etree.RelaxNG(etree.parse(HERE / "moodle.rng")).validate(etree.parse(XML))


def test_moodle_questions_become_lessons_to_be_finished(tmp_path: Path) -> None:
    made, left_out = import_file(XML, tmp_path / "course")
    assert left_out == ()
    assert [one.folder.name for one in made] == ["gradients-links", "ddp-shards-the-data"]
    text = (made[0].folder / "lesson.md").read_text(encoding="utf-8")
    assert 'title: "Gradients & links"' in text
    assert 'question: "What would you check first?"' in text
    assert "# Symptom\n\n### Slow\n\nEight GPUs, and **half** of each step is communication\n" in text
    assert "alert" not in text
    assert 'text: "The `nvidia-smi topo -m` matrix"\n    right: true' in text
    assert 'text: "The \\\\*learning rate\\\\* of rank 0"' in text
    assert "\n\n### No\n\nIt launches **no** kernel." in text
    assert 'exam_domains: ["Communication"]' in text
    assert "# TODO: choose its domains; its tags were week 3" in text
    assert (made[0].folder / "pictures" / "1-nvidia-smi.png").read_bytes().startswith(b"\x89PNG")
    assert 'text: "False"\n    right: true' in (made[1].folder / "lesson.md").read_text(encoding="utf-8")
    assert {fault.kind for one in made for fault in one.faults} == {"to do", "advice"}


def test_check_names_everything_that_is_left_to_do(tmp_path: Path) -> None:
    """A lesson that is begun can be previewed, is never shown to learners, and what it lacks has a line."""
    import_file(XML, tmp_path / "course")
    found = read_lessons(tmp_path / "course")
    assert found.lessons == ()
    named = "\n".join(str(fault) for fault in found.faults if fault.file.startswith("gradients-links"))
    missing = (
        "the experiment that proves or disproves it", "this cause in a few words", "the symptom in figures", "claim what your texts say",
        "the short explanation, 60 to 90 words", "infographic.svg:2", "the title of a source",
    )
    assert [one for one in missing if one not in named] == []
    assert read_lesson(tmp_path / "course" / "gradients-links", {}).lesson is not None


def test_ids_tell_nothing_where_the_right_answer_stands_first(tmp_path: Path) -> None:
    rows = "\n\n".join(f"::Q {number}:: S {{=right ~wrong ~other}}" for number in range(30))
    (tmp_path / "many.gift").write_text(rows)
    made, _ = import_file(tmp_path / "many.gift", tmp_path / "course")
    keys = [read_lesson(one.folder, {}).lesson for one in made]
    assert len({lesson.key.id for lesson in keys if lesson}) > 15
    places = [sorted(option.id for option in lesson.options).index(lesson.key.id) for lesson in keys if lesson]
    assert min(places.count(place) for place in range(3)) >= 4


def test_gift_questions_become_lessons_to_be_finished(tmp_path: Path) -> None:
    found = read_file(GIFT)
    assert found.refusals == []
    links, waits, shards = found.items
    assert (links.id, links.tags) == ("link-1", ("Communication", "odd ] tag"))
    assert (links.symptom, links.question) == (
        "Half of each step is communication.", "Which cable is it: NVLink = fast, or PCIe ~ slow?",
    )
    assert [(option.text, option.right, option.rebuttal) for option in links.options] == [
        ("PCIe", True, "It is the slower one."), ("NVLink", False, "That one is **fast**."), ("Both", False, ""),
    ]
    assert links.why == "PCIe 4.0 x16 carries about 24 GB/s."
    assert waits.symptom == r"A GPU that waits in an NCCL kernel reads \_\_\_\_\_ in nvidia-smi."
    assert [option.text for option in waits.options if option.right] == ["100 %"]
    assert [(option.text, option.right, option.rebuttal) for option in shards.options] == [
        ("True", False, "It synchronises gradients."), ("False", True, "Right, the sampler does."),
    ]
    made, _ = import_file(GIFT, tmp_path / "course")
    assert [one.folder.name for one in made] == ["link-1", "a-gpu-that-waits-in-an-nccl-kernel", "ddp-shards-the-data-by-itself"]


def test_our_own_file_keeps_ids_and_the_picture(tmp_path: Path) -> None:
    lesson = load_lessons().lessons[0]
    path = tmp_path / "own.xml"
    path.write_text(moodle_xml([item_of(lesson)]), encoding="utf-8")
    made, _ = import_file(path, tmp_path / "course")
    assert [one.folder.name for one in made] == [lesson.id]
    text = (made[0].folder / "lesson.md").read_text(encoding="utf-8")
    assert [f"- id: {option.id}" in text for option in lesson.options] == [True] * len(lesson.options)
    assert (made[0].folder / "infographic.svg").read_text(encoding="utf-8").startswith("<svg ")


_QUESTION = """<quiz><question type="multichoice"><name><text>Q</text></name><questiontext><text>S</text>{files}</questiontext>{answers}
</question></quiz>"""
_TWO = '<answer fraction="100"><text>a</text></answer><answer fraction="0"><text>b</text></answer>'


def _asked(answers: str = _TWO, files: str = "") -> str:
    return _QUESTION.format(answers=answers, files=files)


def _file(name: str, data: bytes | str) -> str:
    content = base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return f'\n<file name="{name}" path="/" encoding="base64">{content}</file>'


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("<quiz><question></quiz>", 1, "not well-formed XML"),
        ("<questions/>", 1, "the root element is <questions>"),
        ('<!DOCTYPE quiz [<!ENTITY a "aaaa">]>\n<quiz>&a;</quiz>', 1, "document type or entity declaration"),
        ('<!DOCTYPE quiz SYSTEM "file:///etc/passwd"><quiz/>', 1, "document type or entity declaration"),
        ("<quiz>\n&nbsp;</quiz>", 2, "undefined entity"),
        ("<quiz>" + "<a>" * 40 + "</a>" * 40 + "</quiz>", 1, "nested more than 30 deep"),
        ("<quiz/>", 1, "holds no question"),
        ('<quiz>\n<question type="essay"><name><text>E</text></name></question></quiz>', 2, "question 'E': is of the type 'essay'"),
        (_asked(_TWO.replace('"0"', '"100"')), 1, "question 'Q': 2 options are right"),
        (_asked(_TWO.replace('"0"', '"50"')), 1, "give part of the marks"),
        (_asked(_TWO.replace('"0"', '"many"')), 1, "fraction='many'"),
        (_asked(_TWO.replace(">b<", ">a<")), 1, "two options have the same text"),
        (_asked(_TWO.replace(">b<", "> <")), 1, "an option has no text"),
        (_asked('<answer fraction="100"><text>a</text></answer>'), 1, "has 1 options"),
        (_asked(_TWO.replace('"0">', '"0" format="wiki_like">')), 1, "has the format 'wiki_like'"),
        (_asked(files=_file("x.svg", SVG.replace("<rect", '<rect onload="x()"').encode())), 2, "no scripts in an infographic"),
        (_asked(files=_file("x.png", b"MZ")), 2, "is not what its name says"),
        (_asked(files=_file("x.png", "!!")), 2, "is not base64"),
        (_asked(files=_file("x.exe", b"MZ")), 2, "only pictures are taken over"),
        (_asked().replace("<text>S</text>", "<text></text>"), 1, "the question text is empty"),
        (_asked().replace("<text>Q</text>", ""), 1, "has no name"),
        ("Q {=a ~b\n\nR {=a ~b}", 1, "has a { without a }"),
        ("Q {=a ~b ~c ~d}\nR {=a ~b}", 1, "a blank line is missing between two questions"),
        ("\nQ {=a =b}", 2, "is a short-answer question"),
        ("Q {=a -> b =c -> d}", 1, "is a matching question"),
        ("Q {#3\\:0.1}", 1, "is a numerical question"),
        ("Q {}", 1, "an essay"),
        ("Only a text", 1, "a description"),
        ("Q {=a ~%50%b}", 1, "give part of the marks"),
        ("Q {~a ~b}", 1, "0 options are right"),
        ("Q {=a ~a}", 1, "two options have the same text"),
    ],
)
def test_a_fault_is_named_with_its_line_and_nothing_is_written(text: str, line: int, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "faulty.txt"
    path.write_text(text, encoding="utf-8")
    reasons = _refused(path, tmp_path / "course")
    assert any(one.startswith(f"faulty.txt:{line}: ") and reason in one for one in reasons), reasons


def test_one_bad_question_refuses_the_whole_file_with_every_reason(tmp_path: Path) -> None:
    path = tmp_path / "mixed.gift"
    path.write_text(GIFT.read_text(encoding="utf-8") + "\n\nOne {=a =b}\n\nTwo {=a ~a ~}\n", encoding="utf-8")
    reasons = _refused(path, tmp_path / "course")
    assert len(reasons) == 3
    assert _refused(path, tmp_path / "course", leave_out=True) == reasons[1:]


def test_questions_of_other_kinds_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "mixed.gift"
    path.write_text(GIFT.read_text(encoding="utf-8") + "\n\nOne {=a =b}\n", encoding="utf-8")
    made, left_out = import_file(path, tmp_path / "course", leave_out=True)
    assert (len(made), [refusal.line for refusal in left_out]) == (3, [18])


@pytest.mark.parametrize("data", ["é".encode("utf-16"), b"caf\xe9 {=a ~b}", b"<quiz>\xff</quiz>"])
def test_other_encodings_are_refused_or_read(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(data)
    assert len(_refused(path, tmp_path / "course")) == 1


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.xml"
    with path.open("wb") as file:
        file.write(b"<quiz>")
        file.truncate(importing.LARGEST_FILE + 10)
    assert "at most" in _refused(path, tmp_path / "course")[0]


def test_lessons_that_are_there_stay_as_they_are(tmp_path: Path) -> None:
    into = tmp_path / "course"
    (into / "link-1").mkdir(parents=True)
    (into / "link-1" / "lesson.md").write_text("mine")
    made, _ = import_file(GIFT, into)
    assert made[0].folder.name == "link-1-2"
    assert (into / "link-1" / "lesson.md").read_text() == "mine"


def test_a_disk_that_refuses_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into = tmp_path / "course"
    (into / "mine").mkdir(parents=True)
    moves = iter([None, OSError(28, "No space left on device")])
    real = os.rename

    def rename(source: Path, goal: Path) -> None:
        fault = next(moves)
        if fault:
            raise fault
        real(source, goal)

    monkeypatch.setattr(importing.os, "rename", rename)
    with pytest.raises(OSError, match="No space"):
        import_file(GIFT, into)
    assert [child.name for child in into.iterdir()] == ["mine"]
