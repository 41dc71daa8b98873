"""The readable difference between two scripts of the catalog, as data for a page: the ill one at the left, the healthy one at the right.

Owns the pairing of lines and the marking of what changed inside them. Must not draw anything or know about lessons.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from scenarios.catalog import SCENARIOS

LineRole = Literal["same", "changed", "removed", "added", "gap"]
CONTEXT_LINES = 3


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a line; `changed` where it differs from the other side."""

    text: str
    changed: bool


@dataclass(frozen=True, kw_only=True)
class DiffLine:
    """One row: the ill line, the healthy line, or both. `gap` stands for equal lines that were left out."""

    role: LineRole
    left_no: int | None
    """Line number in the ill script's file, from 1; None where it has no such line."""
    left: tuple[Part, ...]
    right_no: int | None
    right: tuple[Part, ...]
    left_out: int = 0
    """For `gap`: how many equal lines."""

    @property
    def left_text(self) -> str:
        return "".join(part.text for part in self.left)

    @property
    def right_text(self) -> str:
        return "".join(part.text for part in self.right)


def scenario_diff(ill: str, healthy: str, *, context: int | None = CONTEXT_LINES) -> tuple[DiffLine, ...]:
    """The difference between two experiments' scripts, by name. Raises KeyError for an unknown name, OSError for a missing script."""
    return code_diff(*(SCENARIOS[name].path.read_text(encoding="utf-8") for name in (ill, healthy)), context=context)


def scenario_code(name: str) -> str:
    """A script of the catalog as it is run, docstring included. Raises KeyError, OSError."""
    return Path(SCENARIOS[name].path).read_text(encoding="utf-8")


def code_diff(ill: str, healthy: str, *, context: int | None = CONTEXT_LINES) -> tuple[DiffLine, ...]:
    """Rows from `ill` to `healthy`, module docstrings left out. `context` equal lines stay around each change; None keeps all."""
    left_first, left = _code(ill)
    right_first, right = _code(healthy)
    rows: list[DiffLine] = []
    for tag, left_from, left_to, right_from, right_to in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            for offset in range(left_to - left_from):
                text = (Part(text=left[left_from + offset], changed=False),)
                numbers = (left_first + left_from + offset, right_first + right_from + offset)
                rows.append(DiffLine(role="same", left_no=numbers[0], left=text, right_no=numbers[1], right=text))
        else:
            rows += _replaced(
                [(left_first + number, left[number]) for number in range(left_from, left_to)],
                [(right_first + number, right[number]) for number in range(right_from, right_to)],
            )
    return tuple(rows if context is None else _folded(rows, context))


def _code(source: str) -> tuple[int, list[str]]:
    """The lines after the module docstring and the number of the first of them. The docstring tells what is wrong; the code should."""
    rows = source.splitlines()
    body = ast.parse(source).body
    first = 0
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
        first = body[0].end_lineno or 0
    while first < len(rows) and not rows[first].strip():
        first += 1
    return first + 1, rows[first:]


def _replaced(left: list[tuple[int, str]], right: list[tuple[int, str]]) -> list[DiffLine]:
    """Pair the lines that resemble each other, in order; the others stand alone."""
    rows: list[DiffLine] = []
    taken = 0
    for number, text in left:
        partner = next((index for index in range(taken, len(right)) if _alike(text, right[index][1])), None)
        if partner is None:
            rows.append(DiffLine(role="removed", left_no=number, left=(Part(text=text, changed=True),), right_no=None, right=()))
            continue
        rows += [_added(*line) for line in right[taken:partner]]
        left_parts, right_parts = _parts(text, right[partner][1])
        rows.append(DiffLine(role="changed", left_no=number, left=left_parts, right_no=right[partner][0], right=right_parts))
        taken = partner + 1
    return rows + [_added(*line) for line in right[taken:]]


def _added(number: int, text: str) -> DiffLine:
    return DiffLine(role="added", left_no=None, left=(), right_no=number, right=(Part(text=text, changed=True),))


def _alike(left: str, right: str) -> bool:
    return bool(left.strip() and right.strip()) and SequenceMatcher(None, left.strip(), right.strip(), autojunk=False).ratio() >= 0.6


def _parts(left: str, right: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both lines cut into words, the differing ones marked."""
    left_words, right_words = _words(left), _words(right)
    sides: tuple[list[Part], list[Part]] = ([], [])
    for tag, left_from, left_to, right_from, right_to in SequenceMatcher(None, left_words, right_words, autojunk=False).get_opcodes():
        for parts, text in zip(sides, ("".join(left_words[left_from:left_to]), "".join(right_words[right_from:right_to])), strict=True):
            if text:
                parts.append(Part(text=text, changed=tag != "equal"))
    return tuple(sides[0]), tuple(sides[1])


def _words(line: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", line)


def _folded(rows: list[DiffLine], context: int) -> list[DiffLine]:
    """Replace long runs of equal lines by a gap, keeping `context` of them beside each change."""
    near = {
        other for index, row in enumerate(rows) if row.role != "same" for other in range(index - context, index + context + 1)
    }
    folded: list[DiffLine] = []
    index = 0
    while index < len(rows):
        end = index
        while end < len(rows) and end not in near:
            end += 1
        if end - index > 1:
            folded.append(DiffLine(role="gap", left_no=None, left=(), right_no=None, right=(), left_out=end - index))
        else:
            folded += rows[index:end]
        if end < len(rows):
            folded.append(rows[end])
        index = end + 1
    return folded
