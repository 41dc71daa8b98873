"""The stub itself, asked by the real pynvml: what its script says is what NVML answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nvml import build

SCRIPT = """
gpus 2
gpu * sample_us 100000
gpu * buffer 20
gpu 0 at 1 util 80          # the samples that end at 1.1 s and later
gpu 1 error nvmlDeviceGetPowerUsage 3
gpu 1 lost 4
"""

ASK = """
import ctypes, json, pynvml as n
n.nvmlInit()
at = lambda s: n.nvmlLib.shardlab_stub_set_us(ctypes.c_uint64(int(s * 1e6)))
def ask(function, *args):
    try:
        return function(*args)
    except n.NVMLError as error:
        return error.value
a, b = map(n.nvmlDeviceGetHandleByIndex, range(2))
at(1.2)
first = n.nvmlDeviceGetSamples(a, n.NVML_GPU_UTILIZATION_SAMPLES, 0)[1]
nothing_new = ask(n.nvmlDeviceGetSamples, a, 1, first[-1].timeStamp)
at(5)
late = n.nvmlDeviceGetSamples(a, 1, first[-1].timeStamp)[1]
print(json.dumps({
    "count": n.nvmlDeviceGetCount(), "values": [s.sampleValue.uiVal for s in first], "nothing_new": nothing_new, "kept": len(late),
    "power": [ask(n.nvmlDeviceGetPowerUsage, handle) for handle in (a, b)], "third": ask(n.nvmlDeviceGetHandleByIndex, 2),
}))
"""


def test_the_script_is_what_is_answered(under_stub: Callable[..., Any]) -> None:
    answers = under_stub(SCRIPT, ASK)
    assert answers == {
        "count": 2, "values": [0] * 10 + [80, 80], "nothing_new": 6,  # NVML_ERROR_NOT_FOUND
        "kept": 20, "power": [70000, 15], "third": 2,
    }  # fmt: skip


def test_a_line_it_cannot_read_ends_it(under_stub: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match="cannot read the line: gpu 0 utility 3"):
        under_stub("gpu 0 utility 3", ASK)


def test_without_a_compiler_it_is_said_which(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    monkeypatch.setattr(build.subprocess, "run", lambda *args, **options: None)
    monkeypatch.setattr(build, "BUILT", tmp_path)
    with pytest.raises(RuntimeError, match=r"no C compiler found or installed \(cc, gcc or clang\)"):
        build.library_folder()
