"""`python -m scenarios.costs.fit`: finds the fitted constants of `calibration.py` again.

Owns the fit: rates from the one-GPU figures of tuned rows, then the host cost from their scaling. A weak pull towards a prior
decides constants that a subset of rows leaves open, so that a row can be left out. Must not import torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from scenarios.costs.calibration import CALIBRATION, PRIOR, RATES, SCALING, Calibration
from scenarios.costs.models import MODELS
from scenarios.costs.predict import micro_step_seconds
from scenarios.costs.pricing import busy_ns, shared_input_ns
from scenarios.costs.published import Throughput, throughput_rows

_PULL = 0.002
"""Weight of the squared log distance from the prior beside the squared log error of a row."""
_HIGHEST = 0.95


def fit(rows: Sequence[Throughput]) -> Calibration:
    """Both stages on the tuned rows among `rows` whose batch is stated."""
    return fit_host_cost(rows, fit_rates(rows))


def fit_rates(rows: Sequence[Throughput]) -> Calibration:
    """Rates of convolutions, matrix products and element-wise kernels."""
    used = [row for row in rows if row.tuned and row.batch]

    def loss(calibration: Calibration) -> float:
        errors = sum(math.log(_one_gpu_seconds(row, calibration) * row.one_gpu_per_s / _batch(row)) ** 2 for row in used)
        pull = sum(math.log(getattr(calibration, name) / getattr(PRIOR, name)) ** 2 for name in RATES)
        return errors + _PULL * pull

    return _descend(loss, PRIOR, RATES, sweeps=10)


def fit_host_cost(rows: Sequence[Throughput], start: Calibration) -> Calibration:
    """The host cost, with the rates left as they are."""
    used = [row for row in rows if row.tuned and row.batch and MODELS[row.model].decodes]
    # Where collectives end does not depend on the host cost: one simulation per row serves all trials.
    without = replace(start, host_us_per_sample=0.0)
    seconds = [(row, _seconds(row, 1, without), _seconds(row, row.gpus, without)) for row in used]

    def loss(calibration: Calibration) -> float:
        return sum(
            math.log((several + _host_seconds(row, calibration)) * row.total_per_s / row.gpus / row.one_gpu_per_s / one) ** 2
            for row, one, several in seconds
        )

    return _descend(loss, start, SCALING, sweeps=8)


def _host_seconds(row: Throughput, calibration: Calibration) -> float:
    return shared_input_ns(model=row.model, gpu=row.gpu, batch=_batch(row), world=row.gpus, calibration=calibration) / 1e9


def _seconds(row: Throughput, world: int, calibration: Calibration) -> float:
    return micro_step_seconds(
        model=row.model, gpu=row.gpu, precision=row.precision, batch=_batch(row), world=world, seq_len=row.seq_len,
        accumulate=row.accumulate, task=row.task, calibration=calibration,
    )


def _batch(row: Throughput) -> int:
    assert row.batch is not None
    return row.batch


def _one_gpu_seconds(row: Throughput, calibration: Calibration) -> float:
    """Kernels of tuned rows are long: the GPU is the limit, not the launching host."""
    return busy_ns(
        model=row.model, gpu=row.gpu, precision=row.precision, batch=_batch(row), seq_len=row.seq_len, task=row.task,
        accumulate=row.accumulate, calibration=calibration,
    ) / 1e9


def _descend(loss: Callable[[Calibration], float], start: Calibration, names: Iterable[str], *, sweeps: int) -> Calibration:
    """Coordinate descent with steps that shrink by half from a factor of 1.3."""
    best, lowest = start, loss(start)
    step = 1.3
    for _ in range(sweeps):
        for name in names:
            for factor in (step, 1.0 / step):
                while True:
                    moved = replace(best, **{name: getattr(best, name) * factor})
                    if name in RATES and getattr(moved, name) > _HIGHEST:
                        break
                    found = loss(moved)
                    if found >= lowest - 1e-12:
                        break
                    best, lowest = moved, found
        step = math.sqrt(step)
    return best


def main() -> None:
    """Print the constants that the committed figures give."""
    found = fit(throughput_rows())
    for name in (*RATES, *SCALING):
        print(f"{name}: {getattr(found, name):.3f} (now {getattr(CALIBRATION, name):.3f})")


if __name__ == "__main__":
    main()
