"""Mystery runs: reproducible, never the same twice, diagnosable whatever is drawn, graded against what ran, and silent until then."""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lessons.causes import cause_name, cause_of
from lessons.learners import Learners, new_token
from lessons.mystery import Mysteries, Mystery, StaleMystery
from lessons.mystery_deck import CANDIDATES, deck_causes, draw, hand_of, hands_of, setting_of, settings_of
from lessons.mystery_hands import FIGURES, HANDS, Hand
from lessons.store import Store
from scenarios.analysis.diagnosis import diagnose
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.rehearsal import rehearse, samples_of_rehearsal
from scenarios.runs import Run
from scenarios.verdict import run_head

BY_TIMING = (
    "healthy", "rank0_feeds", "launch_bound", "straggler", "communication_bound", "input_bound", "one_rank_validates",
    "one_rank_checkpoints",
)
REHEARSED = [hand for hand in HANDS if hand.found in BY_TIMING]
"""Those whose figures come from timing alone; the others need the training itself, see `tests/benchmarks/mystery.py`."""


class Started:
    """Stands where `Runs` would."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}

    def start(self, config: RunConfig, *, viewer: str, hidden: bool = False) -> Run:
        run_id = f"{len(self.runs):016x}"
        self.runs[run_id] = Run(
            run_id=run_id, config=config, key=config.key, state="running", created_s=time.time(), run_dir=Path(run_id), pace="live",
            hidden=hidden,
        )
        return self.runs[run_id]

    def get(self, run_id: str, *, hidden: bool = False) -> Run | None:
        run = self.runs.get(run_id)
        return run if run is None or hidden or not run.hidden else None

    def reveal(self, run_id: str) -> None:
        self.runs[run_id] = replace(self.runs[run_id], hidden=False)


@pytest.fixture
def runs() -> Started:
    return Started()


@pytest.fixture
def mysteries(database: Store) -> Mysteries:
    return Mysteries(database)


def right(mystery: Mystery) -> str:
    return f"c{mystery.candidates.index(mystery.cause)}"


def wrong(mystery: Mystery) -> str:
    return next(f"c{number}" for number, cause in enumerate(mystery.candidates) if cause != mystery.cause)


@pytest.mark.parametrize("hand", REHEARSED, ids=lambda hand: f"{hand.cause}-{hand.knobs.get('hand_off', ('',))[0]}")
def test_whatever_is_drawn_shows_its_cause(hand: Hand) -> None:
    for config in random.Random(hand.cause).sample(list(settings_of(hand)), 2):
        rehearsal = rehearse(config, steps=16 if hand.steps > 12 else 12)
        samples = samples_of_rehearsal(config, rehearsal)
        first = diagnose(samples, rehearsal.spans, run_head(config)).findings[0]
        assert first.cause == hand.found, config


def test_the_slow_link_is_to_blame_and_not_the_model() -> None:
    hand = next(hand for hand in HANDS if hand.found == "communication_bound")
    config = next(settings_of(hand)).model_copy(update={"link": ""})
    rehearsal = rehearse(config, steps=12)
    assert diagnose(samples_of_rehearsal(config, rehearsal), rehearsal.spans, run_head(config)).findings[0].cause == "healthy"


def test_each_hand_is_of_its_cause_tells_it_and_names_what_looks_alike() -> None:
    for hand in HANDS:
        configs = list(settings_of(hand))
        assert len(configs) >= 6
        assert {cause_of(config) for config in configs} == {hand.cause}
        assert all(hand_of(config) == hand for config in configs[:5])
        assert hand.tells
        assert set(hand.tells) < set(FIGURES)
        assert set(hand.alike) <= set(deck_causes()) - {hand.cause, *hand.never_beside}
        assert hand.scenario in SCENARIOS
    assert len({cause_name(cause) for cause in deck_causes()}) == len(deck_causes())


def test_no_two_causes_are_told_by_the_same_words() -> None:
    said = [why for hand in HANDS for why in hand.tells.values()]
    by_cause = {(hand.cause, why) for hand in HANDS for why in hand.tells.values()}
    assert len({why for _, why in by_cause}) == len(by_cause)
    assert all(len(why) > 30 for why in said)


def test_the_same_seed_draws_the_same_run_and_another_one_another() -> None:
    assert draw(7, "unsharded") == draw(7, "unsharded")
    drawn = [draw(seed, "slow_gpu") for seed in range(20)]
    assert len({each.config.key for each in drawn}) == 20
    assert len({each.candidates.index("slow_gpu") for each in drawn}) > 3, "its place says nothing"
    assert {len(each.candidates) for each in drawn} == {CANDIDATES}
    assert "no_set_epoch" in draw(1, "slow_gpu", confused_with=("no_set_epoch", "unheard-of")).candidates
    with pytest.raises(ValueError, match="cause='nothing'"):
        draw(1, "nothing")


def test_a_setting_comes_again_only_when_all_have_been_used() -> None:
    (hand,) = hands_of("slow_link")
    used: set[str] = set()
    for seed in range(len(list(settings_of(hand)))):
        drawn = draw(seed, "slow_link", used=used)
        assert drawn.setting not in used
        assert drawn.setting == setting_of(drawn.config)
        used.add(drawn.setting)
    again = draw(99, "slow_link", used=used)
    assert setting_of(again.config) in used
    assert again.setting not in used, "the seed is another one all the same"


def test_a_right_cause_and_a_telling_figure(mysteries: Mysteries, runs: Started) -> None:
    token = new_token()
    mystery = mysteries.begin(token, cause="rank0_loading", seed=3)
    mystery, run = mysteries.run(mystery, runs)
    assert runs.get(run.run_id) is None, "hidden"
    mystery = mysteries.answer(mystery, right(mystery), "useful", "certain", runs)
    verdict = mysteries.view(mystery).verdict
    assert verdict is not None
    assert (verdict.right, verdict.marks, verdict.name) == (True, 3.0, cause_name("rank0_loading"))
    assert verdict.figure is not None
    assert verdict.figure.tells
    assert "GPU 0" in verdict.figure.why
    assert verdict.config == run.config
    shown = runs.get(run.run_id)
    assert shown is not None
    assert not shown.hidden


def test_a_figure_that_cannot_tell_it_is_told_why(mysteries: Mysteries) -> None:
    mystery = mysteries.begin(new_token(), cause="unsharded", seed=3)
    mystery = mysteries.answer(mystery, right(mystery), "busy", "fairly")
    verdict = mysteries.view(mystery).verdict
    assert verdict is not None
    assert verdict.figure is not None
    assert (verdict.right, verdict.figure.tells) == (True, False)
    assert "busy all the same" in verdict.figure.why
    assert {each.figure for each in verdict.telling} == {"trained", "speed"}


def test_marks_are_lost_only_after_the_first_runs(mysteries: Mysteries, database: Store) -> None:
    token = new_token()
    first = mysteries.begin(token, cause="tiny_model", seed=1)
    assert [stake.wrong for stake in mysteries.view(first).stakes] == [0.0, 0.0, 0.0]
    verdict = mysteries.view(mysteries.answer(first, wrong(first), "busy", "certain")).verdict
    assert verdict is not None
    assert verdict.marks == 0.0


def test_it_can_be_told_instead(mysteries: Mysteries, runs: Started) -> None:
    mystery, run = mysteries.run(mysteries.begin(new_token(), seed=1), runs)
    verdict = mysteries.view(mysteries.give_up(mystery, runs)).verdict
    assert verdict is not None
    assert (verdict.right, verdict.marks, verdict.named, verdict.figure) == (False, 0.0, None, None)
    assert runs.get(run.run_id) is not None


def test_before_it_is_named_nothing_is_told(mysteries: Mysteries, runs: Started, database: Store) -> None:
    token = new_token()
    views = {}
    for cause in deck_causes():
        mystery, run = mysteries.run(mysteries.begin(token, cause=cause, seed=5), runs)
        view = mysteries.view(mystery)
        views[cause] = replace(view, token="", run_id=None, candidates=())
        assert [candidate.id for candidate in view.candidates] == [f"c{number}" for number in range(CANDIDATES)]
        told = json.dumps(asdict(replace(view, candidates=())), default=str)
        config = mystery.config
        for secret in (cause, mystery.config.scenario, config.key, config.gpu, config.model, str(config.seed)):
            assert secret not in told.replace(mystery.token, "")
        assert not any(name in run.run_id for name in SCENARIOS)
        export = json.dumps(Learners(database).export(token))
        assert config.key not in export
        assert f'"cause": "{cause}"' not in export
        mysteries.give_up(mystery)
    unlike = {repr(replace(view, stakes=())) for view in views.values()}
    assert len(unlike) == 1, "nothing but the candidates differs"


def test_an_open_one_goes_on_and_belongs_to_its_learner(mysteries: Mysteries, runs: Started) -> None:
    token, other = new_token(), new_token()
    mystery, run = mysteries.run(mysteries.begin(token), runs)
    assert mysteries.begin(token, cause="unsharded") == mystery
    assert mysteries.open(token) == mystery
    assert mysteries.get(mystery.token, token) == mystery
    assert mysteries.get(mystery.token, other) is None
    assert mysteries.open(other) is None
    assert mysteries.get("' OR 1=1 --", token) is None
    assert mysteries.run(mystery, runs) == (mystery, run), "the same run, not another one"
    runs.runs[run.run_id] = replace(run, state="interrupted")
    assert mysteries.run(mystery, runs)[1].run_id != run.run_id


def test_it_is_named_once(mysteries: Mysteries) -> None:
    mystery = mysteries.begin(new_token())
    first = mysteries.answer(mystery, right(mystery), "power", "guess")
    with pytest.raises(StaleMystery) as stale:
        mysteries.answer(mystery, wrong(mystery), "power", "guess")
    assert stale.value.current == first


@pytest.mark.parametrize(
    ("candidate", "figure", "certainty", "message"),
    [("c9", "power", "guess", "cause='c9'"), ("c0", "smell", "guess", "figure='smell'"), ("c0", "power", "sure", "certainty='sure'")],
)
def test_what_is_not_on_offer_is_refused(mysteries: Mysteries, candidate: str, figure: str, certainty: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mysteries.answer(mysteries.begin(new_token()), candidate, figure, certainty)


def test_never_the_same_twice(mysteries: Mysteries) -> None:
    token = new_token()
    seen = []
    for _ in range(15):
        mystery = mysteries.begin(token, cause="slow_link")
        seen.append(mystery.config.key)
        mysteries.give_up(mystery)
    assert len(set(seen)) == 15
