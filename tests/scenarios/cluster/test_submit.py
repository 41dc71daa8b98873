"""The job files: as golden files, as valid shell and YAML, and as what they do when their tools are called.

`python -m tests.scenarios.cluster.test_submit` writes the golden files anew.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from scenarios.cli import main

GOLDEN = Path(__file__).with_name("golden")
KINDS = {"slurm": "sbatch", "kubernetes": "yaml", "skypilot": "yaml"}
BASE = "rank0_loading --nodes 2 --gpus-per-node 4 --batch 64 --steps 12 --hand-off nccl"
CASES = {
    f"{to}{kind}.{suffix}": f"{BASE} --to {to}{extra}"
    for to, suffix in KINDS.items()
    for kind, extra in (("", ""), ("-collect", " --time 02:00:00 --collect https://shardlab.example.org:8501/"))
}
STUB = '#!/bin/bash\nprintf "%s\\n" "$@" >"$STUBS/$(basename "$0").args"\nif [ "$(basename "$0")" = srun ]; then "${@:2}"; fi\n'


def submitted(arguments: str | list[str]) -> str:
    out = StringIO()
    with redirect_stdout(out):
        assert main(["submit", *(arguments.split() if isinstance(arguments, str) else arguments)]) == 0
    return out.getvalue()


def scripts(to: str, text: str) -> list[str]:
    """The shell scripts of a job file."""
    if to == "slurm":
        return [text]
    documents = list(yaml.safe_load_all(text))
    if to == "skypilot":
        return [documents[0]["setup"], documents[0]["run"]]
    return [documents[1]["spec"]["template"]["spec"]["containers"][0]["args"][0]]


@pytest.mark.parametrize("name", CASES)
def test_the_file_is_the_golden_one(name: str) -> None:
    assert submitted(CASES[name]) == (GOLDEN / name).read_text(), "if that is meant: python -m tests.scenarios.cluster.test_submit"


@pytest.mark.parametrize("name", CASES)
def test_every_script_is_valid_shell(name: str) -> None:
    for script in scripts(name.split(".")[0].split("-")[0], submitted(CASES[name])):
        checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, timeout=10)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_the_manifest_is_an_indexed_job_with_the_service_that_names_its_pods() -> None:
    service, job = yaml.safe_load_all(submitted("sharded --to kubernetes --nodes 3 --namespace lab --time 01:00:01"))
    assert (service["kind"], service["spec"]["clusterIP"]) == ("Service", "None")
    assert service["metadata"] == {"name": "shardlab-sharded", "namespace": "lab"} == job["metadata"]
    assert service["spec"]["selector"] == {"job-name": "shardlab-sharded"}
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"], spec["backoffLimit"]) == ("Indexed", 3, 3, 0)
    assert spec["activeDeadlineSeconds"] == 3601
    pod = spec["template"]["spec"]
    assert (pod["subdomain"], pod["restartPolicy"]) == ("shardlab-sharded", "Never")
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]} == {"shm", "records"}
    assert "$(" not in container["args"][0], "Kubernetes would take it for one of its own variables"


def test_the_task_names_its_nodes_and_gpus() -> None:
    task = yaml.safe_load(submitted("sharded --to skypilot --nodes 2 --gpu h100-80gb --collect http://app:8501"))
    assert (task["num_nodes"], task["resources"]) == (2, {"accelerators": "H100:8"})
    assert task["secrets"] == {"SHARDLAB_COLLECT_TOKEN": None}
    virtual = yaml.safe_load(submitted("sharded --to skypilot --backend virtual"))
    assert virtual["resources"] == {"cpus": "8+"}


def called(tmp_path: Path, script: str, **environ: str) -> list[str]:
    """What torchrun is called with when the script runs, its tools being stubs."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name in ("srun", "torchrun", "getent"):
        (stubs / name).write_text(STUB)
        (stubs / name).chmod(stat.S_IRWXU)
    (stubs / "scontrol").write_text("#!/bin/bash\nprintf 'node-%03d\\n' {7..400}\n")
    (stubs / "scontrol").chmod(stat.S_IRWXU)
    for folder in (tmp_path / "a b" / "bin", tmp_path / ".venv" / "bin"):
        folder.mkdir(parents=True)
        (folder / "activate").touch()
    env = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}", "STUBS": str(stubs), "HOME": "/home/me", **environ}
    ran = subprocess.run(["bash"], input=script, text=True, capture_output=True, cwd=tmp_path, env=env, timeout=20)
    assert ran.returncode == 0, ran.stderr
    return (stubs / "torchrun.args").read_text().splitlines()


def test_sbatch_runs_torchrun_on_the_first_node(tmp_path: Path) -> None:
    record, venv = f"{tmp_path}/my records", f"{tmp_path}/a b"
    script = submitted([*f"{BASE} --to slurm".split(), "--record", record, "--venv", venv])
    slurm = {"SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "40123", "SLURM_JOB_NODELIST": "x", "SLURM_CPUS_PER_TASK": "8"}
    line = "--nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint node-007:20123 --rdzv-id slurm-job-40123"
    options = "-m scenarios.catalog.rank0_loading --batch 64 --steps 12 --hand-off nccl --record"
    assert called(tmp_path, script, **slurm) == [*line.split(), *options.split(), f"{record}/slurm-job-40123"]


def test_sbatch_wants_the_token_before_anything_starts(tmp_path: Path) -> None:
    script = submitted(f"{BASE} --to slurm --collect http://app:8501")
    slurm = {"SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "40123", "SLURM_JOB_NODELIST": "x", "SLURM_CPUS_PER_TASK": "8"}
    assert "--collect http://app:8501 --run-id slurm-job-40123" in " ".join(called(tmp_path, script, SHARDLAB_COLLECT_TOKEN="t", **slurm))
    without = {name: text for name, text in os.environ.items() if name != "SHARDLAB_COLLECT_TOKEN"} | slurm
    ran = subprocess.run(["bash"], input=script, text=True, capture_output=True, cwd=tmp_path, env=without, timeout=20)
    assert ran.returncode != 0
    assert "export the token" in ran.stderr


@pytest.mark.parametrize(("index", "host"), [("0", "true"), ("1", "false")])
def test_a_pod_meets_the_first_one(tmp_path: Path, index: str, host: str) -> None:
    (script,) = scripts("kubernetes", submitted(f"{BASE} --to kubernetes"))
    line = called(tmp_path, script, JOB_COMPLETION_INDEX=index, RUN="11aa-22")
    assert f"--rdzv-conf is_host={host},read_timeout=600" in " ".join(line)
    assert "--rdzv-endpoint shardlab-rank0-loading-0.shardlab-rank0-loading:29400 --rdzv-id 11aa-22" in " ".join(line)
    assert line[-2:] == ["--record", "/records/11aa-22"]


@pytest.mark.parametrize(("rank", "host"), [("0", "true"), ("1", "false")])
def test_a_cloud_node_meets_the_first_one(tmp_path: Path, rank: str, host: str) -> None:
    _, script = scripts("skypilot", submitted(f"{BASE} --to skypilot"))
    line = called(
        tmp_path, script, SKYPILOT_NODE_IPS="10.0.0.4\n10.0.0.5", SKYPILOT_NODE_RANK=rank, SKYPILOT_NUM_NODES="2", SKYPILOT_TASK_ID="sky-1"
    )
    run = line[line.index("--rdzv-id") + 1]
    assert (run[:4], len(run)) == ("sky-", 20)
    assert line[line.index("--rdzv-endpoint") + 1] == "10.0.0.4:29400"
    assert line[line.index("--rdzv-conf") + 1] == f"is_host={host},read_timeout=600"
    assert line[-2:] == ["--record", f"/home/me/shardlab-records/{run}"]


HOSTILE = ("x; rm -rf ~", "$(id)", "`id`", "a\nb", "'", '"', "-x", "../..", "a: b", "{a}", "é", "")

TEXT_FIELDS = ("job_name", "partition", "account", "namespace", "image", "claim", "workdir", "venv", "record", "collect")


@pytest.mark.parametrize("field", TEXT_FIELDS)
@pytest.mark.parametrize("value", [value for value in HOSTILE if value])
def test_hostile_names_cost_one_line(capsys: pytest.CaptureFixture[str], field: str, value: str) -> None:
    to = "kubernetes" if field in ("namespace", "image", "claim") else "slurm"
    assert main(["submit", "sharded", "--to", to, f"--{field.replace('_', '-')}={value}"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith(f"{field}=")
    assert "must be" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("sharded", "to='': must be one of slurm, kubernetes, skypilot"),
        ("sharded --to lsf", "to='lsf': must be one of slurm, kubernetes, skypilot"),
        ("nope --to slurm", "scenario='nope': must be one of sharded"),
        ("data_parallel --to slurm", "scenario='data_parallel': must have a process for each GPU, as torchrun starts them"),
        ("sharded --to slurm --nodes 0", "nodes='0': must be an integer from 1 to 64"),
        ("sharded --to slurm --nodes 9", "nodes='9': must be at most 8 with 8 GPUs each"),
        ("sharded --to slurm --gpus-per-node 99", "gpus_per_node='99': must be an integer from 1 to 16"),
        ("sharded --to slurm --time 30", "time='30': must be hours, minutes and seconds as HH:MM:SS"),
        ("sharded --to slurm --time 00:00:00", "time='00:00:00': must be"),
        ("sharded --to slurm --batch many", "batch='many': must be an integer from 1 to 8192"),
        ("sharded --to slurm --namespace lab", "namespace='lab': is for --to kubernetes only"),
        ("sharded --to kubernetes --record /x", "record='/x': is for --to slurm or skypilot only"),
        ("sharded --to slurm --gpus 4", "unrecognized arguments: --gpus 4; allowed:"),
        ("sharded --to slurm --collect ftp://app", "collect='ftp://app': must be the address of a running app"),
        ("sharded --to slurm --collect http://app:99999", "collect='http://app:99999': must be"),
        ("sharded --to slurm --collect http://me:pw@app", "collect='http://me:pw@app': must be"),
        ("sharded --to slurm --collect http://app/?x=1", "collect='http://app/?x=1': must be"),
    ],
)
def test_what_cannot_be_submitted_costs_one_line(capsys: pytest.CaptureFixture[str], arguments: str, said: str) -> None:
    assert main(["submit", *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith(said)


def test_a_job_may_have_more_ranks_than_one_machine() -> None:
    text = submitted("sharded --to slurm --nodes 4")
    assert "4 nodes with 8 GPUs each, 32 ranks" in text
    assert shlex.split(text.splitlines()[-1])[:4] == ["torchrun", "--nnodes", "4", "--nproc-per-node"]


def _write_golden() -> dict[str, Any]:
    GOLDEN.mkdir(exist_ok=True)
    return {name: (GOLDEN / name).write_text(submitted(arguments)) for name, arguments in CASES.items()}


if __name__ == "__main__":
    print(_write_golden())
