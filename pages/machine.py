"""The machine page: which GPUs were found, how they are linked, and whether runs use them.

Owns the page's sentences about what was found. The finding itself is scenarios/machine.py's.
"""

from __future__ import annotations

import os
import time
from html import escape

import streamlit as st

from pages.components.gpu_tables import gpu_table, letters_in_words, link_table, links_in_words
from pages.components.source_words import machine_heading
from scenarios.backend import usable
from scenarios.machine import RealGpus, TorchBuild, look_again, obstacles, real_gpus, torch_build
from scenarios.nvml.inventory import Inventory
from scenarios.nvml.visible import VARIABLE, visible

VIRTUAL_MEANS = (
    "The training code runs for real on this machine's processor: a process per GPU, its data, its gradients, and every bug on show. "
    "How long kernels, copies and collectives take, memory and power are modelled for the GPU you choose. "
    "Every picture, table and export says <b>virtual</b>."
)
REAL_MEANS = (
    "The same scripts train the model at full size, on made-up samples of full size, with NCCL between the GPUs. How busy a GPU is, its "
    "memory and its power are what its driver says (NVML); useful work is measured from Hopper on. Decoding stands in for a JPEG decoder: "
    "its inverse transform, colours and crop are computed, again and again until it takes as long as published decoders do. "
    "Link, slow GPU and kind of GPU can be chosen for virtual GPUs only. Every picture, table and export says <b>nvml</b>."
)


def what_would_change(found: RealGpus, torch: TorchBuild | None = None) -> list[str]:
    """What there is to do, and what comes of it, as HTML."""
    if not found.names:
        return [
            "On a machine with NVIDIA GPUs and a driver that answers, this page lists them: name, memory, driver, links and MIG. "
            "A container has to be given them (<code>docker run --gpus all</code>).",
            "With a PyTorch that is built for CUDA, runs of as many GPUs as there are then train the full-size model on them.",
        ]
    count = len(usable(found)) if not obstacles(found, torch) else 0
    return [
        *([f"Choose {'one GPU' if count == 1 else f'up to {count} GPUs'} in the <a href=\"lab?gpus={count}\">lab</a>, or "
           f"<code>python -m scenarios run sharded --gpus {count} --backend cuda</code>."] if count else []),
        "Use the lessons and the lab as they are: they need no GPU.",
        "<code>python -m scenarios.nvml.sampler</code> prints what these GPUs do now: how busy they are, memory, power, clocks and what "
        "holds them down, the PCIe link, and the processes on each.",
    ]


def versions(inventory: Inventory) -> str:
    """Driver, CUDA and PyTorch, as far as they are known."""
    torch = torch_build()
    parts = [
        f"NVIDIA driver {inventory.driver}" if inventory.driver else "",
        f"which knows CUDA up to {inventory.cuda[0]}.{inventory.cuda[1]}" if inventory.cuda else "",
        f"PyTorch {torch.version}" if torch else "no PyTorch",
    ]
    return ", ".join(part for part in parts if part)


def shown_ranks(inventory: Inventory) -> tuple[dict[int, str] | None, tuple[str, ...]]:
    """Per GPU the device number that CUDA gives it, where CUDA_VISIBLE_DEVICES is set, and what is worth knowing about it."""
    chosen = visible(inventory.gpus, os.environ)
    if VARIABLE not in os.environ:
        return None, chosen.notes
    ranks: dict[int, str] = {}
    for rank, target in enumerate(chosen.targets):
        ranks[target.gpu.index] = f"{ranks[target.gpu.index]}, {rank}" if target.gpu.index in ranks else str(rank)
    return ranks, chosen.notes


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tables(inventory: Inventory) -> None:
    ranks, notes = shown_ranks(inventory)
    st.html(
        f'<h2 class="pg-h">GPUs</h2><p class="pg-note">{escape(versions(inventory))}.</p>{gpu_table(inventory, ranks)}'
        '<p class="pg-note pg-under">SM counters measure useful work; they came with Hopper. '
        "A GPU without them shows only how busy it is.</p>"
        + "".join(f'<p class="pg-note">{escape(note)}.</p>' for note in notes)
    )
    if len(inventory.gpus) > 1:
        letters = "".join(f"<li><b>{escape(code)}</b><span>{escape(words)}</span></li>" for code, words in letters_in_words(inventory))
        st.html(
            f'<h2 class="pg-h">Links</h2><p class="pg-prose">{escape(links_in_words(inventory))}</p>{link_table(inventory)}'
            f'<ul class="pg-letters">{letters}</ul>'
        )


with st.spinner("Asking the NVIDIA driver"):
    gpus = real_gpus()
with st.container(key="machine"):
    st.html(f'<h1 id="at-machine">This machine</h1><p class="pg-prose">{escape(machine_heading(gpus))}</p>')
    if gpus.inventory is not None and gpus.inventory.gpus:
        _tables(gpus.inventory)
        why = "".join(f"<li>{escape(_capital(clause))}.</li>" for clause in obstacles(gpus))
        if why:
            st.html(f'<h2 class="pg-h">Why runs are virtual</h2><ul class="pg-prose">{why}</ul>')
        else:
            st.html(f'<h2 class="pg-h">What real means</h2><p class="pg-prose">{REAL_MEANS}</p>')
    changes = "".join(f"<li>{text}</li>" for text in what_would_change(gpus))
    st.html(
        f'<h2 class="pg-h">What virtual means</h2><p class="pg-prose">{VIRTUAL_MEANS}</p>'
        f'<h2 class="pg-h">{"What you can do" if gpus.names else "What would change"}</h2><ul class="pg-prose">{changes}</ul>'
    )
    if st.button("Look again", key="machine-look"):
        look_again()
        st.rerun()
    st.html(f'<p class="pg-note">The driver was asked at {time.strftime("%H:%M:%S", time.localtime(gpus.asked_s))} (server time).</p>')
