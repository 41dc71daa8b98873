"""Lessons as Moodle XML (https://docs.moodle.org/en/Moodle_XML_format): one multiple-choice question each, feedback for every option.

Owns the writing. `idnumber` is the lesson's id, tags are its exam domains, the infographic is an attached file. A comment before each
option keeps the option's id, for Moodle has no place for it; it is lost where Moodle writes the file anew.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from lessons.exchange.item import Item, clean, html_of, html_of_line
from lessons.exchange.texts import PICTURE, feedback_html, question_html
from lessons.grading import SCORES

CATEGORY = "$course$/top/Shardlab"
_FONT = "font-family: 'Source Sans 3', 'Source Sans Pro', 'Segoe UI', Arial, sans-serif"


def moodle_xml(items: Iterable[Item]) -> str:
    """One file with all `items`, in a category of their own."""
    head = f'  <question type="category">\n    <category>{_text(CATEGORY)}</category>\n  </question>\n'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<quiz>\n{head}{"".join(map(_question, items))}</quiz>\n'


def _question(item: Item) -> str:
    feedback = _text(feedback_html(item, picture=True)) + (_file(PICTURE, stand_alone(item.infographic)) if item.infographic else "")
    penalty = SCORES[0] - SCORES[1]
    return "".join(
        [
            '  <question type="multichoice">\n',
            f"    <name>{_text(item.title)}</name>\n",
            f'    <questiontext format="html">{_text(question_html(item))}</questiontext>\n',
            f'    <generalfeedback format="html">{feedback}</generalfeedback>\n',
            f"    <defaultgrade>1.0000000</defaultgrade>\n    <penalty>{penalty:.7f}</penalty>\n    <hidden>0</hidden>\n",
            f"    <idnumber>{escape(clean(item.id))}</idnumber>\n",
            "    <single>true</single>\n    <shuffleanswers>true</shuffleanswers>\n    <answernumbering>abc</answernumbering>\n",
            "    <showstandardinstruction>0</showstandardinstruction>\n",
            *(f'    <{name} format="html"><text></text></{name}>\n' for name in _COMBINED),
            *(_answer(option.id, option.text, option.rebuttal, right=option.right) for option in item.options),
            _tags(item.tags),
            "  </question>\n",
        ]
    )


_COMBINED = ("correctfeedback", "partiallycorrectfeedback", "incorrectfeedback")


def _answer(option_id: str, text: str, rebuttal: str, *, right: bool) -> str:
    kept = f"    <!-- option: {option_id} -->\n" if re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", option_id) else ""
    feedback = f'<feedback format="html">{_text(html_of(rebuttal))}</feedback>'
    return f'{kept}    <answer fraction="{100 if right else 0}" format="html">{_text(html_of_line(text))}{feedback}</answer>\n'


def _tags(tags: Iterable[str]) -> str:
    rows = "".join(f"      <tag>{_text(tag)}</tag>\n" for tag in tags)
    return f"    <tags>\n{rows}    </tags>\n" if rows else ""


def _text(text: str) -> str:
    text = clean(text)
    if not re.search("[<>&]", text):
        return f"<text>{text}</text>"
    inner = text.replace("]]>", "]]]]><![CDATA[>")
    return f"<text><![CDATA[{inner}]]></text>"


def _file(name: str, text: str) -> str:
    data = base64.b64encode(text.encode()).decode()
    return f'<file name={quoteattr(name)} path="/" encoding="base64">{data}</file>'


def stand_alone(svg: str) -> str:
    """An infographic for use outside of a page: it names the font that it inherits there."""
    found = re.match(r"<svg\b[^>]*>", svg)
    if found is None or " style=" in found[0]:
        return svg
    return f'<svg style="{_FONT}"{svg[len("<svg"):]}'
