"""The sbatch file of a job. Owns its text only."""

from __future__ import annotations

import shlex

from scenarios.cluster.job import Job

CPUS_PER_RANK = 2


def slurm_file(job: Job) -> str:
    """One task per node, which is torchrun; Slurm passes the job's number and its nodes in."""
    request = job.request
    headers = [
        f"#SBATCH --job-name={request.name}",
        f"#SBATCH --nodes={request.nodes}",
        "# One task on each node: torchrun, which starts a rank for each GPU.",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --cpus-per-task={CPUS_PER_RANK * request.gpus_per_node}",
        *([f"#SBATCH --gpus-per-node={request.gpus_per_node}"] if job.on_gpus else []),
        f"#SBATCH --time={request.time}",
        "#SBATCH --output=%x-%j.log",
        "# A job that is tried again keeps its number: its run would be mixed with the one before.",
        "#SBATCH --no-requeue",
        *([f"#SBATCH --partition={request.partition}"] if request.partition else []),
        *([f"#SBATCH --account={request.account}"] if request.account else []),
    ]
    folder = f"{shlex.quote(request.record)}/$run" if request.record else '"$PWD/$run"'
    workdir = shlex.quote(request.workdir) if request.workdir else '"$SLURM_SUBMIT_DIR"'
    activate = f"{request.venv or '.venv'}/bin/activate"
    line = job.torchrun(endpoint='"$rdzv_endpoint"', run='"$run"', record='"$record"')
    return "\n".join(
        [
            "#!/bin/bash",
            f"# Shardlab: {job.what}.",
            "# Submit this file with sbatch from the project's folder, which all nodes must see.",
            *headers,
            "",
            "set -euo pipefail",
            f"cd -- {workdir}",
            "# The environment that `make setup` leaves.",
            f". {shlex.quote(activate)}",
            "",
            "run=slurm-job-$SLURM_JOB_ID",
            *_samples(job, folder),
            "",
            "# The ranks meet on the job's first node, at a port of this job's own.",
            'nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")',
            "rdzv_endpoint=${nodes%%$'\\n'*}:$((20000 + SLURM_JOB_ID % 10000))",
            "",
            "# srun takes no --cpus-per-task from sbatch by itself.",
            "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK",
            "export OMP_NUM_THREADS=1",
            "",
            "# A node that fails ends the others too.",
            "srun --kill-on-bad-exit=1 \\",
            f"  {line}",
            "",
        ]
    )


def _samples(job: Job, folder: str) -> list[str]:
    """How what the ranks report comes back."""
    lines = []
    if job.request.collect:
        lines += [
            f"# The samples go to the running app and are seen live at {job.request.collect}/live?run=slurm-job-NUMBER.",
            "# Slurm hands your environment on: export SHARDLAB_COLLECT_TOKEN before you call sbatch.",
            ': "${SHARDLAB_COLLECT_TOKEN:?export the token of the app before sbatch}"',
        ]
    if job.request.record or not job.request.collect:
        lines += [
            "# Each rank writes its part of the record here, on a disk that all nodes share. Afterwards, where the app runs:",
            "#   python -m scenarios import FOLDER",
            f"record={folder}",
        ]
    return lines
