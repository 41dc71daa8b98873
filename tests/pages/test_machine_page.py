"""The machine page through navigation.py: what was found, in sentences and tables, and why runs are virtual."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.components.gpu_tables import letters_in_words, link_table, links_in_words, meaning
from pages.components.source_words import machine_badge, machine_heading
from scenarios import machine
from scenarios.machine import RealGpus, TorchBuild
from scenarios.nvml.inventory import Gpu, Inventory
from tests.nvml.build import library_folder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def ask_anew() -> Iterator[None]:
    machine.forget()
    yield
    machine.forget()


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """`page(script)`: the HTML of the page where the driver is the stub with this script; None for no driver."""

    def shown(script: str | None, **env: str) -> str:
        monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        if script is None:
            (tmp_path / "libnvidia-ml.so.1").write_text("no library")
            monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        else:
            (tmp_path / "nvml.script").write_text(script)
            monkeypatch.setenv("LD_LIBRARY_PATH", str(library_folder()))
            monkeypatch.setenv("NVML_STUB_SCRIPT", str(tmp_path / "nvml.script"))
        test = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20).run()
        test.switch_page("machine.py").run()
        assert not test.exception
        assert [button.label for button in test.button] == ["Look again"]
        return "\n".join(element.proto.body for element in test.get("html"))

    return shown


def test_without_a_driver_it_says_so_and_what_virtual_means(page: Callable[..., str]) -> None:
    html = page(None)
    assert "No NVIDIA driver is installed (libnvidia-ml.so.1 was not found), so runs use virtual GPUs." in html
    assert "modelled for the GPU you choose" in html
    assert "docker run --gpus all" in html
    assert "<table" not in html


def test_eight_gpus_are_a_table_and_a_matrix(page: Callable[..., str]) -> None:
    html = page("driver 570.86.10\ncuda 12080\n" + "".join(f"switch {index} 18\n" for index in range(8)))
    assert "8 real GPUs (NVIDIA H100 80GB HBM3) were found, but the PyTorch installed here" in html
    assert html.count("<th scope=row>GPU ") == 8 + 8
    assert html.count(">NV18</td>") == 8 * 7
    assert "NVIDIA driver 570.86.10, which knows CUDA up to 12.8" in html
    assert "79.6 GiB" in html
    assert "…00000007" in html
    assert "Every pair is linked alike: 18 NVLinks." in html
    assert "is built without CUDA.</li>" in html
    assert "pg-is-virtual" in html, "what the bar on top says"


def test_what_is_odd_about_a_gpu_stands_in_its_row(page: Callable[..., str]) -> None:
    html = page(
        "gpus 3\ngpu 0 error nvmlDeviceGetHandleByIndex 15\ngpu 1 mig_mode 1\ngpu 1 name <b>L4</b>\n"
        "gpu 1 mig 0 1 0 40448 MIG-aaaa1111-0000-5000-8000-000000000001 NVIDIA H100 MIG 3g.40gb\n",
        CUDA_VISIBLE_DEVICES="2,9",
    )
    assert "Answers nothing: it fell off the bus (GPU is lost)" in html
    assert "on: NVIDIA H100 MIG 3g.40gb" in html
    assert "&lt;b&gt;L4&lt;/b&gt;" in html
    assert 'data-label="For CUDA">device 0<' in html
    assert 'data-label="For CUDA">hidden<' in html
    assert "there is no GPU 9, only 0 to 2; CUDA reads no further." in html


def inventory(*links: tuple[str, ...]) -> Inventory:
    gpus = tuple(
        Gpu(
            index=index, name="NVIDIA L4", uuid="GPU-1", bus_id="", memory_gib=None, capability=None, gpm=False, mig=False, instances=(),
            fault="",
        )
        for index in range(len(links))
    )  # fmt: skip
    return Inventory(driver="", cuda=None, gpus=gpus, links=links)


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ((("X", "SYS"), ("SYS", "X")), "Every pair is linked alike: PCIe and the link between processors"),
        ((("X", "NV1"), ("NV1", "X")), "Every pair is linked alike: 1 NVLink."),
        ((("X", ""), ("", "X")), "does not say how"),
        ((("X", "PIX", "SYS"), ("PIX", "X", "SYS"), ("SYS", "SYS", "X")), "no NVLink here"),
        ((("X", "NV4", "SYS"), ("NV4", "X", "SYS"), ("SYS", "SYS", "X")), "as slow as its slowest link"),
        ((("X",),), ""),
    ],
)
def test_what_the_links_have_in_common(links: tuple[tuple[str, ...], ...], words: str) -> None:
    assert words in links_in_words(inventory(*links))
    assert bool(link_table(inventory(*links))) == (len(links) > 1)


def test_the_fastest_link_is_explained_first() -> None:
    mixed = inventory(("X", "SYS", "NV4"), ("SYS", "X", "PHB"), ("NV4", "PHB", "X"))
    assert [code for code, _ in letters_in_words(mixed)] == ["NV4", "PHB", "SYS"]
    assert meaning("NV") == "NVLink"


CUDA_TORCH = TorchBuild(version="2.13.0+cu130", cuda=(13, 0))


def found_gpus(count: int) -> RealGpus:
    named = inventory(*[("X",)] * count)
    return RealGpus(inventory=replace(named, cuda=(13, 0)), reason="")


@pytest.mark.parametrize(
    ("count", "source", "heading", "title"),
    [
        (8, "nvml", "8 real GPUs (NVIDIA L4) were found, and runs use them.", "runs use them, and NVML reads them"),
        (1, "virtual", "1 real GPU (NVIDIA L4) was found. Runs of one GPU use it;", "was found; a run of one GPU uses it"),
        (0, "virtual", "so runs use virtual GPUs.", "times, memory and power are modelled."),
    ],
)
def test_the_page_and_the_badge_say_what_runs_use(
    monkeypatch: pytest.MonkeyPatch, count: int, source: str, heading: str, title: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = found_gpus(count) if count else RealGpus(inventory=None, reason="no NVIDIA driver is installed")
    badge = machine_badge(found, CUDA_TORCH)
    assert (badge.source, title in badge.title) == (source, True), badge.title
    assert badge.words == {"nvml": "Real GPUs, NVML", "virtual": "Simulated timing, real DDP"}[source]
    assert heading in machine_heading(found, CUDA_TORCH)
