"""How much a browser has to draw for an infographic: a few lines that repeat what repeats can ask for billions of shapes.

Owns that count. Must not know what an infographic may contain.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

MOST_DRAWN = 20_000
"""Elements, those that <use> repeats counted each time."""

REFERENCE = re.compile(r"url\(\s*['\"]?#([^'\")\s]*)['\"]?\s*\)", re.IGNORECASE)
"""To an element of the same file, from a colour, a mask, a marker and so on."""
_NUMBER = re.compile(r"[0-9]+")


class Endless(Exception):
    """Something in the picture refers to itself."""


def drawn(svg: str) -> int:
    """How many elements are drawn, counted up to one more than MOST_DRAWN. Raises Endless."""
    try:
        return _Drawing(svg).count()
    except RecursionError:
        raise Endless from None


class _Drawing:
    def __init__(self, svg: str) -> None:
        self._root = ElementTree.fromstring(svg)
        self._by_id: dict[str, ElementTree.Element] = {}
        for element in self._root.iter():
            self._by_id.setdefault(element.get("id", ""), element)  # of two with one id, the first is the one that is meant
        self._known: dict[str, int] = {}
        self._open: set[str] = set()

    def count(self) -> int:
        return self._count(self._root)

    def _count(self, element: ElementTree.Element) -> int:
        """What paints, cuts or marks `element` may be drawn anew for each that it holds: such properties are inherited."""
        inside = 1 + sum(map(self._count, element))
        total = inside
        for name, value in element.attrib.items():
            if name == "href":
                total += self._referred(value[1:])
            elif targets := REFERENCE.findall(value):
                places = _points(element) if "marker" in name or "marker" in value else inside
                total += places * sum(map(self._referred, targets))
        return min(total, MOST_DRAWN + 1)

    def _referred(self, target: str) -> int:
        if target in self._open:
            raise Endless
        if target not in self._known and target in self._by_id:
            self._open.add(target)
            self._known[target] = self._count(self._by_id[target])
            self._open.discard(target)
        return self._known.get(target, 0)


def _points(element: ElementTree.Element) -> int:
    """At most so many places for a marker: the numbers of the paths inside, of which each point has two."""
    return 1 + sum(len(_NUMBER.findall(part.get("d", "") + part.get("points", ""))) // 2 for part in element.iter())
