"""The choice among the five silhouettes as a Streamlit component: one radio group of small pictures.

Owns the markup and what was chosen. Must not know which picture is right.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import streamlit as st

from lessons.model import SILHOUETTES, Silhouette
from pages.components.silhouettes import capital, silhouette_svg

FOLDER = Path(__file__).resolve().parent


def picker_html() -> str:
    """The five choices; the script makes them a radio group."""
    choices = "".join(_choice(name, words) for name, words in SILHOUETTES.items())
    return f'<div class="sl-picks-box"><div class="sl-picks" role="radiogroup">{choices}</div></div>'


def _unbroken(words: str) -> str:
    """The label, with the GPU's number on the line of its name."""
    return escape(capital(words)).replace("GPU 0", "GPU&nbsp;0")


def _choice(name: Silhouette, words: str) -> str:
    words = escape(capital(words)).replace("GPU 0", "GPU&nbsp;0")
    return (
        f'<button type="button" role="radio" aria-checked="false" class="sl-pick" data-id="{name}">'
        f'{silhouette_svg(name, decorative=True)}<span class="sl-pick-name"><i></i>{words}</span></button>'
    )


_component = st.components.v2.component(
    "shardlab_predict_picker", html=picker_html(), css=(FOLDER / "picker.css").read_text(encoding="utf-8"),
    js=(FOLDER / "picker.js").read_text(encoding="utf-8"), isolate_styles=False,
)  # fmt: skip


def predict_picker(
    *, key: str, selected: str | None = None, disabled: bool = False, label: str = "What will its run draw?"
) -> Silhouette | None:
    """Show the five silhouettes and return the chosen one's id; None until there is a choice.

    `selected` is chosen at the start. `disabled` shows the pictures greyed, out of the order of Tab. `label` is the group's name for
    screen readers. Another `key` starts anew.
    """
    chosen = _component(key=key, data={"selected": selected, "disabled": disabled, "label": label}, on_picked_change=_nothing).get("picked")
    return next((name for name in SILHOUETTES if name == (chosen or selected)), None)


def _nothing() -> None:
    """Streamlit keeps the states that have a callback."""
