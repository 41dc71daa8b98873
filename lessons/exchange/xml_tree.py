"""XML from outside as a small tree with line numbers, read by expat with everything off that could reach out or blow up.

A document type is refused where it begins, and with it every entity declaration, internal or external; so nothing is ever expanded or
fetched. Size, depth and the number of elements are limited. Owns reading only. Must not know what the elements mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

LARGEST_FILE = 20_000_000
"""Bytes. Pictures travel inside as base64."""
DEEPEST = 30
MOST_ELEMENTS = 100_000


class UnreadableXmlError(ValueError):
    """The file cannot be used; `line` is where."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


@dataclass(kw_only=True)
class Element:
    """One element. `comments` are those directly before it, in order."""

    name: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its own text, without that of its children."""
        return "".join(self.pieces)

    def child(self, name: str) -> Element | None:
        """The first child of this name."""
        return next(self.all(name), None)

    def all(self, name: str) -> Iterator[Element]:
        return (child for child in self.children if child.name == name)


def parse_xml(data: bytes) -> Element:
    """The root of the document. Raises UnreadableXmlError."""
    if len(data) > LARGEST_FILE:
        raise UnreadableXmlError(1, f"the file has {len(data)} bytes; at most {LARGEST_FILE} are read")
    return _Reader().read(data)


class _Reader:
    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse
        self._parser.ExternalEntityRefHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._data
        self._parser.CommentHandler = self._comment
        self._open: list[Element] = []
        self._root: Element | None = None
        self._comments: list[str] = []
        self._count = 0

    def read(self, data: bytes) -> Element:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            raise UnreadableXmlError(error.lineno, f"not well-formed XML: {expat.errors.messages[error.code]}") from None
        except (ValueError, LookupError) as error:
            if isinstance(error, UnreadableXmlError):
                raise
            raise UnreadableXmlError(1, f"cannot be decoded: {error}") from None
        if self._root is None:  # pragma: no cover - expat calls a document without an element not well-formed
            raise UnreadableXmlError(1, "the file holds no element")
        return self._root

    def _refuse(self, *_: object) -> int:
        raise UnreadableXmlError(self._parser.CurrentLineNumber, "a document type or entity declaration is not read; take it out")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > MOST_ELEMENTS:
            raise UnreadableXmlError(self._parser.CurrentLineNumber, f"more than {MOST_ELEMENTS} elements are not read")
        if len(self._open) >= DEEPEST:
            raise UnreadableXmlError(self._parser.CurrentLineNumber, f"elements are nested more than {DEEPEST} deep")
        element = Element(name=name, line=self._parser.CurrentLineNumber, attributes=attributes, comments=self._comments)
        self._comments = []
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _: str) -> None:
        self._open.pop()
        self._comments = []

    def _data(self, text: str) -> None:
        if self._open:
            self._open[-1].pieces.append(text)

    def _comment(self, text: str) -> None:
        self._comments.append(text.strip())
