"""A foreign file becomes folders of lessons, all of it or nothing.

Everything is read and checked first, then written into a temporary folder beside the goal, then renamed. Owns files and folders; what is
inside them is made by `lessons.exchange.skeleton`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lessons.exchange.gather import Gathered
from lessons.exchange.gift_read import read_gift
from lessons.exchange.item import Item, Refusal
from lessons.exchange.moodle_read import read_moodle
from lessons.exchange.skeleton import files_of, slug_of
from lessons.exchange.xml_tree import LARGEST_FILE
from lessons.model import Fault
from lessons.reading import read_lesson

Format = Literal["moodle", "gift"]


class RefusedError(ValueError):
    """The file cannot be imported; nothing was written. `refusals` holds every reason."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("\n".join(str(refusal) for refusal in refusals))


@dataclass(frozen=True, kw_only=True)
class Imported:
    """One new folder, and what is left to do there, with its lines."""

    folder: Path
    title: str
    faults: tuple[Fault, ...]


def read_file(path: Path, kind: Format | None = None) -> Gathered:
    """Every question of a file; `kind` is told from its first character where it is not given. Raises OSError."""
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if kind is None:
        kind = "moodle" if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" else "gift"
    return (read_moodle if kind == "moodle" else read_gift)(data, path.name)


def import_file(
    path: Path, into: Path, *, kind: Format | None = None, leave_out: bool = False
) -> tuple[tuple[Imported, ...], tuple[Refusal, ...]]:
    """The new folders below `into`, and the questions that were left out: those of another kind, with `leave_out`.

    Raises RefusedError with every reason, and then nothing was written; OSError where files cannot be read or written.
    """
    found = read_file(path, kind)
    refusals = [*found.refusals, *([] if leave_out else found.left_out)]
    if not found.items and not refusals:
        refusals.append(Refusal(file=path.name, line=1, question="", message="holds no question that could become a lesson"))
    if refusals:
        raise RefusedError(sorted(refusals, key=lambda refusal: refusal.line))
    there = [child.name for child in into.iterdir()] if into.is_dir() else []
    named = _named(found.items, there)
    _write(named, into)
    made = tuple(Imported(folder=into / slug, title=item.title, faults=read_lesson(into / slug, {}).faults) for slug, item in named.items())
    return made, tuple(found.left_out)


def _named(items: Sequence[Item], taken: Sequence[str]) -> dict[str, Item]:
    """Folder name -> item. A name that is taken, there or by an earlier question, gets a number."""
    named: dict[str, Item] = {}
    for item in items:
        named[slug_of(item, [*taken, *named])] = item
    return named


def _write(named: dict[str, Item], into: Path) -> None:
    """A goal that does not exist or is empty appears in one rename; folders come to others one by one, and go again if one cannot."""
    filled = into.is_dir() and any(into.iterdir())
    beside = into if filled else into.absolute().parent  # on the same disk as the goal; a name with a dot is no lesson's
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=beside) as made:
        ready = Path(made) / "lessons"
        for slug, item in named.items():
            for name, data in files_of(item, slug).items():
                file = ready / slug / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        if not filled:
            os.replace(ready, into)
            return
        moved: list[Path] = []
        try:
            for slug in named:
                os.rename(ready / slug, into / slug)
                moved.append(into / slug)
        except OSError:
            for folder in moved:
                shutil.rmtree(folder, ignore_errors=True)
            raise
