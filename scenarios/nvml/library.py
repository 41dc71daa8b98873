"""Asking NVML one question: what its errors mean for that question, for that GPU, for everything, and in words.

Owns opening NVML and the wording of its faults. Must not know what is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml

UNUSABLE_WORDS = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver is installed (libnvidia-ml.so.1 was not found)",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is installed but not loaded",
    pynvml.NVML_ERROR_NO_PERMISSION: "this user may not ask the NVIDIA driver (no permission for /dev/nvidiactl)",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the NVIDIA driver and its library have different versions; a reboot mends that",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "the NVIDIA driver is too old to be asked (its library lacks what came with release 340)",
    pynvml.NVML_ERROR_UNINITIALIZED: "the NVIDIA driver was not opened",
}
"""Clauses for what makes all of NVML unusable."""

LOST = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_GPU_NOT_FOUND})
"""Errors after which a GPU answers nothing more until someone sees to it."""

WITHOUT_COUNTER = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "this card has none",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "this driver is too old for it",
    pynvml.NVML_ERROR_NO_PERMISSION: "this user may not read it",
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: "this driver knows it in another form",
    pynvml.NVML_ERROR_INVALID_ARGUMENT: "this driver does not know it",
}
"""Errors that will be the same at the next try: why a counter is a gap."""


class NvmlUnusable(Exception):
    """NVML as a whole cannot be asked; the text is one clause."""


class GpuLost(Exception):
    """One GPU answers nothing more; the text says what NVML called it."""


def open_nvml() -> None:
    """Load and start NVML. Raises NvmlUnusable."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlUnusable(unusable_words(error)) from None


def unusable_words(error: pynvml.NVMLError) -> str:
    """One clause: why NVML cannot be asked."""
    return UNUSABLE_WORDS.get(error.value) or f"the NVIDIA driver cannot be asked: {error}"


class Counter:
    """One question to one GPU. Its answer is None while there is none; a counter that the card lacks is asked once, not again.

    Raises GpuLost, and NvmlUnusable where the whole driver went away.
    """

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._function = function
        self._arguments = arguments
        self.lacking = ""
        """Why there will never be an answer; empty while there may be one."""

    def __call__(self, *more: Any) -> Any:
        if self.lacking:
            return None
        try:
            return self._function(*self._arguments, *more)
        except pynvml.NVMLError as error:
            self._judge(error)
            return None

    def _judge(self, error: pynvml.NVMLError) -> None:
        if error.value in LOST:
            raise GpuLost(str(error)) from None
        if error.value in (pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED):
            raise NvmlUnusable(unusable_words(error)) from None
        self.lacking = WITHOUT_COUNTER.get(error.value, "")


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """One question asked once: its answer, or None where there is none."""
    return Counter(function, *arguments)()
