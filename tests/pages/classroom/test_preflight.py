"""Pre-flight: each line's verdict, and that whatever is not in order says what to do."""

from __future__ import annotations

import time

import pytest

from lessons import load_lessons
from lessons.experiments import shown_experiments
from lessons.store import StoreError
from pages.classroom import preflight
from pages.classroom.address import Address, Interface, Surroundings, phone_address
from pages.classroom.preflight import Line
from pages.classroom.probe import Answer

ADDRESS = Address(url="http://192.168.1.23:8501", source="page")
WELL = {"status": "ok", "records": "writable", "launcher": "ready", "live": 0, "queued": 0}


def judged(line: Line, tone: str, words: str) -> None:
    assert (line.tone, words in line.words) == (tone, True), line
    assert line.tone == "ok" or line.next, "what to do"


def test_an_address_on_the_code_that_phones_cannot_open_is_said() -> None:
    here = Surroundings(page_url="http://localhost:8501")
    judged(preflight.address_lines(phone_address(here), here)[0], "bad", "the phone itself")
    there = Surroundings(page_url="http://localhost:8501", interfaces=(Interface(name="wlan0", address="192.168.1.23"),))
    (line,) = preflight.address_lines(phone_address(there), there)
    judged(line, "ok", "Phones are sent to http://192.168.1.23:8501.")


def test_whether_the_address_answers() -> None:
    good = preflight.answer_line(ADDRESS, Answer(ours=True))
    judged(good, "ok", "answers, asked from this machine")
    assert "one phone" in good.next, "this machine cannot know what a guest network forbids"
    judged(preflight.answer_line(ADDRESS, Answer(ours=False, fault="refuses connections")), "bad", "it refuses connections")


@pytest.mark.parametrize(
    ("changed", "tone", "words"),
    [
        ({}, "ok", "Warm"),
        ({"launcher": "starting"}, "warn", "still importing"),
        ({"launcher": "broken"}, "bad", "recordings can be shown"),
        ({"queued": 1}, "warn", "1 run of others waits"),
        ({"queued": 3}, "warn", "3 runs of others wait"),
    ],
)
def test_the_launcher(changed: dict[str, object], tone: str, words: str) -> None:
    judged(preflight.launcher_line({**WELL, **changed}), tone, words)


def test_every_experiment_of_the_class_wants_a_recording() -> None:
    lessons = load_lessons().lessons[:2]
    configs = {lesson.config_of(name).key for lesson in lessons for name in shown_experiments(lesson)}
    missing = preflight.missing_recordings(lessons, lambda config: None)
    assert {each.config.key for each in missing} == configs
    assert len(missing) == len(configs)
    assert all(lessons[0].title in each.title or lessons[1].title in each.title for each in missing)
    judged(preflight.recordings_line(missing, len(configs)), "warn", f"No recording yet of {len(configs)} of {len(configs)}")
    one = preflight.missing_recordings(lessons, lambda config: config.key != missing[0].config.key)
    assert one == missing[:1]
    none = preflight.missing_recordings(lessons, lambda config: "there")
    judged(preflight.recordings_line(none, len(configs)), "ok", "each with a recording")


@pytest.mark.parametrize(
    ("free", "records", "tone"),
    [(50_000_000_000, "writable", "ok"), (900_000_000, "writable", "warn"), (100_000_000, "writable", "bad"),
     (50_000_000_000, "not writable", "bad"), (None, "writable", "bad")],
)  # fmt: skip
def test_the_disk(free: int | None, records: str, tone: str) -> None:
    judged(preflight.disk_line(free, records), tone, "data folder" if records == "writable" and free else "cannot be written")


def test_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise StoreError("The database is read-only.")

    judged(preflight.store_line(lambda: None), "ok", "takes votes")
    judged(preflight.store_line(refuse), "bad", "The database is read-only.")
    monkeypatch.setattr(preflight, "STORE_SLOW_S", -1.0)
    judged(preflight.store_line(lambda: None), "warn", "for one transaction")


def test_places() -> None:
    judged(preflight.room_line(65_536, 1000, expected=300), "ok", "Room for 1000")
    narrow = preflight.room_line(1024, 1000, expected=500)
    judged(narrow, "warn", "Room for 362 participants, 500 are expected")
    assert "ulimit" in narrow.next
    assert "SHARDLAB_PARTICIPANTS_LIMIT" in preflight.room_line(65_536, 100, expected=500).next


def test_the_clock() -> None:
    now_s = time.time()
    judged(preflight.clock_line(now_s=now_s, newest_record_s=now_s - 60, ahead_s=0.4), "ok", "for the server")
    judged(preflight.clock_line(now_s=now_s, newest_record_s=None, ahead_s=None), "ok", "for the server")
    judged(preflight.clock_line(now_s=now_s, newest_record_s=now_s + 60, ahead_s=None), "warn", "behind its own records")
    judged(preflight.clock_line(now_s=1000.0, newest_record_s=None, ahead_s=None), "warn", "behind")
    judged(preflight.clock_line(now_s=now_s, newest_record_s=None, ahead_s=-90.0), "warn", "differ by 90 s")


def test_the_sum() -> None:
    def of(*tones: preflight.Tone) -> Line:
        return preflight.summary([Line(what="", tone=tone, words="") for tone in tones])

    assert of("ok", "ok").words == "Ready."
    assert (of("ok", "warn").tone, of("ok", "warn").words) == ("warn", "Ready but for 1 thing to look at.")
    assert of("warn", "bad", "bad").words == "Not ready: 2 things would stop the class."
