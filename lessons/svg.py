"""The infographic's SVG: read strictly, written anew from an allow-list, so that only what is known to be harmless reaches a page.

Owns what an infographic may contain. Active or reaching-out content is a fault, with its line; harmless content that is not on the list
(an editor's own elements and attributes) is left out without a word. Must not fetch or draw anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

SVG_NAMESPACE = "http://www.w3.org/2000/svg"

_SHAPES = {"svg", "g", "defs", "symbol", "use", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan"}
_PAINT = {"linearGradient", "radialGradient", "stop", "pattern", "clipPath", "mask", "marker"}
_MOTION = {"animate", "animateTransform", "animateMotion", "mpath", "set"}
ELEMENTS = _SHAPES | _PAINT | _MOTION | {"title", "desc", "style"}

FORBIDDEN = {
    "script": "scripts", "foreignObject": "foreign content", "image": "embedded or linked pictures", "a": "links",
    "iframe": "frames", "feImage": "linked pictures", "handler": "scripts", "listener": "scripts", "audio": "sound", "video": "video",
}

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

_OUTSIDE = re.compile(
    r"url\(\s*(?!['\"]?#)|@import|@font-face|image-set|javascript:|expression\(|-moz-binding|data:|//|\\", re.IGNORECASE
)
"""A backslash too: CSS escapes could spell any of the others."""

LONGEST_SVG = 300_000
"""Characters. An infographic is a drawing; more than this is an export that carries something else."""
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
        return "", "", reader.faults
    _check_texts(reader)
    return "".join(reader.out), f"{reader.title.strip()}. {' '.join(reader.desc.split())}", reader.faults


def _without_doctype(text: str, reader: _Reader) -> str:
    """Entities can blow up memory while they are parsed, so they are refused before the parser sees them."""
    found = re.search(r"<!(?:DOCTYPE|ENTITY)", text, re.IGNORECASE)
    if found is None:
        return text
    reader.faults.append((text.count("\n", 0, found.start()) + 1, "a document type or entity declaration is not allowed"))
    return "<svg/>"


def _start(reader: _Reader, name: str, attributes: list[str], line: int) -> None:
    namespace, _, local = name.rpartition(" ")
    if reader.skipped or namespace != SVG_NAMESPACE or local not in ELEMENTS:
        if local in FORBIDDEN or namespace == "http://www.w3.org/1999/xhtml":
            reader.faults.append((line, f"<{local}> is not allowed: no {FORBIDDEN.get(local, 'foreign content')} in an infographic"))
        elif not reader.open_names and not reader.skipped:
            reader.faults.append((line, f'the root has to be <svg xmlns="{SVG_NAMESPACE}">'))
        reader.skipped += 1
        return
    kept = []
    for attribute, value in zip(attributes[::2], attributes[1::2], strict=True):
        fault = _attribute_fault(local, attribute, value)
        if fault:
            reader.faults.append((line, fault))
        elif attribute in ATTRIBUTES or attribute == "http://www.w3.org/1999/xlink href":
            kept.append(f" {attribute.rpartition(' ')[2]}={quoteattr(value)}")
    if not reader.open_names:
        kept.insert(0, f' xmlns="{SVG_NAMESPACE}"')
    if local == "style":
        reader.style_line = line
    reader.open_names.append(local)
    reader.out.append(f"<{local}{''.join(kept)}>")


def _attribute_fault(element: str, attribute: str, value: str) -> str | None:
    local = attribute.rpartition(" ")[2]
    if local.lower().startswith("on"):
        return f"{local}= is not allowed: no scripts in an infographic"
    if local in ("href", "src") and not value.strip().startswith("#"):
        return f"{local}={value[:40]!r} reaches outside the file; only #id is allowed"
    if _OUTSIDE.search(value):
        return f"{local}={value[:40]!r} reaches outside the file"
    if element in _MOTION and local == "attributeName" and value not in _SAFE_ANIMATED:
        return f"animating {value!r} is not allowed"
    return None


def _end(reader: _Reader, name: str) -> None:
    if reader.skipped:
        reader.skipped -= 1
        return
    local = name.rpartition(" ")[2]
    if local == "style":
        if _OUTSIDE.search(reader.style):
            message = "the style reaches outside the file; no @import, no url() but url(#id), no backslash"
            reader.faults.append((reader.style_line, message))
        elif leak := _leaking_selector(reader.style):
            message = f"the style rule {leak!r} would reach the page around it; begin every selector with .ig"
            reader.faults.append((reader.style_line, message))
        reader.style = ""
    reader.open_names.pop()
    reader.out.append(f"</{local}>")


def _leaking_selector(css: str) -> str | None:
    """The first selector (or name of keyframes) that does not begin with .ig: a style inside a page holds for the whole page."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    inside_keyframes = 0
    depth = 0
    for found in re.finditer(r"([^{};]*;?)([{}]?)", css):
        head, brace = str(found.group(1)).strip(), found.group(2)
        if brace == "}":
            depth -= 1
            inside_keyframes = 0 if depth < inside_keyframes else inside_keyframes
        elif brace == "{":
            depth += 1
            if head.startswith("@keyframes"):
                inside_keyframes = depth
                if not head.removeprefix("@keyframes").strip().startswith("ig"):
                    return head
            elif not head.startswith("@") and not inside_keyframes:
                wrong = next((part.strip() for part in head.split(",") if not part.strip().startswith(".ig")), None)
                if wrong is not None:
                    return wrong
    return None


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
    if reader.faults:
        return
    if not reader.title.strip():
        reader.faults.append((1, "an infographic needs a <title> directly under <svg>"))
    if not reader.desc.strip():
        reader.faults.append((1, "an infographic needs a <desc> directly under <svg> that says what the picture shows"))
