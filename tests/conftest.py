"""Order and environment of the whole test run: fast tests first, then slow ones, real browsers last (beside the others in `make test`)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# One thread per process: eight ranks share few cores, and processes are forked from this one.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# A shell lets what it starts in the background ignore Ctrl-C, and so would every run that is to be ended by it here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No limit on the time of one example: a busy machine proves nothing against the code.
settings.register_profile("shardlab", deadline=None)
settings.load_profile("shardlab")

BROWSER = Path(__file__).parent / "browser"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if BROWSER in item.path.parents:
            item.add_marker("browser")
    browser_first = hasattr(config, "workerinput")  # see FromBothEnds

    def order(item: pytest.Item) -> tuple[bool, bool]:
        browser = item.get_closest_marker("browser") is not None
        return browser != browser_first, item.get_closest_marker("slow") is not None

    items.sort(key=order)  # stable: within each group, the order of collection stays


@pytest.fixture(autouse=True)
def _free_of_the_browsers_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Once a browser was driven, Playwright's event loop counts as running in this thread; the other tests may want one of their own."""
    if BROWSER in request.path.parents:
        yield
        return
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    return FromBothEnds(config, log)


class FromBothEnds(LoadScopeScheduling):
    """Of two processes one begins with the files that drive a browser, the other with the last of the rest, until they meet.

    Two browsers at once would slow each other down more than a browser and the rest do.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node is not self.nodes[0]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
