"""`predict` and `validate` at the command line: what may be asked, and every kind of error told apart."""

from __future__ import annotations

import json

import pytest

from scenarios import cli_costs
from scenarios.cli import main
from scenarios.costs.validate import committed

_ASKED = ["predict", "--model", "resnet50", "--gpu", "a100-80gb", "--batch", "64", "--gpus", "2"]


def test_nodes_and_their_network_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*_ASKED, "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert main([*_ASKED, "--nodes", "2", "--network", "eth-100", "--json"]) == 0
    two = json.loads(capsys.readouterr().out)
    assert set(two) == set(one) == {"samples_per_second", "one_gpu_samples_per_second", "scaling", "memory_gib", "fits"}
    assert one["samples_per_second"] < two["samples_per_second"] < 2 * one["samples_per_second"]
    assert two["scaling"] == pytest.approx(two["samples_per_second"] / 4 / one["one_gpu_samples_per_second"])
    assert main([*_ASKED, "--nodes", "2", "--network", "hdr-200x8"]) == 0
    assert "on 4 GPUs" in capsys.readouterr().out


def test_it_is_said_why_a_run_of_the_same_is_slower(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(_ASKED) == 0
    assert "Images decoded by the host" in capsys.readouterr().out
    assert main([*_ASKED, "--input", "synthetic"]) == 0
    assert "Images ready-made" in capsys.readouterr().out
    assert main(["predict", "--model", "bert_large", "--gpu", "a100-80gb", "--batch", "8"]) == 0
    assert "Images" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--nodes", "2"], "network=''"), (["--network", "hdr-200"], "network='hdr-200'"),
        (["--nodes", "33", "--network", "hdr-200"], "nodes='33'"),
        (["--nodes", "2", "--network", "carrier-pigeon"], "network='carrier-pigeon'"), (["--link", "string"], "link='string'"),
        (["--input", "tape"], "input='tape'"),
    ],
)  # fmt: skip
def test_unusable_questions_are_one_line(options: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*_ASKED, *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert named in said.err
    assert said.err.count("\n") == 1


def test_validate_tells_each_kind_of_error_apart(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_costs, "validate", committed)
    assert main(["validate", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["validate"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    held_out = found["held_out"]["tuned"]["one_gpu"]
    for errors in (found["one_gpu"], found["leave_one_out"], found["scaling"], found["constant_scaling"], held_out):
        assert f"median error {100 * errors['median']:.1f} %, worst {100 * errors['worst']:.1f} % ({errors['rows']} rows)" in said
    assert f"{found['fitted_constants']} constants fitted to {found['fitted_rows']} tuned rows" in said
