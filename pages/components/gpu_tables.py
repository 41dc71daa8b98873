"""The tables of the machine page: the GPUs that the driver reports, and how each pair of them is linked.

Owns their markup. Text only ever goes in escaped. Must not ask the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from scenarios.nvml.inventory import Gpu, Inventory

LINK_WORDS: dict[str, str] = {
    "PIX": "PCIe, through one switch",
    "PXB": "PCIe, through several switches",
    "PHB": "PCIe, through the processor's host bridge",
    "NODE": "PCIe, between host bridges of one processor",
    "SYS": "PCIe and the link between processors: the slowest way",
}
"""What nvidia-smi's letters mean."""

UUID_TAIL = 8


def gpu_table(inventory: Inventory, ranks: Mapping[int, str] | None = None) -> str:
    """One row per GPU. `ranks` says per GPU what CUDA_VISIBLE_DEVICES makes of it, where that is set."""
    heads = ["GPU", "Memory", "UUID", "SM counters", "MIG", *(["For CUDA"] if ranks is not None else []), "PCI bus"]
    rows = "".join(_row(gpu, heads, ranks) for gpu in inventory.gpus)
    columns = "".join(f"<th scope=col>{escape(head)}</th>" for head in heads)
    return (
        '<div class="pg-table" role="region" aria-label="GPUs of this machine" tabindex="0">'
        f"<table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def link_table(inventory: Inventory) -> str:
    """How each pair is linked, in the letters of `nvidia-smi topo -m`. Empty for one GPU."""
    if len(inventory.gpus) < 2:
        return ""
    columns = "".join(f'<th scope=col><span class="pg-wide">GPU </span>{gpu.index}</th>' for gpu in inventory.gpus)
    rows = "".join(
        f"<tr><th scope=row>GPU {gpu.index}</th>{''.join(_cell(code) for code in codes)}</tr>"
        for gpu, codes in zip(inventory.gpus, inventory.links, strict=True)
    )
    return (
        '<div class="pg-matrix" role="region" aria-label="Links between the GPUs" tabindex="0"><table>'
        f"<thead><tr><td></td>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def links_in_words(inventory: Inventory) -> str:
    """One sentence for what the links have in common, or the slowest way that some data takes."""
    codes = {code for row in inventory.links for code in row if code != "X"}
    if len(inventory.gpus) < 2:
        return ""
    if codes == {""}:
        return "The driver does not say how the GPUs are linked."
    if len(codes) == 1:
        return f"Every pair is linked alike: {meaning(next(iter(codes)))}."
    if not any(code.startswith("NV") for code in codes):
        return "There is no NVLink here: gradients travel over PCIe."
    return "Some pairs have NVLink and some do not: an all-reduce over all of them is as slow as its slowest link."


def letters_in_words(inventory: Inventory) -> list[tuple[str, str]]:
    """(letters, meaning) of those that occur, the fastest first."""
    codes = {code for row in inventory.links for code in row if code not in ("X", "")}
    order = list(LINK_WORDS)
    return [(code, meaning(code)) for code in sorted(codes, key=lambda code: (code in order, order.index(code) if code in order else code))]


def meaning(code: str) -> str:
    """What one cell means."""
    if code.startswith("NV"):
        count = code.removeprefix("NV")
        return f"{count} NVLink{'s' if count != '1' else ''}" if count else "NVLink"
    return LINK_WORDS.get(code, "unknown")


def _row(gpu: Gpu, heads: list[str], ranks: Mapping[int, str] | None) -> str:
    name = f"<th scope=row>GPU {gpu.index}: {escape(gpu.name)}</th>"
    if gpu.fault:
        return f'<tr>{name}<td class="pg-wrong" colspan={len(heads) - 1}>Answers nothing: {escape(gpu.fault)}</td></tr>'
    cells = [
        "not told" if gpu.memory_gib is None else f"{gpu.memory_gib:.1f} GiB",
        f"…{escape(gpu.uuid[-UUID_TAIL:])}" if gpu.uuid else "not told",
        "yes" if gpu.gpm else "none",
        _mig(gpu),
        *([escape(f"device {ranks[gpu.index]}" if gpu.index in ranks else "hidden")] if ranks is not None else []),
        escape(gpu.bus_id) or "not told",
    ]
    body = "".join(f'<td data-label="{escape(head)}">{cell}</td>' for head, cell in zip(heads[1:], cells, strict=True))
    return f"<tr>{name}{body}</tr>"


def _mig(gpu: Gpu) -> str:
    if not gpu.mig:
        return "off"
    if not gpu.instances:
        return "on, without an instance"
    return "on: " + ", ".join(escape(each.name.removeprefix(gpu.name).strip() or each.uuid) for each in gpu.instances)


def _cell(code: str) -> str:
    if code == "X":
        return '<td class="pg-self" aria-label="itself">·</td>'
    kind = "pg-nvlink" if code.startswith("NV") else "pg-pcie"
    return f'<td class="{kind}" title="{escape(meaning(code))}">{escape(code) or "?"}</td>'
