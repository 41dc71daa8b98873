"""docs/write-a-lesson.md and the code in step: fields, figures, knobs, columns, limits. `python -m tests.test_docs` rewrites its table."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from lessons.claim_fields import summary_fields
from lessons.claim_language import FUNCTIONS, SIGNS, parse_claim
from lessons.cli import main
from lessons.evidence_columns import COLUMNS
from lessons.model import SILHOUETTES
from lessons.quality import REBUTTAL_WORDS, SYMPTOM_WORDS
from lessons.schema import (
    EXAM_DOMAINS,
    MOST_COLUMNS,
    SECTIONS,
    WHY_WORDS,
    WORDING_WORDS,
    CauseMatter,
    LessonMatter,
    RacerMatter,
)
from scenarios.config import RunConfig

PAGE = Path(__file__).resolve().parents[1] / "docs" / "write-a-lesson.md"
BEGIN, END = "<!-- columns -->\n", "<!-- /columns -->"


def columns_table() -> str:
    rows = ["| column | heading | what it says |", "| --- | --- | --- |"]
    rows += [f"| `{name}` | {column.heading} | {column.what} |" for name, column in COLUMNS.items()]
    return "\n".join(rows) + "\n"


def written_table() -> str:
    return PAGE.read_text().split(BEGIN)[1].split(END)[0]


def test_the_table_of_columns_is_that_of_the_code() -> None:
    assert written_table() == columns_table(), "run: python -m tests.test_docs"
    assert MOST_COLUMNS == 7
    assert "at most seven" in PAGE.read_text()


def _named() -> set[str]:
    """Everything that the page sets as code, but for whole blocks."""
    return set(re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)))


def test_every_field_figure_and_knob_is_explained() -> None:
    named = _named()
    for model in (LessonMatter, CauseMatter, RacerMatter):
        assert set(model.model_fields) - named - {"text", "right"} <= {"label"}
    assert set(SILHOUETTES) <= named
    assert {f"# {section}" for section in SECTIONS} <= named
    signs = {sign for code in named for sign in code.split()}
    assert set(RunConfig.model_fields) - named == {"backend"}, "lessons are about virtual GPUs"
    fields = summary_fields()
    assert {name for name in fields if name != "gpus"} | {f"gpus[n].{field}" for field in fields["gpus"][0]} <= named
    assert {f".{field}" for field in summary_fields()["wait_windows"]} <= named
    assert {f"{function}()" for function in FUNCTIONS} | set(SIGNS) <= named | signs


def test_the_limits_are_those_of_the_code() -> None:
    text = " ".join(PAGE.read_text().split())
    for low, high in (WHY_WORDS, WORDING_WORDS, SYMPTOM_WORDS, REBUTTAL_WORDS):
        assert f"{low} to {high} words" in text or f"{low} to {high}." in text or f"{low} to {high} words each" in text
    assert ", ".join(EXAM_DOMAINS) in text


def test_its_examples_can_be_read() -> None:
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)]
    claims = next(block["claims"] for block in blocks if "claims" in block)
    for claim in claims:
        parse_claim(next(iter(claim.values())))
    for config in next(block["experiments"] for block in blocks if "experiments" in block).values():
        RunConfig.parse(config)


def test_its_commands_exist() -> None:
    commands = set(re.findall(r"python -m lessons (\w+)", PAGE.read_text()))
    assert commands == {"new", "preview", "figures", "check"}
    assert all(main([command, "--help"]) == 0 for command in commands)


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().replace(BEGIN + written_table(), BEGIN + columns_table()))
