"""The scripts are for reading: short, and like the healthy one but for their mistake."""

from __future__ import annotations

import re
from difflib import unified_diff

import pytest

from scenarios.catalog import SCENARIOS

HEALTHY = [line.strip() for line in SCENARIOS["sharded"].path.read_text().splitlines()[1:]]
"""A context around the loop moves its lines to the right and leaves them what they are."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_script_is_short_and_keeps_most_of_the_healthy_one(name: str) -> None:
    lines = SCENARIOS[name].path.read_text().splitlines()
    assert len(lines) < 60
    mine = [line.strip() for line in lines[1:]]
    lost = [line for line in unified_diff(HEALTHY, mine, n=0, lineterm="") if line.startswith("-") and not line.startswith("---")]
    one_process = SCENARIOS[name].one_process  # without a process group and all that belongs to it
    assert len(lost) <= (14 if one_process else 9)
    assert name == "no_set_device" or one_process or "    torch.cuda.set_device(job.local_rank)" in lines


@pytest.mark.parametrize("name", SCENARIOS)
def test_how_many_batches_make_a_step_is_what_the_script_says(name: str) -> None:
    said = re.search(r"^MICRO_BATCHES = (\d+)$", SCENARIOS[name].path.read_text(), re.MULTILINE)
    assert SCENARIOS[name].micro_batches == (int(said[1]) if said else 1)
