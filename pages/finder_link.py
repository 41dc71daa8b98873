"""The finder's address: one parameter per question that is answered, so that a link shows a colleague the same ranking.

Every value is checked by itself; one that is wrong is left out with a sentence. Must not import streamlit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lessons.symptoms import Symptoms
from scenarios.addresses import LinkFault, link_fault, single_values


@dataclass(frozen=True, kw_only=True)
class FinderLink:
    """What was answered, by question. Everything in it is usable."""

    answers: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[LinkFault, ...] = ()


def parse_finder_link(query: Mapping[str, str | Sequence[str]], symptoms: Symptoms) -> FinderLink:
    """Read the finder's address; never raises."""
    faults: list[LinkFault] = []
    values = single_values(query, [question.id for question in symptoms.questions], faults)
    answers = {}
    for question in symptoms.questions:
        answer = values.get(question.id)
        if answer is not None and answer not in question.answers:
            faults.append(link_fault(question.id, answer, f"must be one of {', '.join(question.answers)}"))
        elif answer is not None:
            answers[question.id] = answer
    return FinderLink(answers=answers, faults=tuple(faults))
