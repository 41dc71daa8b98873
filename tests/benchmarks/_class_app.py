"""The app as it is once every experiment was measured: nothing is run in the background, only what a class starts.

A server measures each experiment once per data folder; waiting for that takes minutes, and it is not what the class benchmark is about.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages import routes as served

served._experiments = lambda: iter(())

app = st.App(
    Path(__file__).resolve().parents[2] / "pages/navigation.py",
    routes=served.routes(), middleware=served.middleware(), lifespan=served.lifespan, on_script_error=served.log_script_error,
)
