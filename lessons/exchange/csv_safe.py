"""CSV that a spreadsheet opens without executing any of it.

A text cell that a spreadsheet would take for a formula gets an apostrophe in front; numbers are written as numbers. Owns the writing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

Cell = str | int | float | bool | None

BOM = "\ufeff"
"""By which Excel tells UTF-8 from the code page of its machine."""

_FORMULA = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""Also behind white space, which some programs strip before they look, and in full width, which some take for the same."""
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff]")
"""Control characters but the line feed, and those that turn the direction of what follows them."""


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]], *, bom: bool = False) -> str:
    """`header` and `rows` as CSV by RFC 4180."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([cell_text(name) for name in header])
    for row in rows:
        writer.writerow([cell_text(cell) for cell in row])
    return (BOM if bom else "") + out.getvalue()


def cell_text(cell: Cell) -> str:
    """One cell. None is empty, a truth value is yes or no."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, (int, float)):
        return f"{cell:g}" if isinstance(cell, float) else str(cell)
    # Looked at before control characters go too: a tab or a carriage return is itself reason enough.
    risky = _FORMULA.match(cell) is not None or cell.startswith(("\t", "\r", "\n"))
    text = _CONTROL.sub(" ", cell)
    return f"'{text}" if risky else text
