"""The page of `lanes_app.py`: buttons that rerun or change the options, and the live picture."""

from __future__ import annotations

import streamlit as st

from pages.components.lanes import lanes

st.title("Live picture")
st.session_state["script_runs"] = st.session_state.get("script_runs", 0) + 1
st.button("Rerun")
if st.button("Other metric"):
    st.session_state["metric"] = "power"
if st.button("Other run"):
    st.session_state["run"] = "long"
st.write(f"script run {st.session_state['script_runs']}")
if not st.checkbox("Hide"):
    result = lanes(
        key="lanes", run_id=st.session_state.get("run", "endless"), odd_rank=0, metric=st.session_state.get("metric", "busy"),
        prediction="only0",
    )  # fmt: skip
    if result.action:
        st.write(f"asked: {result.action} {result.details['run_id']}")
