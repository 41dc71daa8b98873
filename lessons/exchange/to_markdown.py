"""From HTML to the Markdown of lessons, such that rendering it gives the same HTML again.

Owns the writing of blocks; what stands inside a line is `lessons.exchange.inline`. Elements a lesson does not know are left out and their
text stays; scripts go with what they hold. Headings become those of level 3 and 4, because levels 1 and 2 are the sections of a lesson.
Pictures become nothing; `pictures_in` names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from markdown_it import MarkdownIt

from lessons.exchange.html_tree import BLOCKS, Node, parse_html
from lessons.exchange.inline import escaped, inline, line_starts_escaped

PLUGIN_FILE = "@@PLUGINFILE@@/"
"""How Moodle's texts refer to files that come with them."""

_HEADINGS = {"h1": "###", "h2": "###", "h3": "###", "h4": "####", "h5": "####", "h6": "####"}
_RAW = MarkdownIt("commonmark").enable("table")
"""With raw HTML, which is allowed in the Markdown of other programs; what comes out is written anew from here."""


def to_markdown(html: str) -> str:
    """`html` as Markdown."""
    return _blocks(parse_html(html)).strip("\n")


def inline_markdown(html: str) -> str:
    """`html` as one line of Markdown, for an option or a question: blocks follow each other with a space between them."""
    return line_starts_escaped(_one_line(parse_html(html)))


def from_markdown(text: str) -> str:
    """Markdown of another program as HTML, to be given to `to_markdown`."""
    return str(_RAW.render(text))


def plain(text: str) -> str:
    """Plain text as Markdown: a blank line ends a paragraph, every other new line stays one."""
    rows = [re.sub(r"[ \t\f\v]+", " ", row.strip()) for row in text.strip().splitlines()]
    paragraphs = re.split(r"\n{2,}", "\n".join(rows))
    return "\n\n".join("\\\n".join(line_starts_escaped(escaped(row)) for row in part.split("\n")) for part in paragraphs)


def pictures_in(html: str) -> list[str]:
    """The names of the attached files that `html` shows as pictures, in order."""
    return [unquote(src.removeprefix(PLUGIN_FILE)) for src in _sources(parse_html(html)) if src.startswith(PLUGIN_FILE)]


def _sources(node: Node) -> Iterator[str]:
    for child in node.children:
        if isinstance(child, Node):
            if child.name == "img":
                yield child.attributes.get("src", "")
            yield from _sources(child)


def _is_block(child: Node | str) -> bool:
    return isinstance(child, Node) and (child.name in BLOCKS or any(_is_block(each) for each in child.children))


def _blocks(node: Node, gap: str = "\n\n") -> str:
    """The children of `node` as blocks, `gap` between them."""
    found: list[str] = []
    run: list[Node | str] = []
    list_before: tuple[str, bool] | None = None
    children: list[Node | str | None] = [*node.children, None]
    for child in children:
        if child is not None and not _is_block(child):
            run.append(child)
            continue
        text = _paragraph(run)
        run = []
        if text:
            found.append(text)
            list_before = None
        if not isinstance(child, Node):
            continue
        other_marker = list_before is not None and list_before[0] == child.name and not list_before[1]
        text = _block(child, other_marker=other_marker)
        if text:
            found.append(text)
            list_before = (child.name, other_marker) if child.name in ("ul", "ol") else None
    return gap.join(found)


def _block(node: Node, *, other_marker: bool) -> str:
    if node.name in _HEADINGS:
        text = _one_line(node)
        return f"{_HEADINGS[node.name]} {text}" if text else ""
    if node.name == "pre":
        return _fence(node)
    if node.name == "hr":
        return "***"
    if node.name == "blockquote":
        return _prefixed(_blocks(node), "> ", "> ")
    if node.name in ("ul", "ol"):
        return _list(node, other_marker=other_marker)
    if node.name == "table":
        return _table(node)
    return _blocks(node)


def _paragraph(children: list[Node | str]) -> str:
    text = inline(children).strip(" \n")
    # A line break that nothing follows, or that nothing stands before, is none.
    while (len(text) - len(text.rstrip("\\"))) % 2:
        text = text[:-1].rstrip(" \n")
    return line_starts_escaped(re.sub(r"\A(?:\\\n\s*)+", "", text))


def _one_line(node: Node) -> str:
    """All of a node on one line, for a heading or a cell. A `#` at the end would be taken for the end of a heading."""
    parts = [" ".join(inline(run).replace("\\\n", " ").split()) for run in _runs(node)]
    return re.sub(r"(?<![^ #])#$", r"\\#", " ".join(part for part in parts if part))


def _runs(node: Node) -> Iterator[list[Node | str]]:
    """Runs of inline children, wherever in the tree they stand."""
    run: list[Node | str] = []
    for child in node.children:
        if isinstance(child, Node) and _is_block(child):
            yield run
            run = []
            yield from _runs(child)
        else:
            run.append(child)
    yield run


def _fence(node: Node) -> str:
    inner = node.children[0] if len(node.children) == 1 and isinstance(node.children[0], Node) else None
    classes = inner.attributes.get("class", "").split() if inner is not None and inner.name == "code" else []
    language = next((name.removeprefix("language-") for name in classes if re.fullmatch(r"language-[\w+-]{1,20}", name)), "")
    text = node.text.replace("\r", "").strip("\n")
    if not text.strip():
        return ""
    ticks = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def _list(node: Node, *, other_marker: bool) -> str:
    items = [child for child in node.children if isinstance(child, Node) and child.text.strip()]
    loose = any(_needs_gaps(item) for item in items)  # CommonMark makes all items of a list loose, or none
    start = node.attributes.get("start", "1")
    number = int(start) if re.fullmatch(r"\d{1,8}", start) else 1
    rows = []
    for index, item in enumerate(items):
        marker = f"{number + index}{')' if other_marker else '.'} " if node.name == "ol" else "* " if other_marker else "- "
        rows.append(_prefixed(_blocks(item, "\n\n" if loose else "\n"), marker, " " * len(marker)))
    return ("\n\n" if loose else "\n").join(rows)


def _needs_gaps(item: Node) -> bool:
    """Whether the parts of an item can only be told apart by blank lines."""
    blocks = [child for child in item.children if _is_block(child) or (isinstance(child, Node) or child.strip())]
    if any(isinstance(child, Node) and _is_block(child) and child.name not in ("ul", "ol") for child in blocks):
        return True
    after_list = False
    for child in blocks:
        if isinstance(child, Node) and child.name in ("ul", "ol"):
            if child.name == "ol" and child.attributes.get("start", "1") != "1":
                return True
            after_list = True
        elif after_list:
            return True
    return False


def _prefixed(text: str, first: str, rest: str) -> str:
    rows = text.split("\n")
    return "\n".join(((first if index == 0 else rest) + row).rstrip() if row.strip() == "" else (first if index == 0 else rest) + row
                     for index, row in enumerate(rows))


def _table(node: Node) -> str:
    rows = [[_one_line(cell).replace("|", "\\|") for cell in row.children if isinstance(cell, Node)] for row in _rows(node)]
    rows = [row for row in rows if row]
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * width, *lines[1:]])


def _rows(node: Node) -> Iterator[Node]:
    for child in node.children:
        if isinstance(child, Node):
            if child.name == "tr":
                yield child
            elif child.name != "table":
                yield from _rows(child)
