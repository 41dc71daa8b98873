"""Moves the keyboard focus to what has just appeared, so that a screen reader reads it and Tab goes on from there.

Owns one tiny component. Must not decide what has appeared.
"""

from __future__ import annotations

import streamlit as st

_JS = """
export default function (component) {
  const { data } = component;
  const seen = (window.__shardlabFocus ??= {});
  if (!data || !data.target || seen.token === data.token) return;
  const first = seen.token === undefined;
  seen.token = data.token;
  if (first) return;  // a page that has just been loaded keeps the browser's own focus
  let turns = 0;
  const find = () => {
    const node = document.getElementById(data.target);
    if (node) {
      node.setAttribute('tabindex', '-1');
      node.focus({ preventScroll: true });
      const box = node.getBoundingClientRect();
      if (data.scroll || box.top < 60 || box.bottom > window.innerHeight) node.scrollIntoView({ block: 'start' });
    } else if (turns++ < 40) setTimeout(find, 50);
  };
  setTimeout(find, 0);
}
"""

_mount = st.components.v2.component("shardlab_focus", js=_JS, isolate_styles=False)


def focus(target: str, token: str, *, scroll: bool = False) -> None:
    """Focus the element with the id `target` whenever `token` changes, not on the first load of a page.

    It is scrolled to where it is out of sight; with `scroll` it is brought to the top in any case.
    """
    _mount(key="focus", data={"target": target, "token": token, "scroll": scroll}, height=0)
