"""The waiting line: order, promotion, and wait estimates that a replay of the line confirms."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scenarios.active_run import ActiveRun, gpus_taken
from scenarios.config import RunConfig
from scenarios.run_folder import Entry
from scenarios.run_queue import RunQueue, wait_s


def test_visitors_come_first_then_first_come_first_served() -> None:
    queue = RunQueue()
    for name, priority in (("b1", "background"), ("v1", "visitor"), ("b2", "background"), ("v2", "visitor")):
        queue.add(name, priority)  # type: ignore[arg-type]
    assert [queue.place(name) for name in ("v1", "v2", "b1", "b2", "nobody")] == [1, 2, 3, 4, None]
    assert [queue.pop() for _ in range(5)] == ["v1", "v2", "b1", "b2", None]


def test_wanted_background_work_joins_the_end_of_the_visitors() -> None:
    queue = RunQueue()
    queue.add("b1", "background")
    queue.add("b2", "background")
    queue.add("v1", "visitor")
    queue.promote("b2")
    queue.promote("v1")
    assert list(queue) == ["v1", "b2", "b1"]
    assert queue.remove("v1")
    assert not queue.remove("v1")


def test_wait_is_none_with_a_free_place_and_adds_up_without() -> None:
    assert wait_s(1, slots=2, remaining_s=[5.0], ahead_s=lambda n: 8.0) == 0.0
    assert wait_s(1, slots=1, remaining_s=[5.0], ahead_s=lambda n: 8.0) == 5.0
    assert wait_s(3, slots=1, remaining_s=[5.0], ahead_s=lambda n: 8.0) == 21.0
    assert wait_s(3, slots=2, remaining_s=[5.0, 1.0], ahead_s=lambda n: 8.0) == 9.0


@given(
    remaining_s=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    durations_s=st.lists(st.integers(1, 60), min_size=1, max_size=10),
)
def test_wait_equals_playing_the_line_second_by_second(remaining_s: list[int], durations_s: list[int]) -> None:
    rests, now_s, starts_s = list(remaining_s), 0, []
    for duration_s in durations_s:
        while min(rests) > 0:
            rests = [rest - 1 for rest in rests]
            now_s += 1
        starts_s.append(now_s)
        rests[rests.index(min(rests))] += duration_s
    estimate = wait_s(
        len(durations_s), slots=len(remaining_s), remaining_s=[float(rest) for rest in remaining_s],
        ahead_s=lambda n: float(durations_s[n - 1]),
    )
    assert estimate == starts_s[-1]


def test_who_may_not_start_yet_keeps_its_place_and_holds_up_nobody() -> None:
    queue = RunQueue()
    for name in ("real", "virtual"):
        queue.add(name, "visitor")
    assert queue.pop(lambda run_id: run_id != "real") == "virtual"
    assert (queue.place("real"), queue.pop(lambda run_id: False), queue.pop()) == (1, None, "real")


def test_real_gpus_train_one_run_at_a_time() -> None:
    real, virtual = (RunConfig.parse({"scenario": "sharded", "backend": backend}) for backend in ("cuda", "auto"))
    entry = Entry(run_id="a-real-run", config=real, created_s=0.0, pace="live", owner="")
    running = ActiveRun(entry=entry, priority="visitor", state="running")
    assert gpus_taken([running], real)
    assert not gpus_taken([running], virtual)
    running.computed_s = 1.0
    assert not gpus_taken([running], real)


def test_an_out_of_memory_on_virtual_gpus_is_a_result_and_on_real_ones_may_be_somebody_elses_fault() -> None:
    def good(outcome: str, backend: str) -> bool:
        config = RunConfig.parse({"scenario": "sharded", "batch": 4096, "backend": backend})
        return Entry(run_id="a-run", config=config, created_s=0.0, pace="live", owner="", outcome=outcome).good

    assert [good(outcome, "virtual") for outcome in ("finished", "out_of_memory", "failed", "timeout")] == [True, True, False, False]
    assert not good("out_of_memory", "cuda")
