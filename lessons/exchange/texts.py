"""How the texts of an item are put together for another program, and taken apart again.

    question text      the symptom, then the question as a bold paragraph
    general feedback   the short explanation, the infographic, then "In the exam" and "On call" under headings

Owns that order. Must not know any file format.
"""

from __future__ import annotations

import re
from html import escape
from urllib.parse import quote

from lessons.exchange.item import Item, html_of, html_of_line
from lessons.exchange.to_markdown import PLUGIN_FILE, from_markdown, inline_markdown, plain, to_markdown

PICTURE = "infographic.svg"
BOXES = ("In the exam", "On call")

_LAST_BOLD = re.compile(r"\A(?:(?P<before>.*)\n\n)?\*\*(?P<bold>[^\n]+(?:\n[^\n]+)*)\*\*\Z", re.DOTALL)
_LAST = re.compile(r"\A(?P<before>.+)(?:\n|\\)\n(?P<last>[^\n]*\?)\Z", re.DOTALL)
_BOX = re.compile(rf"(?m)^#{{3,4}} ({'|'.join(BOXES)})$")
_TAG = re.compile(r"<[A-Za-z/!]")


def question_html(item: Item) -> str:
    return f"{html_of(item.symptom)}\n<p><strong>{html_of_line(item.question)}</strong></p>"


def feedback_html(item: Item, *, picture: bool) -> str:
    """General feedback; with `picture` it shows the attached infographic, else it says in words what that shows."""
    parts = [html_of(item.why)]
    if item.infographic and picture:
        parts.append(f'<p><img src="{PLUGIN_FILE}{quote(PICTURE)}" alt="{escape(item.infographic_alt)}" width="550"></p>')
    for title, text in zip(BOXES, (item.exam_box, item.on_call_box), strict=True):
        if text:
            parts.append(f"<h4>{title}</h4>\n{html_of(text)}")
    return "\n".join(part for part in parts if part)


def markdown_of(text: str, kind: str) -> str | None:
    """A text of Moodle's in the Markdown of lessons; None for a format that is not known."""
    if kind == "html":
        return to_markdown(text)
    if kind == "markdown":
        return to_markdown(from_markdown(text))
    if kind in ("plain_text", "plain"):
        return plain(text)
    if kind in ("moodle_auto_format", "moodle"):  # HTML or not, as the author pleased
        return to_markdown(text) if _TAG.search(text) else plain(text)
    return None


def line_of(text: str, kind: str) -> str | None:
    """`markdown_of`, on one line."""
    if kind == "markdown":
        return inline_markdown(from_markdown(text))
    if kind == "html" or (kind in ("moodle_auto_format", "moodle") and _TAG.search(text)):
        return inline_markdown(text)
    found = markdown_of(" ".join(text.split()), kind)
    return None if found is None else found


def split_question(text: str) -> tuple[str, str]:
    """(symptom, question), either may be empty: the question is the last paragraph or line, if that is bold or ends in a question mark."""
    bold = _LAST_BOLD.match(text)
    if bold and "**" not in bold["bold"]:
        return (bold["before"] or "").strip(), " ".join(bold["bold"].split())
    last = _LAST.match(text)
    if last:
        return last["before"].strip(), last["last"]
    return (text, "") if "\n\n" in text or not text.endswith("?") else ("", " ".join(text.split()))


def split_feedback(text: str) -> tuple[str, dict[str, str]]:
    """(short explanation, box title -> text)."""
    parts = _BOX.split(text)
    boxes: dict[str, str] = {}
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        boxes[title] = "\n\n".join(filter(None, (boxes.get(title, ""), body.strip())))
    return parts[0].strip(), boxes
