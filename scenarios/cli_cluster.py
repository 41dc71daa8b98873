"""The commands for runs on other machines: `python -m scenarios submit` and, once they are back, `import` and `resend`.

Owns their arguments and what is printed. The job files belong to `cluster/`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scenarios.analysis.diagnosis import diagnose_run
from scenarios.catalog import SCENARIOS
from scenarios.cluster.importing import import_folder
from scenarios.cluster.job import Job, JobRequest
from scenarios.cluster.kubernetes import kubernetes_file
from scenarios.cluster.resending import resend
from scenarios.cluster.skypilot import skypilot_file
from scenarios.cluster.slurm import slurm_file
from scenarios.faults import one_of
from scenarios.settings import load_settings

FILES: dict[str, Callable[[Job], str]] = {"slurm": slurm_file, "kubernetes": kubernetes_file, "skypilot": skypilot_file}

JOB_OPTIONS = {
    "nodes": "nodes (default 1)",
    "gpus_per_node": "GPUs of each node, one rank each (default 8)",
    "job_name": "name of the job; default: after the experiment",
    "time": "time limit as HH:MM:SS (default 00:30:00)",
    "partition": "slurm: partition",
    "account": "slurm: account",
    "namespace": "kubernetes: namespace",
    "image": "kubernetes: container image with this project (default shardlab:latest)",
    "claim": "kubernetes: claim of a volume that all nodes mount (default shardlab-records)",
    "workdir": "folder of this project on the nodes",
    "venv": "Python environment on the nodes (default .venv of that folder)",
    "collect": "address of a running app that takes the samples; default: a folder takes them",
    "record": "folder for the samples, on a disk that all nodes share",
}
"""Fields of JobRequest beside the experiment."""

ONLY_FOR = {
    "partition": ("slurm",), "account": ("slurm",), "namespace": ("kubernetes",), "image": ("kubernetes",), "claim": ("kubernetes",),
    "record": ("slurm", "skypilot"),
}  # fmt: skip


def add_commands(add: Callable[..., argparse.ArgumentParser], run_options: Mapping[str, str]) -> None:
    """Add the commands by `add`, the `add_parser` of the command line; `run_options` are those of a run."""
    submit = add("submit", help="print the job file for a cluster", allow_abbrev=False)
    submit.add_argument("scenario", metavar="NAME", help=", ".join(SCENARIOS))
    submit.add_argument("--to", help=", ".join(FILES))
    for name, text in {**JOB_OPTIONS, **{name: text for name, text in run_options.items() if name != "gpus"}}.items():
        submit.add_argument(f"--{name.replace('_', '-')}", dest=name, help=text)
    submit.set_defaults(command=_submit, parser=submit)
    taking = add("import", help="turn what ranks wrote with --record into a record of this app", allow_abbrev=False)
    taking.add_argument("folder", metavar="FOLDER", type=Path, help="folder with the files rank-0.jsonl and so on of all ranks")
    taking.add_argument("--json", action="store_true", help="print one JSON object, as run does")
    taking.set_defaults(command=_import, parser=taking)
    sending = add("resend", help="send what ranks wrote to the collector of a running app", allow_abbrev=False)
    sending.add_argument("folder", metavar="FOLDER", type=Path, help="folder with the files rank-0.jsonl and so on")
    sending.add_argument("--collect", required=True, help="address of the app, such as http://shardlab.example.org:8501")
    sending.add_argument("--run-id", dest="run_id", help="id of the run, where the files do not name one")
    sending.set_defaults(command=_resend, parser=sending)


def _submit(options: argparse.Namespace) -> int:
    if options.to not in FILES:
        raise ValueError(f"to={str(options.to or '')[:60]!r}: must be one of {', '.join(FILES)}")
    given: dict[str, Any] = {
        name: value for name, value in vars(options).items() if value is not None and name not in ("command", "parser", "to")
    }
    try:
        one_of(given["scenario"], SCENARIOS)
    except ValueError as error:
        raise ValueError(f"scenario={given['scenario'][:60]!r}: {error}") from None
    for name in given:
        if options.to not in ONLY_FOR.get(name, FILES):
            raise ValueError(f"{name}={given[name][:60]!r}: is for --to {' or '.join(ONLY_FOR[name])} only")
    request = JobRequest.parse({name: value for name, value in given.items() if name in JobRequest.model_fields})
    job = Job(request, {name: value for name, value in given.items() if name not in JobRequest.model_fields})
    print(FILES[options.to](job), end="")
    return 0


def _import(options: argparse.Namespace) -> int:
    settings = load_settings()
    entry, end = import_folder(options.folder, settings.data_dir)
    if options.json:
        diagnosis = diagnose_run(settings.data_dir / "runs" / entry.run_id).as_dict
        print(json.dumps({"scenario": entry.config.scenario, **end["summary"], "diagnosis": diagnosis, "run": entry.run_id}))
    else:
        print(f"{end['sentence']}\nRecorded as {entry.run_id} in {settings.data_dir}.")
    if end["outcome"] == "finished" or end["expected"]:
        return 0
    print(" ".join(end["sentence"].split()), file=sys.stderr)
    return 1


def _resend(options: argparse.Namespace) -> int:
    for rank, messages in resend(options.folder, options.collect, options.run_id or "", load_settings().collect_token):
        print(f"rank {rank}: {messages} messages sent")
    return 0
