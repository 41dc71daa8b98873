"""YAML front matter with line numbers, and pydantic's faults placed on them.

Owns the mapping from a value's path to the line it stands on. Must not know what a lesson is.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from lessons.model import Fault

ModelT = TypeVar("ModelT", bound=BaseModel)
Place = tuple[str | int, ...]
FENCE = "---"
DEEPEST = 20
"""Values inside each other. YAML's own reader goes as deep as the file says, until Python gives up, and the whole course with it."""
LONGEST_NUMBER = 40
"""Characters. Python refuses to show a longer one, and YAML's numbers to the base of 60 have no end."""
LARGEST_FILE = 2_000_000
"""Bytes. Something larger has been put there by mistake, and is not read."""


class FrontMatterError(ValueError):
    """The front matter cannot be read at all; `line` is where."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


class PlacedError(ValueError):
    """A fault between fields; `path` is that of the one to look at."""

    def __init__(self, path: Place, message: str) -> None:
        self.path = path
        super().__init__(message)


class _Loader(yaml.SafeLoader):
    """Plain values only: what a file may say of itself in YAML beyond them can multiply without end, or break the reader."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refused("& and * at the beginning of a text need quotation marks around it", event)
        if getattr(event, "tag", None):
            raise _refused("! at the beginning of a text needs quotation marks around it", event)
        if self._depth == DEEPEST:
            raise _refused(f"at most {DEEPEST} values may be inside each other", event)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def _number(self, node: yaml.ScalarNode) -> float:
        if len(node.value) > LONGEST_NUMBER:
            raise _refused(f"a number has at most {LONGEST_NUMBER} characters", node)
        read = self.construct_yaml_int if node.tag.endswith(":int") else self.construct_yaml_float
        return read(node)


def _refused(why: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=why, problem_mark=at.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader._number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader._number)


@dataclass(frozen=True, kw_only=True)
class FrontMatter:
    """Plain values of the front matter, the line of each, and the Markdown after it."""

    values: dict[str, Any]
    lines: dict[Place, int]
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
    values, lines, repeated = _read(rows[1:end])
    return FrontMatter(values=values, lines=lines, body="\n".join(rows[end + 1 :]), body_line=end + 2, repeated=repeated)


def read_yaml_file(path: Path) -> tuple[FrontMatter | None, list[Fault]]:
    """A file that is YAML and nothing else, in the same shape, with an empty body; None where there is none or it cannot be read."""
    if not path.exists():
        return None, []
    try:
        if odd := not_readable(path):
            return None, [Fault(file=path.name, line=1, message=odd)]
        values, lines, repeated = _read(path.read_text(encoding="utf-8").splitlines(), first_line=1)
    except (OSError, UnicodeDecodeError) as error:
        return None, [Fault(file=path.name, line=1, message=f"cannot be read: {error}")]
    except FrontMatterError as error:
        return None, [Fault(file=path.name, line=error.line, message=str(error))]
    return FrontMatter(values=values, lines=lines, body="", body_line=1, repeated=repeated), []


def not_readable(path: Path) -> str | None:
    """Why the file at `path` is not even opened: a pipe or a device would be waited for, or read, for ever. Raises OSError."""
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return "is no plain file, and is not read"
    return f"the file has {status.st_size} bytes; at most {LARGEST_FILE} are read" if status.st_size > LARGEST_FILE else None


def _read(rows: Sequence[str], first_line: int = 2) -> tuple[dict[str, Any], dict[Place, int], list[tuple[int, str]]]:
    """Values, the line of each, and keys that stand twice. `first_line` is the line of the file on which `rows` begin."""
    source = "\n".join(rows)
    try:
        loader = _Loader(source)
        node = loader.get_single_node()
        values = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + first_line if error.problem_mark else 1
        raise FrontMatterError(line, f"not readable as YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise FrontMatterError(first_line, f"not readable as YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(values, dict) or node is None:
        raise FrontMatterError(first_line, "this has to be `name: value` lines")
    lines: dict[Place, int] = {}
    repeated: list[tuple[int, str]] = []
    _place(node, (), lines, repeated, first_line)
    return values, lines, repeated


def validate(
    model: type[ModelT], front: FrontMatter, context: Mapping[str, Any] | None = None
) -> tuple[ModelT | None, list[tuple[int, str]]]:
    """`front` as `model`, or None and every fault as (line, message). `context` is for the model's validators."""
    faults = [(line, f"{key!r} stands here twice") for line, key in front.repeated]
    try:
        return model.model_validate(front.values, context=dict(context or {})), faults
    except ValidationError as error:
        for fault in error.errors():
            context = fault.get("ctx", {})
            between = context.get("error")
            if isinstance(between, PlacedError):
                faults.append((front.line_of(between.path), str(between)))
                continue
            path = [part for part in fault["loc"] if isinstance(part, (str, int)) and part != "[key]"]  # the name itself is at fault
            name = ".".join(str(part) for part in path) or "front matter"
            shown = "" if isinstance(fault["input"], (dict, list)) else f" (is {str(fault['input'])[:60]!r})"
            message = _plain(fault["type"], context) or fault["msg"].removeprefix("Value error, ")
            faults.append((front.line_of(path), f"{name}: {message}{shown if fault['type'] != 'missing' else ''}"))
        return None, faults


def _plain(kind: str, limits: Mapping[str, Any]) -> str | None:
    """What pydantic says, for people who do not program; None where its own words will do."""
    sign = "_" if "_" in str(limits.get("pattern", "")) else "-"
    return {
        "missing": "is missing",
        "extra_forbidden": "there is no such field here",
        "int_parsing": "must be a whole number", "int_type": "must be a whole number", "int_from_float": "must be a whole number",
        "bool_parsing": "must be true or false", "bool_type": "must be true or false",
        "string_type": "must be a text; put it between quotation marks",
        "string_too_short": "must not be empty",
        "string_too_long": f"must have at most {limits.get('max_length')} characters",
        "string_pattern_mismatch": f"must begin with a small letter and hold small letters, digits and {sign} only, at most 40",
        "literal_error": f"must be one of {limits.get('expected')}",
        "greater_than_equal": f"must be at least {limits.get('ge')}",
        "less_than_equal": f"must be at most {limits.get('le')}",
        "too_short": f"needs at least {limits.get('min_length')}",
        "too_long": f"may hold at most {limits.get('max_length')}",
        "list_type": "must be a list: `- ` before each entry",
        "dict_type": "must be `name: value` lines", "model_type": "must be `name: value` lines",
    }.get(kind)


def _place(node: yaml.Node, path: Place, lines: dict[Place, int], repeated: list[tuple[int, str]], first_line: int) -> None:
    # YAML counts lines from 0.
    lines.setdefault(path, node.start_mark.line + first_line)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = str(key.value)
            if (*path, name) in lines:
                repeated.append((key.start_mark.line + first_line, name))
                continue
            lines[(*path, name)] = key.start_mark.line + first_line
            _place(value, (*path, name), lines, repeated, first_line)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _place(item, (*path, index), lines, repeated, first_line)
