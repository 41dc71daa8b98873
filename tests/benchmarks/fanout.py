"""Fan-out: viewers of one live run over server-sent events, against Streamlit sessions that redraw a Plotly figure by rerun.

Both are served by Streamlit on loopback, one after the other, from the same kind of run at five samples a second. The figure that
counts is viewer updates per CPU second of the web server. Lag is from the line in the record to the bytes in the viewer.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from _common import ROOT, arguments, report
from _reruns import rerun_updates

from tests.browser.server import AppServer

SETTLE_S = 2.0
APP = textwrap.dedent(
    f"""
    import sys
    sys.path.insert(0, {str(ROOT)!r})
    import streamlit as st
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    from scenarios.config import RunConfig
    from scenarios.feed import live_routes
    from scenarios.runs import get_runs

    def begin(request):
        config = RunConfig.parse({{"scenario": "sharded", "epochs": int(request.query_params["epochs"])}})
        return PlainTextResponse(get_runs().start(config, viewer="benchmark").run_id)

    app = st.App({{page!r}}, routes=[Route("/begin", begin), *live_routes(get_runs())])
    """
)
PAGE = textwrap.dedent(
    """
    import json, time
    import plotly.graph_objects as go
    import streamlit as st
    from scenarios.record import samples_of
    from scenarios.runs import get_runs

    @st.fragment(run_every=0.2)
    def picture():
        run = get_runs().get(st.query_params["run"])
        samples = samples_of(run.run_dir)
        lanes = []
        for rank in range(8):
            own = [sample for sample in samples if sample.rank == rank][-150:]
            lanes.append(go.Scatter(x=[sample.end_ns / 1e9 for sample in own], y=[sample.gpu_util for sample in own], name=f"GPU {rank}"))
        st.plotly_chart(go.Figure(lanes), key="lanes")

    picture()
    """
)


def begin(url: str, epochs: int) -> str:
    """Start a run as soon as the launcher is warm; its id."""
    while json.load(urllib.request.urlopen(url + "/healthz"))["launcher"] != "ready":
        time.sleep(0.1)
    return urllib.request.urlopen(f"{url}/begin?epochs={epochs}").read().decode()


def by_events(server: AppServer, viewers: int, epochs: int) -> dict[str, float]:
    """All viewers follow one run to its end; CPU is counted over the part in which they are all connected."""
    assert server.process is not None
    process = psutil.Process(server.process.pid)
    run_id = begin(server.url, epochs)
    script = str(Path(__file__).with_name("_viewers.py"))
    record = str(server.data_dir / "runs" / run_id / "events.jsonl")
    observer = subprocess.Popen([sys.executable, script, "observe", record], stdout=subprocess.PIPE)
    watchers = subprocess.Popen([sys.executable, script, "watch", str(server.port), run_id, str(viewers)], stdout=subprocess.PIPE)
    while len(process.net_connections(kind="tcp")) < viewers and watchers.poll() is None:
        time.sleep(0.1)
    time.sleep(SETTLE_S)
    from_s, before = time.monotonic(), process.cpu_times()
    assert observer.stdout is not None
    written = {int(event_id): at for event_id, at in json.loads(observer.stdout.read()).items()}
    until_s, after = time.monotonic(), process.cpu_times()
    arrived = json.loads(watchers.communicate(timeout=60)[0])
    pairs = zip(arrived["ids"], arrived["times"], strict=True)
    lags = sorted(at - written[event_id] for event_id, at in pairs if from_s <= written[event_id] <= until_s)
    cpu_s = after.user + after.system - before.user - before.system
    return {
        "updates": float(len(lags)), "seconds": until_s - from_s, "cpu_s": cpu_s, "cores_used": cpu_s / (until_s - from_s),
        "lag_p50_ms": 1000 * lags[len(lags) // 2], "lag_p99_ms": 1000 * lags[len(lags) * 99 // 100], "lag_max_ms": 1000 * lags[-1],
    }


def by_reruns(server: AppServer, viewers: int, epochs: int, seconds: float) -> dict[str, float]:
    """Sessions whose fragment redraws a Plotly figure of the same run five times a second, as a browser would ask for it."""
    assert server.process is not None
    process = psutil.Process(server.process.pid)
    run_id = begin(server.url, epochs)
    marks: list[Any] = []
    updates = asyncio.run(
        rerun_updates(server.url, f"run={run_id}", viewers, seconds, mark=lambda: marks.append((time.monotonic(), process.cpu_times())))
    )
    (from_s, before), (until_s, after) = marks
    cpu_s = after.user + after.system - before.user - before.system
    return {"updates": float(updates), "seconds": until_s - from_s, "cpu_s": cpu_s, "cores_used": cpu_s / (until_s - from_s)}


def main() -> None:
    options = arguments(__doc__, viewers=1000, rerun_viewers=3, epochs=6, rerun_seconds=10)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "page.py").write_text(PAGE)
        (folder / "fanout_app.py").write_text(APP.replace("{page!r}", repr(str(folder / "page.py"))))
        with AppServer(folder / "events", script=folder / "fanout_app.py") as server:
            events = by_events(server, options.viewers, options.epochs)
        with AppServer(folder / "reruns", script=folder / "fanout_app.py") as server:
            reruns = by_reruns(server, options.rerun_viewers, options.epochs, options.rerun_seconds)
    per_cpu_s, rerun_per_cpu_s = (side["updates"] / side["cpu_s"] for side in (events, reruns))
    report(
        "fanout",
        {
            "viewers": options.viewers,
            **{f"sse_{name}": round(value, 3) for name, value in events.items()},
            "rerun_viewers": options.rerun_viewers,
            **{f"rerun_{name}": round(value, 3) for name, value in reruns.items()},
            "sse_updates_per_cpu_s": round(per_cpu_s, 1),
            "rerun_updates_per_cpu_s": round(rerun_per_cpu_s, 1),
            "ratio": round(per_cpu_s / rerun_per_cpu_s, 1),
        },
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
