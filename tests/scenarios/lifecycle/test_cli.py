"""The command line as its users meet it: exit codes, one line for each fault, JSON, Ctrl-C, nothing left behind."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from rich.console import Console
from rich.live import Live

from scenarios import cli_costs
from scenarios.catalog import SCENARIOS
from scenarios.cli import main
from scenarios.cli_run import _Screen
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS
from scenarios.costs.validate import committed
from tests.scenarios.lifecycle.conftest import alive, wait_until

FIELDS = {
    "scenario", "source", "outcome", "gpus", "samples_per_second", "unique_samples_per_second", "unique_fraction", "steps_per_epoch",
    "epoch_seconds", "speedup_vs_one_gpu", "replica_checksums", "digest",
}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "scenarios", *arguments]


def environ(tmp_path: Path) -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith("SHARDLAB_")} | {"TMPDIR": str(tmp_path)}


def test_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list(SCENARIOS)
    assert main(["list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(SCENARIOS)


@pytest.mark.parametrize(
    ("arguments", "field", "value", "allowed"),
    [
        ("run nope", "scenario", "nope", "rank0_loading"),
        ("run sharded --gpus 99", "gpus", "99", "from 1 to 8"),
        ("run sharded --gpus 0", "gpus", "0", "from 1 to 8"),
        ("run sharded --gpu tpu", "gpu", "tpu", "a100-80gb"),
        ("run sharded --model gpt9", "model", "gpt9", "resnet50"),
        ("run sharded --batch many", "batch", "many", "an integer from 1 to 8192"),
        ("run sharded --steps 1", "steps", "1", "from 4 to 100000"),
        ("run sharded --epochs -3", "epochs", "-3", "from 1 to 100"),
        ("run sharded --seed -1", "seed", "-1", "from 0 to 2147483647"),
        ("run sharded --hand-off fax", "hand_off", "fax", "nccl"),
        ("run sharded --preprocess tpu", "preprocess", "tpu", "cpu"),
        ("run sharded --precision int4", "precision", "int4", "amp"),
        ("run sharded --hand-off nccl", "hand_off", "nccl", "must be cpu"),
        ("run tiny_model --preprocess cpu", "preprocess", "cpu", "must be gpu"),
        ("run sharded --workers 33", "workers", "33", "from 0 to 32"),
        ("run sharded --link string", "link", "string", "nvlink3"),
        ("run sharded --gpus 4 --straggler 4", "straggler", "4", "from 0 to 3"),
        ("run sharded --straggler 1 --straggler-pct 0", "straggler_pct", "0", "from 1 to 400"),
        ("run sharded --straggler-pct 20", "straggler_pct", "20", "--straggler"),
        ("run sharded --backend quantum", "backend", "quantum", "virtual"),
        ("run sharded --backend cuda", "backend", "cuda", "virtual"),
        ("run sharded --trace /nowhere/at/all.json", "trace", "/nowhere/at/all.json", "folder that exists"),
        ("run sharded --frobnicate 3", "arguments", "--frobnicate", "--hand-off"),
        ("run sharded --gpu", "--gpu", "", "one argument"),
        ("predict --gpu a100-80gb --batch 8", "model", "None", "--model"),
        ("predict --model resnet50 --gpu tpu --batch 8", "gpu", "tpu", "a100-80gb"),
        ("predict --model resnet50 --gpu a100-80gb --batch 0", "batch", "0", "from 1 to 65536"),
        ("predict --model resnet50 --gpu a100-80gb --batch 8 --seq-len 128", "seq_len", "128", "leave it out"),
        ("predict --model bert_large --gpu a100-80gb --batch 8 --path jax", "path", "jax", "tensorflow"),
        ("validate --loud", "arguments", "--loud", "--json"),
        ("explode", "COMMAND", "explode", "run"),
        ("", "COMMAND", "", "required"),
    ],
)
def test_unusable_arguments_cost_one_line(capsys: pytest.CaptureFixture[str], arguments: str, field: str, value: str, allowed: str) -> None:
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    for part in (field, value, allowed):
        assert part in err


def test_unusable_settings_cost_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDLAB_RUN_LIMIT_S", "soon")
    assert main(["run", "sharded"]) == 2
    assert capsys.readouterr().err.startswith("SHARDLAB_RUN_LIMIT_S='soon': ")


@pytest.mark.parametrize("words", ["scenarios list", "scenarios list --json", "lessons check"])
def test_output_that_cannot_be_written_costs_one_line(words: str) -> None:
    """Into a pipe that nobody reads, and onto a full disk."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe, open("/dev/full", "wb") as full:
        for output, reason in ((pipe, "Broken pipe"), (full, "No space left on device")):
            done = subprocess.run([sys.executable, "-m", *words.split()], stdout=output, stderr=subprocess.PIPE, text=True, timeout=60)
            assert (done.returncode, done.stderr) == (1, f"The command broke off: {reason}.\n")


def test_predict_says_what_it_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["predict", "--model", "bert_large", "--gpu", "a100-80gb", "--batch", "32", "--gpus", "2", "--seq-len", "384"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"samples_per_second", "one_gpu_samples_per_second", "scaling", "memory_gib", "fits"}
    assert found["samples_per_second"] == pytest.approx(2 * found["scaling"] * found["one_gpu_samples_per_second"])
    assert main(asked) == 0
    assert "sequences/s on 2 GPUs" in capsys.readouterr().out


def test_validate_prints_every_row(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = committed()  # equals a fresh one: tests/scenarios/costs/test_published.py
    monkeypatch.setattr(cli_costs, "validate", lambda: found)
    assert main(["validate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["validate"]) == 0
    out = capsys.readouterr().out
    assert all(row["model"] in out for row in found["throughput"] + found["memory"])
    assert f"{found['fitted_constants']} constants fitted" in out


@pytest.mark.slow
def test_json_is_one_object_of_a_fresh_run_and_the_trace_is_written(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    done = subprocess.run(
        command("run", "sharded", "--gpus", "2", "--steps", "8", "--json", "--trace", str(trace)),
        env=environ(tmp_path), capture_output=True, text=True, timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    summary = json.loads(done.stdout)
    assert summary.keys() >= FIELDS
    assert (summary["scenario"], summary["source"], summary["outcome"]) == ("sharded", "virtual", "finished")
    assert summary["diagnosis"]["findings"][0]["cause"] == "healthy"
    assert json.loads(trace.read_text())["traceEvents"]
    assert not list(tmp_path.glob("shardlab-*")), "the record goes with the command"


def test_help_names_every_kind_of_gpu_link_and_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    words = capsys.readouterr().out.replace("-\n", "-").split()
    for name in (*GPUS, *LINKS, *MODELS):
        assert name in {word.rstrip(",;") for word in words}


def test_the_table_ends_with_the_means_that_the_sentence_speaks_of() -> None:
    screen = _Screen(RunConfig(scenario="sharded", gpus=1))
    console = Console(record=True, width=120, file=io.StringIO())
    screen._console = console
    screen._live = Live(console=console)
    tick = {"t_ms": 200, "step": 1, "epoch": 0, "epoch_pct": 1, "util": [76.0], "useful": [57], "spin": [0], "mem": [13.2], "power": [240]}
    gpu = {"gpu_util": 89.0, "sm_active": 66.0, "spin_pct": 0.0, "memory_gib": 13.25, "power_w": None}
    with screen:
        screen.show([{"event": "head", "data": {"gpu": "A100-80GB"}}, {"event": "tick", "data": tick}])
        summary = {"gpus": [gpu], "samples_per_second": None}
        screen.finish({"outcome": "timeout", "sentence": "", "summary": summary}, Path())
    told = console.export_text()
    assert "means of the run" in told
    assert " 89 " in told
    assert " 76 " not in told
    assert "n/a" in told


@pytest.mark.slow
def test_the_live_table_stands_over_its_sentence(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    done = subprocess.run(
        command("run", "sharded", "--gpus", "2", "--steps", "8"),
        env={**environ(tmp_path), "SHARDLAB_DATA_DIR": str(data_dir), "COLUMNS": "120"}, capture_output=True, text=True, timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "GPU busy (nvidia-smi)" in done.stdout
    assert "simulated timing, real DDP" in done.stdout
    words = " ".join(done.stdout.split())
    assert "x the useful speed of one GPU." in words
    (kept,) = (data_dir / "runs").iterdir()  # the record stays in the folder that was named
    assert words.endswith(f"the training code ran for real; times, memory and power are modelled. Recorded as {kept.name} in {data_dir}.")
    assert main(["diagnose", str(kept)]) == 0


@pytest.mark.slow
def test_an_expected_out_of_memory_is_0_and_an_unexpected_one_is_1(tmp_path: Path) -> None:
    for scenario, code in (("large_batch", 0), ("sharded", 1)):
        done = subprocess.run(
            command("run", scenario, "--gpus", "2", "--batch", "8192", "--json"), env=environ(tmp_path),
            capture_output=True, text=True, timeout=60,
        )
        assert (done.returncode, len(done.stderr.splitlines())) == (code, code)
        assert json.loads(done.stdout)["outcome"] == "out_of_memory"


@pytest.mark.slow
def test_a_run_that_times_out_is_1_with_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        command("run", "sharded", "--epochs", "50", "--json"), env={**environ(tmp_path), "SHARDLAB_RUN_LIMIT_S": "1.5"},
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["outcome"] == "timeout"
    assert done.stderr == "The run took longer than 2 s and was ended.\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_everything(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        command("run", "sharded", "--epochs", "50"), env=environ(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as terminal:
        try:
            wait_until(lambda: len(psutil.Process(terminal.pid).children(recursive=True)) >= 10, 30, "eight ranks")
            processes = psutil.Process(terminal.pid).children(recursive=True)
            time.sleep(0.3)
            terminal.send_signal(number)
            _, err = terminal.communicate(timeout=15)
        finally:
            terminal.kill()
    assert terminal.returncode == 1
    assert err == "Stopped before the end.\n"
    assert not alive(processes)
    assert not list(tmp_path.glob("shardlab-*"))
