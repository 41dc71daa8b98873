"""HTML of other programs as a small tree: end tags that may be left out are supplied, what must never be shown is dropped.

Owns reading only. Must not decide what any element becomes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"br", "hr", "img", "input", "meta", "link", "area", "base", "col", "embed", "source", "track", "wbr"})
DROPPED = frozenset({"script", "style", "template", "head", "title", "iframe", "object", "svg", "math", "noscript", "textarea", "select"})
"""Left out with all they hold."""
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "li", "main", "nav", "ol", "p", "pre", "section",
    "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip
_ENDS: dict[str, frozenset[str]] = {
    "li": frozenset({"li"}), "dt": frozenset({"dt", "dd"}), "dd": frozenset({"dt", "dd"}), "tr": frozenset({"tr", "td", "th"}),
    "td": frozenset({"td", "th"}), "th": frozenset({"td", "th"}), "tbody": frozenset({"thead", "tbody", "tr", "td", "th"}),
    "a": frozenset({"a"}), "tfoot": frozenset({"thead", "tbody", "tr", "td", "th"}), "thead": frozenset({"tr", "td", "th"}),
}
"""Which open elements a start tag ends, up to the next list or table around them."""
_FENCES = frozenset({"ul", "ol", "dl", "table"})
DEEPEST = 60
"""What is nested deeper is read as if it stood in the element at this depth: no text is lost, and no recursion runs out."""


@dataclass(kw_only=True)
class Node:
    """One element; `children` are elements and texts."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside, as it stands."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


def parse_html(text: str) -> Node:
    """`text` as the children of one node `body`; never raises."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.root


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node(name="body")
        self._open = [self.root]
        self._dropping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED or self._dropping:
            if tag not in VOID:
                self._dropping.append(tag)
            return
        self._imply_ends(tag)
        node = Node(name=tag, attributes={name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID and len(self._open) < DEEPEST:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._dropping:
            if tag in self._dropping:
                del self._dropping[len(self._dropping) - 1 - self._dropping[::-1].index(tag) :]
            return
        names = [node.name for node in self._open[1:]]
        if tag in names:
            del self._open[len(names) - names[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        if not self._dropping:
            self._open[-1].children.append(data)

    def _imply_ends(self, tag: str) -> None:
        if tag in BLOCKS and self._open[-1].name == "p":
            self._open.pop()
        ends = _ENDS.get(tag)
        if not ends:
            return
        for index in range(len(self._open) - 1, 0, -1):
            if self._open[index].name in _FENCES:
                return
            if self._open[index].name in ends:
                # The outermost of those that end here, so that a row ends its cells.
                while index > 1 and self._open[index - 1].name in ends:
                    index -= 1
                del self._open[index:]
                return
