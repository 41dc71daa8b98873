"""A rank without torch under its reporter: `reporting_rank.py HOW OPTION VALUE ...` says hello, one step, and ends as HOW says."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from scenarios.cluster.reporting import Destination, Reporter
from scenarios.settings import PROJECT_ROOT
from tests.scenarios.cluster.ranks import done, error, hello_of, step_of

how, *arguments = sys.argv[1:]
destination = Destination.of(dict(zip(arguments[::2], arguments[1::2], strict=True)), os.environ)
assert destination is not None
reporter = Reporter(destination, destination.open_part(0), 0)
pipe = reporter.fork(hello_of(0))
if pipe is None:
    os._exit(reporter.status)


def say(message: dict[str, object]) -> None:
    os.write(pipe, json.dumps(message).encode() + b"\n")


say(step_of(0, 1))
print(os.getpid(), flush=True)
if how == "done":
    say(done())
elif how == "error":
    say({**error("ValueError", "ValueError: wrong"), "traceback": f"File {PROJECT_ROOT}/scenarios/catalog/sharded.py\nValueError: wrong"})
    sys.exit(1)
elif how == "abort":
    os.write(2, b"terminate called\n  what(): Is there a distributed collective mismatch in your code?\n")
    os.abort()
elif how == "exit":
    sys.exit(7)
elif how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
elif how == "flood":
    for step in range(2, 3002):
        say(step_of(0, step))
    print("said", flush=True)
    say(done())
elif how == "wait":
    time.sleep(60)
