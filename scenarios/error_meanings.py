"""What the error texts of distributed training mean: a small table from their real wording to a sentence for people.

Owns that table. Gloo's wordings were seen here, with torch 2.13; NCCL's and CUDA's are those of the sources named beside them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """One known error. `pattern` is searched for in each line."""

    pattern: str
    text: str
    source: str
    """Where the wording comes from."""
    lost_peer: bool = False
    """Only the echo of another rank's end."""
    timed_out: bool = False


MEANINGS: tuple[Meaning, ...] = (
    Meaning(
        pattern=r"Watchdog caught collective operation timeout: WorkNCCL\(.*OpType=",
        text="NCCL's watchdog gave up: not every rank joined this collective in time. One rank took another path, has fewer batches, "
        "hangs or is gone; the operation's number (SeqNum) shows which rank is behind.",
        source="pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, checkTimeout",
        timed_out=True,
    ),
    Meaning(
        pattern=r"Duplicate GPU detected ?: rank \d+ and rank \d+ both on CUDA device",
        text="Several ranks use the same GPU, most often GPU 0: torch.cuda.set_device(local_rank) is missing before the first use of CUDA.",
        source="NVIDIA nccl src/init.cc, initTransportsRank",
    ),
    Meaning(
        pattern=r"using GPU \d+ .*as devices? used by this process (is|are) currently unknown",
        text="PyTorch had to guess this rank's GPU: torch.cuda.set_device(local_rank) or init_process_group(device_id=) is missing.",
        source="pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, barrier",
    ),
    Meaning(
        pattern=r"Detected mismatch between collectives on ranks",
        text="The ranks called different collectives, or the same one with different shapes: some code runs on some ranks only. The text "
        "names both, and in what they differ.",
        source="pytorch torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp",
    ),
    Meaning(
        pattern=r"Is there a distributed collective mismatch in your code\?",
        text="Two ranks met in one collective with data of different sizes: the shapes or types differ between ranks, or one rank is a "
        "collective ahead. TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks and what they called.",
        source="gloo transport/tcp/pair.cc",
    ),
    Meaning(
        pattern=r"NCCL WARN Mismatched collective detected",
        text="The ranks called different collectives, or the same one with different sizes. TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks "
        "and what they called.",
        source="NVIDIA/nccl#296",
    ),
    Meaning(
        pattern=r"CUDA out of memory\. Tried to allocate",
        text="The batch, the model and what training keeps of them do not fit into this GPU's memory together.",
        source="pytorch c10/cuda/CUDACachingAllocator.cpp",
    ),
    Meaning(
        pattern=r"Expected to have finished reduction in the prior iteration before starting a new one",
        text="Some parameters got no gradient on this rank, so DDP still waits for them: a branch of the model was not used.",
        source="pytorch torch/csrc/distributed/c10d/reducer.cpp",
    ),
    Meaning(
        pattern=r"DataLoader worker .*(killed by signal|exited unexpectedly)",
        text="A DataLoader worker died: most often the machine, or /dev/shm of a container, ran out of memory.",
        source="pytorch torch/utils/data/dataloader.py and _utils/signal_handling.py",
    ),
    Meaning(
        pattern=r"CUDA error: device-side assert triggered",
        text="A kernel met a value it cannot use, such as a label beyond the number of classes. CUDA_LAUNCH_BLOCKING=1 shows where.",
        source="CUDA runtime, cudaErrorAssert",
    ),
    Meaning(
        pattern=r"CUDA error: no kernel image is available for execution on the device",
        text="This PyTorch was built without kernels for this kind of GPU, which is too old or too new for it. Another build of PyTorch "
        "has them.",
        source="CUDA runtime, cudaErrorNoKernelImageForDevice; pytorch/pytorch#52736",
    ),
    Meaning(
        pattern=r"CUDA error: invalid device ordinal",
        text="A rank asked for a GPU that this process is not shown: there are more ranks than GPUs, or CUDA_VISIBLE_DEVICES hides some.",
        source="CUDA runtime, cudaErrorInvalidDevice",
    ),
    Meaning(
        pattern=r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy or unavailable",
        text="The GPU is in exclusive mode and somebody else has it (nvidia-smi shows the compute mode and the processes).",
        source="CUDA runtime, cudaErrorDevicesUnavailable",
    ),
    Meaning(
        pattern=r"Cannot re-initialize CUDA in forked subprocess",
        text="CUDA was used before the process was forked: ranks and loader workers must be forked first, or started by spawn.",
        source="pytorch torch/cuda/__init__.py, _lazy_init",
    ),
    Meaning(
        pattern=r"GPU is lost|GPU has fallen off the bus|CUDA error: (unspecified launch failure|uncorrectable ECC)",
        text="The GPU itself failed. Look for Xid messages in the kernel's log and take the card out of service.",
        source="NVML nvmlErrorString(NVML_ERROR_GPU_IS_LOST); NVIDIA Xid messages",
    ),
    Meaning(
        pattern=r"Rendezvous(Timeout|Connection)Error|address already in use|EADDRINUSE",
        text="The ranks did not find each other: the address of the first node or its port is wrong, blocked or taken.",
        source="pytorch torch/distributed/elastic/rendezvous",
    ),
    Meaning(
        pattern=r"Timed out waiting \d+ms for (recv|send) operation to complete|Rank \d+ failed to pass monitoredBarrier",
        text="This rank waited in a collective that another rank never joined: it has fewer batches, took another path, hangs or is gone.",
        source="gloo transport/tcp/unbound_buffer.cc",
        timed_out=True,
    ),
    Meaning(
        pattern=r"Connection closed by peer|Connection reset by peer|Broken pipe|[Pp]eer closed|Pair is not connected|"
        r"typically caused by a remote worker|Connection was likely closed",
        text="Another rank ended first, and this one lost its connection to it. The cause stands with the rank that ended first.",
        source="gloo transport/tcp/pair.cc and unbound_buffer.cc; pytorch torch/csrc/distributed/c10d/TCPStore.cpp",
        lost_peer=True,
    ),
    Meaning(
        pattern=r"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely",
        text="Another rank or the network to it went away. The cause stands with the rank that ended first.",
        source="pytorch torch/csrc/distributed/c10d/NCCLUtils.cpp",
        lost_peer=True,
    ),
    Meaning(
        pattern=r"was killed by signal 9 \(SIGKILL\)",
        text="Something outside ended the process: the kernel when memory ran out (see dmesg), the scheduler, or a person.",
        source="signal(7)",
    ),
    Meaning(
        pattern=r"was killed by signal \d+ \((SIGSEGV|SIGBUS|SIGILL)\)",
        text="The process crashed inside native code: a library, a driver or, with SIGBUS, a full /dev/shm.",
        source="signal(7)",
    ),
)


def timed_out(text: str) -> bool:
    """Whether it is the text of a wait that took too long."""
    known = meaning_of(text)
    return known[0].timed_out if known is not None else "imed out" in text


def meaning_of(text: str) -> tuple[Meaning, str] | None:
    """The first known error of the table that `text` holds, with its line."""
    lines = text.splitlines()
    for meaning in MEANINGS:
        for line in lines:
            if re.search(meaning.pattern, line):
                return meaning, line.strip()
    return None
