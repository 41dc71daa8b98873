"""A new lesson: a folder that is well formed from the first moment, with a note at every place that is still to be written.

Owns the two files that it begins with (`lessons/template`). What there is to do in them is told by `lessons.reading`.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from lessons.reading import INFOGRAPHIC_FILE, LESSON_FILE, SLUG, TO_DO

TEMPLATE = Path(__file__).resolve().parent / "template"
_OPTIONS, _CAUSES = ("o1", "o2", "o3", "o4"), ("c1", "c2", "c3", "c4")


def new_lesson(folder: Path, title: str | None = None) -> Path:
    """Make `folder` and its two files; returns the folder.

    Raises ValueError where the name cannot be an address, the title is empty, or something of that name is there already; OSError.
    """
    name = folder.name
    if not SLUG.match(name):
        raise ValueError(f"FOLDER={name!r}: the last part is the lesson's address: small letters, digits and -, a letter first, at most 40")
    if title is not None and not title.strip():
        raise ValueError(f"title={title!r}: must be some words")
    text = (TEMPLATE / LESSON_FILE).read_text(encoding="utf-8")
    for key, value in _ids(name).items():
        text = text.replace(f"{{{key}}}", value)
    if title is not None:
        first = next(row for row in text.splitlines() if row.startswith("title: ") and TO_DO in row)
        # Every JSON string is a YAML string.
        text = text.replace(first, f"title: {json.dumps(' '.join(title.split()), ensure_ascii=False)}", 1)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ValueError(f"FOLDER={str(folder)!r}: is there already; nothing was changed") from None
    except OSError as error:
        raise ValueError(f"FOLDER={str(folder)!r}: cannot be made: {error.strerror}") from None
    (folder / LESSON_FILE).write_text(text, encoding="utf-8")
    (folder / INFOGRAPHIC_FILE).write_text((TEMPLATE / INFOGRAPHIC_FILE).read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def _ids(name: str) -> dict[str, str]:
    """Ids that tell nothing, the same ones for the same name."""
    draw = random.Random(name)
    letters = draw.sample("abcdefghijkmnpqrstuvwxyz", len(_OPTIONS) + len(_CAUSES))
    return {key: f"{letter}{draw.randint(1, 9)}" for key, letter in zip((*_OPTIONS, *_CAUSES), letters, strict=True)}
