"""How a simulated room votes: plausibly, and never for what is not on offer."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pages.classroom.habits import THINKING_S, Lean, choose, thinking_s

LEAN = Lean(right={1: "c"}, draws={1: "only0"})
OPTIONS = ("a", "b", "c", "d")
PICTURES = ("all_high", "only0", "low0")


def room(people: int = 2000) -> tuple[list[str], list[str]]:
    luck = random.Random(7)
    first = [choose(luck, OPTIONS, item_no=1, round="first", first=None, lean=LEAN) for _ in range(people)]
    return first, [choose(luck, OPTIONS, item_no=1, round="second", first=one, lean=LEAN) for one in first]


def test_talking_helps_and_the_wrong_answers_are_not_liked_alike() -> None:
    first, second = room()
    before, after = Counter(first), Counter(second)
    assert 0.35 < before["c"] / len(first) < 0.70, "where the console says: let them discuss"
    assert after["c"] / len(second) > 0.70, "where it says: go on"
    assert set(before) == set(OPTIONS)
    assert before["a"] > 1.3 * before["b"]
    assert 0 < sum(one == "c" != two for one, two in zip(first, second, strict=True)) < 0.1 * len(first)


def test_most_foresee_the_picture() -> None:
    luck = random.Random(1)
    seen = Counter(choose(luck, PICTURES, item_no=1, round="predict", first="a", lean=LEAN) for _ in range(500))
    assert seen.most_common(1)[0][0] == "only0"
    assert set(seen) == set(PICTURES)


def test_without_a_lean_nobody_is_talked_round() -> None:
    luck = random.Random(1)
    assert {choose(luck, OPTIONS, item_no=2, round="second", first="b", lean=LEAN) for _ in range(50)} == {"b"}


@given(st.integers(), st.lists(st.text(min_size=1), min_size=1, max_size=6, unique=True), st.sampled_from(["first", "second", "predict"]),
       st.none() | st.text(), st.dictionaries(st.just(1), st.text()))  # fmt: skip
def test_only_what_is_on_offer_is_chosen(seed: int, choices: list[str], voting: str, first: str | None, right: dict[int, str]) -> None:
    lean = Lean(right=right, draws=right)
    assert choose(random.Random(seed), choices, item_no=1, round=voting, first=first, lean=lean) in choices


def test_some_think_longer() -> None:
    luck = random.Random(3)
    times = sorted(thinking_s(luck) for _ in range(500))
    assert THINKING_S[0] <= times[0]
    assert times[-1] <= THINKING_S[1]
    assert times[250] < sum(THINKING_S) / 2, "most answer soon"
