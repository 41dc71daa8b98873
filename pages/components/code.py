"""The readable difference of two scripts, as HTML.

Owns their markup. Text only ever goes in escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from lessons.code_diff import DiffLine, Part


def diff_html(rows: Sequence[DiffLine], *, left: str, right: str) -> str:
    """Two columns on wide screens, one under the other on narrow ones. `left` and `right` head them."""
    body = "".join(_gap(row) if row.role == "gap" else _row(row) for row in rows)
    return (
        '<div class="pg-diff" role="region" aria-label="Difference of the two scripts" tabindex="0"><table>'
        f"<thead><tr><th scope=col colspan=2>{escape(left)}</th><th scope=col colspan=2>{escape(right)}</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _gap(row: DiffLine) -> str:
    return f'<tr class="pg-gap"><td colspan=4>{row.left_out} equal lines</td></tr>'


def _row(row: DiffLine) -> str:
    return f'<tr class="pg-{row.role}">{_side(row.left_no, row.left, "left")}{_side(row.right_no, row.right, "right")}</tr>'


def _side(number: int | None, parts: Sequence[Part], side: str) -> str:
    if number is None:
        return '<td class="pg-no"></td><td class="pg-void"></td>'
    tag = "del" if side == "left" else "ins"
    text = "".join(f"<{tag}>{escape(part.text)}</{tag}>" if part.changed else escape(part.text) for part in parts)
    return f'<td class="pg-no">{number}</td><td class="{"pg-left" if side == "left" else "pg-right-side"}"><code>{text}</code></td>'
