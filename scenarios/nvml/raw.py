"""The two answers of NVML that are long, read from memory as they lie there: pynvml's own structures cost ten times as much to read.

Owns these layouts (nvmlSample_t, nvmlGpmMetricsGet_t). Must not know what the values are for.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from typing import Any

import pynvml

_UNSIGNED = (1, 2, 3)
"""nvmlValueType_t of unsigned int, unsigned long, unsigned long long."""
_METRIC = struct.Struct("@IidPPP")
"""nvmlGpmMetric_t: which one, whether it could be read, its value, and three names."""


class BufferedSamples:
    """nvmlDeviceGetSamples of one device: what its driver has kept since a stamp."""

    def __init__(self, handle: Any, kind: int) -> None:
        self._handle = handle
        self._kind = ctypes.c_uint(kind)
        self._value_kind = ctypes.c_uint()
        self._count = ctypes.c_uint()
        self._room = 0
        self._words: Any = None

    def __call__(self, seen_us: int) -> list[tuple[int, float]]:
        """(stamp, value) in the driver's order; none is an answer too. Raises pynvml.NVMLError."""
        if not self._room:
            self._ask(seen_us, None)  # says how many it keeps
            self._room = max(16, self._count.value)
            self._words = (ctypes.c_uint64 * (2 * self._room))()
        self._count.value = self._room
        try:
            self._ask(seen_us, self._words)
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_NOT_FOUND:
                self._room = 0  # asked anew the next time: the buffer may have grown
                raise
            return []
        words = self._words[: 2 * self._count.value]
        return list(zip(words[::2], map(self._number, words[1::2]), strict=True))

    def _ask(self, seen_us: int, out: Any) -> None:
        function = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetSamples")
        code = function(
            self._handle, self._kind, ctypes.c_ulonglong(seen_us), ctypes.byref(self._value_kind), ctypes.byref(self._count), out
        )  # fmt: skip
        if code != pynvml.NVML_SUCCESS:
            raise pynvml.NVMLError(code)

    def _number(self, word: int) -> float:
        kind = self._value_kind.value
        if kind in _UNSIGNED:
            return float(word & 0xFFFFFFFF if kind == 1 else word)
        if kind == 0:
            return float(struct.unpack("d", word.to_bytes(8, "little"))[0])
        return float(int.from_bytes(word.to_bytes(8, "little")[: 4 if kind == 5 else 8], "little", signed=True))


class GpmRequest:
    """nvmlGpmMetricsGet between two samples, prepared once."""

    def __init__(self, metrics: Sequence[int], first: Any, second: Any) -> None:
        self._request = pynvml.c_nvmlGpmMetricsGet_t()
        self._request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        self._request.numMetrics = len(metrics)
        self._request.sample1, self._request.sample2 = first, second
        for place, metric in enumerate(metrics):
            self._request.metrics[place].metricId = metric
        start = pynvml.c_nvmlGpmMetricsGet_t.metrics.offset
        self._answers = memoryview(self._request).cast("B")[start : start + _METRIC.size * len(metrics)]

    def __call__(self) -> dict[int, float]:
        """Metric -> value, for those that could be read. Raises pynvml.NVMLError."""
        pynvml.nvmlGpmMetricsGet(self._request)
        rows = _METRIC.iter_unpack(self._answers)
        return {metric: value for metric, code, value, *_ in rows if code == pynvml.NVML_SUCCESS and math.isfinite(value)}
