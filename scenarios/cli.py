"""The command line of the experiments: `python -m scenarios list|run|diagnose|predict|validate`, each with --json.

Owns arguments, exit codes and what is printed where. Exit codes: 0 done (an expected out-of-memory included), 1 the run failed, timed out
or was stopped, 2 unusable arguments, with one line on standard error that names the field, the value and what is allowed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from scenarios.backend import choose
from scenarios.catalog import SCENARIOS
from scenarios.cli_cluster import add_commands
from scenarios.cli_costs import PREDICT_OPTIONS, predict_command, validate_command
from scenarios.cli_diagnose import DIAGNOSE_HELP, RUN_HELP, diagnose_command
from scenarios.cli_output import guarded
from scenarios.cli_run import run_command
from scenarios.cli_trace import TRACE_HELP, TraceTarget
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS
from scenarios.settings import load_settings

DONE, RUN_FAILED, UNUSABLE = 0, 1, 2

RUN_OPTIONS = {
    "gpus": "GPUs, one process each; 1 to 8 (default 8)",
    "gpu": f"kind of virtual GPU, a100-80gb (the default) or another of: {', '.join(GPUS)}",
    "model": f"displayed model, whose costs are charged: {', '.join(MODELS)}; default: the experiment's own",
    "batch": "samples per GPU and step; default: 256, or the experiment's own",
    "epochs": "epochs to train; default: as much as is worth watching",
    "steps": "steps to train at most",
    "hand_off": "rank0_loading: hand shards out over cpu (the default) or nccl",
    "preprocess": "decode and augment on the gpu or the cpu; default: the gpu, or the experiment's own",
    "workers": "DataLoader workers of each rank, 0 to 32; 0 loads in the training process. Default: 8, or the experiment's own",
    "link": f"what joins the GPUs: {', '.join(LINKS)}; default: the GPU's own",
    "straggler": "rank of a slow GPU; default: none",
    "straggler_pct": "by how many percent its kernels take longer, 1 to 400 (default 50)",
    "precision": "fp32, tf32 or amp (the default)",
    "seed": "seed of data, weights and jitter (default 0)",
    "backend": "auto, virtual or cuda; auto takes the real GPUs where all that were asked for are there (default)",
}


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; argparse would print its usage too."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments"):
            allowed = [option for action in self._actions for option in action.option_strings]
            message += f"; allowed: {', '.join(allowed)}"
        complain(message)
        raise SystemExit(UNUSABLE)


def complain(message: str) -> None:
    """One line on standard error, whatever is in it."""
    print(" ".join(message.split()), file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    try:
        options, unknown = _parser().parse_known_args(argv)
        if unknown:
            options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    except SystemExit as end:
        return int(end.code or 0)
    try:
        return guarded(lambda: int(options.command(options)))
    except ValueError as error:
        complain(str(error))
        return UNUSABLE


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m scenarios", description="Experiments with multi-GPU training.", allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="what there is to run", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="print one JSON array")
    listing.set_defaults(command=_list, parser=listing)
    run = commands.add_parser("run", help="run one experiment", allow_abbrev=False)
    run.add_argument("scenario", metavar="NAME", help=", ".join(SCENARIOS))
    for name, text in RUN_OPTIONS.items():
        run.add_argument(f"--{name.replace('_', '-')}", dest=name, help=text)
    run.add_argument("--trace", metavar="FILE|FOLDER/", help=TRACE_HELP)
    run.add_argument("--json", action="store_true", help="run as fast as it computes and print one JSON object")
    run.set_defaults(command=_run, parser=run)
    diagnosis = commands.add_parser("diagnose", help=DIAGNOSE_HELP, allow_abbrev=False)
    diagnosis.add_argument("run", metavar="RUN", help=RUN_HELP)
    diagnosis.add_argument("--json", action="store_true", help="print one JSON object")
    diagnosis.set_defaults(command=diagnose_command, parser=diagnosis)
    prediction = commands.add_parser("predict", help="throughput, scaling and memory of a set-up", allow_abbrev=False)
    for name, text in PREDICT_OPTIONS.items():
        prediction.add_argument(f"--{name.replace('_', '-')}", dest=name, help=text)
    prediction.add_argument("--json", action="store_true", help="print one JSON object")
    prediction.set_defaults(command=predict_command, parser=prediction)
    validation = commands.add_parser("validate", help="the cost model against published figures", allow_abbrev=False)
    validation.add_argument("--json", action="store_true", help="print one JSON object")
    validation.set_defaults(command=validate_command, parser=validation)
    add_commands(commands.add_parser, RUN_OPTIONS)
    return parser


def _list(options: argparse.Namespace) -> int:
    if options.json:
        keys = ("name", "title", "what", "model", "expected_outcome", "opening_metric")
        print(json.dumps([{key: getattr(scenario, key) for key in keys} for scenario in SCENARIOS.values()]))
        return DONE
    width = max(map(len, SCENARIOS))
    for scenario in SCENARIOS.values():
        print(f"{scenario.name:<{width}}  {scenario.what}")
    return DONE


def _run(options: argparse.Namespace) -> int:
    given: dict[str, Any] = {name: getattr(options, name) for name in RUN_OPTIONS if getattr(options, name) is not None}
    if "straggler_pct" in given and "straggler" not in given:
        raise ValueError(f"straggler_pct={given['straggler_pct']!r}: needs --straggler, the rank that is slow")
    config = RunConfig.parse({"scenario": options.scenario, **given})
    choice = choose(config, gpu_named="gpu" in given)
    if choice.offer:  # real GPUs are here and stay unused: said also where nobody sees a table
        complain(f"Virtual GPUs, since {choice.reason}; {choice.offer}.")
    trace = None if options.trace is None else TraceTarget.parse(options.trace)
    end = run_command(choice, load_settings(), as_json=options.json, trace=trace)
    if end["outcome"] == "finished" or end["expected"]:
        return DONE
    complain(end["sentence"])
    return RUN_FAILED
