"""Which lessons cover which domains of the exams, and which domains are left out: a table as text, as CSV, and as data for a page.

Owns the table. The vocabulary of domains is that of lessons; a lesson may name others, which come last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lessons.exchange.csv_safe import Cell, csv_text
from lessons.model import Lesson
from lessons.schema import EXAM_DOMAINS

THIN = 2
"""A domain with fewer lessons than this is called thin: one question can be guessed."""


@dataclass(frozen=True, kw_only=True)
class CoverageRow:
    """One lesson: whether it covers each of the table's domains."""

    lesson_id: str
    title: str
    covers: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Domain by lesson."""

    domains: tuple[str, ...]
    rows: tuple[CoverageRow, ...]
    """In the order of the course."""

    @property
    def counts(self) -> tuple[int, ...]:
        """How many lessons cover each domain."""
        return tuple(sum(row.covers[index] for row in self.rows) for index in range(len(self.domains)))

    @property
    def gaps(self) -> tuple[str, ...]:
        """Domains that no lesson covers."""
        return tuple(domain for domain, count in zip(self.domains, self.counts, strict=True) if count == 0)

    @property
    def thin(self) -> tuple[str, ...]:
        """Domains that too few lessons cover to be practised."""
        return tuple(domain for domain, count in zip(self.domains, self.counts, strict=True) if 0 < count < THIN)

    @property
    def untagged(self) -> tuple[str, ...]:
        """Lessons without any domain."""
        return tuple(row.lesson_id for row in self.rows if not any(row.covers))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is missing, in words; one sentence says so where nothing is."""
        said = [
            f"No lesson covers {_listed(self.gaps)}." if self.gaps else "",
            f"Only one lesson covers {_listed(self.thin)}." if self.thin else "",
            f"Without a domain: {_listed(self.untagged)}." if self.untagged else "",
        ]
        return tuple(text for text in said if text) or (f"Every domain has at least {THIN} lessons.",)


def coverage(lessons: Iterable[Lesson]) -> Coverage:
    """The table of `lessons`."""
    kept = list(lessons)
    others = dict.fromkeys(domain for lesson in kept for domain in lesson.exam_domains if domain not in EXAM_DOMAINS)
    domains = (*EXAM_DOMAINS, *others)
    rows = tuple(
        CoverageRow(lesson_id=lesson.id, title=lesson.title, covers=tuple(domain in lesson.exam_domains for domain in domains))
        for lesson in kept
    )
    return Coverage(domains=domains, rows=rows)


def coverage_csv(table: Coverage, *, bom: bool = False) -> str:
    """One row per lesson, one column per domain, then how many lessons cover each; gaps are named in the last row."""
    rows: list[list[Cell]] = [
        [row.lesson_id, row.title, *("x" if covered else "" for covered in row.covers)] for row in table.rows
    ]
    rows.append(["", "lessons", *table.counts])
    rows.append(["", "gap", *("gap" if domain in table.gaps else "thin" if domain in table.thin else "" for domain in table.domains)])
    return csv_text(["lesson", "title", *table.domains], rows, bom=bom)


def coverage_text(table: Coverage) -> str:
    """For a terminal: one row per domain with the lessons that cover it."""
    width = max(len(domain) for domain in table.domains)
    rows = []
    for index, (domain, count) in enumerate(zip(table.domains, table.counts, strict=True)):
        covering = [row.lesson_id for row in table.rows if row.covers[index]]
        rows.append(f"{domain:<{width}}  {count:>3}  {', '.join(covering) or 'GAP: no lesson'}")
    return "\n".join([*rows, *table.sentences]) + "\n"


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
