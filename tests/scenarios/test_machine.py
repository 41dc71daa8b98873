"""Which real GPUs there are, and the words for why a run is virtual."""

from __future__ import annotations

from collections.abc import Iterator

import pynvml
import pytest

from scenarios import machine


@pytest.fixture(autouse=True)
def ask_anew() -> Iterator[None]:
    machine.real_gpus.cache_clear()
    yield
    machine.real_gpus.cache_clear()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA driver is installed"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "not loaded"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "may not ask"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "different versions"),
        (pynvml.NVML_ERROR_UNKNOWN, "cannot be asked"),
    ],
)
def test_a_driver_that_cannot_be_asked_is_a_reason(monkeypatch: pytest.MonkeyPatch, code: int, words: str) -> None:
    def refuse() -> None:
        raise pynvml.NVMLError(code)

    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    found = machine.real_gpus()
    assert found.names == ()
    assert words in machine.why_virtual(found)


def test_real_gpus_are_named_and_not_silently_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 2)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lambda handle: "NVIDIA H200")
    found = machine.real_gpus()
    assert found.names == ("NVIDIA H200", "NVIDIA H200")
    assert "2 real GPUs found (NVIDIA H200)" in machine.why_virtual(found)
