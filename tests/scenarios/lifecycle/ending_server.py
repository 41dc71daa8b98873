"""A web server with one long paced run, in a process of its own: prints port and run, serves until it is told to end."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import uvicorn
from starlette.applications import Starlette

from scenarios.feed import live_routes
from scenarios.runs import Runs
from scenarios.settings import Settings
from tests.scenarios.lifecycle.conftest import PACED, paced

if __name__ == "__main__":
    runs = Runs(Settings(data_dir=Path(sys.argv[1])), launcher_command=PACED)
    run = runs.start(paced(3000), viewer="a")
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": listening.getsockname()[1], "run_id": run.run_id}), flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=list(live_routes(runs))), log_level="critical", lifespan="off")).run([listening])
    runs.close()
