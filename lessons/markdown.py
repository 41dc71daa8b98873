"""Markdown of lessons: cut into sections, rendered to HTML that is safe to put into a page.

Owns cutting and rendering. Raw HTML in a lesson is shown as text, never passed on; the result is cleaned once more by an allow-list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from lessons.model import Prose, Source

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")

_TAGS = {
    "p", "em", "strong", "code", "pre", "ul", "ol", "li", "a", "blockquote", "h3", "h4", "br", "hr",
    "table", "thead", "tbody", "tr", "th", "td",
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "code": {"class"}}
_WORD = re.compile(r"[^\W_]+(?:[-.,'’][^\W_]+)*", re.UNICODE)


@dataclass(frozen=True, kw_only=True)
class Section:
    """What stands under one heading, without the heading."""

    title: str
    line: int
    """Line of the heading in the file."""
    body: str
    body_line: int


@dataclass(frozen=True, kw_only=True)
class Fence:
    """A fenced block of a section."""

    language: str
    text: str
    line: int


def sections(text: str, first_line: int, level: int = 1) -> list[Section]:
    """The sections of `text` under headings of `level`; `first_line` is where `text` begins in its file.

    What stands before the first heading becomes a section with an empty title, if it is more than white space.
    """
    rows = text.splitlines()
    heads: list[tuple[int, int, str]] = []
    tokens = _PARSER.parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.tag == f"h{level}" and token.map and token.level == 0:
            heads.append((token.map[0], token.map[1], inline.content.strip()))
    found: list[Section] = []
    before = "\n".join(rows[: heads[0][0]] if heads else rows)
    if before.strip():
        found.append(Section(title="", line=first_line, body=before, body_line=first_line))
    for number, (start, after, title) in enumerate(heads):
        end = heads[number + 1][0] if number + 1 < len(heads) else len(rows)
        found.append(Section(title=title, line=first_line + start, body="\n".join(rows[after:end]), body_line=first_line + after))
    return found


def prose(markdown: str) -> Prose:
    """Render one text. Links go to https only; anything else loses its address."""
    markdown = markdown.strip()
    html = nh3.clean(
        _PARSER.render(markdown), tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"https"}, url_relative="deny",
        link_rel="noopener noreferrer", clean_content_tags={"script", "style"},
    )
    plain = nh3.clean(html, tags=set())
    return Prose(markdown=markdown, html=html.strip(), words=len(_WORD.findall(plain)))


def has_raw_html(markdown: str) -> int | None:
    """The line (from 0) of the first raw HTML in `markdown`; None where there is none.

    It would be shown as text; a teacher is told so.
    """
    for token in MarkdownIt("commonmark").parse(markdown):
        if token.type == "html_block" and token.map:
            return token.map[0]
        if token.type == "inline" and token.map and any(child.type == "html_inline" for child in token.children or []):
            return token.map[0]
    return None


def fences(section: Section) -> list[Fence]:
    """The fenced blocks of a section, in order."""
    return [
        Fence(language=token.info.strip(), text=token.content.rstrip("\n"), line=section.body_line + (token.map[0] if token.map else 0))
        for token in _PARSER.parse(section.body)
        if token.type == "fence"
    ]


def without_fences(section: Section) -> str:
    """The section's text with its fenced blocks cut out."""
    rows: list[str | None] = list(section.body.splitlines())
    for token in _PARSER.parse(section.body):
        if token.type == "fence" and token.map:
            rows[token.map[0] : token.map[1]] = [None] * (token.map[1] - token.map[0])
    return "\n".join(row for row in rows if row is not None).strip()


def sources(section: Section) -> tuple[list[Source], list[tuple[int, str]]]:
    """A bullet list of `[title](https://...): what it says` as sources, and its faults as (line, message)."""
    found: list[Source] = []
    faults: list[tuple[int, str]] = []
    for token in _PARSER.parse(section.body):
        if token.type != "inline" or not token.map:
            continue
        children = token.children or []
        link = next((child for child in children if child.type == "link_open"), None)
        url = str(link.attrs.get("href", "")) if link else ""
        if not url.startswith("https://"):
            faults.append((section.body_line + token.map[0], "a source is `[title](https://...): what it says`"))
            continue
        found.append(Source(title=_between(children, "link_open", "link_close"), url=url, says=_after_link(children)))
    return found, faults


def _between(children: list[Token], start: str, end: str) -> str:
    kinds = [child.type for child in children]
    return "".join(child.content for child in children[kinds.index(start) + 1 : kinds.index(end)]).strip()


def _after_link(children: list[Token]) -> str:
    kinds = [child.type for child in children]
    rest = children[kinds.index("link_close") + 1 :]
    return "".join(" " if child.type == "softbreak" else child.content for child in rest).strip(" :,-–—")
