"""The silhouettes as pictures: well-formed, titled, unlike each other, and at the levels of the outline behind the lanes."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

from lessons.model import SILHOUETTES
from pages.components.lanes.source import FOLDER
from pages.components.silhouettes import LEVELS, silhouette_svg


@pytest.mark.parametrize("name", SILHOUETTES)
def test_a_silhouette_is_well_formed_and_titled(name: str) -> None:
    picture = ET.fromstring(silhouette_svg(name))
    assert picture.findtext("title", "").lower() == SILHOUETTES[name].lower()
    beds = [node for node in picture if node.get("class") == "sl-sil-bed"]
    assert len(beds) == 8
    assert float(beds[-1].get("y", "0")) + float(beds[-1].get("height", "0")) <= 62
    hidden = ET.fromstring(silhouette_svg(name, decorative=True))
    assert hidden.get("aria-hidden") == "true"
    assert hidden.find("title") is None


def test_no_two_silhouettes_look_alike() -> None:
    assert len({silhouette_svg(name, decorative=True) for name in SILHOUETTES}) == len(SILHOUETTES)


def test_only_an_odd_gpu_has_the_accent() -> None:
    accented = {name for name in SILHOUETTES if "sl-sil-odd" in silhouette_svg(name)}
    assert accented == {"only0", "low0"}


def test_the_levels_are_those_of_the_lanes() -> None:
    text = (FOLDER / "picture.js").read_text(encoding="utf-8")
    found = re.search(r"const LEVELS = \{(.*?)\};", text)
    assert found
    levels = json.loads("{" + re.sub(r"(\w+):", r'"\1":', found[1]) + "}")
    assert set(levels) == set(LEVELS)
    for name in LEVELS:
        assert levels[name] == pytest.approx([round(100 * level) for level in LEVELS[name]], abs=3), name
