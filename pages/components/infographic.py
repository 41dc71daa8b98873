"""Puts a lesson's SVG into the page, where it takes part in the theme and stands still for those who ask for less motion.

Streamlit's own HTML element strips SVG. Owns one tiny component. Must be given SVG that `lessons.svg` has written anew, and nothing else.
"""

from __future__ import annotations

import streamlit as st

_JS = """
export default function (component) {
  const { parentElement, data } = component;
  const box = parentElement.querySelector('.pg-infographic');
  if (box.dataset.svg === data.svg) return;
  box.dataset.svg = data.svg;
  box.innerHTML = data.svg;
}
"""

_mount = st.components.v2.component("shardlab_infographic", html='<div class="pg-infographic"></div>', js=_JS, isolate_styles=False)


def infographic(svg: str, *, key: str) -> None:
    """Show `svg`, as wide as its column."""
    _mount(key=key, data={"svg": svg}, height="content")
