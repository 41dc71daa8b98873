"""The Kubernetes manifest of a job: an indexed Job and a headless Service. Owns its text only.

An indexed Job rather than a PyTorchJob: it is part of Kubernetes itself (stable since 1.24), where a PyTorchJob needs the Kubeflow
operator, and torchrun's rendezvous already does what the operator would. The form follows
https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication.
"""

from __future__ import annotations

import json
import shlex
import textwrap

from scenarios.cluster.job import Job

PORT = 29400
WORKDIR = "/shardlab"


def kubernetes_file(job: Job) -> str:
    """Two documents for `kubectl create -f`."""
    request = job.request
    name, workdir = _quoted(request.name), _quoted(request.workdir or WORKDIR)
    namespace = f"\n  namespace: {_quoted(request.namespace)}" if request.namespace else ""
    resources = f"""
          resources:
            limits:
              nvidia.com/gpu: {request.gpus_per_node}""" if job.on_gpus else ""  # fmt: skip
    token = """
            # kubectl create secret generic shardlab-collect --from-literal=token=...
            - name: SHARDLAB_COLLECT_TOKEN
              valueFrom: {secretKeyRef: {name: shardlab-collect, key: token}}""" if request.collect else ""  # fmt: skip
    mount, volume = ("", "") if request.collect else (
        "\n            - {name: records, mountPath: /records}",
        f"\n        - {{name: records, persistentVolumeClaim: {{claimName: {_quoted(request.claim)}}}}}",
    )
    return f"""\
# Shardlab: {job.what}.
# Create it with kubectl create -f FILE. A pod for each node runs torchrun, which starts a rank for each GPU.
# An indexed Job needs no operator (Kubernetes 1.27 or newer, for the label that names the run).
{_samples(job)}
apiVersion: v1
kind: Service
metadata:
  name: {name}{namespace}
spec:
  # Headless: it gives the pods names, {request.name}-0 and so on, by which the ranks meet.
  clusterIP: None
  selector:
    job-name: {name}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}{namespace}
spec:
  completionMode: Indexed
  completions: {request.nodes}
  parallelism: {request.nodes}
  # A node that fails ends the run: no pod is tried again, and the others are ended.
  backoffLimit: 0
  activeDeadlineSeconds: {request.limit_s}
  template:
    spec:
      subdomain: {name}
      restartPolicy: Never
      containers:
        - name: ranks
          # An image that holds this project in the working directory and its requirements.txt.
          image: {_quoted(request.image)}
          workingDir: {workdir}{resources}
          env:
            - name: RUN
              valueFrom: {{fieldRef: {{fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}}}
            - {{name: OMP_NUM_THREADS, value: "1"}}{token}
          volumeMounts:
            # NCCL and DataLoader workers share memory; the default of 64 MiB is too little.
            - {{name: shm, mountPath: /dev/shm}}{mount}
          command: [/bin/bash, -c]
          args:
            - |
{textwrap.indent(_script(job), " " * 14)}
      volumes:
        - {{name: shm, emptyDir: {{medium: Memory}}}}{volume}
"""


def _script(job: Job) -> str:
    """Kubernetes itself replaces a name in `$(...)`; there is none in here."""
    head = f"{job.request.name}-0.{job.request.name}"
    activate = f"\n. {shlex.quote(job.request.venv + '/bin/activate')}" if job.request.venv else ""
    line = job.torchrun(endpoint=f"{head}:{PORT}", run='"$RUN"', record='"/records/$RUN"', conf='"is_host=$is_host,read_timeout=600"')
    return f"""\
set -euo pipefail{activate}
is_host=false
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then is_host=true; fi
# The first pod has a name once it runs; pulling its image may take a while.
until getent hosts {head} >/dev/null; do sleep 1; done
exec {line}"""


def _samples(job: Job) -> str:
    if job.request.collect:
        return (
            f"# The samples go to the running app and are seen live at {job.request.collect}/live?run=UID, where\n"
            f"# kubectl get job {job.request.name} -o jsonpath='{{.metadata.uid}}' prints the UID."
        )
    return (
        f"# Each rank writes its part of the record to the volume of the claim {job.request.claim}, which all nodes mount\n"
        "# (ReadWriteMany). Copy the folder to where the app runs, and there: python -m scenarios import FOLDER"
    )


def _quoted(text: str) -> str:
    """A JSON string is a YAML string."""
    return json.dumps(text)
