"""`python -m scenarios.costs.fit`: finds the fitted constants of `calibration.py` again.

Owns the fit: rates from the one-GPU figures of tuned rows, then what several GPUs lose from their scaling. A weak pull towards a prior
decides constants that a subset of rows leaves open, so that a row can be left out. Must not import torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from scenarios.costs.calibration import CALIBRATION, PRIOR, RATES, SCALING, Calibration
from scenarios.costs.predict import device_seconds, published_seconds
from scenarios.costs.pricing import busy_ns
from scenarios.costs.published import Throughput, throughput_rows

_PULL = 0.002
"""Weight of the squared log distance from the prior beside the squared log error of a row."""
_HIGHEST = 0.95


def fit(rows: Sequence[Throughput]) -> Calibration:
    """Both stages on the tuned rows among `rows`."""
    return fit_scaling(rows, fit_rates(rows))


def fit_rates(rows: Sequence[Throughput]) -> Calibration:
    """Rates of convolutions, matrix products and element-wise kernels, from rows whose batch is stated."""
    used = [row for row in rows if row.tuned and row.batch]

    def loss(calibration: Calibration) -> float:
        errors = sum(math.log(_one_gpu_seconds(row, calibration) * row.one_gpu_per_s / row.setup.batch) ** 2 for row in used)
        return errors + _pull(calibration, RATES)

    return _descend(loss, PRIOR, RATES, sweeps=10)


def fit_scaling(rows: Sequence[Throughput], start: Calibration) -> Calibration:
    """The speed of the host and the spread of the cards, with the rates left as they are."""
    # The devices' own times depend on neither: one simulation per row serves all trials.
    timed = [
        (row, device_seconds(row.one_gpu_setup, calibration=start), device_seconds(row.setup, gpus=row.gpus, calibration=start))
        for row in rows if row.tuned
    ]

    def loss(calibration: Calibration) -> float:
        errors = 0.0
        for row, one_s, several_s in timed:
            one_s = published_seconds(row.setup, one_s, gpus=1, nodes=1, calibration=calibration)
            several_s = published_seconds(row.setup, several_s, gpus=row.gpus, nodes=1, calibration=calibration)
            errors += math.log(one_s / several_s * row.gpus * row.one_gpu_per_s / row.total_per_s) ** 2
        return errors + _pull(calibration, SCALING)

    return _descend(loss, replace(start, **{name: getattr(PRIOR, name) for name in SCALING}), SCALING, sweeps=8)


def _pull(calibration: Calibration, names: Iterable[str]) -> float:
    return _PULL * sum(math.log(getattr(calibration, name) / getattr(PRIOR, name)) ** 2 for name in names)


def _one_gpu_seconds(row: Throughput, calibration: Calibration) -> float:
    """Kernels of tuned rows are long: the GPU is the limit, not the launching host."""
    setup = row.one_gpu_setup
    return busy_ns(
        model=setup.model, gpu=setup.gpu, precision=setup.precision, batch=setup.batch, seq_len=setup.seq_len, task=setup.task,
        accumulate=setup.accumulate, calibration=calibration,
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
