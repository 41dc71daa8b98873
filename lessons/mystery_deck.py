"""Drawing a mystery run: a random setting that still shows its cause, a fresh seed, and the causes it may be taken for.

Pure and reproducible: the same arguments draw the same run. Must not store or start anything; what can be drawn is in
`lessons.mystery_hands`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lessons.mystery_hands import HANDS, Hand
from scenarios.config import RunConfig
from scenarios.costs import pricing
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.virtual.simulate import step_seconds

CANDIDATES = 6
"""Causes on offer, the right one among them."""

WATCHED_S = 11.7
"""Of the twelve seconds of a run, what is left after its first steps."""
FULLEST = 0.85
"""Share of the card's memory above which the memory itself would look like the cause."""
EPOCHS_WITHIN_S = 5.2
"""Two epochs and a bit within those twelve seconds."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What a mystery run runs, and what it may be taken for."""

    cause: str
    config: RunConfig
    setting: str
    """Of what was drawn; of the seed too, where every setting had been used."""
    candidates: tuple[str, ...]
    """Causes in the order in which they are offered; the right one is among them."""


def deck_causes() -> tuple[str, ...]:
    """Every cause that can be drawn."""
    return tuple(dict.fromkeys(hand.cause for hand in HANDS))


def hands_of(cause: str) -> tuple[Hand, ...]:
    return tuple(hand for hand in HANDS if hand.cause == cause)


def hand_of(config: RunConfig) -> Hand | None:
    """The hand from which a run of this configuration could have been drawn; None for any other run."""
    return next((hand for hand in HANDS if _could_be(hand, config)), None)


def setting_of(config: RunConfig) -> str:
    """Equal for runs that differ in nothing but the seed."""
    values = config.model_dump(exclude={"seed"})
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def settings_of(hand: Hand) -> Iterator[RunConfig]:
    """Everything that may be drawn from a hand, with seed 0, in a fixed order."""
    return (config for values in _combinations(hand) if _shows_itself(hand, config := RunConfig.parse(values)))


def _combinations(hand: Hand) -> list[dict[str, str | int]]:
    found: list[dict[str, str | int]] = []
    for gpu, (model, batch) in itertools.product(hand.cards, hand.loads):
        for chosen in itertools.product(*hand.knobs.values()):
            knobs = dict(zip(hand.knobs, chosen, strict=True))
            # `virtual` on a machine with GPUs too: the card is a knob here.
            found.append({"scenario": hand.scenario, "backend": "virtual", "gpu": gpu, "model": model, "batch": batch, **knobs})
    return found


def draw(seed: int, cause: str, *, used: Collection[str] = (), confused_with: Collection[str] = ()) -> Drawn:
    """A run of `cause`: the same for the same arguments. A setting in `used` comes again only when there is no other left.

    `confused_with` are causes that belong among the candidates because the learner takes one for the other. Raises ValueError for a cause
    that is not in the deck.
    """
    hands = hands_of(cause)
    if not hands:
        raise ValueError(f"cause={cause[:40]!r}: must be one of {', '.join(deck_causes())}")
    rng = random.Random(seed)
    hand = rng.choice(hands)
    fresh = next((found for each in (hand, *hands) if (found := _fresh(rng, each, used))), None)
    config = fresh or _fresh(rng, hand, ())
    assert config is not None, f"the hand of {cause} is empty"
    config = config.model_copy(update={"seed": rng.randrange(1, 2**31)})
    setting = setting_of(config) if fresh else config.key
    return Drawn(cause=cause, config=config, setting=setting, candidates=_candidates(rng, hand, confused_with))


def _fresh(rng: random.Random, hand: Hand, used: Collection[str]) -> RunConfig | None:
    """A setting that is not in `used`; None where all are."""
    combinations = _combinations(hand)
    rng.shuffle(combinations)
    configs = (RunConfig.parse(values) for values in combinations)
    return next((config for config in configs if setting_of(config) not in used and _shows_itself(hand, config)), None)


def _candidates(rng: random.Random, hand: Hand, confused_with: Collection[str]) -> tuple[str, ...]:
    """The right one, what it looks like, and others, shuffled: their number and order say nothing."""
    known = deck_causes()
    others = [cause for cause in known if cause not in (hand.cause, *hand.never_beside)]
    rng.shuffle(others)
    first = [cause for cause in (*sorted(confused_with), *hand.alike) if cause in others]
    chosen = [hand.cause, *list(dict.fromkeys([*first, *others]))[: CANDIDATES - 1]]
    rng.shuffle(chosen)
    return tuple(chosen)


def _could_be(hand: Hand, config: RunConfig) -> bool:
    if hand.scenario != config.scenario:
        return False
    plain = RunConfig.parse({"scenario": hand.scenario})
    return all(getattr(config, name) in hand.knobs.get(name, (getattr(plain, name),)) for name in ("link", "straggler", "hand_off"))


def _shows_itself(hand: Hand, config: RunConfig) -> bool:
    """Whether memory is no cause of its own, and the run long enough to be judged."""
    memory = pricing.memory(model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, world=config.gpus)
    if not hand.fills_memory and memory.total_gib > FULLEST * GPUS[config.gpu].memory_gib:
        return False
    step_s = step_seconds(
        model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, world=config.gpus, steps=4, warm_up=2
    )
    if hand.two_epochs and step_s * MODELS[config.model].epoch_samples / config.batch / config.gpus > EPOCHS_WITHIN_S:
        return False
    return step_s * hand.steps <= WATCHED_S
