"""The little language of claims: from text to a tree of comparisons, never through Python's own parser.

    claim = comparison ("and" comparison)*     comparison = sum sign sum
    sum = product (("+"|"-") product)*         product = atom (("*"|"/") atom)*
    path = name (.name | [n] | [a:b])*         atom = number | 'text' | path | function(sum) | (sum) | -atom

Owns grammar and tree. What a claim says about a run is decided by `lessons.claims`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

SIGNS = ("<=", ">=", "==", "!=", "<", ">")
FUNCTIONS = ("min", "max", "mean", "spread", "distinct", "count")

LONGEST_CLAIM = 500
"""Characters; Python reads neither whole numbers of some thousand digits nor a sum of as many parts."""
DEEPEST = 20
"""Brackets, calls and signs inside each other."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<sign><=|>=|==|!=|[<>+\-*/()\[\].:,]))"
)


class ClaimError(ValueError):
    """A claim that cannot be read or does not fit the summary; the message says where."""


@dataclass(frozen=True)
class Literal:
    value: float | str


@dataclass(frozen=True)
class PathNode:
    root: str
    steps: tuple[str | int | slice, ...]
    text: str


@dataclass(frozen=True)
class Call:
    function: str
    argument: Node


@dataclass(frozen=True)
class Arithmetic:
    sign: str
    left: Node
    right: Node


Node = Literal | PathNode | Call | Arithmetic


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One side, a sign, another side, and the texts of both sides."""

    left: Node
    sign: str
    right: Node
    text: str


def parse_claim(expression: str) -> tuple[Comparison, ...]:
    """The comparisons of `expression`, all of which have to hold. Raises ClaimError naming what was found and what was expected."""
    return _Parser(expression).claim()


class _Parser:
    """Recursive descent: claim = comparison ("and" comparison)*; comparison = sum sign sum; the rest as usual."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_CLAIM:
            raise ClaimError(f"claim {text[:40]!r}...: has {len(text)} characters; at most {LONGEST_CLAIM} are allowed")
        self._text = text
        self._depth = 0
        self._tokens: list[tuple[str, str, int]] = []
        position = 0
        while position < len(text.rstrip()):
            found = _TOKEN.match(text, position)
            if found is None:
                raise ClaimError(f"claim {text!r}: {text[position:].strip()[:10]!r} is not understood")
            kind = str(found.lastgroup)
            self._tokens.append((kind, found.group(kind), found.start(kind)))
            position = found.end()
        self._next = 0

    def claim(self) -> tuple[Comparison, ...]:
        comparisons = [self._comparison()]
        while self._peek() == "and":
            self._take()
            comparisons.append(self._comparison())
        if self._peek() is not None:
            raise self._fault("`and` or the end")
        return tuple(comparisons)

    def _comparison(self) -> Comparison:
        start = self._position()
        left = self._sum()
        if self._peek() not in SIGNS:
            raise self._fault("one of " + " ".join(SIGNS))
        sign = self._take()
        return Comparison(left=left, sign=sign, right=self._sum(), text=self._text[start : self._position()].strip())

    def _inside(self, read: Callable[[], Node]) -> Node:
        """What `read` finds, one deeper."""
        if self._depth == DEEPEST:
            raise ClaimError(f"claim {self._text[:40]!r}...: at most {DEEPEST} brackets and signs may be inside each other")
        self._depth += 1
        node = read()
        self._depth -= 1
        return node

    def _sum(self) -> Node:
        node = self._product()
        while self._peek() in ("+", "-"):
            node = Arithmetic(self._take(), node, self._product())
        return node

    def _product(self) -> Node:
        node = self._atom()
        while self._peek() in ("*", "/"):
            node = Arithmetic(self._take(), node, self._atom())
        return node

    def _atom(self) -> Node:
        if self._next >= len(self._tokens):
            raise self._fault("a value")
        kind, token, _ = self._tokens[self._next]
        if kind == "number":
            self._take()
            return Literal(float(token))
        if kind == "text":
            self._take()
            return Literal(token[1:-1])
        if token == "-":
            self._take()
            return Arithmetic("-", Literal(0.0), self._inside(self._atom))
        if token == "(":
            self._take()
            node = self._inside(self._sum)
            self._expect(")")
            return node
        if kind == "name" and token != "and":
            return self._path_or_call()
        raise self._fault("a value")

    def _path_or_call(self) -> Node:
        start = self._position()
        name = self._take()
        if self._peek() == "(":
            if name not in FUNCTIONS:
                raise ClaimError(f"claim {self._text!r}: there is no function {name!r}; there are {', '.join(FUNCTIONS)}")
            self._take()
            argument = self._inside(self._sum)
            self._expect(")")
            return Call(name, argument)
        steps: list[str | int | slice] = []
        while self._peek() in (".", "["):
            if self._take() == ".":
                if self._next >= len(self._tokens) or self._tokens[self._next][0] != "name":
                    raise self._fault("the name of a field")
                steps.append(self._take())
            else:
                steps.append(self._index())
        return PathNode(name, tuple(steps), self._text[start : self._end()])

    def _index(self) -> int | slice:
        first = self._whole_number()
        if self._peek() == ":":
            self._take()
            index: int | slice = slice(first, self._whole_number())
        elif first is None:
            raise self._fault("a whole number")
        else:
            index = first
        self._expect("]")
        return index

    def _whole_number(self) -> int | None:
        if self._next < len(self._tokens) and self._tokens[self._next][0] == "number" and self._tokens[self._next][1].isdigit():
            return int(self._take())
        return None

    def _peek(self) -> str | None:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else None

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._fault(f"{sign!r}")
        self._take()

    def _position(self) -> int:
        return self._tokens[self._next][2] if self._next < len(self._tokens) else len(self._text)

    def _end(self) -> int:
        _, token, start = self._tokens[self._next - 1]
        return start + len(token)

    def _fault(self, expected: str) -> ClaimError:
        found = "the end" if self._next >= len(self._tokens) else repr(self._tokens[self._next][1])
        return ClaimError(f"claim {self._text!r}: expected {expected}, found {found}")


def roots(expression: str) -> tuple[str, ...]:
    """The names that an expression begins its paths with: fields of the summary, or experiments. Raises ClaimError."""
    found: list[str] = []

    def walk(node: Node) -> None:
        if isinstance(node, PathNode):
            found.append(node.root)
        elif isinstance(node, Call):
            walk(node.argument)
        elif isinstance(node, Arithmetic):
            walk(node.left)
            walk(node.right)

    for comparison in parse_claim(expression):
        walk(comparison.left)
        walk(comparison.right)
    return tuple(dict.fromkeys(found))


def text_of(node: Node) -> str:
    if isinstance(node, Literal):
        return repr(node.value) if isinstance(node.value, str) else f"{node.value:g}"
    if isinstance(node, PathNode):
        return node.text
    if isinstance(node, Call):
        return f"{node.function}({text_of(node.argument)})"
    return f"{text_of(node.left)} {node.sign} {text_of(node.right)}"
