"""The live picture of a run as a Streamlit component, and the same files for pages without Streamlit.

Owns the Python side: options in, actions out. Must not start runs or read records; the browser fetches the run's events by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.components.lanes.source import lanes_script, style
from scenarios.catalog import Metric


@dataclass(frozen=True, kw_only=True)
class LanesResult:
    """What the picture asked of the page in this rerun; both are None in most."""

    action: str | None
    """run, run_again, stop, watch_recording, ended, or the id of a next step."""
    details: Mapping[str, Any]
    """`run_id`, with watch_recording also `recording`, with ended also `outcome`."""


_component = st.components.v2.component("shardlab_lanes", js=lanes_script(), css=style(), isolate_styles=False)


def lanes(
    *, key: str, run_id: str | None, replay: bool = False, odd_rank: int | None = None, metric: Metric = "busy",
    prediction: str | None = None, still: str | None = None, next_steps: Sequence[tuple[str, str]] = (), sticky: bool = True,
    on_action: Callable[[], None] | None = None,
) -> LanesResult:
    """Show the live picture of `run_id`; of no run, the still picture of a silhouette (`still`) or the empty state.

    Keep `key` fixed: then a rerun neither remounts the picture nor interrupts its feed; with the same `run_id` only the other
    options change, with another one it reconnects. `replay` plays a finished run at its own speed. `odd_rank` is the lane in the
    accent; None for mystery runs. `prediction` and `still` are silhouette ids. `next_steps` are (id, label) of the buttons of a
    finished run. `sticky` keeps status and lanes in view on phones. `on_action` is called before the rerun that an action causes.
    """
    data = {
        "run_id": run_id, "replay": replay, "odd_rank": odd_rank, "metric": metric, "prediction": prediction, "still": still,
        "next_steps": [list(step) for step in next_steps], "sticky": sticky,
    }
    result = _component(key=key, data=data, on_action_change=on_action or _nothing)
    action = result.get("action")
    if not isinstance(action, Mapping):
        return LanesResult(action=None, details={})
    return LanesResult(action=str(action["action"]), details={name: value for name, value in action.items() if name != "action"})


def _nothing() -> None:
    """Streamlit reports the triggers that have a callback."""
