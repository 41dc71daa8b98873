"""The SkyPilot task of a job (https://docs.skypilot.co/en/latest/reference/yaml-spec.html). Owns its text only."""

from __future__ import annotations

import json
import shlex
import textwrap

from scenarios.cluster.job import Job

PORT = 29400

ACCELERATORS = {
    "a100-40gb": "A100", "a100-80gb": "A100-80GB", "h100-80gb": "H100", "h200-141gb": "H200", "v100-16gb": "V100", "v100-32gb": "V100-32GB",
    "rtx4090-24gb": "RTX4090", "rtx3090-24gb": "RTX3090", "l4-24gb": "L4", "t4-16gb": "T4",
}  # fmt: skip
"""Our kinds of GPU as `sky show-gpus` names them."""


def skypilot_file(job: Job) -> str:
    """One task for `sky launch`. SkyPilot passes the nodes' addresses in."""
    request = job.request
    accelerator = ACCELERATORS.get(job.config.gpu, job.config.gpu.upper())
    resources = f"  accelerators: {json.dumps(f'{accelerator}:{request.gpus_per_node}')}" if job.on_gpus else "  cpus: 8+"
    secrets = "\nsecrets:\n  # sky launch --secret SHARDLAB_COLLECT_TOKEN takes it from your environment.\n  SHARDLAB_COLLECT_TOKEN: null\n"
    return f"""\
# Shardlab: {job.what}.
# Start it with sky launch -c {request.name} FILE from the project's folder; sky down {request.name} gives the machines back.
{_samples(job)}
name: {json.dumps(request.name)}
num_nodes: {request.nodes}
resources:
{resources}
# Copied to every node.
workdir: {json.dumps(request.workdir or ".")}
{secrets if request.collect else ""}
setup: |
  python3 -m venv .venv
  .venv/bin/python -m pip install --quiet -r requirements.txt

run: |
{textwrap.indent(_script(job), "  ")}
"""


def _script(job: Job) -> str:
    activate = shlex.quote(f"{job.request.venv or '.venv'}/bin/activate")
    record = shlex.quote(job.request.record) + '/"$run"' if job.request.record else '"$HOME/shardlab-records/$run"'
    line = job.torchrun(endpoint=f'"$head_node:{PORT}"', run='"$run"', record=record, conf='"is_host=$is_host,read_timeout=600"')
    return f"""\
set -euo pipefail
. {activate}
export OMP_NUM_THREADS=1
# The same on every node: a short form of SkyPilot's own name for this run.
run=sky-$(printf %s "$SKYPILOT_TASK_ID" | sha256sum | cut -c 1-16)
# The ranks meet on the first node.
head_node=${{SKYPILOT_NODE_IPS%%$'\\n'*}}
is_host=false
if [ "$SKYPILOT_NODE_RANK" = 0 ]; then is_host=true; fi
echo "run $run, node $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES, meeting on $head_node"
# SkyPilot has no time limit of its own.
timeout {job.request.limit_s} \\
  {line}"""


def _samples(job: Job) -> str:
    if job.request.collect:
        return f"# The samples go to the running app and are seen live at {job.request.collect}/live?run=ID; the log names the ID."
    if job.request.record:
        return (
            "# Each rank writes its part of the record to a folder that all nodes mount. Afterwards, where the app runs:\n"
            "#   python -m scenarios import FOLDER"
        )
    name = job.request.name
    others = f"; the other nodes are {name}-worker1 and so on" if job.request.nodes > 1 else ""
    return (
        "# Each rank writes its part of the record to its node's disk. Gather all parts where the app runs, then import them:\n"
        f"#   rsync -a {name}:shardlab-records/ records/{others}\n"
        "#   python -m scenarios import records/RUN"
    )
