"""The browser's side of the live picture as text: script files joined into one ES module, and the style sheet.

Owns how the files become one; there is no build step. Must not import streamlit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PARTS = ("dom", "model", "words", "feed", "picture", "strip", "panel", "lanes")
"""The live picture's files in the order in which they need each other."""

_IMPORT = re.compile(r"^import .* from \"[./a-z_]+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class|function|const)", re.MULTILINE)


@cache
def joined_script(*parts: str) -> str:
    """The files `parts` of this folder as one module, with the default export of the last."""
    return joined(tuple(FOLDER / f"{part}.js" for part in parts))


def joined(paths: Sequence[Path]) -> str:
    """Script files as one module, in the order in which they need each other. Names at their top must differ."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", path.read_text(encoding="utf-8"))) for path in paths)


def lanes_script() -> str:
    """The live picture as one ES module that exports `mountLanes`: what Streamlit mounts and any other page can load."""
    return joined_script(*PARTS) + "\nexport { mountLanes };\n"


@cache
def style() -> str:
    """The style sheet of the picture and the picker, for light and dark."""
    return (FOLDER / "lanes.css").read_text(encoding="utf-8")
