"""A run's spans in the Chrome trace event format: one file for Perfetto, or one a rank for HolisticTraceAnalysis (HTA).

Owns names, categories and threads of that format: one process a rank, one thread a stream, whole microseconds. A span whose kernels
leave gaps is drawn as several kernels, so that whoever adds up the trace finds the modelled busy time. Must not compute any figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scenarios.record import head_of, source_of, spans_of
from scenarios.telemetry import Kind, Span, Stream

Event = dict[str, Any]

THREADS: dict[Stream, int] = {"host": 0, "compute": 7, "copy": 13, "comm": 17}
"""Thread ids; those of the GPU are its stream numbers too. HTA takes every event without a stream for the host's."""
STEPS_THREAD = 1
THREAD_NAMES = {0: "host", STEPS_THREAD: "steps", 7: "compute stream", 13: "copy stream", 17: "communication stream"}

KERNEL_NAMES: dict[Kind, str] = {
    "all_reduce": "ncclDevKernel_AllReduce",
    "scatter": "ncclDevKernel_SendRecv",
    "replicate": "ncclDevKernel_Broadcast and _Reduce",
    "spin": "ncclDevKernel (waits for the last rank)",
    "copy": "Memcpy (pinned memory)",
}
"""HTA knows communication and copies by such names; everything else on a stream is computation."""

FIRST_CORRELATION = 1_000_001
"""What links a kernel to its launch counts from here: HTA narrows small numbers to a type that its own indices then overflow."""

SLICE_US = 200
MOST_SLICES = 24
"""A span with launch gaps is cut into slices of about this length, at most so many: a model of thousands of kernels stays readable."""

FULL = 0.995
"""A span that is busier than this is drawn as one kernel."""


def chrome_trace(run_dir: Path) -> dict[str, Any]:
    """The whole run as one trace."""
    source = source_of(run_dir)
    return {"traceEvents": list(trace_events(spans_of(run_dir), source=source)), "displayTimeUnit": "ms", "source": source}


def trace_lines(run_dir: Path) -> Iterator[str]:
    """`chrome_trace` as JSON text, one event at a time: a long run's spans need not fit in memory."""
    source = source_of(run_dir)
    yield from _json_text({"displayTimeUnit": "ms", "source": source}, trace_events(spans_of(run_dir), source=source))


def rank_trace_lines(run_dir: Path, rank: int) -> Iterator[str]:
    """One rank's trace as JSON text, as torch.profiler writes one file a rank and HTA reads them."""
    source = source_of(run_dir)
    head = {
        "schemaVersion": 1, "displayTimeUnit": "ms", "source": source,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks_of(run_dir)},
    }
    yield from _json_text(head, trace_events((span for span in spans_of(run_dir) if span.rank == rank), source=source))


def write_rank_traces(run_dir: Path, folder: Path) -> list[Path]:
    """`rank-0.json`, `rank-1.json`, ... in `folder`, which is made. Raises OSError when it cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for rank in range(ranks_of(run_dir)):
        path = folder / f"rank-{rank}.json"
        with path.open("w") as file:
            file.writelines(rank_trace_lines(run_dir, rank))
        written.append(path)
    return written


def ranks_of(run_dir: Path) -> int:
    """The number of GPUs that the record's head names; 0 where it has none."""
    gpus = head_of(run_dir).get("gpus", 0)
    return gpus if isinstance(gpus, int) else 0


def trace_events(spans: Iterable[Span], *, source: str = "virtual") -> Iterator[Event]:
    """The events of `spans`, which come in the order of writing. Of a real GPU, how busy a span was and with what is not known."""
    step_start_us: dict[int, int] = {}
    for number, span in enumerate(spans, FIRST_CORRELATION):
        if span.rank not in step_start_us:
            step_start_us[span.rank] = 0
            yield from _names(span.rank)
        if span.stream == "host":
            yield _event(span, f"host {span.kind}", "cpu_op", THREADS["host"], span.start_ns, span.end_ns, {"step": span.step})
            continue
        # HTA finds a kernel's step by the host call that launched it. Single launches are not modelled: the call stands at the kernel.
        call = "cudaMemcpyAsync" if span.stream == "copy" else "cudaLaunchKernel"
        yield _event(span, call, "cuda_runtime", STEPS_THREAD, span.start_ns, span.start_ns, {"correlation": number})
        yield from _kernels(span, number, known=source != "nvml")
        if span.kind == "optimizer":
            end_us = _microseconds(span.end_ns)
            yield {
                "ph": "X", "name": f"ProfilerStep#{span.step}", "cat": "user_annotation", "pid": span.rank, "tid": STEPS_THREAD,
                "ts": step_start_us[span.rank], "dur": end_us - step_start_us[span.rank], "args": {"step": span.step},
            }
            step_start_us[span.rank] = end_us


def _kernels(span: Span, correlation: int, *, known: bool) -> Iterator[Event]:
    """One kernel; several where launch gaps lie between them, the first and the last at the span's ends."""
    name = KERNEL_NAMES.get(span.kind, span.kind)
    category = "gpu_memcpy" if span.stream == "copy" else "kernel"
    args = {
        "device": span.rank, "stream": THREADS[span.stream], "correlation": correlation, "step": span.step,
        **({"busy_us": span.busy_ns / 1000, "sm_active": round(span.sm_active, 4)} if known else {}),
    }
    length_ns = span.end_ns - span.start_ns
    count = 1
    if 0 < span.busy_ns < FULL * length_ns:
        count = max(2, min(MOST_SLICES, length_ns // (1000 * SLICE_US)))
    busy_ns, gap_ns = (span.busy_ns / count, (length_ns - span.busy_ns) / (count - 1)) if count > 1 else (float(length_ns), 0.0)
    for number in range(count):
        start_ns = span.start_ns + number * (busy_ns + gap_ns)
        yield _event(span, name, category, THREADS[span.stream], start_ns, start_ns + busy_ns, args)


def _event(span: Span, name: str, category: str, thread: int, start_ns: float, end_ns: float, args: dict[str, Any]) -> Event:
    """Both ends are rounded, not the length: neighbours stay neighbours, and rounding does not add up."""
    start_us = _microseconds(start_ns)
    return {
        "ph": "X", "name": name, "cat": category, "pid": span.rank, "tid": thread,
        "ts": start_us, "dur": _microseconds(end_ns) - start_us, "args": args,
    }


def _names(rank: int) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
    yield {"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}}
    for thread, name in THREAD_NAMES.items():
        yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": {"name": name}}


def _microseconds(ns: float) -> int:
    return round(ns / 1000)


def _json_text(head: dict[str, Any], events: Iterable[Event]) -> Iterator[str]:
    yield json.dumps(head)[:-1] + ', "traceEvents": [\n'
    for number, event in enumerate(events):
        yield (",\n" if number else "") + json.dumps(event, separators=(",", ":"))
    yield "\n]}\n"
