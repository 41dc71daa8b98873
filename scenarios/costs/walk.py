"""`python -m scenarios.costs.walk`: walks one training step of each architecture and writes `tables/<name>.json`.

Owns the tables. A step runs on the meta device under a dispatch mode that notes every kernel with its FLOPs and bytes, every gradient as it
becomes ready and every byte that is alive; walks at several sizes give exact polynomials in batch and sequence length. Imports torch;
nothing but its test may import this module.

Mixed precision is autocast's rule for CUDA (16-bit matrix products and convolutions, fp32 norms, softmax and losses; weights cast once a
step), applied here by a function mode because autocast does not act on meta tensors.
"""

from __future__ import annotations

import argparse
import json
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as fn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from scenarios.costs.architectures import ARCHITECTURES, Architecture
from scenarios.costs.optimizers import optimizer_launches

TABLES = Path(__file__).with_name("tables")
BATCHES = (8, 16)
LENGTHS = (128, 256, 384)
aten = torch.ops.aten

_HALF: set[Any] = {fn.linear, fn.conv2d, torch.conv2d, torch.matmul, torch.bmm, Tensor.matmul}
_FULL: set[Any] = {fn.layer_norm, fn.softmax, fn.cross_entropy}
_NO_KERNEL = {
    "aten::empty", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided", "aten::empty_strided", "aten::detach",
    "aten::_unsafe_view", "aten::lift_fresh", "aten::_reshape_alias", "prim::device",
}
_CLASSES = {
    "aten::convolution": "conv", "aten::convolution_backward": "conv",
    "aten::mm": "matmul", "aten::addmm": "matmul", "aten::bmm": "matmul", "aten::baddbmm": "matmul",
    "aten::native_batch_norm": "norm", "aten::cudnn_batch_norm": "norm", "aten::native_batch_norm_backward": "norm",
    "aten::native_layer_norm": "norm", "aten::native_layer_norm_backward": "norm",
}
# Kernels of one call on CUDA where it is not one (counted in the CUDA sources of PyTorch: native/cuda/{layer_norm,Embedding,Loss}*.cu).
_KERNELS = {"aten::native_layer_norm_backward": 2, "aten::embedding_dense_backward": 4, "aten::index_select_backward": 2}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of one walk."""

    op_class: str
    dtype: str
    """half or float: the dtype that is computed in."""
    flops: int
    bytes: int


@dataclass(slots=True)
class Step:
    """What one walk saw."""

    forward: list[Kernel] = field(default_factory=list)
    backward: list[Kernel] = field(default_factory=list)
    ready: list[tuple[int, int]] = field(default_factory=list)
    """(backward kernels so far, elements) of each gradient, in the order they became ready."""
    alive: list[int] = field(default_factory=list)
    """Bytes alive after each kernel, without parameters, gradients and optimizer state."""
    sizes: list[int] = field(default_factory=list)
    """Elements of each parameter in the optimizer's order."""


class Autocast(TorchFunctionMode):
    """The CUDA rules of torch.autocast, with its cache of weights."""

    def __init__(self) -> None:
        super().__init__()
        self._weights: dict[int, Tensor] = {}

    def _half(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dtype != torch.float32:
            return value
        if not isinstance(value, nn.Parameter):
            return value.to(torch.float16)
        if id(value) not in self._weights:
            self._weights[id(value)] = value.to(torch.float16)
        return self._weights[id(value)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cast: Callable[[Any], Any] | None = None
        if func in _HALF:
            cast = self._half
        elif func in _FULL:
            cast = _full
        if cast is None:
            return func(*args, **(kwargs or {}))
        return func(*tree_map(cast, args), **tree_map(cast, kwargs or {}))


def _full(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype == torch.float16 else value


class Recorder(TorchDispatchMode):
    """Notes kernels and living bytes."""

    def __init__(self, step: Step, apart: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._step, self._into, self._living = step, step.forward, 0
        self._apart = {storage._cdata for storage in (tensor.untyped_storage() for tensor in apart)}
        self._sizes: dict[int, int] = {}
        self._refs: dict[int, Any] = {}

    def turn_back(self) -> None:
        self._into = self._step.backward

    def forget(self, gradient: Tensor) -> None:
        """Stop counting a gradient: it is priced apart."""
        self._drop(gradient.untyped_storage()._cdata)

    def _drop(self, key: int) -> None:
        self._living -= self._sizes.pop(key, 0)
        self._refs.pop(key, None)

    def _dropped(self, key: int, ref: weakref.ref[Any]) -> None:
        self._drop(key)

    def _keep(self, value: Tensor) -> None:
        storage = value.untyped_storage()
        key = storage._cdata
        if key in self._sizes or key in self._apart:
            return
        self._sizes[key] = storage.nbytes()
        self._living += storage.nbytes()
        self._refs[key] = weakref.ref(storage, partial(self._dropped, key))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func._schema.name
        outputs = [value for value in tree_leaves(out) if isinstance(value, Tensor)]
        for value in outputs:
            self._keep(value)
        if not func.is_view and name not in _NO_KERNEL and outputs:
            self._into.extend(_kernels(func, name, args, kwargs or {}, out, outputs))
        self._step.alive.append(self._living)
        return out


def _nbytes(value: Tensor) -> int:
    """Distinct bytes: an expanded tensor is read from where it is."""
    count = 1
    for size, stride in zip(value.shape, value.stride(), strict=True):
        count *= size if stride != 0 else 1
    return count * value.element_size()


def _kernels(func: Any, name: str, args: Any, kwargs: Any, out: Any, outputs: list[Tensor]) -> list[Kernel]:
    inputs = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
    dtype = "half" if any(value.dtype == torch.float16 for value in inputs[:2]) else "float"
    if name == "aten::convolution_backward":
        return _convolution_backward(args, dtype)
    op_class = _CLASSES.get(name, "elementwise")
    flops = 0
    if op_class in ("conv", "matmul"):
        flops = int(flop_registry[func._overloadpacket](*args, **kwargs, out_val=out))
    if op_class == "conv" and args[8] > 1:
        op_class = "grouped_conv"
    total = sum(map(_nbytes, inputs)) + sum(map(_nbytes, outputs))
    if op_class == "norm" and name.endswith("batch_norm"):
        total += _nbytes(inputs[0])  # statistics first, then normalising: the input is read twice
    if name == "aten::embedding_dense_backward":
        total = 2 * _nbytes(inputs[0]) + sum(map(_nbytes, outputs))
    if name == "aten::embedding":
        total = 2 * sum(map(_nbytes, outputs)) + _nbytes(inputs[1])  # only the rows that are looked up
    count = _KERNELS.get(name, 1)
    return [Kernel(op_class, dtype, flops, total // count)] * count


def _convolution_backward(args: Any, dtype: str) -> list[Kernel]:
    """One kernel for each gradient asked for.

    Each does as many operations as the forward convolution. flop_registry is not used: it counts the gradient of a grouped convolution as
    if it had one group.
    """
    grad, data, weight, groups, mask = args[0], args[1], args[2], args[9], args[10]
    op_class = "grouped_conv" if groups > 1 else "conv"
    flops = 2 * grad.numel() * (weight.numel() // weight.shape[0])
    total = _nbytes(grad) + _nbytes(data) + _nbytes(weight)
    return [Kernel(op_class, dtype, flops, total) for wanted in mask[:2] if wanted]


def walk(name: str, *, amp: bool, batch: int, seq_len: int) -> Step:
    """Walk one step (loss and gradients) of the architecture `name` on the meta device."""
    step = Step()
    with torch.device("meta"):
        module = ARCHITECTURES[name].build()
        inputs = ARCHITECTURES[name].batch(batch, seq_len)
    parameters = list(module.parameters())
    step.sizes = [parameter.numel() for parameter in parameters]
    recorder = Recorder(step, [*parameters, *module.buffers()])

    def ready(parameter: Tensor) -> None:
        step.ready.append((len(step.backward), parameter.numel()))
        assert parameter.grad is not None
        recorder.forget(parameter.grad)
        parameter.grad = None

    for parameter in parameters:
        parameter.register_post_accumulate_grad_hook(ready)
    with recorder:
        if amp:
            with Autocast():
                loss = module(*inputs)
        else:
            loss = module(*inputs)
        recorder.turn_back()
        loss.backward()
    return step


def fit(values: list[list[int]]) -> tuple[float, ...]:
    """Coefficients of 1, s, s*s, b, b*s and b*s*s (or of 1 and b for one length) through `values[i][j]` at LENGTHS[i] and BATCHES[j]."""
    low, high = BATCHES
    slopes = [Fraction(row[1] - row[0], high - low) for row in values]
    bases = [row[0] - slope * low for row, slope in zip(values, slopes, strict=True)]
    found = _parabola(bases) + _parabola(slopes)
    return tuple(int(value) if value.denominator == 1 else float(value) for value in found)


def _parabola(values: list[Fraction]) -> list[Fraction]:
    if len(values) == 1:
        return values
    first, second, third = LENGTHS
    early = (values[1] - values[0]) / (second - first)
    square = ((values[2] - values[1]) / (third - second) - early) / (third - first)
    slope = early - square * (first + second)
    return [values[0] - slope * first - square * first * first, slope, square]


def table(name: str) -> dict[str, Any]:
    """The table of one architecture: see `tables.py` for its fields."""
    architecture = ARCHITECTURES[name]
    return {
        "name": name,
        "coefficients": ["1", "s", "s*s", "b", "b*s", "b*s*s"] if architecture.has_sequences else ["1", "b"],
        "float": _program(name, architecture, amp=False),
        "amp": _program(name, architecture, amp=True),
    }


def _program(name: str, architecture: Architecture, *, amp: bool) -> dict[str, Any]:
    lengths = LENGTHS if architecture.has_sequences else LENGTHS[:1]
    steps = [[walk(name, amp=amp, batch=batch, seq_len=length) for batch in BATCHES] for length in lengths]
    kinds: dict[tuple[Any, ...], int] = {}

    def ids(pick: Callable[[Step], list[Kernel]]) -> list[int]:
        found = []
        for index, kernel in enumerate(pick(steps[0][0])):
            flops = fit([[pick(step)[index].flops for step in row] for row in steps])
            moved = fit([[pick(step)[index].bytes for step in row] for row in steps])
            found.append(kinds.setdefault((kernel.op_class, kernel.dtype, flops, moved), len(kinds)))
        return found

    forward, backward = ids(lambda step: step.forward), ids(lambda step: step.backward)
    first = steps[0][0]
    alive = {tuple(fit([[step.alive[index] for step in row] for row in steps])) for index in range(len(first.alive))}
    return {
        "kinds": [[op_class, dtype, list(flops), list(moved)] for op_class, dtype, flops, moved in kinds],
        "forward": forward,
        "backward": backward,
        "ready": [list(entry) for entry in first.ready],
        "optimizer": optimizer_launches(architecture.optimizer, first.sizes),
        "state_copies": 1 if architecture.optimizer == "sgd" else 2,
        "alive": _upper(alive),
    }


def _upper(points: set[tuple[float, ...]]) -> list[list[float]]:
    """The points of time that can be the peak: those no other point exceeds in every coefficient."""
    return [
        list(point)
        for point in sorted(points)
        if not any(other != point and all(o >= p for o, p in zip(other, point, strict=True)) for other in points)
    ]


def text(content: dict[str, Any]) -> str:
    """One line per kind, so that a change of the tables can be read in a diff."""
    lines = json.dumps(content, separators=(",", ":"))
    return lines.replace("],[\"", "],\n[\"").replace("\"forward\"", "\n\"forward\"").replace("\"backward\"", "\n\"backward\"") + "\n"


def main() -> None:
    """Write the tables named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", choices=[[], *ARCHITECTURES], metavar="NAME")
    for name in parser.parse_args().names or ARCHITECTURES:
        content = text(table(name))
        (TABLES / f"{name}.json").write_text(content)
        print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
