"""README and code in step: the settings table, the links, the commands. `python -m tests.test_readme` rewrites the table."""

from __future__ import annotations

import ast
import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from lessons import load_lessons
from scenarios import settings
from scenarios.catalog import SCENARIOS
from scenarios.costs.validate import committed

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- settings -->\n", "<!-- /settings -->"
DEPENDS = {"data_dir": "`data/` in the project", "live_runs": "half the cores, at least 1"}
"""Defaults that differ from machine to machine, in words."""


def settings_table() -> str:
    """One row per field of Settings: its variable, default and attribute docstring."""
    tree = ast.parse(Path(settings.__file__).read_text())
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings").body
    docs: dict[str, str] = {}
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            docs[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    rows = ["| variable | default | what it is |", "| --- | --- | --- |"]
    for name, field in settings.Settings.model_fields.items():
        default = DEPENDS.get(name) or _shown(field.default)
        rows.append(f"| `{settings.PREFIX}{name.upper()}` | {default} | {docs[name]} |")
    return "\n".join(rows) + "\n"


def _shown(default: object) -> str:
    if default is None or default == "":
        return "not set"
    return f"{default:g}" if isinstance(default, float) else str(default)


def written_table() -> str:
    return README.read_text().split(BEGIN)[1].split(END)[0]


def test_the_settings_table_is_that_of_the_code() -> None:
    assert written_table() == settings_table(), "run: python -m tests.test_readme"


def test_every_local_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert "LICENSE" in links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_folder_and_experiment_named_exists() -> None:
    text = README.read_text()
    folders = re.findall(r"^\| `([a-z/]+/|app\.py)` \|", text, re.MULTILINE)
    assert len(folders) > 8
    assert [folder for folder in folders if not (ROOT / folder).exists()] == []
    named = set(re.findall(r"scenarios run (\w+)", text)) | set(re.findall(r"scenarios\.catalog\.(\w+)", text))
    assert named <= set(SCENARIOS)


def test_a_screenshot_that_exists_is_shown() -> None:
    assert (ROOT / "docs/screenshot.png").exists() == ("](docs/screenshot.png)" in README.read_text())


def test_the_errors_of_the_model_are_those_that_validate_finds() -> None:
    text = " ".join(README.read_text().split())
    tuned, untuned = (committed()["held_out"][kind] for kind in ("tuned", "untuned"))
    one, scaling = tuned["one_gpu"], tuned["scaling"]
    assert f"off by {one['median']:.1%} in the median for one GPU (worst {one['worst']:.1%}, {one['rows']} rows)".replace("%", " %") in text
    assert f"by {scaling['median']:.1%} for scaling (worst {scaling['worst']:.1%}, {scaling['rows']} rows)".replace("%", " %") in text
    own = untuned["one_gpu"]
    assert f"{own['median']:.1%} off in the median for one GPU (worst {own['worst']:.1%}, {own['rows']} rows)".replace("%", " %") in text


def test_the_course_is_described_as_it_is() -> None:
    lessons = load_lessons().lessons
    section = " ".join(README.read_text().split("## The course\n")[1].split("## ")[0].split())
    assert section.startswith("Sixteen lessons of five to seven minutes")
    assert len(lessons) == 16
    assert (min(lesson.minutes for lesson in lessons), max(lesson.minutes for lesson in lessons)) == (5, 7)
    assert set(re.findall(r'"([^"]+)"', section)) <= {lesson.title for lesson in lessons}


def test_the_picture_has_a_title_and_a_description() -> None:
    tree = ElementTree.parse(ROOT / "docs/how-it-works.svg").getroot()
    for tag in ("title", "desc"):
        text = tree.findtext(f"{{http://www.w3.org/2000/svg}}{tag}")
        assert text
        assert len(text) > 20


if __name__ == "__main__":
    README.write_text(README.read_text().replace(BEGIN + written_table(), BEGIN + settings_table()))
