"""Runs that the page needs beside the one on the stage: full epochs for the race, recordings for the evidence.

Owns starting them at full speed and waiting for them, with a progress bar. Must not decide what they show.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from scenarios.config import RunConfig
from scenarios.runs import QueueFull, Run, get_runs

LOOK_EVERY_S = 0.25
WAIT_LIMIT_S = 120.0


def missing(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """Those of `configs` that have not been recorded yet."""
    return [config for config in configs if get_runs().recording(config) is None]


def measure(
    configs: Mapping[str, RunConfig], *, viewer: str, afresh: bool = False, on_change: Callable[[], object] = lambda: None
) -> bool:
    """Run what has not been recorded yet (`afresh`: all of them), at full speed, with a progress bar.

    False, with a sentence shown, where one did not succeed.

    Blocks this session's script only; leaving the page ends the wait, not the runs.
    """
    todo = {name: config for name, config in configs.items() if afresh or get_runs().recording(config) is None}
    if not todo:
        return True
    bar = st.progress(0.0, text=f"Running {len(todo)} experiments at full speed")
    started: dict[str, Run] = {}
    try:
        for name, config in todo.items():
            started[name] = get_runs().start(config, viewer=viewer, pace="fast")
    except QueueFull as full:
        st.warning(str(full))
        return False
    deadline = time.monotonic() + WAIT_LIMIT_S
    seen = 0
    while time.monotonic() < deadline:
        done = [name for name, run in started.items() if (now := get_runs().get(run.run_id)) is None or now.over]
        if len(done) != seen:
            seen = len(done)
            on_change()
        bar.progress(len(done) / len(todo), text=f"{len(done)} of {len(todo)} experiments have been run")
        if len(done) == len(todo):
            break
        time.sleep(LOOK_EVERY_S)
    bar.empty()
    left = [name for name, config in todo.items() if get_runs().recording(config) is None]
    if left:
        st.warning(f"{', '.join(left)}: did not end as expected. Please try again.")
    return not left
