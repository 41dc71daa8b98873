"""Cold start: from `streamlit run app.py` to a rendered first page in a real Chromium.

Compared with a minimal Streamlit app in its default settings, which is the floor, and with the same app whose server imports torch
first, which is what Shardlab avoids. Every round starts a new process on a new data folder; Chromium is running already. Figures
are medians.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from _common import ROOT, arguments, report
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import ARGUMENTS, ensure_chromium
from tests.browser.server import AppServer

MINIMAL = "import streamlit as st\nst.title('A minimal page')\nst.write('One title and one line of text, nothing else here.')\n"
RENDERED = """() => {
    const app = document.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]');
    const main = document.querySelector('[data-testid="stMain"]');
    return app && main && main.innerText.trim().length > 40;
}"""


def one_start(browser: Browser, folder: Path, script: Path, ready_path: str, env: dict[str, str]) -> tuple[float, float, bool]:
    """(seconds to the first answer, seconds to the rendered page, torch is loaded in the server)."""
    server = AppServer(folder, script=script, ready_path=ready_path, env=env)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    started = time.perf_counter()
    server.spawn()
    try:
        while not server.answers():
            if time.perf_counter() - started > 60:
                raise SystemExit(f"{script.name} did not answer:\n{server.log_text()[-2000:]}")
            time.sleep(0.02)
        ready_s = time.perf_counter() - started
        page.goto(server.url)
        page.wait_for_function(RENDERED, timeout=60_000)
        rendered_s = time.perf_counter() - started
        return ready_s, rendered_s, has_torch(server)
    finally:
        context.close()
        server.stop()


def has_torch(server: AppServer) -> bool:
    """True where libtorch is mapped into the server process itself (Linux)."""
    assert server.process is not None
    return "libtorch" in Path(f"/proc/{server.process.pid}/maps").read_text()


def main() -> None:
    options = arguments(__doc__, rounds=3)
    figures: dict[str, list[tuple[float, float, bool]]] = {"app": [], "minimal": [], "app_with_torch": []}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        (folder / "floor").mkdir()
        (folder / "floor/minimal.py").write_text(MINIMAL)
        (folder / "eager").mkdir()
        # Python imports sitecustomize at its start: the very same app, with torch in its process.
        (folder / "eager/sitecustomize.py").write_text("import torch\n")
        browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=list(ARGUMENTS))
        one_start(browser, folder / "warm-up", folder / "floor/minimal.py", "/_stcore/health", {})  # byte code and disk cache
        for number in range(options.rounds):
            for kind, script, path, env in (
                ("app", ROOT / "app.py", "/healthz", {}),
                ("minimal", folder / "floor/minimal.py", "/_stcore/health", {}),
                ("app_with_torch", ROOT / "app.py", "/healthz", {"PYTHONPATH": str(folder / "eager")}),
            ):
                figures[kind].append(one_start(browser, folder / f"{kind}-{number}", script, path, env))
        browser.close()
    median = {kind: statistics.median(rendered for _, rendered, _ in starts) for kind, starts in figures.items()}
    report(
        "cold_start",
        {
            "app_s": round(median["app"], 3),
            "app_best_s": round(min(rendered for _, rendered, _ in figures["app"]), 3),
            "app_answers_s": round(statistics.median(ready for ready, _, _ in figures["app"]), 3),
            "minimal_s": round(median["minimal"], 3),
            "app_with_torch_s": round(median["app_with_torch"], 3),
            "torch_in_server": any(torch for _, _, torch in figures["app"]),
            "rounds": options.rounds,
        },
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
