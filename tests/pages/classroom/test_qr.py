"""The QR code: whole SVG, white around it, and the same modules as the encoder gives for the address."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ElementTree

import segno

from pages.classroom.qr import QUIET, qr_data_url, qr_svg

URL = "http://192.168.1.23:8501/c/AB23CD"


def test_it_is_a_picture_with_a_title_and_a_quiet_zone() -> None:
    tree = ElementTree.fromstring(qr_svg(URL))
    size = segno.make(URL, error="m", micro=False).symbol_size(border=QUIET)[0]
    assert tree.get("viewBox") == f"0 0 {size} {size}"
    assert tree.get("width") is None, "it scales"
    assert tree.findtext("{http://www.w3.org/2000/svg}title") == f"QR code of {URL}"
    colours = set(re.findall(r'(?:fill|stroke)="(#\w+)"', qr_svg(URL)))
    assert colours == {"#000", "#fff"}


def test_an_address_with_markup_in_it_stays_text() -> None:
    assert ElementTree.fromstring(qr_svg("http://x/<script>&")).findtext("{http://www.w3.org/2000/svg}title") == "QR code of http://x/<script>&"


def test_every_address_has_its_own() -> None:
    assert qr_svg(URL) != qr_svg(URL.replace("CD", "CE"))


def test_as_a_picture_it_is_the_same() -> None:
    head, _, data = qr_data_url(URL).partition(",")
    assert head == "data:image/svg+xml;base64"
    assert base64.b64decode(data).decode() == qr_svg(URL)
