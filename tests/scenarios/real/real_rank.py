"""A rank on a real GPU under its reporter, without torch and without a GPU: `real_rank.py FOLDER SECONDS`; NVML is the stub."""

from __future__ import annotations

import json
import os
import sys
import time

from scenarios.cluster.own_gpu import OwnGpu
from scenarios.cluster.reporting import Destination, Reporter
from scenarios.cluster.wire import hello
from scenarios.config import RunConfig
from scenarios.rank_messages import pack_floats
from scenarios.telemetry import SAMPLE_PERIOD_NS
from tests.scenarios.cluster.ranks import done, step_of

folder, seconds = sys.argv[1:]
config = RunConfig.parse({"scenario": "sharded", "gpus": 1, "backend": "cuda"})
destination = Destination.of({"record": folder}, {})
assert destination is not None
try:
    gpu = OwnGpu(0)
except ValueError as fault:
    sys.exit(str(fault))
reporter = Reporter(destination, destination.open_part(0), 0, gpu=gpu)
said = hello(config, rank=0, world=1, node=0, collective_limit_s=20.0, card=gpu.card, backend_reason="1 real GPU was found")
pipe = reporter.fork(said)
if pipe is None:
    os._exit(reporter.status)


def say(message: dict[str, object]) -> None:
    os.write(pipe, json.dumps(message).encode() + b"\n")


now_ns = time.time_ns()
say({"kind": "begin", "zero_unix_ns": now_ns - now_ns % SAMPLE_PERIOD_NS})
for step in range(1, round(float(seconds) / 0.15) + 1):
    time.sleep(0.15)
    say({**step_of(0, step), "sketch": pack_floats([1.0, 2.0])})
say(done())
