"""One sentence that says what is seen in a run, from its summary alone: it never knows which script ran.

Owns the words and the order in which figures stand out. What the figures are is `summary.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scenarios.analysis.findings import named


def sentence(summary: dict[str, Any]) -> str:
    """What is seen, from the figures alone: it never knows which script ran."""
    gpus = summary["gpus"]
    if summary["outcome"] == "out_of_memory":
        fitted = summary["last_batch_that_fitted"]
        filled = _filled_up(summary)
        return (
            f"{filled}: {summary['peak_memory_gib']:.0f}{_of_limit(summary)} GiB. "
            + (f"A batch of {fitted} was the last that fitted." if fitted else "Not even the first batch fitted.")
        )
    utils = [gpu["gpu_util"] for gpu in gpus]
    if summary["outcome"] != "finished" or any(util is None for util in utils):
        return f"The run ended early, after {summary['steps']} steps."
    first, rest = utils[0], utils[1:]
    speed = summary["speedup_vs_one_gpu"]
    if not rest:
        return f"One GPU, busy {first:.0f} % of the time."
    mean = sum(rest) / len(rest)
    others = "the other one" if len(rest) == 1 else f"the other {len(rest)}"
    windows = summary["wait_windows"]
    if windows:
        does = "is busy alone" if (windows["busy_pct"] or 0.0) >= 50 else "stands still"
        wait = "waits" if len(rest) == 1 else "wait"
        return (
            f"{windows['count']} times GPU {windows['rank']} {does} while {others} {wait} for it in a kernel, {windows['share_pct']:.0f} % "
            f"of the time in all{_times_one_gpu(speed, 'speed')}"
        )
    if first - mean > 30:
        return f"GPU 0 is busy {first:.0f} % of the time; {others} {'waits' if len(rest) == 1 else 'wait'} for {100 - mean:.0f} % of it."
    if mean - first > 30:
        return f"GPU 0 is busy only {first:.0f} % of the time while {others} {'shows' if len(rest) == 1 else 'show'} {mean:.0f} %."
    return _even_sentence(summary, sum(utils) / len(utils), speed)


def _filled_up(summary: dict[str, Any]) -> str:
    """Which GPUs were full at last; those of ranks that never ended a step have no reading."""
    gpus = summary["gpus"]
    if len(gpus) == 1:
        return "The GPU filled up"
    most = max(gpu["peak_memory_gib"] for gpu in gpus)
    full = summary.get("out_of_memory_ranks") or [gpu["rank"] for gpu in gpus if gpu["peak_memory_gib"] >= 0.96 * most]
    if len(full) == len(gpus):
        return f"{_all(gpus)} filled up together"
    return f"GPU {full[0]} alone filled up" if len(full) == 1 else f"{len(full)} of {len(gpus)} GPUs filled up"


def _of_limit(summary: dict[str, Any]) -> str:
    return "" if summary["memory_limit_gib"] is None else f" of {summary['memory_limit_gib']:.0f}"


def _times_one_gpu(speed: float | None, what: str) -> str:
    """The end of a sentence; a full stop alone where the speed of one GPU is not known."""
    return "." if speed is None else f": {speed:.1f}x the {what} of one GPU."


def hang_sentence(summary: dict[str, Any], waited_s: float) -> str | None:
    """Of a run that ended in a collective that not all have joined; None where the figures do not show that."""
    gpus = [gpu for gpu in summary["gpus"] if None not in (gpu["gpu_util"], gpu["sm_active"], gpu["power_w"])]
    waiting = [gpu for gpu in gpus if _only_waits(gpu)]
    absent = [gpu for gpu in gpus if gpu["gpu_util"] < 10]
    if not waiting or not absent or len(waiting) + len(absent) < len(summary["gpus"]):
        return None
    busy, power = (sum(gpu[field] for gpu in waiting) / len(waiting) for field in ("gpu_util", "power_w"))
    who, whom = (named([gpu["rank"] for gpu in each]) for each in (waiting, absent))
    show, wait = ("shows", "it waits") if len(waiting) == 1 else ("show", "they wait")
    come = "comes" if len(absent) == 1 else "come"
    return (
        f"{who} {show} {busy:.0f} % at {power:.0f} W: {wait} in a kernel for {whom}, at {absent[0]['gpu_util']:.0f} %, which never {come}. "
        f"After {waited_s:.0f} s of that the watchdog ended the run."
    )


def _only_waits(gpu: dict[str, Any]) -> bool:
    """Spinning is not measured on a real GPU, where a kernel that waits for others is busy and has next to nothing to do."""
    if gpu["spin_pct"] is not None:
        return bool(gpu["spin_pct"] > 80)
    return bool(gpu["gpu_util"] > 95 and gpu["sm_active"] < 25)


def _even_sentence(summary: dict[str, Any], busy: float, speed: float | None) -> str:
    gpus, checksums = summary["gpus"], summary["replica_checksums"]
    if len(set(checksums)) > 1:
        return f"{_all(gpus)} are busy {busy:.0f} % of the time, but their weights no longer agree: they train different models."
    if summary.get("processes") == 1:
        return (
            f"One process drives {'both' if len(gpus) == 2 else f'all {len(gpus)}'} GPUs, which are busy {busy:.0f} % of the time"
            + _times_one_gpu(speed, "speed") + _fuller(gpus)
        )
    if (summary["unique_fraction"] or 1.0) < 0.9:
        return (
            f"{_all(gpus)} are busy {busy:.0f} % of the time, yet each sample is trained {summary['times_trained']:.0f} times"
            + _times_one_gpu(speed, "useful speed")
        )
    if (summary["order_repeated_pct"] or 0.0) > 50:
        return (
            f"{_all(gpus)} are busy {busy:.0f} % of the time, each on its own samples{_times_one_gpu(speed, 'speed')} "
            "But the second epoch brought them in the order of the first."
        )
    if (crowd := max(gpu.get("processes") or 1 for gpu in gpus)) > 1 and all(gpu["memory_gib"] is not None for gpu in gpus):
        crowded = next(gpu for gpu in gpus if gpu["processes"] == crowd)
        rest = [gpu["memory_gib"] for gpu in gpus if gpu is not crowded]
        return (
            f"{_all(gpus)} are busy {busy:.0f} % of the time{_times_one_gpu(speed, 'speed')} But {crowd} processes hold memory "
            f"on GPU {crowded['rank']}: {crowded['memory_gib']:.2f} GiB, against {sum(rest) / len(rest):.2f} GiB on the others."
        )
    if busy < 50:
        useful = [gpu["sm_active"] for gpu in gpus if gpu["sm_active"] is not None]
        # Small kernels leave most cores idle whenever a GPU is busy; one that waits for data is idle, then fills them.
        work = f", and then with useful work on {100 * sum(useful) / len(useful) / busy:.0f} % of their cores" if useful and busy else ""
        return f"{_all(gpus)} idle alike: busy {busy:.0f} % of the time{work}{_times_one_gpu(speed, 'speed')}"
    waiting = [gpu["spin_pct"] for gpu in gpus if (gpu["spin_pct"] or 0.0) >= 15]
    if waiting:
        mean = sum(waiting) / len(waiting)
        least, next_least = sorted(gpu["spin_pct"] or 0.0 for gpu in gpus)[:2]
        late = [gpu["rank"] for gpu in gpus if gpu["spin_pct"] == least and least < 5 <= next_least - least]
        for_whom = f" for GPU {late[0]}" if late else ""
        wait = "one of them waits" if len(waiting) == 1 else f"{len(waiting)} of them wait"
        return (
            f"{_all(gpus)} are busy {busy:.0f} % of the time, but {wait} in a kernel{for_whom}, {mean:.0f} % of it"
            + _times_one_gpu(speed, "speed") + _more_memory(gpus)
        )
    exposed = sum(gpu.get("exposed_pct") or 0.0 for gpu in gpus) / len(gpus)
    if exposed >= 10:
        return (
            f"{_all(gpus)} are busy {busy:.0f} % of the time, but for {exposed:.0f} % of it they only exchange gradients"
            + _times_one_gpu(speed, "speed")
        )
    return f"{_all(gpus)} are busy {busy:.0f} % of the time, each on its own samples{_times_one_gpu(speed, 'speed')}"


def _more_memory(gpus: Sequence[Any]) -> str:
    """Of the GPU that the others wait for, where it holds more than each of them."""
    late, *others = sorted(gpus, key=lambda gpu: gpu["spin_pct"] or 0.0)
    mine, theirs = late["memory_gib"], [gpu["memory_gib"] for gpu in others]
    if mine is None or None in theirs or mine < 1.1 * max(theirs):
        return ""
    least, most = f"{min(theirs):.0f}", f"{max(theirs):.0f}"
    others_hold = f"{'the other one' if len(theirs) == 1 else 'the others'} {least}{f' to {most}' if most != least else ''}"
    return f" GPU {late['rank']} holds {mine:.0f} GiB, {others_hold}."


def _fuller(gpus: Sequence[Any]) -> str:
    """Of GPU 0, where it holds more than each of the others."""
    mine, *theirs = [gpu["memory_gib"] for gpu in gpus]
    if mine is None or None in theirs or mine < 1.02 * max(theirs):
        return ""
    return f" GPU 0 holds {mine:.1f} GiB, {'the other one' if len(theirs) == 1 else 'the others'} {max(theirs):.1f}."


def _all(gpus: Sequence[Any]) -> str:
    return "Both GPUs" if len(gpus) == 2 else f"All {len(gpus)} GPUs"
