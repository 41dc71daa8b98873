"""The machine page in a real browser, with eight GPUs that only the stub of NVML has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import assert_accessible, assert_no_sideways_scroll
from tests.browser.server import AppServer
from tests.nvml.build import library_folder

EIGHT = (
    "".join(f"nvlink {a} {b} 4\n" for a in range(4) for b in range(a))
    + "gpu 5 error nvmlDeviceGetHandleByIndex 15\ngpu 6 mig_mode 1\n"
    + "gpu 6 mig 0 1 0 40448 MIG-aaaa1111-0000-5000-8000-000000000001 NVIDIA H100 80GB HBM3 MIG 3g.40gb\n"
)


@pytest.fixture
def eight(own_app: Callable[..., AppServer], tmp_path: Path) -> AppServer:
    script = tmp_path / "nvml.script"
    script.write_text(EIGHT)
    return own_app(env={"LD_LIBRARY_PATH": str(library_folder()), "NVML_STUB_SCRIPT": str(script), "CUDA_VISIBLE_DEVICES": "3,2"})


def test_eight_gpus_fit_every_size(eight: AppServer, open_page: Callable[..., Page]) -> None:
    for size, theme in (("desktop", "light"), ("phone", "dark"), ("narrow", "light")):
        page = open_page("/machine", base=eight.url, size=size, theme=theme)
        expect(page.get_by_role("heading", name="This machine")).to_be_visible()
        expect(page.get_by_role("region", name="Links between the GPUs").get_by_text("NV4")).to_have_count(12)
        expect(page.get_by_text("Answers nothing: it fell off the bus")).to_be_visible()
        assert_no_sideways_scroll(page)
        if size != "narrow":
            assert_accessible(page)
    matrix = page.get_by_role("region", name="Links between the GPUs")
    assert matrix.evaluate("node => node.scrollWidth > node.clientWidth"), "on 320 pixels it scrolls in itself"


def test_looking_again_asks_again_and_the_page_stays(app: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page("/machine")
    expect(page.get_by_text("runs use virtual GPUs")).to_be_visible()
    page.get_by_role("button", name="Look again").click()
    expect(page.get_by_text("The driver was asked at")).to_be_visible()
