"""The one line for an unusable value names the field, the value and all that is allowed."""

from __future__ import annotations

import pytest

from scenarios.config import RunConfig
from scenarios.settings import load_settings


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("gpus", "0", "gpus='0': must be an integer from 1 to 8"),
        ("epochs", "two", "epochs='two': must be an integer from 1 to 100"),
        ("precision", "fp8", "precision='fp8': Input should be 'fp32', 'tf32' or 'amp'"),
    ],
)
def test_a_knob(field: str, value: str, line: str) -> None:
    with pytest.raises(ValueError, match=r"must be|should be") as caught:
        RunConfig.parse({"scenario": "sharded", field: value})
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("SHARDLAB_LIVE_RUNS", "0", "SHARDLAB_LIVE_RUNS='0': must be an integer from 1 to 64"),
        ("SHARDLAB_RUN_LIMIT_S", "-1", "SHARDLAB_RUN_LIMIT_S='-1': must be a number above 0 and at most 86400"),
    ],
)
def test_a_setting(variable: str, value: str, line: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        load_settings({variable: value})
    assert str(caught.value) == line
