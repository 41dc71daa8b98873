"""Whose fault it was, and what known errors mean, by their real wording."""

from __future__ import annotations

import pytest

from scenarios.error_meanings import MEANINGS, meaning_of
from scenarios.verdict import Failure, cause_of, outcome_of

WATCHDOG = (
    "[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=131072000, NumelOut=131072000, Timeout(ms)=600000) ran for 600081 milliseconds "
    "before timing out."
)
ABORTED = (
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at /pytorch/third_party/gloo/gloo/"
    "transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 2000 vs 12. Received data size doesn't match expected size. Is there a "
    "distributed collective mismatch in your code?"
)
RESET = "RuntimeError: [/pytorch/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:26520: Connection reset by peer"
GLOO_TIMEOUT = "RuntimeError: [/pytorch/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 3000ms for recv operation to complete"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (WATCHDOG, "watchdog gave up"),
        ("terminate called after\n" + WATCHDOG.replace("BROADCAST", "_ALLGATHER_BASE") + "\nframe #4: clone", "watchdog gave up"),
        ("ncclInvalidUsage: This usually\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", "set_device"),
        ("[rank7]:[W ProcessGroupNCCL.cpp:5059]  using GPU 7 as device used by this process is currently unknown. This can", "set_device"),
        ("using GPU 0 to perform barrier as devices used by this process are currently unknown", "set_device"),
        (ABORTED, "different sizes"),
        (RESET, "Another rank ended first"),
        ("RuntimeError: Pair is not connected (10.0.0.1:2)", "Another rank ended first"),
        (GLOO_TIMEOUT, "never joined"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "do not fit"),
        ("RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This", "no gradient"),
        ("RuntimeError: DataLoader worker (pid 12) is killed by signal: Bus error. It is possible", "/dev/shm"),
        ("ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", "went away"),
        ("init.cc:1247 NCCL WARN Mismatched collective detected, please check your collective calls at and around rank 39", "DETAIL names"),
        ("torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device", "Another build of PyTorch"),
        ("torch.AcceleratorError: CUDA error: invalid device ordinal", "more ranks than GPUs"),
        ("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", "exclusive mode"),
        ("RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you", "forked first"),
        ("ValueError: too many values to unpack", None),
        ("", None),
    ],
)
def test_known_errors_say_what_they_mean(text: str, meant: str | None) -> None:
    found = meaning_of(text)
    assert (found is None) == (meant is None)
    if found is not None and meant is not None:
        assert meant in found[0].text
        assert found[1] in text


def test_every_meaning_names_its_source_and_ends_as_a_sentence() -> None:
    assert all(meaning.source and meaning.text.endswith(".") and len(meaning.text) < 260 for meaning in MEANINGS)


def failure(rank: int, kind: str, text: str, order: int = 0) -> Failure:
    return Failure(rank=rank, kind=kind, text=text, order=order)


def test_the_first_cause_is_named_and_not_its_echoes() -> None:
    aborted = failure(5, "signal", f"rank 5 was killed by signal 6 (SIGABRT)\n{ABORTED}", 3)
    lost = [failure(rank, "RuntimeError", RESET, rank) for rank in range(3)]
    assert cause_of([*lost, aborted]) is aborted
    assert aborted.ending.startswith("Rank 5 was killed by signal 6 (SIGABRT): what(): [enforce fail")
    assert outcome_of([*lost, aborted]) == "failed"
    bug = failure(2, "KeyError", "Traceback\nKeyError: 'lr'", 7)
    ended = [failure(rank, "ended", f"rank {rank} was told to end", 9) for rank in range(2)]
    assert cause_of([*ended, *lost, bug]) is bug
    assert bug.ending == "Rank 2 ended: KeyError: 'lr'."
    gone = failure(7, "vanished", "rank 7 was not heard of again", 9)
    waited = failure(0, "RuntimeError", GLOO_TIMEOUT)
    assert cause_of([*ended, *lost, waited, gone]) is gone
    assert outcome_of([waited, gone]) == "failed"


def test_waiting_in_vain_is_a_timeout_also_where_the_watchdog_aborts() -> None:
    assert outcome_of([failure(1, "RuntimeError", GLOO_TIMEOUT), failure(0, "RuntimeError", RESET)]) == "timeout"
    assert outcome_of([failure(0, "signal", f"rank 0 was killed by signal 6 (SIGABRT)\n{WATCHDOG}")]) == "timeout"
    assert outcome_of([failure(0, "OutOfMemoryError", "CUDA out of memory. Tried to allocate"), failure(1, "RuntimeError", RESET)]) == (
        "out_of_memory"
    )


def test_a_killed_rank_is_the_cause_even_if_it_had_lost_its_peers() -> None:
    killed = failure(3, "signal", f"rank 3 was killed by signal 9 (SIGKILL)\n{RESET}", 4)
    assert cause_of([failure(1, "ValueError", "ValueError: x"), killed]) is killed
