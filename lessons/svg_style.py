"""The style of an infographic: a style inside a page holds for the whole page, so what it may say is held to the picture itself.

Owns the rules of CSS in an infographic, in <style> and in style=. Must not know about SVG's elements.
"""

from __future__ import annotations

import re

AT_RULES = ("@media", "@supports", "@keyframes")

_OUTSIDE = re.compile(
    r"url\([ \t\r\n\f]*+(?!['\"]?#)|@import|@font-face|image-set|javascript:|expression\(|-moz-binding|data:|//|\\"
    r"|(?<![\w-])(?:src|image|element|cross-fade|paint)\(",
    re.IGNORECASE,
)
"""A backslash too: CSS escapes could spell any of the others."""
_OVER_THE_PAGE = re.compile(r"(?<![\w-])(?:position\s*:[ \t\r\n\f]*+(?!(?:static|relative)\b)|z-index\s*:)[^;}]*", re.IGNORECASE)
_COMMENT_OR_TEXT = re.compile(r"/\*.*?\*/|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)
_OWN = re.compile(r"\.ig(?![A-Za-z0-9_])")
_FOREIGN_ID = re.compile(r"#(?!ig)[\w-]+")


def reaches_outside(value: str) -> bool:
    """Whether an attribute's value or a style names something that is not in the file."""
    return bool(_OUTSIDE.search(value) or _OUTSIDE.search(re.sub(r"/\*.*?\*/", " ", value, flags=re.DOTALL)))


def declarations_fault(value: str) -> str | None:
    """What is wrong with the value of a style attribute."""
    plain = _plain(value)
    if plain is None or "{" in plain or "}" in plain:
        return "the quotation marks, comments or braces of this style do not match"
    return _covering(plain)


def style_fault(css: str) -> str | None:
    """What is wrong with the text of a <style>; None where it holds for the picture and nothing else."""
    if reaches_outside(css):
        return "the style reaches outside the file; no @import, no url() but url(#id), no backslash"
    plain = _plain(css)
    if plain is None:
        return "the quotation marks or comments of the style do not match"
    if "url(" in plain.lower():
        return "url(#id) belongs into an attribute (fill, clip-path, mask), not into the style"
    unknown = next((rule for rule in re.findall(r"@[\w-]+", plain) if rule.lower() not in AT_RULES), None)
    if unknown:
        return f"{unknown} is not allowed in the style; there are {', '.join(AT_RULES)}"
    return _covering(plain) or _leak(plain)


def _plain(css: str) -> str | None:
    """`css` without comments and without what stands in quotation marks, read from the left as a browser does; None where one is open."""
    plain = _COMMENT_OR_TEXT.sub(lambda found: " " if found.group().startswith("/*") else '""', css)
    rest = plain.replace('""', "")
    return None if any(sign in rest for sign in ('"', "'", "/*", "*/")) else plain


def _covering(plain: str) -> str | None:
    found = _OVER_THE_PAGE.search(plain)
    return f"{' '.join(found.group().split())!r} could lay the picture over the page" if found else None


def _leak(plain: str) -> str | None:
    """The first selector (or name of keyframes) that reaches out of the picture."""
    depth, keyframes_at = 0, 0
    for found in re.finditer(r"([^{};]*;?)([{}]?)", plain):
        head, brace = str(found.group(1)).strip(), found.group(2)
        if brace == "}":
            depth -= 1
            keyframes_at = keyframes_at if depth >= keyframes_at else 0
        elif brace == "{":
            depth += 1
            if head.lower().startswith("@keyframes"):
                keyframes_at = depth
                if not head[len("@keyframes") :].strip().startswith("ig"):
                    return f"the style rule {head!r} would reach the page around it; begin the names of keyframes with ig"
            elif not head.startswith("@") and not keyframes_at:
                wrong = next((part.strip() for part in head.split(",") if not _stays(part.strip())), None)
                if wrong is not None:
                    message = "begin every selector with .ig, without + and ~"
                    return f"the style rule {wrong!r} would reach the page around it; {message}"
                if renamed := _FOREIGN_ID.search(head):
                    return f"the style rule {head!r} names an id; ids begin with ig here: write #ig-{renamed.group()[1:]}"
        if depth < 0:
            break
    return "the braces of the style do not match" if depth else None


def _stays(selector: str) -> bool:
    """Whether a selector holds inside the picture only: `.ig ~ p` would be what stands beside it."""
    return _OWN.match(selector) is not None and not any(sign in selector for sign in "+~")
