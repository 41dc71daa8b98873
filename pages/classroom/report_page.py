"""A class afterwards, as a page that prints well: what was asked, voted and changed, with the figures of each item.

Owns the page, from the values of `lessons.classroom.report`. For instructors only: every key is in it. It names nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from pages.classroom.files import head

FEW = "too few votes"
NOTE = (
    "Facility: share of right first votes. Discrimination: whether those who answered the other items right were right here too, -1 to 1. "
    "Nothing is said of fewer than five votes. Hands counted in the room are in the counts."
)


def report_page(report: Mapping[str, Any], url_of: Callable[[str], str]) -> str:
    """The whole HTML page."""
    items = "".join(_item(item) for item in report["items"]) or "<p>There was no vote in this class.</p>"
    used = "" if report["minutes_used"] is None else f"{report['minutes_used']:g} of {report['minutes_planned']:g} minutes"
    title = f"{report['title']} · report"
    items_done = f"{len(report['items'])} of {report['items_planned']} items"
    about = [_day(report["created_s"]), f"{report['participants']} participants", used, items_done]
    return (
        f'{head(title, url_of)}<body class="report"><main>'
        f"<h1>{escape(report['title'])}</h1><p>{escape(' · '.join(filter(None, about)))}</p>{items}"
        f'<p class="note">{NOTE}</p></main></body></html>'
    )


def _item(item: Mapping[str, Any]) -> str:
    rows = "".join(_option(option) for option in item["options"])
    figures = [
        ("Facility", _share(item["facility"])), ("After the discussion", _share(item["second_facility"])),
        ("Discrimination", FEW if item["discrimination"] is None else f"{item['discrimination']:.2f}"),
        ("Predicted the picture", _share(item["predicted_right"])),
    ]  # fmt: skip
    notes = f"<p><strong>Notes:</strong> {escape(item['notes'])}</p>" if item["notes"] else ""
    return (
        f"<section><h2>{item['no']}. {escape(item['title'])}</h2><div>{item['symptom_html']}</div>"
        f"<p><strong>{escape(item['question'])}</strong></p>"
        '<table><thead><tr><th scope="col">Option</th><th scope="col">First vote</th><th scope="col">Second vote</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        f"<dl>{''.join(f'<dt>{name}</dt><dd>{words}</dd>' for name, words in figures)}{_change(item['change'])}</dl>"
        f"<div>{item['why_html']}</div>{notes}</section>"
    )


def _option(option: Mapping[str, Any]) -> str:
    name = f"{option['letter']}. {escape(option['text'])}"
    cells = "".join(f"<td>{_votes(option, each)}</td>" for each in ("first", "second"))
    return f'<tr><th scope="row">{f"{name} <strong>✓ right</strong>" if option["right"] else name}</th>{cells}</tr>'


def _votes(option: Mapping[str, Any], which: str) -> str:
    share = option[f"{which}_share"]
    return f"{option[f'{which}_n']}" + ("" if share is None else f" ({100 * share:.0f} %)")


def _change(change: Mapping[str, Any] | None) -> str:
    if change is None:
        return ""
    words = (
        f"{change['became_right']} became right, {change['became_wrong']} became wrong, {change['stayed_right']} stayed right, "
        f"{change['stayed_wrong']} stayed wrong"
    )
    return f"<dt>Between the votes</dt><dd>{words}</dd>"


def _share(share: float | None) -> str:
    return FEW if share is None else f"{100 * share:.0f} %"


def _day(seconds: float) -> str:
    return time.strftime("%d %B %Y", time.localtime(seconds)).lstrip("0")
