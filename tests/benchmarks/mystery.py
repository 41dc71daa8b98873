"""Mystery runs: whether what is drawn at random still shows its cause, judged by the diagnosis, which sees figures only.

Every hand of the deck is drawn `--draws` times and really run. `right`: its own cause comes first; the others are named on standard error.
"""

from __future__ import annotations

import sys

from _common import arguments, report
from _runs import over, warm_runs

from lessons.mystery_deck import draw, hand_of
from lessons.mystery_hands import HANDS, Hand
from scenarios.analysis.diagnosis import diagnose_run
from scenarios.config import RunConfig


def drawn(hand: Hand, draws: int) -> list[RunConfig]:
    """So many runs of this hand; a cause may have others."""
    found: list[RunConfig] = []
    seed = 0
    while len(found) < draws:
        config = draw(seed, hand.cause).config
        seed += 1
        if hand_of(config) == hand:
            found.append(config)
    return found


def main() -> None:
    options = arguments(__doc__, draws=3)
    right, confidences, total = 0, [], 0
    with warm_runs() as runs:
        for hand in HANDS:
            for config in drawn(hand, options.draws):
                run = runs.start(config, viewer="benchmark", pace="fast")
                over(runs, run)
                verdict = diagnose_run(run.run_dir)
                total += 1
                if verdict.findings and verdict.findings[0].cause == hand.found:
                    right += 1
                    confidences.append(verdict.findings[0].confidence)
                else:
                    print(f"{hand.cause}: {config.model_dump(exclude_defaults=True)}: {verdict}", file=sys.stderr, flush=True)
    report("mystery", {"hands": len(HANDS), "runs": total, "right": right, "confidence_lowest": min(confidences)}, as_json=options.json)


if __name__ == "__main__":
    main()
