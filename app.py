"""The app: pages, what is served beside them, and what starts and ends with the server.

`streamlit run app.py` serves it. A table of contents; must not hold logic.
"""

from __future__ import annotations

import streamlit as st

from pages.routes import lifespan, log_script_error, middleware, routes

app = st.App(
    "pages/navigation.py",
    routes=routes(),
    middleware=middleware(),
    lifespan=lifespan,
    on_script_error=log_script_error,
)
