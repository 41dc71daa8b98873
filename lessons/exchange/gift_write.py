"""Lessons as GIFT (https://docs.moodle.org/en/GIFT_format): one multiple-choice question each, feedback for every option.

Owns the writing. Every text names its format, so that no text can be taken for a format or a weight. Id and tags stand in a comment, as
Moodle reads them; a second comment keeps the options' ids. GIFT cannot hold pictures.
"""

from __future__ import annotations

from collections.abc import Iterable

from lessons.exchange.item import Item, clean, html_of, html_of_line
from lessons.exchange.texts import feedback_html, question_html

RESERVED = "\\~=#{}:"


def gift(items: Iterable[Item]) -> str:
    """One file with all `items`, in a category of their own."""
    return "\n".join(["$CATEGORY: $course$/top/Shardlab\n", *map(_question, items)])


def escaped(text: str) -> str:
    """`text` with everything escaped that GIFT reserves. A new line becomes `\\n`, for a blank line would end the question."""
    for char in RESERVED:
        text = text.replace(char, f"\\{char}")
    return text.replace("\n", "\\n")


def _question(item: Item) -> str:
    tags = "".join(f" [tag:{_in_brackets(tag)}]" for tag in item.tags)
    rows = [
        f"// A lesson of Shardlab. [id:{_in_brackets(item.id)}]{tags}",
        f"// options: {' '.join(option.id for option in item.options)}",
        f"::{escaped(' '.join(clean(item.title).split()))}::{_html(question_html(item))}{{",
    ]
    for option in item.options:
        sign = "=" if option.right else "~"
        rows.append(f"\t{sign}{_html(html_of_line(option.text))}#{_html(html_of(option.rebuttal))}")
    rows.append(f"\t####{_html(feedback_html(item, picture=False))}")
    return "\n".join([*rows, "}", ""])


def _html(text: str) -> str:
    return f"[html]{escaped(text)}"


def _in_brackets(text: str) -> str:
    return " ".join(clean(text).split()).replace("]", "\\]")
