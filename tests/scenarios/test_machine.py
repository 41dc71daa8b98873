"""Which real GPUs there are, and the words for why a run is virtual."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scenarios import machine
from scenarios.machine import RealGpus, TorchBuild
from tests.nvml.build import library_folder

CPU_TORCH = TorchBuild(version="2.13.0+cpu", cuda=None)
CUDA_TORCH = TorchBuild(version="2.13.0+cu130", cuda=(13, 0))


@pytest.fixture(autouse=True)
def ask_anew() -> Iterator[None]:
    machine.forget()
    yield
    machine.forget()


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], RealGpus]:
    """`stub("gpus 2")`: what is found where the driver is the stub with this script."""

    def found(script: str) -> RealGpus:
        path = tmp_path / "nvml.script"
        path.write_text(script)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(library_folder()))
        monkeypatch.setenv("NVML_STUB_SCRIPT", str(path))
        return machine.real_gpus()

    return found


@pytest.mark.parametrize(
    ("code", "words"), [(9, "not loaded"), (4, "may not ask"), (18, "different versions"), (999, "cannot be asked: Unknown Error")]
)
def test_a_driver_that_cannot_be_asked_is_a_reason(stub: Callable[[str], RealGpus], code: int, words: str) -> None:
    found = stub(f"init {code}")
    assert found.names == ()
    assert words in machine.why_virtual(found)


def test_a_machine_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert machine.why_virtual(machine.real_gpus()) == "no NVIDIA driver is installed (libnvidia-ml.so.1 was not found)"


def test_real_gpus_are_named_and_not_silently_ignored(stub: Callable[[str], RealGpus]) -> None:
    found = stub("gpus 2\ngpu * name NVIDIA H200")
    assert found.names == ("NVIDIA H200", "NVIDIA H200")
    assert "2 real GPUs (NVIDIA H200) were found, but" in machine.why_virtual(found, CPU_TORCH)


def test_no_gpu_is_not_a_driver_without_one(stub: Callable[[str], RealGpus]) -> None:
    assert machine.why_virtual(stub("gpus 0")) == "the NVIDIA driver reports no GPU"


def test_each_obstacle_is_named(stub: Callable[[str], RealGpus]) -> None:
    found = stub("gpus 2\ndriver 535.54.03\ncuda 12020\ngpu 1 error nvmlDeviceGetHandleByIndex 15\ngpu 0 name NVIDIA L4")
    assert machine.obstacles(found, CUDA_TORCH) == (
        "the NVIDIA driver is too old: 535.54.03 knows CUDA up to 12.2, and PyTorch 2.13.0+cu130 needs 13.0 or newer",
    )
    assert machine.why_virtual(found, CUDA_TORCH).startswith("2 real GPUs (1 NVIDIA L4, 1 unnamed GPU) were found, but ")
    assert "the PyTorch installed here (2.13.0+cpu) is built without CUDA" in machine.obstacles(found, CPU_TORCH)[0]


def test_gpus_that_are_all_gone_are_the_first_obstacle(stub: Callable[[str], RealGpus]) -> None:
    found = stub("gpus 1\ngpu 0 error nvmlDeviceGetHandleByIndex 15")
    assert machine.why_virtual(found) == "1 real GPU (unnamed GPU) was found, but none can be used: it fell off the bus (GPU is lost)"


def test_a_driver_that_is_new_enough_is_no_obstacle(stub: Callable[[str], RealGpus]) -> None:
    found = stub("gpus 1\ncuda 13000")
    assert machine.obstacles(found, CUDA_TORCH) == ()
    assert machine.why_virtual(found, CUDA_TORCH) == ""


def test_a_driver_that_hangs_holds_up_nobody(stub: Callable[[str], RealGpus], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ASK_LIMIT_S", 0.3)
    assert machine.why_virtual(stub("init hang")) == "the NVIDIA driver did not answer within 0.3 s"


def test_a_question_that_fails_is_a_reason_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_COMMAND", (sys.executable, "-c", "raise SystemExit('out of luck')"))
    assert machine.why_virtual(machine.real_gpus()) == "asking the NVIDIA driver failed (out of luck)"


def test_the_driver_is_asked_once_until_someone_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def answer() -> dict[str, object]:
        asked.append(1)
        return {"reason": "no driver"}

    monkeypatch.setattr(machine, "_answer", answer)
    for _ in range(3):
        machine.real_gpus()
    machine.look_again()
    machine.real_gpus()
    assert len(asked) == 1, "it was asked a moment ago"
    later_s = time.time() + 60
    monkeypatch.setattr(machine.time, "time", lambda: later_s)
    machine.look_again()
    machine.real_gpus()
    assert len(asked) == 2


def test_pytorch_is_read_from_its_files() -> None:
    code = "import sys; from scenarios.machine import torch_build; print(torch_build().version); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    from importlib.metadata import version

    assert done.stdout.strip().startswith(version("torch").split("+")[0])
