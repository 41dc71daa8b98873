"""What stands inside a line of Markdown: text with its special characters escaped, emphasis, code and links.

Owns escaping. Emphasis that CommonMark would not read back as such is left out; its words stay.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence
from typing import Literal

from lessons.exchange.html_tree import Node

_STRONG, _EM = {"strong", "b"}, {"em", "i", "cite", "var", "dfn"}
_CODE = {"code", "kbd", "samp", "tt"}
_SPECIAL = re.compile(r"[\\`*\[\]<]|(?<![^\W_])_|_(?![^\W_])|&(?=#|[A-Za-z])")
_LINE_START = re.compile(r"(?m)^(?:([#+>=~|:-])|(\d{1,9})([.)])(?=\s|$))")
_SAFE_LINK = re.compile(r"https://[^\s<>\\]+")

_MARK = "\x00"
"""Stands for an emphasis mark to come; HTML has no such character."""
_ENDS_IN_CODE = re.compile(r"(?<!\\)(?:\\\\)*`$")
_ENDS_IN_MARK = re.compile(r"(?<!\\)(?:\\\\)*[*_]$")

LOOK_BACK = 80
"""Characters before an element that are looked at: a mark and the backslashes before it."""

_Kind = Literal["space", "punctuation", "word", "odd"]


def escaped(text: str) -> str:
    """`text` with everything escaped that means something inside a line."""
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)


def _text(text: str) -> str:
    """`escaped`, with runs of white space as the one space or new line that they are."""
    return escaped(re.sub(r" ?\n\s*", "\n", re.sub(r"[ \t\r\f\v]+", " ", text)))


def line_starts_escaped(text: str) -> str:
    """What would begin a heading, list, quotation, rule, table or code block at the start of a line is escaped."""
    text = re.sub(r"(?m)^[ \t]+", "", text)
    return _LINE_START.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", text)


def inline(children: Sequence[Node | str], inside: frozenset[str] = frozenset(), before: str = "", after: str = "") -> str:
    """Texts and inline elements as Markdown; `inside` are the marks and links that are open around them, `before` and `after` what stands
    beside them.
    """
    out = ""
    for child, following in zip(children, _followings(children, after), strict=True):
        if isinstance(child, str):
            out += _text(child)
            if out.endswith("!") and following.startswith("["):  # `![` would be a picture
                out = f"{out[:-1]}\\!"
        else:
            out += _element(child, (before + out[-LOOK_BACK:])[-LOOK_BACK:], following, inside)
    return re.sub(r"\n[ \n]+", "\n", out)


def _followings(children: Sequence[Node | str], after: str) -> list[str]:
    """For each child the first characters that follow it in Markdown, as far as emphasis beside them cares."""
    found = []
    for child in reversed(children):
        found.append(after)
        after = _first(child) or after
    return found[::-1]


def _first(child: Node | str) -> str:
    if isinstance(child, str):
        return child[:1]
    if child.name in _STRONG | _EM:
        return _MARK
    if child.name in _CODE:
        return "`" if child.text.strip() else ""
    if child.name == "br":
        return "\\"
    return "[" if _is_link(child) else next(filter(None, map(_first, child.children)), "")


def _element(node: Node, before: str, after: str, inside: frozenset[str]) -> str:
    if node.name == "br":
        return "\\\n"
    if node.name in _CODE:
        # Two code spans that touch would be one.
        return _text(node.text) if _ENDS_IN_CODE.search(before) else _code(node.text)
    if node.name in _STRONG:
        return _emphasis("**", node, before, after, inside)
    if node.name in _EM:
        return _emphasis("_" if "**" in inside else "*", node, before, after, inside)
    if "a" not in inside and _is_link(node):
        return f"[{inline(node.children, inside | {'a'}, '[', ']')}](<{node.attributes['href']}>)"
    return inline(node.children, inside, before, after)


def _is_link(node: Node) -> bool:
    return node.name == "a" and _SAFE_LINK.fullmatch(node.attributes.get("href", "")) is not None and node.text.strip() != ""


def _code(text: str) -> str:
    text = re.sub(r"[\r\n]+", " ", text)
    if not text.strip():
        return ""
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _emphasis(mark: str, node: Node, before: str, after: str, inside: frozenset[str]) -> str:
    if mark in inside or (mark == "*" and "_" in inside):
        return inline(node.children, inside, before, after)
    text = inline(node.children, inside | {mark}, "(", ")")
    core = text.strip(" \n")
    start = len(text) - len(text.lstrip(" \n"))
    lead, tail = text[:start], text[start + len(core) :]
    behind, ahead = _kind((before + lead)[-1:]), _kind((tail + after)[:1])
    opens, closes = _kind(core[:1]), _kind(core[-1:])
    if (
        not core
        or "odd" in (behind, ahead, opens, closes)
        # A mark that touches another one would be read as part of it.
        or _ENDS_IN_MARK.search(before + lead)
        or (tail + after).startswith(_MARK)
        # Between a letter and a punctuation character, nothing opens or closes; an underscore needs more room still.
        or (opens == "punctuation" and behind == "word")
        or (closes == "punctuation" and ahead == "word")
        or (mark == "_" and "word" in (behind, ahead))
        # A line break at the end of it, or at its beginning.
        or (len(core) - len(core.rstrip("\\"))) % 2
        or core.startswith("\\\n")
    ):
        # Not tried again inside: each level would double the work.
        return inline(node.children, inside | {mark}, before, after)
    return f"{lead}{mark}{core}{mark}{tail}"


def _kind(char: str) -> _Kind:
    """Of one character, or of none: how CommonMark's rules of emphasis see it; `odd` where renderers differ."""
    if not char or char.isspace():
        return "space"
    if char in string.punctuation or unicodedata.category(char).startswith("P"):
        return "punctuation"
    return "word" if char.isalnum() else "odd"
