"""The sampler through the real pynvml: what it reads is what the script says, and what cannot be read is a gap with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from scenarios.nvml.reading import GpuProcess, Link, Reading, held_down_words
from tests.nvml.conftest import Watched

Watch = Callable[..., Watched]

EIGHT = """
gpu * sample_us 160000
gpu * power_mw 640000
gpu * used_mib 40960
gpu * mhz 1755
gpu * reasons 0x4
gpu * util 96
gpu * gpm_sm 91.5
gpu * gpm_occupancy 25
gpu * gpm_tensor 28
gpu 0 util 0
gpu 0 at 16.48 util 100
gpu 0 at 17.12 util 25
gpu 0 at 16.3 power_mw 700000
gpu 0 at 16.15 used_mib 61440
gpu 0 at 16.25 used_mib 51200
gpu 0 at 16.4 gpm_sm 10
gpu 0 processes 4711:40000,815:512
gpu 3 gen 4
gpu 3 width 4
gpu 3 at 16.5 reasons 0x60
gpu 3 gpm_tx_mib 1000
gpu 3 gpm_rx_mib 2000
"""


def integral(steps: Sequence[tuple[float, float]], from_s: float, until_s: float) -> float:
    """The mean of a step function, worked out apart from the code under test."""
    ends = [at for at, _ in steps[1:]] + [1e9]
    weighted = (value * max(0.0, min(end, until_s) - max(at, from_s)) for (at, value), end in zip(steps, ends, strict=True))
    return sum(weighted) / (until_s - from_s)


def test_the_readings_of_eight_gpus_equal_the_script(watch: Watch) -> None:
    seen = watch(EIGHT)
    assert [tick["end_ns"] for tick in seen.ticks] == [number * 200_000_000 for number in range(1, 11)]
    assert [device["gpu"] for device in seen.start["devices"]] == list(range(8))
    assert (seen.gaps, seen.lost, seen.alive) == ({}, [], 8)
    for rank in range(1, 8):
        assert {(each.gpu_util, each.sm_active, each.power_w, each.memory_gib) for each in seen.lane(rank)} == {(96.0, 91.5, 640.0, 40.0)}

    lane = seen.lane(0)
    steps = [(0.0, 0.0), (16.48, 100.0), (17.12, 25.0)]
    # The driver's last sample ends at 17.92 s, so the tenth period knows 120 of its 200 ms.
    for number, reading in enumerate(lane):
        from_s = 16 + 0.2 * number
        assert reading.gpu_util == pytest.approx(integral(steps, from_s, min(from_s + 0.2, 17.92)), abs=0.001)
    assert [each.memory_gib for each in lane[:3]] == [60.0, 50.0, 50.0], "the largest reading of each period"
    assert [each.power_w for each in lane[:3]] == [640.0, 700.0, 700.0]
    assert [each.sm_active for each in lane[:3]] == [91.5, 91.5, 10.0]
    health = lane[0].health
    assert (health.sm_mhz, health.sm_max_mhz, health.sm_occupancy, health.tensor_active) == (1755.0, 1980, 25.0, 28.0)
    assert health.held_down == ("power limit",)
    assert health.processes == (GpuProcess(pid=815, memory_gib=0.5), GpuProcess(pid=4711, memory_gib=39.062))

    slow = seen.lane(3)
    assert slow[0].health.link == Link(
        generation=4, width=4, max_generation=5, max_width=16, sent_mb_s=1048.576, received_mb_s=2097.152
    )  # fmt: skip
    assert slow[2].health.held_down == ("too warm (driver)", "too warm (hardware)")


def test_a_first_answer_that_comes_late_shifts_no_period(watch: Watch) -> None:
    """On a busy machine the first question to eight drivers may take longer than a sample; what is busy later is not taken for earlier."""
    lane = watch("gpus 1\ngpu 0 util 0\ngpu 0 at 17.0 util 100\n", late_s=0.35).lane()
    assert [reading.gpu_util for reading in lane][-1] == 100.0
    assert all(reading.gpu_util == 0.0 for reading in lane[:4])



def test_a_burst_between_two_looks_is_not_missed(watch: Watch) -> None:
    """20 ms of work every 200 ms, never while anyone looks: the reading of the moment would say 0 all along."""
    bursts = "".join(f"gpu 0 at {16 + 0.2 * n + 0.04:.2f} util 100\ngpu 0 at {16 + 0.2 * n + 0.06:.2f} util 0\n" for n in range(10))
    lane = watch("gpus 1\ngpu 0 sample_us 20000\n" + bursts).lane()
    assert [each.gpu_util for each in lane] == [10.0] * 10


def test_an_idle_gpu_whose_buffer_runs_dry_reads_as_it_is(watch: Watch) -> None:
    lane = watch("gpus 1\ngpu 0 util 80\ngpu 0 at 17 dry 1\ngpu 0 at 17 util 0", seconds=5).lane()
    assert len(lane) == 25
    assert {each.gpu_util for each in lane[:4]} == {80.0}
    assert {each.gpu_util for each in lane[6:]} == {0.0}, "not a gap: the driver says 0, it only does not repeat it"


@pytest.mark.parametrize("base", ["0", "1700000000000000", "86400000000"])
def test_whatever_clock_the_driver_stamps_with(watch: Watch, base: str) -> None:
    lane = watch(f"base {base}\ngpus 1\ngpu 0 util 10\ngpu 0 at 16.6 util 70", seconds=1.2).lane()
    assert [each.gpu_util for each in lane] == [10.0] * 3 + [70.0] * 3


def test_before_hopper_activity_is_a_gap_and_never_0(watch: Watch) -> None:
    seen = watch("gpus 1\ngpu 0 capability 80\ngpu 0 util 50\ngpu 0 tx_kb 1000000\ngpu 0 rx_kb 3000000")
    assert {(each.sm_active, each.health.sm_occupancy, each.health.tensor_active) for each in seen.lane()} == {(None, None, None)}
    assert {each.gpu_util for each in seen.lane()} == {50.0}
    assert seen.gaps == {0: {"sm_active": "this card has none (GPM came with Hopper)"}}
    link = seen.lane()[-1].health.link
    assert (link.sent_mb_s, link.received_mb_s) == (1024.0, 3072.0), "asked of the driver where GPM does not say it"


def test_a_half_supported_card_says_what_it_lacks(watch: Watch) -> None:
    seen = watch(
        "gpus 2\ngpu * util 40\n"
        "gpu 0 error nvmlDeviceGetPowerUsage 3\ngpu 0 error nvmlDeviceGetSamples 3\ngpu 0 error nvmlDeviceGetComputeRunningProcesses 4\n"
        "gpu 0 error nvmlDeviceGetCurrPcieLinkGeneration 3\ngpu 0 error nvmlDeviceGetClockInfo 999\n"
    )
    assert seen.gaps == {
        0: {"power_w": "this card has none", "link": "this card has none", "processes": "this user may not read it"}
    }, "an unknown error may pass, so it is not one of them"
    reading = seen.lane(0)[3]
    assert (reading.power_w, reading.health.processes, reading.health.link.generation, reading.health.sm_mhz) == (None,) * 4
    assert reading.gpu_util == 40.0, "from the reading of the moment, where there is no history"
    assert seen.lane(1)[3].power_w == 70.0


def test_a_card_without_any_utilization_does_not_hold_up_the_others(watch: Watch) -> None:
    seen = watch("gpus 2\ngpu 0 error nvmlDeviceGetSamples 3\ngpu 0 error nvmlDeviceGetUtilizationRates 3\ngpu 1 util 60", seconds=1)
    assert {each.gpu_util for each in seen.lane(0)} == {None}
    assert {each.gpu_util for each in seen.lane(1)} == {60.0}
    assert len(seen.ticks) == 5


def test_an_old_driver_is_read_by_its_own_names(watch: Watch) -> None:
    seen = watch("gpus 1\ngpu 0 util 30\ngpu 0 reasons 0x8\ngpu 0 processes 7:1024", api="old")
    reading = seen.lane()[0]
    assert (reading.gpu_util, reading.sm_active, reading.health.held_down) == (30.0, None, ("hardware slowdown",))
    assert reading.health.processes == (GpuProcess(pid=7, memory_gib=1.0),)


def test_a_gpu_that_falls_off_the_bus_ends_its_lane_only(watch: Watch) -> None:
    seen = watch("gpus 3\ngpu * util 90\ngpu 1 lost 17.05", seconds=3)
    assert [len(seen.lane(rank)) for rank in range(3)] == [15, 5, 15]
    assert {each.gpu_util for each in seen.lane(1)} == {90.0}, "what was known before it is not thrown away"
    assert len(seen.lost) == 1
    assert seen.lost[0]["rank"] == 1
    assert seen.lost[0]["message"].startswith(
        "GPU 1 (NVIDIA H100 80GB HBM3) fell off the bus 1.1 s after sampling began (NVML: GPU is lost); its lane ends here."
    )
    assert seen.alive == 2


def test_a_gpu_lost_before_the_start_is_said_at_once(watch: Watch) -> None:
    seen = watch("gpus 2\ngpu 0 lost 1\ngpu 1 util 5", seconds=1)
    assert [event["event"] for event in seen.events[:3]] == ["start", "lost", "tick"]
    assert seen.lane(0) == []
    assert {each.gpu_util for each in seen.lane(1)} == {5.0}


MIG = """
gpus 2
gpu 0 mig_mode 1
gpu 0 gpm_sm 44
gpu 0 mig 0 1 0 40448 MIG-aaaa1111-0000-5000-8000-000000000001 NVIDIA H100 MIG 3g.40gb
gpu 0 mig 2 2 0 40448 MIG-bbbb2222-0000-5000-8000-000000000002 NVIDIA H100 MIG 3g.40gb
gpu 0 error nvmlDeviceGetUtilizationRates 3
gpu 0 error nvmlDeviceGetSamples 3
"""


def test_a_mig_instance_has_its_own_memory_and_activity_and_no_utilization(watch: Watch) -> None:
    seen = watch(MIG, env={"CUDA_VISIBLE_DEVICES": "MIG-bbbb"})
    assert [device["mig"] for device in seen.start["devices"]] == ["MIG-bbbb2222-0000-5000-8000-000000000002"]
    reading = seen.lane()[3]
    assert (reading.gpu_util, reading.sm_active, reading.memory_gib, reading.power_w) == (None, 44.0, 0.5859, 70.0)
    assert "whole card" in seen.start["notes"][-1]


def test_ranks_follow_cudas_order(watch: Watch) -> None:
    script = "".join(f"gpu {index} util {10 * index}\n" for index in range(8))
    seen = watch(script, seconds=1, env={"CUDA_VISIBLE_DEVICES": "5,GPU-3abc,1"})
    assert [seen.lane(rank)[0].gpu_util for rank in range(3)] == [50.0, 20.0, 10.0]


def test_a_reading_is_a_sample_of_the_shared_telemetry_and_survives_the_wire(watch: Watch) -> None:
    reading = watch("gpus 1\ngpu 0 util 75\ngpu 0 processes 1:2", seconds=1).lane()[0]
    assert Reading.from_dict(json.loads(json.dumps(reading.as_dict()))) == reading
    sample = reading.sample(step=3, epoch=0, epoch_pct=1.5)
    assert (sample.rank, sample.end_ns, sample.gpu_util, sample.sm_active, sample.spin_pct) == (0, 200_000_000, 75.0, 0.0, None)


@pytest.mark.parametrize(
    ("bits", "words"),
    [(0, ()), (0x4, ("power limit",)), (0x81, ("idle", "power brake of the server")), (0x1004, ("power limit", "reason 0x1000"))],
)
def test_why_clocks_are_held_down(bits: int, words: tuple[str, ...]) -> None:
    assert held_down_words(bits) == words
