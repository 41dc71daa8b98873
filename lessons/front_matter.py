"""YAML front matter with line numbers, and pydantic's faults placed on them.

Owns the mapping from a value's path to the line it stands on. Must not know what a lesson is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

ModelT = TypeVar("ModelT", bound=BaseModel)
Path = tuple[str | int, ...]
FENCE = "---"


class FrontMatterError(ValueError):
    """The front matter cannot be read at all; `line` is where."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class FrontMatter:
    """Plain values of the front matter, the line of each, and the Markdown after it."""

    values: dict[str, Any]
    lines: dict[Path, int]
    body: str
    body_line: int
    """Line of the file on which `body` begins."""
    repeated: list[tuple[int, str]] = field(default_factory=list)
    """Keys that stand twice in one mapping: (line, key)."""

    def line_of(self, path: Sequence[str | int]) -> int:
        """The line of the value at `path`, or of the nearest thing around it."""
        for length in range(len(path), -1, -1):
            if tuple(path[:length]) in self.lines:
                return self.lines[tuple(path[:length])]
        return 1


def read_front_matter(text: str) -> FrontMatter:
    """Split `text` at its two `---` lines and read the YAML between them.

    Raises FrontMatterError with the line where the fences, the YAML or its shape are wrong.
    """
    rows = text.splitlines()
    if not rows or rows[0].strip() != FENCE:
        raise FrontMatterError(1, f"a lesson begins with a line {FENCE!r}, the front matter and another {FENCE!r}")
    end = next((number for number, row in enumerate(rows[1:], start=1) if row.strip() == FENCE), None)
    if end is None:
        raise FrontMatterError(1, f"the front matter is not closed by a line {FENCE!r}")
    source = "\n".join(rows[1:end])
    try:
        node = yaml.compose(source, Loader=yaml.SafeLoader)
        values = yaml.safe_load(source)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise FrontMatterError(line, f"not readable as YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise FrontMatterError(2, f"not readable as YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(values, dict) or node is None:
        raise FrontMatterError(2, "the front matter has to be `name: value` lines")
    lines: dict[Path, int] = {}
    repeated: list[tuple[int, str]] = []
    _place(node, (), lines, repeated)
    return FrontMatter(values=values, lines=lines, body="\n".join(rows[end + 1 :]), body_line=end + 2, repeated=repeated)


def validate(model: type[ModelT], front: FrontMatter) -> tuple[ModelT | None, list[tuple[int, str]]]:
    """`front` as `model`, or None and every fault as (line, message)."""
    faults = [(line, f"{key!r} stands here twice") for line, key in front.repeated]
    try:
        return model.model_validate(front.values), faults
    except ValidationError as error:
        for fault in error.errors():
            path = [part for part in fault["loc"] if isinstance(part, (str, int))]
            name = ".".join(str(part) for part in path) or "front matter"
            shown = "" if isinstance(fault["input"], (dict, list)) else f" (is {str(fault['input'])[:60]!r})"
            message = fault["msg"].removeprefix("Value error, ")
            faults.append((front.line_of(path), f"{name}: {message}{shown if fault['type'] != 'missing' else ''}"))
        return None, faults


def _place(node: yaml.Node, path: Path, lines: dict[Path, int], repeated: list[tuple[int, str]]) -> None:
    # The fence is line 1 and YAML counts from 0: the first row of the source is line 2 of the file.
    lines.setdefault(path, node.start_mark.line + 2)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = str(key.value)
            if (*path, name) in lines:
                repeated.append((key.start_mark.line + 2, name))
                continue
            lines[(*path, name)] = key.start_mark.line + 2
            _place(value, (*path, name), lines, repeated)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _place(item, (*path, index), lines, repeated)
