"""The glossary: short entries for pop-overs, read from content/glossary.yaml.

Owns reading and checking them. Entries are seen before an answer is locked in, so they define and never diagnose.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lessons.front_matter import read_yaml_file, validate
from lessons.model import Fault, Term
from lessons.schema import SafeId, Text

GLOSSARY_FILE = "glossary.yaml"


class _TermMatter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Text
    short: Annotated[Text, Field(max_length=320)]


class _GlossaryMatter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    terms: dict[SafeId, _TermMatter]


def load_glossary(root: Path) -> tuple[dict[str, Term], list[Fault]]:
    """The terms of `root`/glossary.yaml by id, in its order; no file means no terms. Faults carry their line."""
    front, faults = read_yaml_file(root / GLOSSARY_FILE)
    if front is None:
        return {}, faults
    matter, found = validate(_GlossaryMatter, front)
    faults += [Fault(file=GLOSSARY_FILE, line=line, message=message) for line, message in found]
    if matter is None:
        return {}, faults
    return {key: Term(id=key, name=term.name, short=term.short) for key, term in matter.terms.items()}, faults
