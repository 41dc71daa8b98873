"""What happens on the GPUs: scenarios, their runs, virtual and CUDA devices, telemetry and diagnosis.

This package never imports `pages`, `lessons` or `streamlit`. `torch` is imported only by the launcher and worker side
(`launcher.py`, `supervisor.py`, `worker/`, `catalog/`), so that the web server starts without waiting for it.
"""
