"""Parts on disk and what an import makes of them: the same record whatever the order, and one line for each fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios.cli import main
from scenarios.cluster.importing import import_folder
from scenarios.cluster.parts import RECYCLE_BYTES, PartFile, PartReader, part_path
from scenarios.cluster.wide import parse_wide
from scenarios.config import RunConfig
from scenarios.record import end_of, read_events, samples_of, spans_of
from scenarios.recorder import Recorder
from scenarios.run_folder import RunFolder
from tests.scenarios.cluster.ranks import CONFIG, done, error, hello_of, step_of, whole_rank, write_part


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    for rank in range(4):
        write_part(folder, rank, whole_rank(rank))
    return folder


def test_an_import_is_a_record_like_any_other(parts: Path, tmp_path: Path) -> None:
    entry, end = import_folder(parts, tmp_path / "data")
    assert (end["outcome"], end["expected"], end["node"], end["error"]) == ("finished", True, None, None)
    assert end["nodes"] == [{"node": 0, "host": "host-a", "ranks": [0, 1]}, {"node": 1, "host": "host-b", "ranks": [2, 3]}]
    folder = RunFolder(tmp_path / "data")
    run_dir = folder.path(entry.run_id)
    assert end_of(run_dir) == json.loads(json.dumps(end))
    events = read_events(run_dir)
    assert [event["event"] for event in events[:3]] == ["state", "head", "state"]
    assert (events[1]["data"]["source"], events[1]["data"]["recorded_s"]) == ("virtual", 1.7e9)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert len(samples_of(run_dir)) == 4 * 9
    assert len(list(spans_of(run_dir))) == 4 * 12 * 3
    (found,) = folder.load()
    assert (found.run_id, found.config, found.outcome, found.good) == (entry.run_id, CONFIG, "finished", False)
    assert not folder.orphaned(found)


def test_the_digest_is_that_of_the_recorder_alone(parts: Path, tmp_path: Path) -> None:
    from scenarios.rank_messages import unpack_serials, unpack_span
    from scenarios.recorder import StepState

    recorder = Recorder(CONFIG)
    for rank in (2, 0, 3, 1):
        for message in whole_rank(rank)[1:-1]:
            fields = {name: message[name] for name in ("end_ns", "step", "progress", "learning_rate", "memory_gib", "apart")}
            recorder.step(rank, StepState(**fields), [unpack_span(row) for row in message["spans"]], unpack_serials(message["serials"]))
    recorder.finish(broke_off=False)
    assert import_folder(parts, tmp_path / "data")[1]["summary"]["digest"] == recorder.digest


def test_the_command_prints_what_run_prints(parts: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path / "data"))
    assert main(["import", str(parts), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {"scenario", "source", "outcome", "gpus", "digest", "speedup_vs_one_gpu", "diagnosis"} <= set(printed)
    assert end_of(tmp_path / "data" / "runs" / printed["run"])["summary"]["digest"] == printed["digest"]
    assert main(["import", str(parts)]) == 0
    assert "Recorded as" in capsys.readouterr().out


def test_a_node_that_went_silent_is_named(tmp_path: Path, capsys, monkeypatch) -> None:
    parts = tmp_path / "parts"
    for rank in (0, 1):
        lost = error("RuntimeError", "[/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:13720.")
        write_part(parts, rank, [*whole_rank(rank)[:7], lost])
    for rank in (2, 3):
        write_part(parts, rank, whole_rank(rank)[:7])
    end = import_folder(parts, tmp_path / "data")[1]
    assert (end["outcome"], end["rank"], end["node"]["host"]) == ("failed", 2, "host-b")
    assert end["sentence"] == "Node 1 (host-b, ranks 2 to 3) went away: nothing was heard of it again."
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path / "data"))
    assert main(["import", str(parts)]) == 1
    assert capsys.readouterr().err.startswith("Node 1 (host-b")


def test_a_killed_torchrun_is_named_before_its_echoes(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    for rank in (0, 1):
        write_part(parts, rank, [*whole_rank(rank)[:5], error("ended", f"rank {rank} was told to end")])
    for rank in (2, 3):
        write_part(parts, rank, [*whole_rank(rank)[:5], error("agent", f"rank {rank} ended with its torchrun, which was killed")])
    end = import_folder(parts, tmp_path / "data")[1]
    assert (end["outcome"], end["node"]) == ("failed", {"node": 1, "host": "host-b", "ranks": [2, 3]})
    assert end["sentence"].startswith("Node 1 (host-b, ranks 2 to 3) went away: its torchrun was killed.")


def test_the_nodes_clocks_tell_which_cause_came_first(tmp_path: Path) -> None:
    for name, bug_s, killed_s, wanted in (("bug", 5.0, 6.0, 0), ("killed", 6.0, 5.0, 3)):
        parts = tmp_path / name
        write_part(parts, 0, [*whole_rank(0)[:5], {**error("KeyError", "KeyError: 'lr'"), "at_s": 1.7e9 + bug_s}])
        for rank in (1, 2):
            write_part(parts, rank, [*whole_rank(rank)[:5], {**error("ended", "told to end"), "at_s": 1.7e9}])
        write_part(parts, 3, [*whole_rank(3)[:5], {**error("agent", "its torchrun was killed"), "at_s": 1.7e9 + killed_s}])
        assert import_folder(parts, tmp_path / "data")[1]["rank"] == wanted


def test_a_node_that_was_told_to_end_before_the_others_is_the_cause(tmp_path: Path) -> None:
    for rank in range(4):
        last = error("ended", f"rank {rank} was told to end") if rank > 1 else error("RuntimeError", "Connection reset by peer")
        write_part(tmp_path / "parts", rank, [*whole_rank(rank)[:5], {**last, "at_s": 1.7e9 - rank}])
    end = import_folder(tmp_path / "parts", tmp_path / "data")[1]
    assert end["outcome"] == "failed"
    assert end["sentence"] == "Node 1 (host-b, ranks 2 to 3) was told to end, by its scheduler or by a person."


def test_an_error_is_told_with_its_node_text_and_meaning(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    for rank in (0, 1, 2):
        write_part(parts, rank, [*whole_rank(rank)[:5], error("ended", "told to end")])
    aborted = "rank 3 was killed by signal 6 (SIGABRT)\nterminate\n  what(): Is there a distributed collective mismatch in your code?"
    write_part(parts, 3, [*whole_rank(3)[:5], error("signal", aborted)])
    end = import_folder(parts, tmp_path / "data")[1]
    assert (end["outcome"], end["rank"], end["error"]) == ("failed", 3, aborted)
    assert end["sentence"].startswith("Rank 3 on node 1 (host-b) was killed by signal 6 (SIGABRT): what(): Is there")
    assert end["meaning"].startswith("Two ranks met in one collective")


def test_a_run_that_was_told_to_end_was_stopped(tmp_path: Path) -> None:
    for rank in range(4):
        write_part(tmp_path / "parts", rank, [*whole_rank(rank)[:5], error("ended", "told to end")])
    assert import_folder(tmp_path / "parts", tmp_path / "data")[1]["outcome"] == "stopped"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "rank-2.jsonl").unlink(), "must hold the parts of all 4 ranks of one run; missing: 2. Copy"),
        (lambda folder: [path.unlink() for path in folder.iterdir()], "must hold the files rank-0.jsonl"),
        (lambda folder: (folder / "rank-2.jsonl").write_text("hello"), "is not a rank's part"),
        (lambda folder: (folder / "rank-2.jsonl").write_bytes(b"\x00" * 9000), "is not a rank's part"),
        (lambda folder: (folder / "rank-2.jsonl").write_text('{"shardlab":1,"run":"","rank":2}\n[1,2]\n'), "message 0 is missing"),
        (lambda folder: (folder / "rank-2.jsonl").write_text('{"shardlab":1,"run":"","rank":2}\n[0,2]\n'), "A message must be an object"),
        (lambda folder: (folder / "rank-2.jsonl").write_text('{"shardlab":1,"run":"","rank":2}\n' + "[" * 9999 + "\n"), "holds a line"),
        (lambda folder: (folder / "rank-9.jsonl").write_text('{"shardlab":1,"run":"","rank":9}\n'), "must hold the parts of all 4"),
    ],
)
def test_a_folder_that_cannot_be_used_costs_one_line_and_leaves_nothing(spoil, said: str, parts: Path, tmp_path: Path, monkeypatch, capsys):
    spoil(parts)
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path / "data"))
    assert main(["import", str(parts)]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert said in err
    assert not (tmp_path / "data" / "runs").exists() or list((tmp_path / "data" / "runs").iterdir()) == []


def test_a_rank_that_runs_something_else_is_refused(tmp_path: Path, parts: Path) -> None:
    part_path(parts, 3).unlink()
    other = CONFIG.model_copy(update={"batch": 64})
    write_part(parts, 3, [hello_of(3, other), step_of(3, 1), done()])
    with pytest.raises(ValueError, match="Rank 3 runs another config"):
        import_folder(parts, tmp_path / "data")


def test_more_ranks_than_one_machine_starts(tmp_path: Path) -> None:
    config = parse_wide({"scenario": "sharded", "gpus": 16, "steps": 12})
    for rank in range(16):
        write_part(tmp_path / "parts", rank, whole_rank(rank, config))
    end = import_folder(tmp_path / "parts", tmp_path / "data")[1]
    assert (end["outcome"], len(end["summary"]["gpus"])) == ("finished", 16)
    (found,) = RunFolder(tmp_path / "data").load()
    assert found.config.gpus == 16
    assert end["nodes"][1]["ranks"] == list(range(8, 16))
    with pytest.raises(ValueError, match="from 1 to 8"):
        RunConfig.parse({"scenario": "sharded", "gpus": 16})


def test_a_last_line_cut_off_is_not_there(parts: Path) -> None:
    with part_path(parts, 0).open("ab") as file:
        file.write(b'[14,{"kind":"st')
    assert [number for number, _ in PartReader(part_path(parts, 0)).messages()] == list(range(14))


def test_a_part_never_overwrites_another(parts: Path) -> None:
    with pytest.raises(FileExistsError):
        PartFile(parts, run="", rank=0, kept=True)


def test_a_waiting_room_is_read_in_batches_recycled_and_removed(tmp_path: Path) -> None:
    part = PartFile(tmp_path / "room", run="r" * 8, rank=5, kept=False)
    big = {"kind": "step", "text": "x" * (1 << 20)}
    for _ in range(10):
        part.append(big)
    assert len(part.batch(1000)) == 1
    lines = part.batch(3 << 20)
    assert len(lines) == 2
    while lines := part.batch(3 << 20):
        part.mark_sent(lines)
    assert (part.unsent, part.sent, part.path.stat().st_size < 1000 < RECYCLE_BYTES) == (0, 10, True)
    part.append({"kind": "done"})
    (line,) = part.batch(1000)
    assert json.loads(line) == [10, {"kind": "done"}]
    part.mark_sent([line])
    part.close()
    assert not (tmp_path / "room").exists()
