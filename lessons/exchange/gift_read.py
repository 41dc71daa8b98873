"""GIFT from outside as items, or every reason why it cannot be.

Owns the reading of GIFT as Moodle reads it: questions are separated by blank lines, a line that begins with `//` is a comment, a backslash
escapes. Multiple-choice questions with one right answer, missing-word questions of that kind, and true/false questions become items.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lessons.exchange.gather import LONGEST_TEXT, MOST_QUESTIONS, FoundOption, Gathered, faults_of, item_from, unlike_a_lesson
from lessons.exchange.item import clean
from lessons.exchange.texts import line_of, markdown_of

FORMATS = ("html", "moodle", "plain", "markdown")
LARGEST_FILE = 5_000_000
_HELD = {"\\": "\x01", ":": "\x02", "#": "\x03", "=": "\x04", "{": "\x05", "}": "\x06", "~": "\x07", "n": "\x08"}
"""An escaped character, held apart while the others are read; `clean` has left none of these in a text."""
_GIVEN = {held: "\n" if char == "n" else char for char, held in _HELD.items()}
_ID = re.compile(r"\[id:((?:\\]|[^\]])+)\]")
_TAG = re.compile(r"\[tag:((?:\\]|[^\]])+)\]")
_OPTION_IDS = re.compile(r"^//\s*options:((?: [a-z0-9-]{1,40})+)\s*$")
_WEIGHT = re.compile(r"^%(-?\d{1,3}(?:\.\d{1,10})?)%")
_TRUE, _FALSE = ("T", "TRUE"), ("F", "FALSE")


@dataclass(frozen=True, kw_only=True)
class _Block:
    """One question as it stands in the file, comments apart."""

    line: int
    text: str
    comments: tuple[str, ...]


def read_gift(data: bytes, file: str) -> Gathered:
    """Every question of the file as an item, and what is wrong with the others."""
    found = Gathered(file=file)
    if len(data) > LARGEST_FILE:
        found.refuse(1, "", f"the file has {len(data)} bytes; at most {LARGEST_FILE} are read")
        return found
    try:
        text = clean(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        found.refuse(data[: error.start].count(b"\n") + 1, "", "is not UTF-8 text")
        return found
    blocks = _blocks(text)
    if len(blocks) > MOST_QUESTIONS:
        found.refuse(1, "", f"has {len(blocks)} questions; at most {MOST_QUESTIONS} are read at once")
        return found
    for block in blocks:
        _read_block(block, found)
    return found


def _blocks(text: str) -> list[_Block]:
    blocks = []
    rows: list[tuple[int, str]] = []
    comments: list[str] = []
    for number, row in enumerate([*text.split("\n"), ""], start=1):
        row = row.strip()
        if row.startswith("//"):
            comments.append(row)
        elif row and not row.startswith("$CATEGORY:"):
            rows.append((number, row))
        elif not row:
            if rows:
                blocks.append(_Block(line=rows[0][0], text="\n".join(line for _, line in rows), comments=tuple(comments)))
            rows, comments = [], []
    return blocks


def _read_block(block: _Block, found: Gathered) -> None:
    text = re.sub(r"\\([\\:#={}~n])", lambda escape: _HELD[escape[1]], block.text)
    title = ""
    named = re.match(r"::(.*?)::", text, re.DOTALL)
    if named:
        title, text = " ".join(_given(named[1]).split()), text[named.end() :]
    start, end = text.find("{"), text.find("}")
    shown = title or " ".join(_given(text.partition("{")[0]).split())[:60].strip()
    if start < 0 and end < 0:
        found.other_kind(block.line, shown, "has no answers: a description; a lesson is a multiple-choice or true/false question")
        return
    if start < 0 or end < start:
        found.refuse(block.line, shown, "has a { without a }, or a } without a {")
        return
    answers, separator, general = text[start + 1 : end].strip().rpartition("####")
    if not separator:
        answers, general = general, ""
    after = text[end + 1 :].strip()
    if "{" in after or "}" in after:  # taken as text, it would stand in the question, with its key
        found.refuse(block.line, shown, "has a second { or } behind its answers: a blank line is missing between two questions")
        return
    stem_kind, stem = _format_of(text[:start] + (f"_____{text[end + 1 :]}" if after else ""), "moodle")
    options, other = _options(answers.strip(), stem_kind, block)
    other = other or unlike_a_lesson(options)
    if other:
        found.other_kind(block.line, shown, other)
        return
    stem = markdown_of(stem[: LONGEST_TEXT + 1], stem_kind) or ""
    faults = faults_of(title or shown, stem, options)
    for line, message in faults:
        found.refuse(line or block.line, shown, message)
    if faults:
        return
    comment = "\n".join(block.comments)
    item_id = _ID.search(comment)
    tags = [tag.replace("\\]", "]").strip() for tag in _TAG.findall(comment)]
    found.items.append(
        item_from(
            item_id=item_id[1].replace("\\]", "]").strip() if item_id else "", title=title or shown, stem=stem, options=options,
            feedback=_markdown(general, stem_kind), tags=tags, line=block.line,
        )
    )


def _options(answers: str, kind: str, block: _Block) -> tuple[list[FoundOption], str | None]:
    """The options, or what kind of question it is instead."""
    parts = answers.split("#")
    if parts[0].strip() in (*_TRUE, *_FALSE):
        return _true_or_false(parts, kind, block.line), None
    if not answers:
        return [], "has no answers to choose from: an essay; a lesson is a multiple-choice or true/false question"
    if answers.startswith("#"):
        return [], "is a numerical question; a lesson is a multiple-choice or true/false question"
    if "~" not in answers:
        what = "a matching" if "->" in answers else "a short-answer"
        return [], f"is {what} question; a lesson is a multiple-choice or true/false question"
    kept = next((row.split(":")[1].split() for row in block.comments if _OPTION_IDS.match(row)), [])
    pieces = [piece for piece in re.split(r"(?=[~=])", answers) if piece.strip()]
    ids = kept if len(kept) == len(pieces) == len(set(kept)) else [""] * len(pieces)
    return [_option(piece, option_id, kind, block.line) for piece, option_id in zip(pieces, ids, strict=True)], None


def _option(piece: str, option_id: str, kind: str, line: int) -> FoundOption:
    sign, rest = piece.strip()[0], piece.strip()[1:].strip()
    percent = 100.0 if sign == "=" else 0.0
    weight = _WEIGHT.match(rest)
    if weight:
        percent, rest = float(weight[1]), rest[weight.end() :]
    text, _, feedback = rest.partition("#")
    text_kind, text = _format_of(text, kind)
    text = line_of(text[: LONGEST_TEXT + 1], text_kind) or ""
    return FoundOption(id=option_id, text=text, percent=percent, feedback=_markdown(feedback, kind), line=line)


def _true_or_false(parts: list[str], kind: str, line: int) -> list[FoundOption]:
    is_true = parts[0].strip() in _TRUE
    wrong, right = (_markdown(parts[index], kind) if index < len(parts) else "" for index in (1, 2))
    return [
        FoundOption(id="", text=text, percent=100.0 if value == is_true else 0.0, feedback=right if value == is_true else wrong, line=line)
        for text, value in (("True", True), ("False", False))
    ]


def _format_of(text: str, usual: str) -> tuple[str, str]:
    """(format, text) of a text that may name its format in brackets."""
    named = re.match(r"\[(\w+)\]", text.strip())
    if named and named[1] in FORMATS:
        return named[1], _given(text.strip()[named.end() :]).strip()
    return usual, _given(text).strip()


def _markdown(text: str, usual: str) -> str:
    kind, text = _format_of(text, usual)
    return markdown_of(text[: LONGEST_TEXT + 1], kind) or ""


def _given(text: str) -> str:
    return "".join(_GIVEN.get(char, char) for char in text)
