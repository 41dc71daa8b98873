"""The infographic's SVG: read strictly, written anew from an allow-list, so that only what is known to be harmless reaches a page.

Owns what an infographic may contain. Active or reaching-out content is a fault, with its line; harmless content that is not on the list
(an editor's own elements and attributes) is left out without a word. Must not fetch or draw anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from lessons.svg_drawing import MOST_DRAWN, REFERENCE, Endless, drawn
from lessons.svg_style import declarations_fault, reaches_outside, style_fault

SVG_NAMESPACE = "http://www.w3.org/2000/svg"

_SHAPES = {"svg", "g", "defs", "symbol", "use", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan"}
_PAINT = {"linearGradient", "radialGradient", "stop", "pattern", "clipPath", "mask", "marker"}
_MOTION = {"animate", "animateTransform", "animateMotion", "mpath", "set"}
ELEMENTS = _SHAPES | _PAINT | _MOTION | {"title", "desc", "style"}

FORBIDDEN = {
    "script": "scripts", "foreignObject": "foreign content", "image": "embedded or linked pictures", "a": "links",
    "iframe": "frames", "feImage": "linked pictures", "handler": "scripts", "listener": "scripts", "audio": "sound", "video": "video",
}

_FORBIDDEN = {name.lower(): what for name, what in FORBIDDEN.items()}
_TEXT_ONLY = ("title", "desc", "style")
"""An HTML parser reads what is inside the first two as HTML, and what is inside the last as text."""

_ATTRIBUTE_NAMES = """
    id class style transform transform-origin viewBox preserveAspectRatio width height x y x1 y1 x2 y2 cx cy r rx ry d points dx dy
    fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-dasharray stroke-dashoffset
    opacity color font-family font-size font-weight font-style text-anchor dominant-baseline letter-spacing clip-path clip-rule mask
    marker-start marker-mid marker-end markerWidth markerHeight refX refY orient markerUnits offset stop-color stop-opacity
    gradientUnits gradientTransform patternUnits patternContentUnits patternTransform clipPathUnits maskUnits maskContentUnits
    attributeName attributeType type from to by values keyTimes keySplines calcMode dur begin end repeatCount repeatDur additive accumulate
    path rotate keyPoints role aria-hidden aria-label aria-labelledby aria-describedby vector-effect paint-order visibility display
    href textLength lengthAdjust focusable
"""
ATTRIBUTES = frozenset(_ATTRIBUTE_NAMES.split())

LONGEST_SVG = 300_000
"""Characters. An infographic is a drawing; more than this is an export that carries something else."""
DEEPEST = 64
"""Elements inside each other."""
MOST_FAULTS = 20
"""Told of one picture."""
_SAFE_ANIMATED = ATTRIBUTES - {"href", "style", "class", "id"}


@dataclass
class _Reader:
    """What the expat handlers gather."""

    out: list[str] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)
    open_names: list[str] = field(default_factory=list)
    skipped: int = 0
    """How many elements deep inside something that is left out."""
    title: str = ""
    desc: str = ""
    style: str = ""
    style_line: int = 1


def sanitise_svg(text: str) -> tuple[str, str, list[tuple[int, str]]]:
    """The SVG written anew, its text alternative (title and desc), and every fault as (line, message).

    With faults the first two are not to be used.
    """
    reader = _Reader()
    if len(text) > LONGEST_SVG:
        return "", "", [(1, f"the infographic has {len(text)} characters; at most {LONGEST_SVG} are allowed")]
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.ordered_attributes = True

    def doctype(*_: object) -> None:
        reader.faults.append((parser.CurrentLineNumber, "a document type or entity declaration is not allowed"))

    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = doctype
    parser.StartElementHandler = lambda name, attributes: _start(reader, name, attributes, parser.CurrentLineNumber)
    parser.EndElementHandler = lambda name: _end(reader, name)
    parser.CharacterDataHandler = lambda data: _data(reader, data)
    try:
        parser.Parse(_without_doctype(text, reader), True)
    except expat.ExpatError as error:
        reader.faults.append((error.lineno, f"not well-formed: {expat.errors.messages[error.code]}"))
    if not reader.faults:
        _check_texts(reader)
        _check_drawn(reader)
    if reader.faults:
        return "", "", _first(reader.faults)
    return "".join(reader.out), f"{reader.title.strip()}. {' '.join(reader.desc.split())}", []


def _first(faults: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Of a hostile picture, which may have a hundred thousand faults, those to be told."""
    more = len(faults) - MOST_FAULTS
    return faults if more <= 0 else [*faults[:MOST_FAULTS], (faults[MOST_FAULTS][0], f"and {more} more faults from here on")]


def _without_doctype(text: str, reader: _Reader) -> str:
    """Entities can blow up memory while they are parsed, so they are refused before the parser sees them."""
    found = re.search(r"<!(?:DOCTYPE|ENTITY)", text, re.IGNORECASE)
    if found is None:
        return text
    reader.faults.append((text.count("\n", 0, found.start()) + 1, "a document type or entity declaration is not allowed"))
    return "<svg/>"


def _start(reader: _Reader, name: str, attributes: list[str], line: int) -> None:
    namespace, _, local = name.rpartition(" ")
    if not reader.skipped and reader.open_names and reader.open_names[-1] in _TEXT_ONLY:
        reader.faults.append((line, f"<{reader.open_names[-1]}> holds text only, no <{local}>"))
    if len(reader.open_names) == DEEPEST:
        reader.faults.append((line, f"<{local}> is the {DEEPEST + 1}th element inside another; at most {DEEPEST} are allowed"))
    if reader.skipped or namespace != SVG_NAMESPACE or local not in ELEMENTS:
        forbidden = _FORBIDDEN.get(local.lower())
        if forbidden or namespace == "http://www.w3.org/1999/xhtml":
            reader.faults.append((line, f"<{local}> is not allowed: no {forbidden or 'foreign content'} in an infographic"))
        elif not reader.open_names and not reader.skipped:
            reader.faults.append((line, f'the root has to be <svg xmlns="{SVG_NAMESPACE}">'))
        reader.skipped += 1
        return
    kept: dict[str, str] = {}
    for attribute, value in zip(attributes[::2], attributes[1::2], strict=True):
        fault = _attribute_fault(local, attribute, value)
        if fault:
            reader.faults.append((line, fault))
        elif attribute in ATTRIBUTES or attribute == "http://www.w3.org/1999/xlink href":
            plain = attribute.rpartition(" ")[2]  # href and xlink:href are one, of which a browser goes by the first
            if attribute == plain or plain not in kept:
                kept[plain] = _own_ids(plain, value)
    if not reader.open_names:
        kept["xmlns"] = SVG_NAMESPACE
    if local == "style":
        reader.style_line = line
    reader.open_names.append(local)
    reader.out.append(f"<{local}{''.join(f' {name}={quoteattr(value)}' for name, value in kept.items())}>")


def _attribute_fault(element: str, attribute: str, value: str) -> str | None:
    local = attribute.rpartition(" ")[2]
    if local.lower().startswith("on"):
        return f"{local}= is not allowed: no scripts in an infographic"
    if local in ("href", "src") and not value.strip().startswith("#"):
        return f"{local}={value[:40]!r} reaches outside the file; only #id is allowed"
    if reaches_outside(value):
        return f"{local}={value[:40]!r} reaches outside the file"
    # A browser would read more than this into a reference: an escaped letter, or one without its closing bracket.
    escaped = "%" in value and (local == "href" or "#" in value)
    if escaped or len(REFERENCE.findall(value)) != len(_ANY_REFERENCE.findall(value)):
        return f"{local}={value[:40]!r} is not understood; write #id, or url(#id), with letters, digits and -"
    if local == "style" and (fault := declarations_fault(value)):
        return f"style={value[:40]!r}: {fault}"
    if element in _MOTION and local == "attributeName" and value not in _SAFE_ANIMATED:
        return f"animating {value!r} is not allowed"
    return None


def _end(reader: _Reader, name: str) -> None:
    if reader.skipped:
        reader.skipped -= 1
        return
    local = name.rpartition(" ")[2]
    if local == "style":
        if fault := style_fault(reader.style):
            reader.faults.append((reader.style_line, fault))
        reader.style = ""
    reader.open_names.pop()
    reader.out.append(f"</{local}>")


def _own_ids(attribute: str, value: str) -> str:
    """Ids, and what refers to them, begin with ig: those of a drawing program must not be taken for ids of the page."""
    if attribute in ("id", "aria-labelledby", "aria-describedby"):
        return " ".join(map(_own, value.split()))
    if attribute == "href":
        return "#" + _own(value.strip()[1:])
    if attribute in ("begin", "end"):
        return _EVENT.sub(lambda found: _own(found.group()), value)
    return REFERENCE.sub(lambda found: f"url(#{_own(found.group(1))})", value)


_ANY_REFERENCE = re.compile(r"url\(", re.IGNORECASE)
_EVENT = re.compile(r"(?<![\w.-])[A-Za-z_][\w-]*(?=\.[A-Za-z])")


def _own(name: str) -> str:
    return name if name.startswith("ig") else f"ig-{name}"


def _data(reader: _Reader, data: str) -> None:
    if reader.skipped or not reader.open_names:
        return
    if reader.open_names == ["svg", "title"]:
        reader.title += data
    elif reader.open_names == ["svg", "desc"]:
        reader.desc += data
    elif reader.open_names[-1] == "style":
        reader.style += data
    # Escaped in a style too: inside <svg> an HTML parser unescapes it, as an XML parser does.
    reader.out.append(escape(data))


def _check_texts(reader: _Reader) -> None:
    if not reader.title.strip():
        reader.faults.append((1, "an infographic needs a <title> directly under <svg>"))
    if not reader.desc.strip():
        reader.faults.append((1, "an infographic needs a <desc> directly under <svg> that says what the picture shows"))


def _check_drawn(reader: _Reader) -> None:
    try:
        if drawn("".join(reader.out)) > MOST_DRAWN:
            reader.faults.append((1, f"the picture draws more than {MOST_DRAWN} elements, repeated ones counted each time"))
    except Endless:
        message = "something in the picture refers to itself (a <use> inside what it repeats), and would be drawn without end"
        reader.faults.append((1, message))
