"""What goes out comes back: question, options, the right one, every feedback, tags, ids and the picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import escape
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from lessons.exchange.gather import Gathered
from lessons.exchange.gift_read import read_gift
from lessons.exchange.gift_write import gift
from lessons.exchange.html_tree import parse_html
from lessons.exchange.item import Item, ItemOption, html_of, html_of_line, item_of
from lessons.exchange.moodle_read import read_moodle
from lessons.exchange.moodle_write import moodle_xml
from lessons.exchange.to_markdown import inline_markdown, plain, to_markdown
from lessons.loader import load_lessons
from lessons.markdown import prose
from tests.lessons.exchange.asked import NASTY

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SCHEMA = etree.RelaxNG(etree.parse(HERE / "moodle.rng"))
FORMATS: dict[str, tuple[Callable[[list[Item]], str], Callable[[bytes, str], Gathered]]] = {
    "moodle.xml": (moodle_xml, read_moodle), "moodle.gift.txt": (gift, read_gift),
}


def _as_html(item: Item) -> dict[str, object]:
    """Everything a learner sees of an item: two spellings of one Markdown are the same text."""
    return {
        "id": item.id, "title": item.title, "symptom": html_of(item.symptom), "question": html_of_line(item.question), "tags": item.tags,
        "options": [(each.id, html_of_line(each.text), each.right, html_of(each.rebuttal)) for each in item.options],
        "why": html_of(item.why), "exam_box": html_of(item.exam_box), "on_call_box": html_of(item.on_call_box),
    }


def _there_and_back(name: str, items: list[Item]) -> list[Item]:
    write, read = FORMATS[name]
    found = read(write(items).encode(), name)
    assert [str(refusal) for refusal in [*found.refusals, *found.left_out]] == []
    return found.items


@pytest.mark.parametrize("name", FORMATS)
def test_every_lesson_and_the_nastiest_question_come_back_as_they_were(name: str) -> None:
    items = [*(item_of(lesson) for lesson in load_lessons().lessons), NASTY]
    back = _there_and_back(name, items)
    assert [_as_html(item) for item in back] == [_as_html(item) for item in items]
    if name == "moodle.xml":  # GIFT holds no pictures
        for item, was in zip(back, items, strict=True):
            assert item.infographic.replace(item.infographic.partition(">")[0], was.infographic.partition(">")[0]) == was.infographic
            assert item.infographic_alt == was.infographic_alt
    assert [_as_html(item) for item in _there_and_back(name, back)] == [_as_html(item) for item in back]


@pytest.mark.parametrize("name", FORMATS)
def test_the_files_are_those_that_were_looked_at(name: str) -> None:
    written = FORMATS[name][0]([NASTY])
    assert written == (GOLDEN / name).read_text(encoding="utf-8"), "rewrite with: python -m tests.lessons.exchange.test_round_trip"


def test_the_xml_is_valid_by_moodles_format() -> None:
    items = [*(item_of(lesson) for lesson in load_lessons().lessons), NASTY]
    document = etree.fromstring(moodle_xml(items).encode(), etree.XMLParser(huge_tree=True))
    assert SCHEMA.validate(document), SCHEMA.error_log
    picture = document.find("question[2]/generalfeedback/file")
    assert picture.get("name") == "infographic.svg"
    assert "@@PLUGINFILE@@/infographic.svg" in document.findtext("question[2]/generalfeedback/text")
    broken = etree.fromstring(moodle_xml(items).replace('fraction="100"', 'fraction="200"').encode(), etree.XMLParser(huge_tree=True))
    assert not SCHEMA.validate(broken)


def test_every_gift_question_is_one_block_without_a_loose_sign() -> None:
    """A blank line would end the question; a bare sign would begin an option."""
    block = gift([NASTY]).split("\n\n", 1)[1].rstrip("\n")
    assert "\n\n" not in block
    loose = [char for before, char in pairwise(block) if char in "{}~" and before != "\\"]
    assert "".join(loose) == "{~~}"
    assert block.count("####") == 1


_TEXT = st.text(alphabet=" \n\tab1.)#*_`[]()<>&!|\\-+=~:{}%@é“–0;", max_size=40)
_INLINE = st.recursive(
    _TEXT.map(escape),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag}>", st.sampled_from(["em", "strong", "code", "span", "b", "i"]),
        st.lists(inner, max_size=3),
    ) | st.lists(inner, max_size=2).map(lambda parts: f"<a href='https://a.b/c(d)_e?x=1&amp;y=*'>{''.join(parts)}</a>") | st.just("<br>"),
    max_leaves=5,
)
_BLOCKS = st.recursive(
    _INLINE | _INLINE.map(lambda text: f"<p>{text}</p>"),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(f'<li>{part}</li>' if tag in ('ul', 'ol') else part for part in parts)}</{tag}>",
        st.sampled_from(["ul", "ol", "div", "blockquote", "h1", "h3", "h5", "pre"]), st.lists(inner, max_size=3),
    ) | st.lists(_INLINE, min_size=1, max_size=3).map(
        lambda cells: f"<table><tr><th>{'</th><th>'.join(cells)}</th></tr><tr><td>{'</td><td>'.join(cells)}</td></tr></table>"
    ),
    max_leaves=6,
)  # fmt: skip


def _words(html: str) -> str:
    return "".join(parse_html(html).text.split())


@settings(max_examples=120, deadline=None)
@given(_BLOCKS)
def test_no_word_of_foreign_html_is_lost_or_becomes_markup(html: str) -> None:
    markdown = to_markdown(html)
    shown = prose(markdown).html
    assert _words(shown) == _words(html), markdown
    assert "<h1" not in shown
    assert "<h2" not in shown
    again = prose(to_markdown(shown)).html
    assert "".join(again.split()) == "".join(shown.split()), markdown


@settings(max_examples=60, deadline=None)
@given(_TEXT)
def test_plain_text_stays_what_it_is(text: str) -> None:
    words = "".join(text.split())
    assert _words(prose(plain(text)).html) == words
    line = inline_markdown(escape(text))
    assert "\n" not in line
    assert _words(prose(line).html) == words


@settings(max_examples=25, deadline=None)
@given(st.lists(_TEXT.filter(str.strip), min_size=3, max_size=6, unique_by=lambda text: "".join(text.split())), _TEXT)
def test_any_texts_go_through_both_formats(texts: list[str], feedback: str) -> None:
    title, *lines = texts
    options = tuple(
        ItemOption(id="", text=plain(" ".join(line.split())), right=number == 0, rebuttal=plain(feedback))
        for number, line in enumerate(lines)
    )
    item = Item(id="x", title=" ".join(title.split()), symptom=plain(title), question="Why?", options=options, why=plain(feedback))
    for name in FORMATS:
        found = FORMATS[name][1](FORMATS[name][0]([item]).encode(), name)
        assert found.refusals == []
        assert [_as_html(each) for each in found.items] == [_as_html(item)]


def test_hostile_nesting_takes_no_time() -> None:
    for html in ("<em><strong>" * 500, "<ul><li>" * 1000, "<table>" * 500, "<div>" * 2000, "`*_" * 2000, "<br>" * 2000):
        to_markdown(html)
        inline_markdown(html)


def test_what_xml_cannot_hold_is_replaced() -> None:
    item = replace(NASTY, title="a\x00b\x0bc", why="\ud800 and \ufffe", id="x\x1b")
    etree.fromstring(moodle_xml([item]).encode(), etree.XMLParser(huge_tree=True))


if __name__ == "__main__":
    for file, (write, _) in FORMATS.items():
        (GOLDEN / file).write_text(write([NASTY]), encoding="utf-8")
