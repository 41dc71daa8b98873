"""How these GPUs work: what is real, what is modelled, and how far the model is from published figures, every error included.

Owns the page's texts and tables. The errors shown are `scenarios.costs.validate`'s as committed: nothing is fitted while a visitor waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.how_figures import Holding, Series, memory_figure, one_gpu_figure, scaling_figure
from pages.lesson_race import PLOT_CONFIG, dark
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS, NETWORKS, Link
from scenarios.costs.models import MODELS
from scenarios.costs.pricing import memory
from scenarios.costs.published import memory_rows
from scenarios.costs.validate import CONSTANT_SCALING, MEASURED_GIB, committed

Row = dict[str, Any]
CONFIG = {**PLOT_CONFIG, "displayModeBar": False}
_TEXTS = ("Model", "GPU", "Precision", "Source", "Constant", "From", "Link")
FAR = 0.30
"""Errors from here on are marked."""

WHAT_CONSTANTS_MEAN = {
    "conv": "share of the peak rate that convolutions reach outside the tensor cores",
    "conv_tensor": "the same on tensor cores, TF32 and 16 bit",
    "matmul": "share of the peak rate that matrix products reach",
    "elementwise": "share of the counted bytes that element-wise kernels move",
    "elementwise_fused": "the same in scripts that fuse them (BERT pre-training)",
    "host_images_s": "images a second that one host with PCIe 4 delivers in published runs",
    "card_spread": "how much cards of one kind differ in published runs (standard deviation)",
    "contention": "how much a collective slows the kernels beside it",
    "bandwidth": "share of the peak memory bandwidth that kernels reach",
    "grouped_conv": "rate of grouped convolutions against dense ones",
    "tensor cores, hopper": "share of the peak that Hopper reaches, against Ampere",
    "tensor cores, blackwell": "share of the peak that Blackwell reaches, against Ampere",
}


def page() -> None:
    """Everything, top to bottom."""
    found = committed()
    st.html(Path(__file__).with_name("how.css"))
    with st.container(key="how"):
        _real_and_modelled()
        _how_right(found)
        _memory(found)
        _utilization()
        _not_modelled()
        _tables(found)


def _real_and_modelled() -> None:
    st.html(
        '<h1 id="at-how">How these GPUs work</h1>'
        '<p class="pg-prose">The training code runs for real; times, memory and power are modelled.</p>'
        '<div class="pg-halves"><div class="pg-real"><h2>What is real</h2><div class="pg-prose"><p>The processes, the process group, the '
        "DataLoader and sampler, the data each rank sees, DDP and its gradient all-reduce, the optimizer, the loss, and every bug on "
        "show.</p><p>Each rank trains a small network, so that eight of them fit on a small machine.</p></div></div>"
        '<div><h2>What is modelled</h2><div class="pg-prose"><p>How long kernels, copies and collectives take on the GPU you chose, how '
        "they overlap, its memory and its power.</p><p>Times are those of the displayed model at full size. Its training step was walked "
        "once, kernel by kernel: operations and bytes of each are counted, and the GPU's data turn them into time on a virtual clock. "
        "Two runs with one seed give the same samples, on a busy machine as on an idle one.</p></div></div></div>"
    )


def _how_right(found: Row) -> None:
    st.html(
        '<h2 class="pg-h" id="at-errors">How right is it?</h2>'
        f'<div class="pg-marks">{_mark(found["one_gpu"], "One GPU, fitted rows")}'
        f'{_mark(found["leave_one_out"], "Each row predicted without it")}'
        f'{_mark(found["scaling"], "Scaling to several GPUs, fitted rows")}'
        f'{_mark(found["held_out"]["tuned"]["one_gpu"], "Held-out rows of tuned scripts, one GPU")}</div>'
        f'<div class="pg-prose pg-said-wide">{"".join(f"<p>{sentence}</p>" for sentence in sentences(found))}</div>'
    )
    left, right = st.columns(2, gap="large")
    fitted = [row for row in found["throughput"] if row["tuned"]]
    worst = max((row for row in fitted if row["one_gpu_error"] is not None), key=lambda row: abs(row["one_gpu_error"]))
    left.plotly_chart(
        one_gpu_figure(series(found, "predicted_one_gpu_per_s"), worst=worst, dark=dark()), key="how-one", config=CONFIG, theme=None
    )
    right.plotly_chart(
        scaling_figure(series(found, "scaling_error"), constant=CONSTANT_SCALING, dark=dark()), key="how-scaling", config=CONFIG, theme=None
    )
    st.html(
        '<p class="pg-note">Solid line: predicted as published. Dotted: 30 % off. Rows that scale below 80 % are left out of the right '
        "picture; the tables have them all.</p>"
    )
    st.html(f'<h2 class="pg-h" id="at-rows">Fitted and untuned rows</h2>{rows_table(found["throughput"], "at-rows")}')
    with st.expander(f"All {len(found['held_out_rows'])} held-out rows"):
        st.html(rows_table(found["held_out_rows"], "at-held", name="Held-out rows"))


def series(found: Row, needed: str) -> list[Series]:
    """What the pictures tell apart: fitted, untuned and held-out rows that have a value of `needed`."""
    rows, held_out = (
        [row for row in found[name] if row[needed] is not None and (needed != "scaling_error" or row["published_scaling"] > 0.8)]
        for name in ("throughput", "held_out_rows")
    )
    kinds = (
        ("Fitted", "circle", rows, True), ("Held out, tuned script", "square", held_out, True),
        ("Held out, untuned or older script", "x-thin-open", held_out, False), ("Untuned", "diamond-open", rows, False),
    )
    return [
        Series(label=label, symbol=symbol, rows=[row for row in among if row["tuned"] is tuned], strong=label == "Fitted")
        for label, symbol, among, tuned in kinds
    ]


def sentences(found: Row) -> list[str]:
    """The errors in words, the worst of each kind by name."""
    scaling, constant, held = found["scaling"], found["constant_scaling"], found["held_out"]
    fitted, untuned = ([row for row in found["throughput"] if row["tuned"] is tuned] for tuned in (True, False))
    held_tuned, held_untuned = ([row for row in found["held_out_rows"] if row["tuned"] is tuned] for tuned in (True, False))
    return [
        f"{found['fitted_constants']} constants were fitted, to {found['fitted_rows']} published one-GPU figures and "
        f"{scaling['rows']} scalings. Each belongs to a kind of kernel or to a declared kind of script, none to a row.",
        f"The worst fitted row is {_worst(fitted, 'one_gpu_error')}. The worst scaling is {_worst(fitted, 'scaling_error')}. "
        f"One number for every scaling, {CONSTANT_SCALING}, would be {_pct(constant['median'])} off in the median and "
        f"{_pct(constant['worst'])} at worst; the model is {_pct(scaling['median'])} and {_pct(scaling['worst'])} off. With the row "
        f"left out of the fit it is {_pct(found['leave_one_out_scaling']['median'])} and {_pct(found['leave_one_out_scaling']['worst'])}.",
        f"No constant was fitted to the {len(found['held_out_rows'])} held-out rows. Where the script was tuned like the fitted ones, the "
        f"worst is {_worst(held_tuned, 'one_gpu_error')}; scaling is {_pct(held['tuned']['scaling']['median'])} off in the median and "
        f"{_pct(held['tuned']['scaling']['worst'])} at worst. These rows were in view when the form of the model was chosen, and the "
        "shares of Hopper and Blackwell come from ratios among the untuned ones: a check by others is worth more.",
        f"Scripts that were not tuned, or are older, have a speed of their own: one GPU is {_pct(held['untuned']['one_gpu']['median'])} "
        f"off in the median, the worst is {_worst([*untuned, *held_untuned], 'one_gpu_error')}. Their worst scaling is "
        f"{_worst([*untuned, *held_untuned], 'scaling_error')}, which nothing in this model explains.",
    ]


def _worst(rows: Iterable[Row], error: str) -> str:
    row = max((row for row in rows if row[error] is not None), key=lambda row: abs(row[error]))
    gpus = f"{row['gpus'] * row['nodes']} x " if error == "scaling_error" else ""
    named = f"{MODELS[row['model']].label}, {gpus}{GPUS[row['gpu']].label}, {row['precision']}"
    return f"{named}, {_signed(row[error])}"


def rows_table(rows: Sequence[Row], anchor: str, *, name: str = "") -> str:
    """Every row with its errors; those above 30 % are marked."""
    head = (
        "Model", "GPU", "Precision", "Batch", "GPUs", "Published a second", "Predicted", "Error", "Without the row", "Scaling published",
        "Predicted", "Error", "Source",
    )
    body = []
    for row in rows:
        numbers = (
            str(row["batch"] or "not stated"), str(row["gpus"] * row["nodes"]), _amount(row["published_one_gpu_per_s"]),
            _amount(row["predicted_one_gpu_per_s"]), row["one_gpu_error"], row["leave_one_out_one_gpu_error"],
            f"{row['published_scaling']:.3f}" if row["scaling_error"] is not None else "-",
            f"{row['predicted_scaling']:.3f}" if row["scaling_error"] is not None else "-", row["scaling_error"],
        )
        labels = (*head[3:10], "Scaling predicted", "Scaling error")
        cells = "".join(_number(label, value) for label, value in zip(labels, numbers, strict=True))
        named = MODELS[row["model"]].label + (" pre-training" if row["task"] == "pretrain" else "") + ("" if row["tuned"] else " (untuned)")
        body.append(
            f'<tr><th scope=row>{escape(named)}</th><td class="pg-name" data-label="GPU">{escape(GPUS[row["gpu"]].label)}</td>'
            f'<td data-label="Precision">{row["precision"]}</td>{cells}'
            f'<td class="pg-src" data-label="Source">{escape(row["source"])}</td></tr>'
        )
    return _table(head, body, anchor, name)


def _number(label: str, value: float | str | None) -> str:
    if isinstance(value, str):
        return f'<td class="pg-num" data-label="{label}">{value}</td>'
    if value is None:
        return f'<td class="pg-num" data-label="{label}">-</td>'
    far = " pg-far" if abs(value) > FAR else ""
    return f'<td class="pg-num{far}" data-label="{label}">{_signed(value)}</td>'


def _memory(found: Row) -> None:
    st.html(
        '<h2 class="pg-h" id="at-memory">Memory</h2><div class="pg-prose"><p>Parameters, gradients, optimizer state and activations are '
        "counted from the model. Workspace and CUDA context are added as a sum. A step that needs more than the card has ends in "
        f"<code>torch.OutOfMemoryError</code>, as on a real one.</p><p>{found['memory_rows_right']} of {len(found['memory'])} published "
        f"limits are on the right side. Where {MEASURED_GIB} GiB were measured, {found['memory_predicted_gib']:.1f} are predicted "
        f"({_signed(found['memory_error'])}). The BERT rows are TensorFlow's, which holds 5 GiB more: a declared kind of script.</p></div>"
    )
    st.plotly_chart(memory_figure(holdings(), dark=dark()), key="how-memory", config=CONFIG, theme=None)


def holdings() -> list[Holding]:
    """The default run and the published memory rows, by part."""
    default = memory(model="resnet50", gpu="a100-80gb", precision="amp", batch=256, world=8)
    bars = [
        Holding(
            label="ResNet-50, amp, batch 256, A100-80GB", parts=astuple(default), limit_gib=GPUS["a100-80gb"].memory_gib,
            published="the default of this app",
        )
    ]
    for row in memory_rows():
        for batch, said in ((row.fits_batch, "published: fits"), (row.oom_batch, "published: out of memory")):
            if batch is not None:
                parts = memory(
                    model=row.model, gpu=row.gpu, precision=row.precision, batch=batch, world=1, seq_len=row.seq_len, path=row.path
                )
                length = f" of {row.seq_len}" if row.seq_len else ""
                bars.append(
                    Holding(
                        label=f"{MODELS[row.model].label}, {row.precision}, batch {batch}{length}, {GPUS[row.gpu].label}",
                        parts=astuple(parts), limit_gib=GPUS[row.gpu].memory_gib, published=said,
                    )
                )
    return bars


def _utilization() -> None:
    rows = (
        ("A kernel that fills the card", "100 %", "about 92 %", "about 85 % of the limit"),
        ("Waiting inside a collective (NCCL spins)", "100 %", "about 15 %", "14 to 36 % of the limit"),
        ("Waiting on the host: a loader, a hand-off, a barrier", "0 %", "0 %", "near idle"),
        ("A copy by the copy engine", "0 %", "0 %", "near idle"),
    )
    head = ("What the GPU does", "GPU busy (nvidia-smi)", "Useful work", "Power")
    body = [
        f"<tr><th scope=row>{row[0]}</th>"
        + "".join(f'<td data-label="{label}:">{cell}</td>' for label, cell in zip(head[1:], row[1:], strict=True))
        + "</tr>"
        for row in rows
    ]
    st.html(
        '<h2 class="pg-h" id="at-utilization">What utilization means</h2><div class="pg-prose"><p><b>GPU busy</b> is what nvidia-smi shows:'
        " the share of the time in which at least one kernel was on the GPU. It does not say how much of the GPU that kernel used.</p>"
        "<p><b>Useful work</b> is the mean share of the streaming multiprocessors that compute. Power follows it.</p></div>"
        + _table(head, body, "at-utilization", "", words=True)
    )


def _not_modelled() -> None:
    st.html(
        '<h2 class="pg-h" id="at-not">What is not modelled</h2><div class="pg-prose"><ul>'
        "<li>Which algorithm a library picks: a kernel's time follows from its operations and bytes alone.</li>"
        "<li>Clocks that fall with heat or at the power limit. Cards of a run are alike, unless you make one a straggler.</li>"
        "<li>An all-reduce that does not overlap with the backward pass, as in some older scripts.</li>"
        "<li>torch.compile, CUDA graphs, flash attention, FSDP, tensor and pipeline parallelism: these are plain DDP scripts.</li>"
        "<li>Which GPUs share a socket; other jobs on the network and the storage, where a file always takes half a millisecond.</li>"
        "<li>Fragmentation of memory: it is part of the sum.</li>"
        "<li>What published runs lose and ours do not: an input pipeline that stalls each step, and cards that differ. "
        "<code>predict</code> and the errors above contain both; our scripts prefetch, and their loaders are simulated.</li>"
        "</ul></div>"
    )


def _tables(found: Row) -> None:
    st.html('<h2 class="pg-h" id="at-data">The numbers behind it</h2>')
    with st.expander(f"{len(found['constants'])} constants, {found['fitted_constants']} of them fitted"):
        st.html(_constants_table(found["constants"]))
    with st.expander(f"{len(GPUS)} GPUs"):
        st.html(_gpus_table())
    with st.expander(f"{len(LINKS)} links and {len(NETWORKS)} networks"):
        st.html(_links_table())


def _constants_table(constants: Sequence[Row]) -> str:
    body = []
    for constant in constants:
        source = f"fitted to {constant['fitted_to']}" if constant["fitted_to"] else "chosen, with its source in the code"
        body.append(
            f"<tr><th scope=row>{escape(WHAT_CONSTANTS_MEAN[constant['name']])}</th>"
            f"{_number('Value', format(constant['value'], ',g'))}"
            f'<td data-label="From">{source}</td></tr>'
        )
    return _table(("Constant", "Value", "From"), body, "at-constants", "Constants")


def _gpus_table() -> str:
    head = ("GPU", "fp32", "TF32", "16 bit", "Memory, GB/s", "GiB", "Joined by", "PCIe, GB/s", "Power, W", "JPEG, images/s", "Source")
    body = []
    for gpu in GPUS.values():
        numbers = (
            f"{gpu.fp32_tflops:g}", f"{gpu.tf32_tflops:g}" if gpu.tf32_tflops else "none", f"{gpu.fp16_tflops:g}",
            f"{gpu.bandwidth_gb_s:,.0f}", f"{gpu.memory_gib:.1f}",
            escape(LINKS[gpu.link].label), f"{gpu.pcie_gb_s:g}", f"{gpu.idle_w:.0f} to {gpu.peak_w:.0f}",
            f"{gpu.decode_images_s:,.0f}",
        )
        cells = "".join(_number(label, value) for label, value in zip(head[1:], numbers, strict=False))
        body.append(
            f'<tr><th scope=row>{escape(gpu.label)}</th>{cells}<td class="pg-src" data-label="Source">{escape(gpu.source)}. '
            f"JPEG: {escape(gpu.decode_source)}</td></tr>"
        )
    note = '<p class="pg-note">Peak rates in TFLOP/s, dense, with 32-bit sums. A GPU without TF32 computes in fp32.</p>'
    return note + _table(head, body, "at-gpus", "GPUs")


def _links_table() -> str:
    head = ("Link", "Bus bandwidth, GB/s", "With NVLink SHARP", "Step, µs", "Source")
    body = [_link_row(link, head) for link in (*LINKS.values(), *NETWORKS.values())]
    note = (
        '<p class="pg-note">Bus bandwidth of a large all-reduce among the eight GPUs of a node; of networks, among nodes with all adapters '
        "of a node together.</p>"
    )
    return note + _table(head, body, "at-links", "Links and networks")


def _link_row(link: Link, head: Sequence[str]) -> str:
    numbers = (f"{link.bus_gb_s:g}", f"{link.nvls_gb_s:g}" if link.nvls_gb_s else "none", f"{link.latency_us:g}")
    cells = "".join(_number(label, value) for label, value in zip(head[1:], numbers, strict=False))
    return f'<tr><th scope=row>{escape(link.label)}</th>{cells}<td class="pg-src" data-label="Source">{escape(link.source)}</td></tr>'


def _table(head: Sequence[str], body: Sequence[str], anchor: str, name: str, *, words: bool = False) -> str:
    """`words`: its cells are texts, not numbers."""
    named = f'aria-label="{name}"' if name else f'aria-labelledby="{anchor}"'
    columns = "".join(f"<th scope=col{'' if words or label in _TEXTS else ' class=pg-num'}>{label}</th>" for label in head)
    return (
        f'<div class="pg-table" role="region" {named} tabindex="0"><table><thead><tr>{columns}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _mark(errors: Row, label: str) -> str:
    return (
        f'<div><p class="pg-figure">{_pct(errors["median"])}</p><p>{label}: median error. '
        f'Worst {_pct(errors["worst"])}, {errors["rows"]} rows.</p></div>'
    )


def _pct(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}\u00a0%"


def _amount(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


if __name__ == "__main__":
    page()
