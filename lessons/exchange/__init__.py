"""Lessons to and from other programs: Moodle XML, GIFT, results and coverage as CSV.

    items = [item_of(lesson) for lesson in load_lessons().lessons]
    moodle_xml(items), gift(items)
    import_file(path, into=folder)          # folders of lessons to be finished, or RefusedError with every reason

Owns the formats. Must not know pages, and reads attempts that it is given.
"""

from lessons.exchange.coverage import Coverage, coverage, coverage_csv, coverage_text
from lessons.exchange.csv_safe import csv_text
from lessons.exchange.gift_write import gift
from lessons.exchange.importing import Imported, RefusedError, import_file
from lessons.exchange.item import Item, Refusal, item_of
from lessons.exchange.moodle_write import moodle_xml
from lessons.exchange.results import answers_csv, lessons_csv

__all__ = [
    "Coverage", "Imported", "Item", "Refusal", "RefusedError", "answers_csv", "coverage", "coverage_csv", "coverage_text", "csv_text",
    "gift", "import_file", "item_of", "lessons_csv", "moodle_xml",
]
