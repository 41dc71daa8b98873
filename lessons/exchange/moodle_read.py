"""Moodle XML from outside as items, or every reason why it cannot be.

Owns the reading of Moodle's elements. Multiple-choice questions with one right answer and true/false questions become items; categories are
passed over. The XML itself is read by `lessons.exchange.xml_tree`, pictures by `lessons.svg`.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace

from lessons.exchange.gather import LONGEST_TEXT, MOST_QUESTIONS, FoundOption, Gathered, faults_of, item_from, unlike_a_lesson
from lessons.exchange.item import Picture, clean
from lessons.exchange.texts import PICTURE, line_of, markdown_of
from lessons.exchange.to_markdown import pictures_in
from lessons.exchange.xml_tree import Element, UnreadableXmlError, parse_xml
from lessons.svg import sanitise_svg

FORMATS = ("html", "moodle_auto_format", "plain_text", "markdown")
LARGEST_PICTURE = 3_000_000
_OPTION = re.compile(r"option: ([a-z0-9-]{1,40})")
_PICTURE_KINDS = {"png": b"\x89PNG\r\n\x1a\n", "jpg": b"\xff\xd8\xff", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}


def read_moodle(data: bytes, file: str) -> Gathered:
    """Every question of the file as an item, and what is wrong with the others."""
    found = Gathered(file=file)
    try:
        root = parse_xml(data)
    except UnreadableXmlError as error:
        found.refuse(error.line, "", str(error))
        return found
    questions = list(root.all("question"))
    if root.name != "quiz":
        found.refuse(root.line, "", f"the root element is <{root.name[:40]}>; Moodle XML has <quiz>")
    elif len(questions) > MOST_QUESTIONS:
        found.refuse(1, "", f"has {len(questions)} questions; at most {MOST_QUESTIONS} are read at once")
    else:
        for question in questions:
            _read_question(question, found)
    return found


def _read_question(question: Element, found: Gathered) -> None:
    kind = question.attributes.get("type", "")
    if kind == "category":
        return
    title = " ".join(_plain(question.child("name")).split())
    if kind not in ("multichoice", "truefalse"):
        found.other_kind(question.line, title, f"is of the type {kind[:30]!r}; a lesson is a multichoice or truefalse question")
        return
    usual = _format(question.child("questiontext"), "html")
    options = [_option(answer, title, usual, found, words=kind == "truefalse") for answer in question.all("answer")]
    unlike = unlike_a_lesson(options)
    if unlike:
        found.other_kind(question.line, title, unlike)
        return
    before = len(found.refusals)
    if not title:
        found.refuse(question.line, "", "has no name")
    stem = _text(question.child("questiontext"), title, "html", found)
    feedback = _text(question.child("generalfeedback"), title, usual, found)
    for line, message in faults_of(title, stem, options):
        found.refuse(line or question.line, title, message)
    infographic, pictures = _pictures(question, title, found)
    if len(found.refusals) > before:
        return
    tags = [" ".join(_plain(tag).split()) for group in question.all("tags") for tag in group.all("tag")]
    number = question.child("idnumber")
    item = item_from(
        item_id="" if number is None else clean(number.text).strip(), title=title, stem=stem, options=options, feedback=feedback,
        tags=tags, line=question.line,
    )
    found.items.append(replace(item, infographic=infographic[0], infographic_alt=infographic[1], pictures=pictures))


def _plain(holder: Element | None) -> str:
    text = None if holder is None else holder.child("text")
    return "" if text is None else clean(text.text)


def _format(holder: Element | None, usual: str) -> str:
    return usual if holder is None else holder.attributes.get("format", usual)


def _text(holder: Element | None, title: str, usual: str, found: Gathered, *, one_line: bool = False) -> str:
    """The Markdown of an element that holds <text>."""
    kind = _format(holder, usual)
    text = (line_of if one_line else markdown_of)(_plain(holder)[: LONGEST_TEXT + 1], kind)
    if text is None and holder is not None:
        found.refuse(holder.line, title, f"<{holder.name}> has the format {kind[:30]!r}; formats are {', '.join(FORMATS)}")
    return text or ""


def _option(answer: Element, title: str, usual: str, found: Gathered, *, words: bool) -> FoundOption:
    fraction = answer.attributes.get("fraction", "0").strip()
    number = re.fullmatch(r"-?\d{1,3}(?:\.\d{1,10})?", fraction)
    if number is None:
        found.refuse(answer.line, title, f"fraction={fraction[:20]!r}: must be a percentage from -100 to 100")
    kept = _OPTION.fullmatch(answer.comments[-1]) if answer.comments else None
    text = _plain(answer).strip().capitalize() if words else _text(answer, title, usual, found, one_line=True)
    return FoundOption(
        id=kept[1] if kept else "", text=text, percent=float(fraction) if number else 0.0, line=answer.line,
        feedback=_text(answer.child("feedback"), title, usual, found),
    )


def _pictures(question: Element, title: str, found: Gathered) -> tuple[tuple[str, str], tuple[Picture, ...]]:
    """(SVG of the infographic, what it shows), and all other pictures of the question."""
    infographic = ("", "")
    pictures = []
    for holder in _holders(question):
        shown = pictures_in(_plain(holder)) if holder.child("file") else []
        for file in holder.all("file"):
            name = file.attributes.get("name", "")
            data = _decoded(file, title, found)
            if data is None:
                continue
            if name.lower().endswith(".svg"):
                svg, alt, faults = sanitise_svg(data.decode("utf-8", errors="replace"))
                for line, message in faults:
                    found.refuse(file.line, title, f"picture {name[:60]!r}, line {line}: {message}")
                if not faults and (name == PICTURE or not infographic[0]):
                    infographic = (svg, alt)
            elif name in shown or not shown:
                pictures.append(Picture(name=name, data=data))
    return infographic, tuple(pictures)


def _holders(question: Element) -> list[Element]:
    """All elements with text and files, the general feedback first: that is where an infographic belongs."""
    answers = list(question.all("answer"))
    feedbacks = [feedback for answer in answers for feedback in answer.all("feedback")]
    return [*question.all("generalfeedback"), *question.all("questiontext"), *answers, *feedbacks]


def _decoded(file: Element, title: str, found: Gathered) -> bytes | None:
    """The picture in a <file>, if it is one; else it is refused."""
    name = file.attributes.get("name", "")
    ending = name.lower().rpartition(".")[2]
    if ending != "svg" and ending not in _PICTURE_KINDS:
        found.refuse(file.line, title, f"file {name[:60]!r}: only pictures are taken over ({', '.join(['svg', *_PICTURE_KINDS])})")
        return None
    try:
        data = base64.b64decode("".join(file.text.split()), validate=True)
    except (binascii.Error, ValueError):
        found.refuse(file.line, title, f"picture {name[:60]!r}: is not base64")
        return None
    if len(data) > LARGEST_PICTURE:
        found.refuse(file.line, title, f"picture {name[:60]!r}: has {len(data)} bytes; at most {LARGEST_PICTURE} are taken over")
        return None
    if ending != "svg" and not data.startswith(_PICTURE_KINDS[ending]):
        found.refuse(file.line, title, f"picture {name[:60]!r}: is not what its name says")
        return None
    return data
