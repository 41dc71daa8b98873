"""Steps: DDP steps per second of eight ranks, and whether each default experiment is computed as fast as it is shown.

`NAME_speed` is virtual seconds computed per second: at 1.0 or above a run never falls behind its own clock. From the first step to the
last, without the launch.
"""

from __future__ import annotations

from _common import arguments, report
from _runs import computed_s, first_step_s, over, warm_runs

from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.record import summary_of
from scenarios.runs import Runs


def measure(runs: Runs, config: RunConfig) -> tuple[float, float]:
    """(steps per second, virtual seconds per second) of one run at full speed."""
    run = runs.start(config, viewer="benchmark", pace="fast")
    from_s, until_s = first_step_s(run), computed_s(run)
    over(runs, run)
    summary = summary_of(run.run_dir)
    assert summary is not None
    return (summary["steps"] - 1) / (until_s - from_s), summary["virtual_s"] / (until_s - from_s)


def main() -> None:
    options = arguments(__doc__, steps=200)
    with warm_runs() as runs:
        steps_per_s, _ = measure(runs, RunConfig.parse({"scenario": "sharded", "steps": options.steps}))
        speeds = {f"{name}_speed": round(measure(runs, RunConfig.parse({"scenario": name}))[1], 2) for name in SCENARIOS}
    report(
        "steps",
        {"ranks": 8, "steps": options.steps, "steps_per_s": round(steps_per_s, 1), **speeds, "slowest_speed": min(speeds.values())},
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
