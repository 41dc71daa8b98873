"""CUDA_VISIBLE_DEVICES in each of its forms, and in forms that are none."""

from __future__ import annotations

import pytest

from scenarios.nvml.inventory import Gpu, MigInstance
from scenarios.nvml.visible import Target, visible


def gpu(index: int, uuid: str, *, name: str = "NVIDIA H100", instances: tuple[MigInstance, ...] = (), mig: bool = False) -> Gpu:
    return Gpu(
        index=index, name=name, uuid=uuid, bus_id=f"00000000:{index:02X}:00.0", memory_gib=80.0, capability=(9, 0), gpm=True,
        mig=mig or bool(instances), instances=instances, fault="",
    )  # fmt: skip


def instance(slot: int, gi: int, uuid: str) -> MigInstance:
    return MigInstance(slot=slot, gpu_instance=gi, compute_instance=0, uuid=uuid, name="NVIDIA H100 MIG 3g.40gb", memory_gib=40.0)


GPUS = (
    gpu(0, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"),
    gpu(1, "GPU-8932aaaa-0000-4106-c12f-20bd9faed9f7"),
    gpu(2, "GPU-11112222-0000-4106-c12f-20bd9faed9f8"),
    gpu(3, "GPU-ffff0000-0000-4106-c12f-20bd9faed9f9", instances=(instance(0, 1, "MIG-aaaa-1"), instance(3, 2, "MIG-aabb-2"))),
)


def seen(value: str | None, order: str | None = None, gpus: tuple[Gpu, ...] = GPUS) -> tuple[list[tuple[int, int | None]], str]:
    """(GPU, slot of the MIG instance) in CUDA's order, and the notes."""
    environ = {name: text for name, text in (("CUDA_VISIBLE_DEVICES", value), ("CUDA_DEVICE_ORDER", order)) if text is not None}
    found = visible(gpus, environ)
    return [(each.gpu.index, each.instance.slot if each.instance else None) for each in found.targets], "; ".join(found.notes)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [(0, None), (1, None), (2, None), (3, 0)]),
        ("2,0", [(2, None), (0, None)]),
        (" 1 , 2 ", [(1, None), (2, None)]),
        ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", [(0, None)]),
        ("GPU-1111,GPU-8932a", [(2, None), (1, None)]),
        ("gpu-1111", []),
        ("GPU-1111,0", [(2, None), (0, None)]),
        ("MIG-aabb-2", [(3, 3)]),
        ("MIG-aaaa,MIG-aabb", [(3, 0), (3, 3)]),
        ("MIG-GPU-ffff0000-0000-4106-c12f-20bd9faed9f9/2/0", [(3, 3)]),
        ("3", [(3, 0)]),
    ],
)
def test_each_form_leads_to_its_device(value: str | None, expected: list[tuple[int, int | None]]) -> None:
    assert seen(value)[0] == expected


@pytest.mark.parametrize(
    ("value", "expected", "words"),
    [
        ("", [], "is empty: CUDA shows no GPU"),
        ("0,2,-1,1", [(0, None), (2, None)], "there is no GPU -1, only 0 to 3; CUDA reads no further"),
        ("1,9,0", [(1, None)], "there is no GPU 9, only 0 to 3"),
        ("NoDevFiles", [], "'NoDevFiles' is neither a number nor the UUID"),
        ("0,,1", [(0, None)], "'' is neither a number"),
        ("GPU-8932", [], "GPU-8932 fits 2 GPUs"),
        ("GPU-dead", [], "no GPU here has a UUID that starts with GPU-dead"),
        ("MIG-a", [], "MIG-a fits 2 MIG instances"),
        ("MIG-GPU-ffff0000-0000-4106-c12f-20bd9faed9f9/9/0", [], "no MIG instance here is named"),
        ("0,1,0", [], "0 names a GPU for the second time; CUDA then shows none"),
        ("0,GPU-8932f", [], "names a GPU for the second time"),
    ],
)
def test_nonsense_is_read_as_cuda_reads_it_and_said(value: str, expected: list[tuple[int, int | None]], words: str) -> None:
    found, notes = seen(value)
    assert found == expected
    assert words in notes


def test_between_unlike_gpus_plain_numbers_are_a_guess_unless_the_order_is_that_of_the_bus() -> None:
    unlike = (GPUS[0], gpu(1, "GPU-2", name="NVIDIA T4"))
    assert "CUDA_DEVICE_ORDER is not PCI_BUS_ID" in seen("1,0", gpus=unlike)[1]
    assert seen("1,0", "PCI_BUS_ID", gpus=unlike)[1] == ""
    assert seen("GPU-2", gpus=unlike)[1] == "", "a UUID is never a guess"
    assert seen("1,0", gpus=GPUS[:2])[1] == ""


def test_mig_says_what_cuda_will_not_do() -> None:
    assert "only one MIG instance" in seen("MIG-aaaa,MIG-aabb")[1]
    assert "without an instance" in seen("0", gpus=(gpu(0, "GPU-1", mig=True),))[1]


def test_a_message_names_gpu_and_instance() -> None:
    assert Target(gpu=GPUS[3], instance=GPUS[3].instances[1]).label == "GPU 3 (NVIDIA H100, MIG instance NVIDIA H100 MIG 3g.40gb)"
