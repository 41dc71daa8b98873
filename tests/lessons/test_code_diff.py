"""The readable difference: complete, in order, honest about what was left out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessons.code_diff import DiffLine, code_diff, scenario_code, scenario_diff
from scenarios.catalog import SCENARIOS

ILL = '"""Tells all."""\n\nimport a\n\nx = load(data, shuffle=True)\ny = 1\nz = extra()\n'
HEALTHY = '"""Healthy."""\n\nimport a\n\nx = load(data, sampler=sampler)\ny = 1\n'


def _shown(rows: tuple[DiffLine, ...]) -> list[tuple[str, str, str]]:
    return [(row.role, row.left_text, row.right_text) for row in rows]


def test_lines_are_paired_and_roles_given() -> None:
    assert _shown(code_diff(ILL, HEALTHY)) == [
        ("same", "import a", "import a"), ("same", "", ""),
        ("changed", "x = load(data, shuffle=True)", "x = load(data, sampler=sampler)"),
        ("same", "y = 1", "y = 1"), ("removed", "z = extra()", ""),
    ]


def test_numbers_are_those_of_the_files() -> None:
    rows = code_diff(ILL, HEALTHY)
    assert [(row.left_no, row.right_no) for row in rows] == [(3, 3), (4, 4), (5, 5), (6, 6), (7, None)]


def test_inside_a_changed_line_only_what_differs_is_marked() -> None:
    changed = next(row for row in code_diff(ILL, HEALTHY) if row.role == "changed")
    assert "".join(part.text for part in changed.left if part.changed) == "shuffleTrue"
    assert "".join(part.text for part in changed.right if part.changed) == "samplersampler"


def test_long_equal_stretches_become_a_gap_with_their_length() -> None:
    same = "\n".join(f"line_{number}" for number in range(20))
    rows = code_diff(f"{same}\nx = 1\n", f"{same}\nx = 2\n")
    assert (rows[0].role, rows[0].left_out) == ("gap", 17)
    assert [row.role for row in rows[1:]] == ["same"] * 3 + ["changed"]


_LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "call(a)", "call(b)", "", "for i in x:", "  pass"]), max_size=14)


@settings(max_examples=200, deadline=None)
@given(_LINES, _LINES)
def test_both_sources_can_be_put_together_again(left: list[str], right: list[str]) -> None:
    """With full context the left column is the ill script and the right one the healthy one, each line once and in order."""
    ill, healthy = ("import os\n" + "".join(f"# {line}\n" for line in lines) for lines in (left, right))
    rows = code_diff(ill, healthy, context=None)
    assert [row.left_text for row in rows if row.left_no is not None] == ["import os", *(f"# {line}" for line in left)]
    assert [row.right_text for row in rows if row.right_no is not None] == ["import os", *(f"# {line}" for line in right)]
    for row in rows:
        assert (row.role == "same") == (row.left_text == row.right_text and row.left_no is not None and row.right_no is not None)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "sharded"])
def test_every_experiment_differs_from_the_healthy_script_readably(name: str) -> None:
    rows = scenario_diff(name, "sharded")
    assert any(row.role in ("changed", "removed", "added") for row in rows)
    assert len(rows) < 70
    text = "\n".join(row.left_text + row.right_text for row in rows)
    assert SCENARIOS[name].title not in text
    assert scenario_code(name).splitlines()[0] not in text


def test_a_script_does_not_differ_from_itself() -> None:
    assert [row.role for row in scenario_diff("sharded", "sharded")] == ["gap"]


def test_an_unknown_experiment_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        scenario_diff("nonsense", "sharded")
