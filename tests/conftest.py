"""Order and environment of the whole test run: fast tests first, then slow ones, real browsers last."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# One thread per process: eight ranks share few cores, and processes are forked from this one.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

BROWSER = Path(__file__).parent / "browser"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BROWSER in item.path.parents:
            item.add_marker("browser")
    # A stable sort: within each group, the order of collection stays.
    items.sort(key=lambda item: (item.get_closest_marker("browser") is not None, item.get_closest_marker("slow") is not None))
