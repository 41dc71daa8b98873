"""The audience's page as it leaves the server: light enough for a phone, and with nothing in it that the page's policy forbids."""

from __future__ import annotations

import gzip
import re

from pages.classroom.files import all_texts
from pages.classroom.phone.source import ASSETS, phone_page

FIRST_VOTE_BYTES, WITH_LANES_BYTES = 150_000, 300_000
"""The promise, of which scripts and styles may take half: views and the events of a run come on top."""


def packed(*texts: str) -> int:
    return sum(len(gzip.compress(text.encode(), 9)) for text in texts)


def test_the_page_and_its_files_are_light() -> None:
    texts = all_texts()
    page = phone_page(lambda name: f"class-assets/{name}")
    first = packed(page, texts["phone.js"], texts["phone.css"])
    assert first < FIRST_VOTE_BYTES / 2
    assert first + packed(texts["lanes.js"], texts["lanes.css"]) < WITH_LANES_BYTES / 2


def test_the_page_names_its_files_and_holds_no_script_or_style_of_its_own() -> None:
    page = phone_page(lambda name: f"../class-assets/{name}?a=1&b=2")
    for name in ASSETS:
        assert f'"../class-assets/{name}?a=1&amp;b=2"' in page
    assert "<script>" not in page
    assert not re.search(r"<style| style=| on[a-z]+=", page)
    assert 'data-door="open"' in page
    assert 'data-door="unknown"' in phone_page(lambda name: name, unknown=True)


def test_the_script_is_one_module_without_imports_of_its_own_parts() -> None:
    script = all_texts()["phone.js"]
    assert not re.search(r"^import .* from", script, re.MULTILINE)
    names = re.findall(r"^(?:const|let|class|function|async function) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)), "two parts use the same name"
