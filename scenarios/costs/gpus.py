"""The GPUs that can be displayed: peak rates, memory, links and power, each with its source.

Owns hardware facts only; how much of a peak is reached is `pricing.py`'s. Must not import torch.

Tensor rates are dense, with fp32 accumulation. Total memory is what PyTorch reports in its out-of-memory messages. Idle power with a CUDA
context is read off nvidia-smi listings in public reports.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One kind of GPU. Rates are peaks; see calibration.py for what is reached."""

    name: str
    """Key in GPUS and value of --gpu."""
    label: str
    generation: str
    """volta, turing, ampere, ada, hopper or blackwell: what fitted constants may depend on."""
    fp32_tflops: float
    """fp32 outside the tensor cores; also the rate of element-wise kernels."""
    tf32_tflops: float | None
    """None: no TF32; such a GPU runs tf32 as fp32, as PyTorch does."""
    fp16_tflops: float
    bandwidth_gb_s: float
    """Peak memory bandwidth, 1e9 bytes a second."""
    memory_gib: float
    """What PyTorch reports as total capacity ("GPU 0 has a total capacity of ..."): less than the name says."""
    sms: int
    link: str
    """What joins the GPUs of one node, by default: a key of LINKS."""
    pcie_gb_s: float
    """One pinned copy between host and GPU."""
    idle_w: float
    """With a CUDA context and nothing running."""
    peak_w: float
    """Power limit."""
    launch_us: float
    """Host time of one eager PyTorch kernel: Python, dispatcher, autograd and cudaLaunchKernel."""
    decode_images_s: float
    """JPEG decoding and augmentation of ImageNet-sized images with kernels, images a second."""
    decode_source: str
    source: str
    """Of the peak rates, bandwidth and power limit."""


# pytorch/vision#8468 and NVIDIA/DALI#5362: about 6,000 images/s with CUDA kernels and 7,000 mixed on A100, 2,300 on A10.
_A100_DECODE = "NVIDIA/DALI#5362, pytorch/vision#8468: 6,000 (CUDA kernels) to over 8,000 images/s"
_SCALED = (
    "no published figure found; scaled from A100 (7,000 images/s) or A10 (2,300; pytorch/vision#8468) by memory bandwidth, "
    "which takes one to the other within 12 %"
)

# Python, dispatcher and autograd take 2-4 us per operation, our estimate (pytorch/pytorch#41383 measures 2 to 7 on the CPU), and
# cudaLaunchKernel 2-3 us more.
_LAUNCH_US = 6.0


def _gpu(**fields: object) -> Gpu:
    return Gpu(**{"launch_us": _LAUNCH_US, **fields})  # type: ignore[arg-type]


GPUS: dict[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        _gpu(
            name="a100-80gb", label="A100-80GB", generation="ampere", fp32_tflops=19.5, tf32_tflops=156.0, fp16_tflops=312.0,
            bandwidth_gb_s=2039.0, memory_gib=79.15, sms=108, link="nvlink3",
            pcie_gb_s=25.0, idle_w=60.0, peak_w=400.0, decode_images_s=7000.0, decode_source=_A100_DECODE,
            source="NVIDIA A100 data sheet and GA100 white paper",
        ),
        _gpu(
            name="a100-40gb", label="A100-40GB", generation="ampere", fp32_tflops=19.5, tf32_tflops=156.0, fp16_tflops=312.0,
            bandwidth_gb_s=1555.0, memory_gib=39.39, sms=108, link="nvlink3",
            pcie_gb_s=25.0, idle_w=55.0, peak_w=400.0, decode_images_s=7000.0, decode_source=_A100_DECODE,
            source="NVIDIA A100 data sheet and GA100 white paper",
        ),
        _gpu(
            name="a100-80gb-pcie", label="A100-80GB PCIe", generation="ampere", fp32_tflops=19.5, tf32_tflops=156.0, fp16_tflops=312.0,
            bandwidth_gb_s=1935.0, memory_gib=79.15, sms=108, link="pcie4",
            pcie_gb_s=25.0, idle_w=50.0, peak_w=300.0, decode_images_s=7000.0, decode_source=_A100_DECODE,
            source="NVIDIA A100 data sheet (PCIe)",
        ),
        _gpu(
            name="a100-40gb-pcie", label="A100-40GB PCIe", generation="ampere", fp32_tflops=19.5, tf32_tflops=156.0, fp16_tflops=312.0,
            bandwidth_gb_s=1555.0, memory_gib=39.39, sms=108, link="pcie4",
            pcie_gb_s=25.0, idle_w=40.0, peak_w=250.0, decode_images_s=7000.0, decode_source=_A100_DECODE,
            source="NVIDIA A100 data sheet (PCIe)",
        ),
        _gpu(
            name="h100-80gb", label="H100-80GB", generation="hopper", fp32_tflops=66.9, tf32_tflops=494.7, fp16_tflops=989.4,
            bandwidth_gb_s=3352.0, memory_gib=79.11, sms=132, link="nvlink4",
            pcie_gb_s=52.0, idle_w=70.0, peak_w=700.0, decode_images_s=11500.0, decode_source=_SCALED,
            source="NVIDIA H100 data sheet (SXM) and GH100 white paper",
        ),
        _gpu(
            name="h100-80gb-pcie", label="H100-80GB PCIe", generation="hopper", fp32_tflops=51.2, tf32_tflops=378.0, fp16_tflops=756.0,
            bandwidth_gb_s=2039.0, memory_gib=79.11, sms=114, link="pcie5",
            pcie_gb_s=52.0, idle_w=50.0, peak_w=350.0, decode_images_s=7000.0, decode_source=_SCALED,
            source="NVIDIA H100 data sheet (PCIe) and GH100 white paper",
        ),
        _gpu(
            name="h200-141gb", label="H200-141GB", generation="hopper", fp32_tflops=66.9, tf32_tflops=494.7, fp16_tflops=989.4,
            bandwidth_gb_s=4800.0, memory_gib=139.8, sms=132, link="nvlink4",
            pcie_gb_s=52.0, idle_w=75.0, peak_w=700.0, decode_images_s=11500.0, decode_source=_SCALED,
            source="NVIDIA H200 data sheet (SXM)",
        ),
        _gpu(
            name="b200-180gb", label="B200-180GB", generation="blackwell", fp32_tflops=75.0, tf32_tflops=1125.0, fp16_tflops=2250.0,
            bandwidth_gb_s=7672.0, memory_gib=178.35, sms=148, link="nvlink5",
            pcie_gb_s=52.0, idle_w=140.0, peak_w=1000.0, decode_images_s=26300.0, decode_source=_SCALED,
            source="NVIDIA DGX B200 data sheet; memory and its bandwidth as its driver reports them (pytorch/ao#4002)",
        ),
        _gpu(
            name="v100-16gb", label="V100-16GB", generation="volta", fp32_tflops=15.7, tf32_tflops=None, fp16_tflops=125.0,
            bandwidth_gb_s=900.0, memory_gib=15.77, sms=80, link="nvlink2",
            pcie_gb_s=12.5, idle_w=42.0, peak_w=300.0, decode_images_s=3100.0, decode_source=_SCALED,
            source="NVIDIA V100 data sheet (SXM2) and GV100 white paper",
        ),
        _gpu(
            name="v100-32gb", label="V100-32GB", generation="volta", fp32_tflops=15.7, tf32_tflops=None, fp16_tflops=125.0,
            bandwidth_gb_s=900.0, memory_gib=31.74, sms=80, link="nvlink2",
            pcie_gb_s=12.5, idle_w=43.0, peak_w=300.0, decode_images_s=3100.0, decode_source=_SCALED,
            source="NVIDIA V100 data sheet (SXM2) and GV100 white paper",
        ),
        _gpu(
            name="rtx4090-24gb", label="RTX4090-24GB", generation="ada", fp32_tflops=82.6, tf32_tflops=82.6, fp16_tflops=165.2,
            bandwidth_gb_s=1008.0, memory_gib=23.64, sms=128, link="pcie4-host",
            pcie_gb_s=25.0, idle_w=25.0, peak_w=450.0, decode_images_s=3850.0, decode_source=_SCALED,
            source="NVIDIA Ada GPU architecture white paper",
        ),
        _gpu(
            name="rtx3090-24gb", label="RTX3090-24GB", generation="ampere", fp32_tflops=35.6, tf32_tflops=35.6, fp16_tflops=71.0,
            bandwidth_gb_s=936.0, memory_gib=23.69, sms=82, link="pcie4-host",
            pcie_gb_s=25.0, idle_w=28.0, peak_w=350.0, decode_images_s=3600.0, decode_source=_SCALED,
            source="NVIDIA GA102 white paper",
        ),
        _gpu(
            name="l4-24gb", label="L4-24GB", generation="ada", fp32_tflops=30.3, tf32_tflops=60.0, fp16_tflops=121.0,
            bandwidth_gb_s=300.0, memory_gib=22.03, sms=58, link="pcie4",
            pcie_gb_s=25.0, idle_w=17.0, peak_w=72.0, decode_images_s=1150.0, decode_source=_SCALED,
            source="NVIDIA L4 data sheet",
        ),
        _gpu(
            name="t4-16gb", label="T4-16GB", generation="turing", fp32_tflops=8.1, tf32_tflops=None, fp16_tflops=65.0,
            bandwidth_gb_s=320.0, memory_gib=14.58, sms=40, link="pcie3",
            pcie_gb_s=12.5, idle_w=13.0, peak_w=70.0, decode_images_s=1150.0, decode_source=_SCALED,
            source="NVIDIA T4 data sheet and TU102 white paper",
        ),
    )
}
